// Every exported argument is one that Megatron-LM core 0.20 accepts (megatron_flags.txt beside this
// file), and what it would refuse is refused here.
#include "planner/export_megatron.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "costmodel/yaml_io.hpp"
#include "planner/megatron_rules.hpp"

namespace {

using costmodel::ParallelPlan;
using costmodel::Recomputation;
using costmodel::Scenario;
using costmodel::ScheduleKind;
using Strings = std::vector<std::string>;

const std::string root = SHARDPLAN_SOURCE_DIR;

Scenario scenario_of(const std::string& model, const std::string& stack = "megatron-core-2026") {
  const std::string text = fmt::format(
      "{{model: {}, cluster: {{base: dgx-h100, devices: 16}},\n"
      " training: {{global_batch: 64, sequence: 128, stack: {}}},\n plan: {{tp: 2, pp: 2}}}}",
      model, stack);
  return costmodel::read_scenario(costmodel::parse_yaml(text, "test.yaml"), "test",
                                  {{root + "/configs"}});
}

Scenario tiny_llama() { return scenario_of("{base: llama-tiny, layers: 8}"); }

// t 2 · p 2 · d 4, 16 micro-batches.
ParallelPlan small_plan() { return {.tp = 2, .pp = 2, .dp = 4}; }

std::set<std::string> accepted_flags() {
  std::ifstream in(root + "/tests/planner/megatron_flags.txt");
  std::set<std::string> flags;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) flags.insert(line);
  }
  return flags;
}

bool has(const Strings& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Strings keys(const Scenario& scenario, const ParallelPlan& plan) {
  Strings list;
  for (const auto& violation : planner::megatron_violations(scenario, plan))
    list.push_back(violation.key);
  return list;
}

std::string refusal(const Scenario& scenario, const ParallelPlan& plan) {
  try {
    planner::export_megatron(scenario, plan);
  } catch (const costmodel::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// What one change of a good plan is refused for.
using Change = std::function<void(Scenario&, ParallelPlan&)>;
std::string refused_for(const Change& change) {
  Scenario scenario = tiny_llama();
  ParallelPlan plan = small_plan();
  change(scenario, plan);
  return refusal(scenario, plan);
}

planner::MegatronExport exported(const Change& change) {
  Scenario scenario = tiny_llama();
  ParallelPlan plan = small_plan();
  change(scenario, plan);
  return planner::export_megatron(scenario, plan);
}

// All plans of a few values a key, valid or not.
void for_each_plan(const std::function<void(const ParallelPlan&)>& visit) {
  const std::array<costmodel::Recompute, 4> recomputes{{{Recomputation::none, 0},
                                                        {Recomputation::selective, 0},
                                                        {Recomputation::full, 0},
                                                        {Recomputation::full, 1}}};
  for (const int tp : {1, 2, 4, 8}) {
    for (const int pp : {1, 2, 4}) {
      for (const int vpp : {1, 2}) {
        for (const auto& recompute : recomputes) {
          for (const int zero : {0, 1, 2, 3}) {
            for (const bool sp : {false, true}) {
              ParallelPlan plan{.tp = tp, .pp = pp, .dp = 16 / (tp * pp), .vpp = vpp};
              if (tp * pp > 16) continue;
              plan.sequence_parallel = sp;
              plan.recompute = recompute;
              plan.zero = zero;
              if (vpp > 1) plan.schedule = ScheduleKind::interleaved;
              visit(plan);
            }
          }
        }
      }
    }
  }
}

// What bash hands to torchrun, a word a line.
Strings words_of(const std::string& script) {
  const auto file = std::filesystem::temp_directory_path() /
                    fmt::format("shardplan-script-{}.sh", std::hash<std::string>{}(script));
  std::ofstream(file) << "torchrun() { printf '%s\\n' \"$@\"; }\n" << script;
  FILE* pipe = popen(("env NODE_RANK=1 MASTER_ADDR=first bash " + file.string()).c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  std::filesystem::remove(file);
  Strings words;
  for (std::size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos;
       from = to + 1)
    words.push_back(text.substr(from, to - from));
  return words;
}

}  // namespace

TEST_CASE("every exported argument is one Megatron-LM accepts") {
  const auto flags = accepted_flags();
  REQUIRE(flags.size() > 800);
  std::size_t count = 0;
  for (const auto* model :
       {"{base: llama-tiny, layers: 8}", "{base: gpt-tiny, layers: 8}", "qwen2-7b", "qwen3-8b",
        "nemotron-4-15b", "gpt-neox-20b", "{base: llama-tiny, activation: relu}"}) {
    for (const auto* stack : {"megatron-core-2026", "megatron-core-2025", "megatron-core-2024",
                              "megatron-2021", "megatron-bridge"}) {
      if (!std::filesystem::exists(root + "/configs/stacks/" + stack + ".yaml")) continue;
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
          if (!flags.contains(name)) FAIL_CHECK(name << " is not an argument of Megatron-LM");
        }
      });
    }
  }
  CHECK(count > 5'000);
}

TEST_CASE("the arguments of the script are accepted too") {
  const auto flags = accepted_flags();
  const Scenario scenario = tiny_llama();
  const auto plan = small_plan();
  const auto words =
      words_of(planner::launch_script(planner::export_megatron(scenario, plan), scenario, plan));
  const auto begin = std::find(words.begin(), words.end(), "pretrain_gpt.py");
  REQUIRE(begin != words.end());
  for (auto word = begin; word != words.end(); ++word) {
    if (word->starts_with("--")) CHECK_MESSAGE(flags.contains(*word), *word);
  }
}

TEST_CASE("what our own rules allow, Megatron-LM accepts") {
  for (const auto* model : {"{base: llama-tiny, layers: 8}", "{base: gpt-tiny, layers: 6}"}) {
    const Scenario scenario = scenario_of(model);
    for_each_plan([&](const ParallelPlan& plan) {
      const bool ours =
          costmodel::is_valid(plan, scenario.model, scenario.cluster, scenario.training);
      CAPTURE(costmodel::to_string(plan));
      if (ours) CHECK(keys(scenario, plan).empty());
    });
  }
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
                               "--attention-backend flash",
                               "--cross-entropy-loss-fusion"}) {
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
  CHECK(has(with([](auto&, auto& p) { p.zero = 3; }),
            "--data-parallel-sharding-strategy optim_grads_params"));
  CHECK(has(with([](auto&, auto& p) { p.recompute.granularity = Recomputation::selective; }),
            "--recompute-granularity selective"));
  const auto full = with([](auto&, auto& p) { p.recompute = {Recomputation::full, 0}; });
  CHECK((has(full, "--recompute-method uniform") && has(full, "--recompute-num-layers 1")));
  const auto first = with([](auto&, auto& p) { p.recompute = {Recomputation::full, 3}; });
  CHECK((has(first, "--recompute-method block") && has(first, "--recompute-num-layers 3")));
  CHECK(has(with([](auto&, auto& p) { p.sequence_parallel = true; }), "--tp-comm-overlap"));
  CHECK(has(with([](auto& s, auto&) { s.training.sgd = true; }), "--optimizer sgd"));
  CHECK(has(with([](auto& s, auto&) {
              s.training.precision = s.training.gradient_precision = costmodel::Precision::fp16;
            }),
            "--fp16"));
  CHECK(
      has(with([](auto& s, auto&) { s.training.gradient_precision = costmodel::Precision::bf16; }),
          "--grad-reduce-in-bf16"));
  const auto graphs = exported([](auto& s, auto&) { s.training.overlap.cuda_graph = true; });
  CHECK(has(graphs.arguments, "--cuda-graph-impl transformer_engine"));
  CHECK(graphs.environment.size() == 1);  // no expandable segments
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

TEST_CASE("refused: sizes and batch") {
  const auto says = [](const Change& change, const char* part) {
    const std::string text = refused_for(change);
    CHECK_MESSAGE(contains(text, part), text);
  };
  says([](auto&, auto& p) { p.pp = 3; }, "world size 16 is not divisible by tp 2 x pp 3");
  says([](auto&, auto& p) { p.dp = 2; }, "makes dp 4 of 16 devices");
  says([](auto& s, auto& p) { s.cluster.devices = 20, p.dp = 5; }, "do not fill nodes of 8");
  says([](auto&, auto& p) { p.micro_batch = 3; }, "global batch 64 is not divisible by");
  says([](auto& s, auto&) { s.training.global_batch = 2; }, "global batch 2 is not divisible by");
  says([](auto& s, auto&) { s.model.heads = 5; }, "num_attention_heads 5 must be a multiple");
  says([](auto& s, auto&) { s.model.kv_heads = 3; }, "num_query_groups 3 must be a multiple");
  says([](auto& s, auto&) { s.model.ffn_hidden = 351; }, "ffn_hidden_size 351");
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
    CHECK(accepted_flags().contains(argument.substr(0, argument.find(' '))));
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
  says(biased, "grouped products of experts have no bias");
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
    CHECK(accepted_flags().contains(argument.substr(0, argument.find(' '))));
    CHECK_FALSE(contains(argument, "--q-lora-rank"));
  }
  s = scenario_of("{base: deepseek-v3, layers: 4}");
  CHECK(has(planner::export_megatron(s, plan).arguments, "--q-lora-rank 1536"));
}

TEST_CASE("refused: sequences and the model") {
  const auto says = [](const Change& change, const char* part) {
    const std::string text = refused_for(change);
    CHECK_MESSAGE(contains(text, part), text);
  };
  says([](auto&, auto& p) { p.tp = 1, p.dp = 8, p.sequence_parallel = true; },
       "without tensor parallelism");
  says([](auto& s, auto& p) { s.training.sequence = 127, p.sequence_parallel = true; },
       "sequence length 127");
  says([](auto& s, auto&) { s.training.stack.overlap.tp_comm_overlap = false; },
       "--tp-comm-overlap needs sequence parallelism");
  says(
      [](auto& s, auto&) {
        s.model.positions = costmodel::Positions::learned;
        s.model.max_positions = 64;
      },
      "max_position_embeddings 64 must be at least seq_length 128");
  const auto halved = [](ParallelPlan& p) { p.dp = 2, p.cp = 2; };
  says([&](auto& s, auto& p) { halved(p), s.training.sequence = 126; },
       "sequence length 126 is not divisible by 4 (2 x cp)");
  says([&](auto& s, auto& p) { halved(p), p.sequence_parallel = true, s.training.sequence = 132; },
       "not divisible by 8 (2 x cp x tp)");
  says(
      [&](auto& s, auto& p) {
        halved(p), p.cp_comm = costmodel::ContextExchange::a2a, s.model.kv_heads = 2;
      },
      "heads needs to be divisible by cp 2");
  says(
      [&](auto& s, auto& p) {
        halved(p), s.training.stack.attention = costmodel::AttentionKernel::unfused;
      },
      "context parallelism needs fused or flash attention");
  says([&](auto&, auto& p) { halved(p), p.dp = 4; }, "tp 2 and pp 2 x cp 2");
  says([](auto& s, auto&) { s.model.state_size = 128; }, "pretrain_mamba.py");
  says([](auto& s, auto&) { s.model.embedding_norm = true; }, "normalisation after the embedding");
  says([](auto& s, auto&) { s.model.linear_bias = true; }, "set qkv_bias: true");
}

TEST_CASE("refused: pipelines") {
  const auto says = [](const Change& change, const char* part) {
    const std::string text = refused_for(change);
    CHECK_MESSAGE(contains(text, part), text);
  };
  const auto interleave = [](ParallelPlan& p) {
    p.vpp = 2;
    p.schedule = ScheduleKind::interleaved;
  };
  says([](auto& s, auto& p) { s.model.layers = 5, p.pp = 4, p.dp = 2; },
       "5 layers are not divisible by the pipeline");
  says([&](auto&, auto& p) { interleave(p), p.vpp = 3; },
       "4 layers of a pipeline rank are not divisible by vpp 3");
  says([](auto&, auto& p) { p.stage_layers = {3, 2, 3}; }, "a layout of 3 stages for pp 2");
  says([](auto&, auto& p) { p.stage_layers = {4, 4, 4}; }, "a layout of 3 stages for pp 2");
  says([](auto&, auto& p) { p.stage_layers = {5, 4}; }, "the layout has 9 layers, the model 8");
  for (const auto kind :
       {ScheduleKind::gpipe, ScheduleKind::serial, ScheduleKind::ideal,
        ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_v})
    says([&](auto&, auto& p) { p.schedule = kind; }, "allowed: 1f1b, interleaved");
  says([](auto&, auto& p) { p.vpp = 2; }, "interleaves when vpp > 1 and only then");
  says([](auto&, auto& p) { p.schedule = ScheduleKind::interleaved; }, "interleaves when vpp > 1");
  says([&](auto&, auto& p) { p.pp = 1, p.dp = 8, interleave(p); }, "needs pp > 1;");
  says([&](auto& s, auto& p) { s.training.overlap.pp_overlap = false, interleave(p); },
       "needs pp > 2 when p2p communication is not overlapped");
  says([&](auto& s, auto& p) { s.training.global_batch = 12, interleave(p); },
       "3 micro-batches do not divide into groups of pp 2");
  says([](auto&, auto& p) { p.rank_order = "pp-tp-cp-ep-dp"; },
       "allowed: tp-cp-ep-dp-pp, tp-cp-ep-pp-dp");
}

TEST_CASE("refused: optimizer and recomputation") {
  const auto says = [](const Change& change, const char* part) {
    const std::string text = refused_for(change);
    CHECK_MESSAGE(contains(text, part), text);
  };
  says([](auto&, auto& p) { p.zero = 4; }, "there is no ZeRO 4");
  says([](auto& s, auto&) { s.training.stack.overlap.overlap_param_gather = false; },
       "--overlap-param-gather needs the distributed optimizer");
  says([](auto& s, auto& p) { s.training.overlap.overlap_grad_reduce = false, p.zero = 1; },
       "--overlap-param-gather needs --overlap-grad-reduce");
  says([](auto& s, auto& p) { s.training.sgd = true, p.zero = 1; }, "with Adam only");
  says(
      [](auto&, auto& p) {
        p.recompute = {Recomputation::selective, 2};
      },
      "go with full recomputation only");
  says(
      [](auto& s, auto& p) {
        s.training.overlap.cuda_graph = true;
        p.recompute = {Recomputation::full, 0};
      },
      "CUDA graphs do not go with full recomputation");
}

TEST_CASE("a refusal names the place in the scenario") {
  CHECK(refused_for([](auto&, auto& p) { p.pp = 3; }).starts_with("test.yaml:3:"));
}

TEST_CASE("the script hands bash the very words") {
  Scenario scenario = tiny_llama();
  scenario.name = "two\nlines; rm -rf $HOME";
  ParallelPlan plan = small_plan();
  plan.stage_layers = {5, 3};
  const auto out = planner::export_megatron(scenario, plan);
  const auto words = words_of(planner::launch_script(out, scenario, plan));
  REQUIRE(words.size() > 10);
  const Strings start(words.begin(), words.begin() + 6);
  CHECK(start == Strings{"--nproc-per-node", "8", "--nnodes", "2", "--node-rank", "1"});
  CHECK(has(words, "Et*5|t*3,L"));
  CHECK(has(words, "first"));
  CHECK(has(words, "NullTokenizer"));
  CHECK(has(words, "511"));  // and the end-of-document token: 512
  scenario.cluster.devices_per_node = 16;
  const auto single = words_of(planner::launch_script(out, scenario, plan));
  CHECK(Strings(single.begin(), single.begin() + 5) ==
        Strings{"--nproc-per-node", "16", "--nnodes", "1", "pretrain_gpt.py"});
  for (const auto& argument : out.arguments)
    CHECK_MESSAGE(has(words, argument.substr(0, argument.find(' '))), argument);
}
