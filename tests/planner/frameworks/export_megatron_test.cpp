// Every exported argument is one that Megatron-LM core 0.20 accepts
// (configs/frameworks).
#include "planner/frameworks/export_megatron.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "planner/frameworks/megatron_rules.hpp"
#include "planner/frameworks/megatron_words.hpp"
#include "tests/planner/support/megatron_cases.hpp"

namespace export_megatron_test {

using costmodel::ParallelPlan;
using costmodel::Recomputation;
using costmodel::Scenario;
using costmodel::ScheduleKind;
using fixtures::contains;
using megatron::Change;
using megatron::exported;
using megatron::for_each_plan;
using megatron::has;
using megatron::refusal;
using megatron::refused_for;
using megatron::scenario_of;
using megatron::small_plan;
using megatron::tiny_llama;

TEST_CASE("every exported argument is one Megatron-LM accepts") {
  const std::string stacks = fixtures::configs().directories.front() + "/stacks/";
  std::size_t count = 0;
  for (const auto* model :
       {"{base: llama-tiny, layers: 8}", "{base: gpt-tiny, layers: 8}", "qwen2-7b", "qwen3-8b",
        "nemotron-4-15b", "gpt-neox-20b", "{base: llama-tiny, activation: relu}"}) {
    for (const auto* stack : {"megatron-core-2026", "megatron-core-2025", "megatron-core-2024",
                              "megatron-2021", "megatron-bridge"}) {
      if (!std::filesystem::exists(stacks + stack + ".yaml")) continue;
      Scenario scenario = scenario_of(model, stack);
      for_each_plan([&](const ParallelPlan& plan) {
        scenario.training.precision = static_cast<costmodel::Precision>(count % 6);
        scenario.training.overlap.cuda_graph = count % 5 == 0;
        if (!planner::megatron_violations(scenario, plan).empty()) {
          ++count;
          return;
        }
        ++count;
        for (const auto& argument : planner::export_megatron(scenario, plan).arguments) {
          const std::string name = argument.substr(0, argument.find(' '));
          if (!planner::is_megatron_flag(name))
            FAIL_CHECK(name << " is not an argument of Megatron-LM");
        }
      });
    }
  }
  CHECK(count > 5'000);
}

TEST_CASE("the arguments of a model and its plan") {
  const Scenario scenario = tiny_llama();
  const auto out = planner::export_megatron(scenario, small_plan());
  for (const auto* argument : {"--tensor-model-parallel-size 2",
                               "--pipeline-model-parallel-size 2",
                               "--micro-batch-size 1",
                               "--global-batch-size 64",
                               "--num-layers 8",
                               "--hidden-size 128",
                               "--ffn-hidden-size 352",
                               "--num-attention-heads 4",
                               "--kv-channels 32",
                               "--group-query-attention",
                               "--num-query-groups 2",
                               "--seq-length 128",
                               "--max-position-embeddings 128",
                               "--position-embedding-type rope",
                               "--normalization RMSNorm",
                               "--swiglu",
                               "--disable-bias-linear",
                               "--untie-embeddings-and-output-weights",
                               "--bf16",
                               "--optimizer adam",
                               "--accumulate-allreduce-grads-in-fp32",
                               "--overlap-grad-reduce",
                               "--attention-backend auto",
                               "--cross-entropy-loss-fusion",
                               "--cross-entropy-fusion-impl native"}) {
    CHECK_MESSAGE(has(out.arguments, argument), argument);
  }
  CHECK_FALSE(has(out.arguments, "--overlap-param-gather"));
  CHECK(has(out.environment, "CUDA_DEVICE_MAX_CONNECTIONS=1"));
}

TEST_CASE("choices of the model") {
  const auto arguments = [](const char* model) {
    return planner::export_megatron(scenario_of(model), small_plan()).arguments;
  };
  const auto gpt = arguments("gpt-tiny");
  CHECK(has(gpt, "--position-embedding-type learned_absolute"));
  CHECK(has(gpt, "--normalization LayerNorm"));
  for (const auto* absent : {"--swiglu", "--disable-bias-linear", "--add-qkv-bias",
                             "--group-query-attention", "--untie-embeddings-and-output-weights"})
    CHECK_MESSAGE(!has(gpt, absent), absent);
  CHECK(has(arguments("qwen2-7b"), "--add-qkv-bias"));
  CHECK(has(arguments("qwen3-8b"), "--qk-layernorm"));
  CHECK(has(arguments("nemotron-4-15b"), "--squared-relu"));
  CHECK(has(arguments("{base: llama-tiny, activation: gelu}"), "--quick-geglu"));
}

TEST_CASE("what has no argument but the same shape is a note") {
  const auto note = [](const char* model) {
    const auto notes = planner::export_megatron(scenario_of(model), small_plan()).notes;
    return fmt::format("{}", fmt::join(notes, "\n"));
  };
  CHECK(contains(note("gpt-neox-20b"), "no parallel block"));
  CHECK(contains(note("{base: gpt-tiny, positions: alibi}"), "no ALiBi"));
  CHECK(contains(note("{base: gpt-tiny, activation: relu}"), "no ungated relu"));
  CHECK(contains(note("{base: llama-tiny, activation: relu}"), "no gated relu"));
  CHECK(contains(note("gpt-tiny"), "interleaved schedule only"));
  CHECK(contains(note("gpt-tiny"), "--tp-comm-overlap is left out"));
}

TEST_CASE("ZeRO, recomputation, overlap, precision") {
  const auto with = [](const Change& change) { return exported(change).arguments; };
  const auto one = with([](auto&, auto& p) { p.zero = 1; });
  CHECK(has(one, "--use-distributed-optimizer"));
  CHECK(has(one, "--overlap-param-gather"));
  const auto two = exported([](auto&, auto& p) { p.zero = 2; });
  CHECK(has(two.arguments, "--use-megatron-fsdp"));
  CHECK(has(two.arguments, "--data-parallel-sharding-strategy optim_grads"));
  CHECK(has(two.arguments, "--ckpt-format fsdp_dtensor"));
  CHECK(has(two.arguments, "--init-model-with-meta-device"));
  CHECK(has(two.environment, "CUDA_DEVICE_MAX_CONNECTIONS=8"));
  CHECK(has(two.arguments, "--megatron-fsdp-main-grads-dtype fp32"));
  CHECK_FALSE(has(one, "--megatron-fsdp-main-grads-dtype fp32"));
  const auto hybrid = with([](auto&, auto& p) {
    p.zero = 3;
    p.dp_replicate = 2;
    p.outer_sharding = costmodel::OuterSharding::optim;
  });
  CHECK(has(hybrid, "--num-distributed-optimizer-instances 2"));
  CHECK(has(hybrid, "--outer-dp-sharding-strategy optim"));
  CHECK_FALSE(has(two.arguments, "--num-distributed-optimizer-instances"));
  CHECK(has(with([](auto&, auto& p) { p.zero = 3; }),
            "--data-parallel-sharding-strategy optim_grads_params"));
  CHECK(has(with([](auto&, auto& p) { p.recompute.granularity = Recomputation::selective; }),
            "--recompute-granularity selective"));
  const auto full = with([](auto&, auto& p) { p.recompute = {Recomputation::full, 0}; });
  CHECK((has(full, "--recompute-method uniform") && has(full, "--recompute-num-layers 1")));
  const auto first = with([](auto&, auto& p) { p.recompute = {Recomputation::full, 3}; });
  CHECK((has(first, "--recompute-method block") && has(first, "--recompute-num-layers 3")));
  CHECK(has(with([](auto&, auto& p) { p.sequence_parallel = true; }), "--tp-comm-overlap"));
  CHECK(has(with([](auto& s, auto&) { s.training.optimizer = costmodel::Optimizer::sgd; }),
            "--optimizer sgd"));
  const auto muon = with([](auto& s, auto& p) {
    s.training.optimizer = costmodel::Optimizer::muon;
    p.zero = 1;
  });
  CHECK(has(muon, "--optimizer muon"));
  CHECK(has(muon, "--muon-tp-mode blockwise"));
  CHECK(has(muon, "--use-distributed-optimizer"));
  CHECK(has(with([](auto& s, auto&) {
              s.training.precision = s.training.gradient_precision = costmodel::Precision::fp16;
            }),
            "--fp16"));
  CHECK(
      has(with([](auto& s, auto&) { s.training.gradient_precision = costmodel::Precision::bf16; }),
          "--grad-reduce-in-bf16"));
  const auto graphs = exported([](auto& s, auto&) { s.training.overlap.cuda_graph = true; });
  CHECK(has(graphs.arguments, "--cuda-graph-impl transformer_engine"));
  CHECK(has(graphs.environment, "NCCL_GRAPH_REGISTER=0"));
  const auto scopes = exported([](auto& s, auto&) { s.training.overlap.graph_attention = true; });
  CHECK(has(scopes.environment, "NCCL_GRAPH_REGISTER=0"));
  CHECK_FALSE(has(one, "--cuda-graph-impl transformer_engine"));
}

TEST_CASE("Transformer Engine's loss is written for programs that start with it") {
  Scenario scenario = tiny_llama();
  const auto with = [&](costmodel::LossKernel loss, planner::MegatronProgram taken) {
    scenario.training.stack.kernels.loss = loss;
    return planner::export_megatron(scenario, small_plan(), taken);
  };
  const auto refused = [](const planner::MegatronExport& out) {
    return contains(fmt::format("{}", fmt::join(out.notes, "\n")), "Transformer Engine's loss");
  };
  using costmodel::LossKernel;
  using planner::MegatronProgram;
  const auto te = with(LossKernel::te, MegatronProgram::configurations);
  CHECK(has(te.arguments, "--cross-entropy-fusion-impl te"));
  CHECK_FALSE(refused(te));
  const auto instead = with(LossKernel::te, MegatronProgram::pretrain_gpt);
  CHECK(has(instead.arguments, "--cross-entropy-fusion-impl native"));
  CHECK(refused(instead));
  const auto native = with(LossKernel::native, MegatronProgram::configurations);
  CHECK(has(native.arguments, "--cross-entropy-fusion-impl native"));
  CHECK_FALSE(refused(native));
  CHECK_FALSE(has(with(LossKernel::unfused, MegatronProgram::configurations).arguments,
                  "--cross-entropy-loss-fusion"));
}

TEST_CASE("pipelines: virtual stages, layouts and rank orders") {
  const auto interleaved = exported([](auto&, auto& p) {
    p.vpp = 2;
    p.schedule = ScheduleKind::interleaved;
  });
  CHECK(has(interleaved.arguments, "--num-virtual-stages-per-pipeline-rank 2"));
  const auto layout = [](int pp, int vpp, std::vector<int> layers) {
    ParallelPlan plan{.pp = pp, .vpp = vpp};
    plan.stage_layers = std::move(layers);
    return planner::pipeline_layout(plan);
  };
  CHECK(layout(4, 1, {2, 3, 3, 2}) == "Et*2|t*3|t*3|t*2,L");
  CHECK(layout(2, 2, {0, 1, 6, 1}) == "E|t|t*6|t,L");
  CHECK(layout(2, 2, {1, 0, 7, 0}) == "Et||t*7|L");
  ParallelPlan predicting{.pp = 2};
  predicting.stage_layers = {3, 1};
  CHECK(planner::pipeline_layout(predicting, 1) == "Et*3|t,m*1,L");
  CHECK(has(exported([](auto&, auto& p) {
              p.stage_layers = {5, 3};
            }).arguments,
            "--pipeline-model-parallel-layout Et*5|t*3,L"));
  const auto even = exported([](auto&, auto& p) { p.stage_layers = {4, 4}; });
  for (const auto& argument : even.arguments) CHECK_FALSE(contains(argument, "layout"));
  const auto counted = [](int layers) {
    return exported([=](auto& s, auto& p) { s.model.layers = layers, p.pp = 4, p.dp = 2; });
  };
  const std::string loss = "--account-for-loss-in-pipeline-split";
  const std::string embedding = "--account-for-embedding-in-pipeline-split";
  CHECK((has(counted(7).arguments, loss) && !has(counted(7).arguments, embedding)));
  CHECK((has(counted(6).arguments, loss) && has(counted(6).arguments, embedding)));
  CHECK((!has(counted(8).arguments, loss) && !has(counted(8).arguments, embedding)));
  const auto order = [](const char* text, auto... sizes) {
    ParallelPlan plan{sizes...};
    plan.rank_order = text;
    return planner::rank_order_of(plan);
  };
  using planner::RankOrder;
  CHECK(order("tp-cp-ep-dp-pp", 2, 2, 2) == RankOrder::tensor_data_pipeline);
  CHECK(order("tp-cp-ep-pp-dp", 2, 2, 2) == RankOrder::tensor_pipeline_data);
  CHECK(order("tp-cp-ep-pp-dp", 2, 1, 2) == RankOrder::tensor_data_pipeline);
  CHECK(order("dp-tp-cp-ep-pp", 2, 2, 2) == RankOrder::other);
  CHECK(order("dp-tp-cp-ep-pp", 2, 2, 1) == RankOrder::tensor_data_pipeline);
  const auto rings = exported([](auto&, auto& p) {
    p.dp = 2, p.cp = 2, p.cp_comm = costmodel::ContextExchange::all_gather;
  });
  CHECK(has(rings.arguments, "--context-parallel-size 2"));
  CHECK(has(rings.arguments, "--cp-comm-type all_gather"));
  CHECK(order("tp-ep-pp-cp-dp", 2, 2, 2, 2) == RankOrder::other);
  CHECK(order("tp-cp-ep-pp-dp", 2, 2, 2, 2) == RankOrder::tensor_pipeline_data);
  CHECK(has(exported([](auto&, auto& p) { p.rank_order = "tp-cp-ep-pp-dp"; }).arguments,
            "--use-tp-pp-dp-mapping"));
}

TEST_CASE("experts in Megatron's words") {
  const auto moe = [](std::int64_t dense, std::int64_t every) {
    Scenario s = scenario_of(
        "{kind: moe, layers: 6, hidden: 256, heads: 8, experts: 8, top_k: 2, ffn_hidden: 512, "
        "expert_ffn_hidden: 128, shared_experts: 2, vocab: 1000}");
    s.model.first_dense_layers = dense, s.model.moe_every = every;
    return s;
  };
  ParallelPlan plan = small_plan();
  plan.sequence_parallel = true;
  plan.ep = 4, plan.etp = 2;
  const auto flags = [&](const Scenario& s) { return planner::export_megatron(s, plan).arguments; };
  for (const auto* argument :
       {"--num-experts 8", "--moe-router-topk 2", "--moe-ffn-hidden-size 128",
        "--moe-shared-expert-intermediate-size 256", "--expert-model-parallel-size 4",
        "--expert-tensor-parallel-size 2", "--moe-grouped-gemm"})
    CHECK(has(flags(moe(0, 1)), argument));
  for (const auto& argument : flags(moe(0, 1))) {
    CHECK(planner::is_megatron_flag(argument.substr(0, argument.find(' '))));
    CHECK_FALSE(contains(argument, "--moe-layer-freq"));
  }
  CHECK(has(flags(moe(2, 1)), "--moe-layer-freq ([0]*2+[1]*4)"));
  CHECK(has(flags(moe(1, 2)), "--moe-layer-freq [0,0,1,0,1,0]"));
  const auto says = [&](const Scenario& s, const char* part) {
    const std::string text = refusal(s, plan);
    CHECK_MESSAGE(contains(text, part), text);
  };
  plan.ep = 3;
  says(moe(0, 1), "number of experts 8 should be a multiple of");
  plan.ep = 8, plan.etp = 2;
  says(moe(0, 1), "world size 16 is not divisible by etp 2 x ep 8 x pp 2");
  plan.ep = 4, plan.sequence_parallel = false;
  says(moe(0, 1), "experts with tensor parallelism need sequence parallelism");
  plan.sequence_parallel = true;
  Scenario biased = moe(0, 1);
  biased.model.linear_bias = biased.model.qkv_bias = true;
  says(biased, "biases of experts need an expert tensor parallel size of 1");
}

TEST_CASE("recipes of mixtures of experts in Megatron's words") {
  Scenario s = scenario_of("{base: deepseek-v2-lite, mtp_layers: 1}");
  s.model.expert_groups = 8, s.model.expert_groups_per_token = 3;
  ParallelPlan plan{.tp = 1, .pp = 1, .dp = 16, .ep = 8, .zero = 1};
  plan.recompute = {Recomputation::selective, 0,
                    costmodel::bit_of(costmodel::RecomputeModule::mla_up_proj) |
                        costmodel::bit_of(costmodel::RecomputeModule::moe_act)};
  const auto words = [&] {
    const auto all = planner::export_megatron(s, plan).arguments;
    for (const auto& argument : all)
      CHECK_MESSAGE(planner::is_megatron_flag(argument.substr(0, argument.find(' '))), argument);
    return all;
  };
  const auto plain = words();
  for (const auto* argument :
       {"--moe-token-dispatcher-type alltoall", "--recompute-modules mla_up_proj moe_act",
        "--mtp-num-layers 1", "--moe-router-num-groups 8", "--moe-router-group-topk 3"})
    CHECK_MESSAGE(has(plain, argument), argument);
  plan.experts = {costmodel::Dispatcher::alltoall, 0, false, false, true};
  CHECK(has(words(), "--moe-shared-expert-overlap"));
  plan.experts = {costmodel::Dispatcher::hybridep, 32, true, true, false};
  s.training.fused_grouped_mlp = true;
  s.training.capacity_factor = 1.25;
  s.training.expert_buffer_factor = 1.5;
  s.training.paged_stash = true;
  s.training.moment_precision = costmodel::Precision::bf16;
  s.training.gather_precision = costmodel::Precision::mxfp8;
  s.training.overlap.graph_attention = s.training.overlap.graph_router = true;
  const auto all = words();
  for (const auto* argument :
       {"--moe-token-dispatcher-type flex", "--moe-flex-dispatcher-backend hybridep",
        "--moe-flex-dispatcher-num-sms 32", "--overlap-moe-expert-parallel-comm",
        "--delay-wgrad-compute", "--use-transformer-engine-op-fuser",
        "--moe-expert-capacity-factor 1.25", "--moe-pad-expert-input-to-capacity",
        "--moe-expert-rank-capacity-factor 1.5", "--moe-paged-stash",
        "--use-precision-aware-optimizer", "--exp-avg-dtype bf16", "--exp-avg-sq-dtype bf16",
        "--fp8-param-gather", "--reuse-grad-buf-for-mxfp8-param-ag",
        "--cuda-graph-modules attn moe_router moe_preprocess"})
    CHECK_MESSAGE(has(all, argument), argument);
  plan.experts.dispatcher = costmodel::Dispatcher::deepep;
  s.training.expert_buffer_factor = 0;
  s.training.paged_stash = false;
  const auto deepep = words();
  CHECK(has(deepep, "--moe-flex-dispatcher-num-sms 32"));
  CHECK_FALSE(has(deepep, "--moe-pad-expert-input-to-capacity"));  // it has none
}

TEST_CASE("exchanges of experts that Megatron-LM's validators refuse") {
  const Scenario s = scenario_of("{base: deepseek-v2-lite, layers: 8, first_dense_layers: 0}");
  const auto refused = [&](const std::function<void(ParallelPlan&)>& change) {
    ParallelPlan plan{.tp = 1, .pp = 1, .dp = 16, .ep = 8, .zero = 1};
    plan.experts.overlap = true;
    change(plan);
    return refusal(s, plan);
  };
  CHECK(refused([](ParallelPlan&) {}) == "accepted");
  CHECK(contains(refused([](ParallelPlan& p) { p.ep = 1; }),
                 "Megatron-LM: expert_overlap needs ep above 1"));
  CHECK(contains(refused([](ParallelPlan& p) { p.pp = 2, p.dp = 8; }), "needs virtual stages"));
  CHECK(contains(refused([](ParallelPlan& p) {
                   p.recompute = {Recomputation::full, 0};
                 }),
                 "does not go with full"));
  CHECK(contains(refused([](ParallelPlan& p) {
                   p.recompute = {Recomputation::selective, 0,
                                  costmodel::bit_of(costmodel::RecomputeModule::moe)};
                 }),
                 "does not go with recomputed experts"));
  CHECK(contains(refused([](ParallelPlan& p) { p.experts.shared_overlap = true; }),
                 "does not go with --moe-shared"));
  CHECK(contains(refused([](ParallelPlan& p) {
                   p.experts = {costmodel::Dispatcher::deepep, 0, false, false, false};
                   p.ep = 1;
                 }),
                 "DeepEP needs experts on several ranks"));
  CHECK(contains(refused([](ParallelPlan& p) {
                   p.experts = {costmodel::Dispatcher::allgather, 0, false, false, true};
                 }),
                 "Megatron-LM: dispatcher allgather does not overlap with computation"));
}

TEST_CASE("16-bit moments want Adam and a sharded optimizer") {
  const auto with = [](int zero, costmodel::Optimizer optimizer) {
    return refused_for([=](Scenario& s, ParallelPlan& plan) {
      s.training.moment_precision = costmodel::Precision::bf16;
      s.training.optimizer = optimizer;
      plan.zero = zero;
    });
  };
  CHECK(with(1, costmodel::Optimizer::adam) == "accepted");
  CHECK(contains(with(0, costmodel::Optimizer::adam), "needs the distributed optimizer"));
  CHECK(contains(with(1, costmodel::Optimizer::muon), "works with Adam only"));
}

TEST_CASE("latent attention in Megatron's words") {
  Scenario s = scenario_of("deepseek-v2-lite");
  ParallelPlan plan{.tp = 2, .pp = 1, .dp = 8};
  plan.sequence_parallel = true;
  const auto arguments = planner::export_megatron(s, plan).arguments;
  for (const auto* argument : {"--multi-latent-attention", "--kv-lora-rank 512",
                               "--qk-head-dim 128", "--qk-pos-emb-head-dim 64", "--v-head-dim 128"})
    CHECK(has(arguments, argument));
  for (const auto& argument : arguments) {
    CHECK(planner::is_megatron_flag(argument.substr(0, argument.find(' '))));
    CHECK_FALSE(contains(argument, "--q-lora-rank"));
  }
  s = scenario_of("{base: deepseek-v3, layers: 4}");
  CHECK(has(planner::export_megatron(s, plan).arguments, "--q-lora-rank 1536"));
}

// A script with the wrong base of its rotations trains another model than the one imported.
TEST_CASE("what a model computes is exported though it costs nothing") {
  const auto of = [](const char* model) {
    const Scenario scenario = scenario_of(model, "megatron-core-2026");
    ParallelPlan plan;
    plan.dp = 16;
    plan.sequence_parallel = false;
    return planner::export_megatron(scenario, plan).arguments;
  };
  CHECK(has(of("{base: llama-3-8b, layers: 8}"), "--rotary-base 500000"));
  CHECK(has(of("{base: llama-3.1-8b, layers: 8}"), "--use-rope-scaling"));
  CHECK(has(of("{base: llama-3.1-8b, layers: 8}"), "--rope-scaling-factor 8"));
  CHECK_FALSE(has(of("{base: llama-3-8b, layers: 8}"), "--use-rope-scaling"));
  CHECK(has(of("{base: qwen3-8b, layers: 8}"), "--rotary-base 1000000"));
  CHECK(has(of("{base: nemotron-4-15b, layers: 8}"), "--rotary-percent 0.5"));
  CHECK_FALSE(has(of("{base: gpt-tiny, layers: 8}"), "--rotary-base 10000"));
  const auto deepseek = of("{base: deepseek-v3, layers: 8}");
  for (const auto* argument :
       {"--qk-layernorm", "--moe-router-score-function sigmoid", "--moe-router-enable-expert-bias",
        "--moe-router-topk-scaling-factor 2.5", "--moe-router-load-balancing-type seq_aux_loss"}) {
    CAPTURE(argument);
    CHECK(has(deepseek, argument));
  }
  CHECK(has(of("{base: deepseek-v2, layers: 8}"), "--moe-router-pre-softmax"));
  CHECK(has(of("{base: mixtral-8x7b, layers: 8}"), "--moe-router-load-balancing-type aux_loss"));
}

TEST_CASE("narrow precisions name the scaling that is priced") {
  Scenario scenario = tiny_llama();
  const auto in = [&](costmodel::Precision precision) {
    scenario.training.precision = precision;
    return planner::export_megatron(scenario, small_plan()).arguments;
  };
  CHECK(has(in(costmodel::Precision::fp8), "--fp8-recipe tensorwise"));
  CHECK(has(in(costmodel::Precision::mxfp8), "--fp8-recipe mxfp8"));
  CHECK(has(in(costmodel::Precision::nvfp4), "--fp4-recipe nvfp4"));
  CHECK_FALSE(has(in(costmodel::Precision::bf16), "--fp8-recipe tensorwise"));
}

TEST_CASE("a hybrid model is a pattern with a bar between stages") {
  const Scenario hybrid = scenario_of("{base: nemotron-h-8b, layer_pattern: M-M*M-M-}");
  const auto out = planner::export_megatron(hybrid, small_plan());
  CHECK(has(out.arguments, "--hybrid-layer-pattern M-M*|M-M-"));
  CHECK(has(out.arguments, "--mamba-num-heads 128"));
  CHECK(has(out.arguments, "--mamba-num-groups 8"));
  CHECK(has(out.arguments, "--mamba-state-dim 128"));
  for (const auto& argument : out.arguments) CHECK_FALSE(argument.starts_with("--num-layers"));
  const Scenario taps = scenario_of("{base: nemotron-h-8b, layer_pattern: M-M*, conv_kernel: 3}");
  CHECK(contains(refusal(taps, small_plan()), "the convolution of a scan has 4 taps"));
  const Scenario groups = scenario_of("{base: nemotron-h-8b, layer_pattern: M-M*, ssm_groups: 1}");
  CHECK(contains(refusal(groups, small_plan()), "are not divisible by tp 2"));
}

TEST_CASE("numbers of the model: written, or noted; refused for a model that is fine-tuned") {
  const auto of = [](const std::string& model) {
    return planner::export_megatron(scenario_of(model), small_plan());
  };
  CHECK(has(of("{base: qwen3-8b, layers: 8}").arguments, "--norm-epsilon 1e-06"));
  CHECK(has(of("{base: nemotron-4-15b, layers: 8}").arguments, "--apply-layernorm-1p"));
  const auto small = of("{base: llama-3.2-1b, layers: 8}");
  CHECK(has(small.arguments, "--rope-scaling-factor 32"));
  REQUIRE_FALSE(small.notes.empty());
  CHECK(contains(small.notes.back(), "scales rotary positions by 8"));
  CHECK(has(of("{base: llama-tiny, layers: 8, rope_scaling_type: linear, rope_scaling_factor: 4}")
                .arguments,
            "--rotary-seq-len-interpolation-factor 4"));
  const std::string capped = "{base: llama-tiny, layers: 8, logits_softcap: 30}";
  REQUIRE_FALSE(of(capped).notes.empty());
  CHECK(of(capped).notes.back() ==
        "model.logits_softcap 30: Megatron-LM has no argument for it, and trains another model");
  Scenario tuned = scenario_of(capped);
  tuned.training.fine_tuning.method = costmodel::FineTuningMethod::full;
  CHECK(contains(refusal(tuned, small_plan()), "Megatron-LM has no argument for it"));
}

TEST_CASE("experts: multiprocessors by the new word, buffers with the fused products they need") {
  Scenario s = scenario_of("{base: qwen3-30b-a3b, layers: 8}");
  ParallelPlan plan = small_plan();
  plan.sequence_parallel = true;
  plan.ep = 4;
  plan.experts.dispatcher = costmodel::Dispatcher::hybridep;
  plan.experts.multiprocessors = 32;
  const auto out = planner::export_megatron(s, plan);
  CHECK(has(out.arguments, "--moe-flex-dispatcher-num-sms 32"));
  CHECK(has(out.arguments, "--moe-router-dtype fp32"));
  s.training.expert_buffer_factor = 1.5;
  CHECK(contains(refusal(s, plan), "needs --use-transformer-engine-op-fuser"));
  s.training.fused_grouped_mlp = true;
  CHECK(has(planner::export_megatron(s, plan).arguments, "--use-transformer-engine-op-fuser"));
  plan.experts.dispatcher = costmodel::Dispatcher::alltoall;
  plan.experts.multiprocessors = 0;
  CHECK(contains(refusal(s, plan), "needs the dispatcher hybridep"));
}

}  // namespace export_megatron_test
