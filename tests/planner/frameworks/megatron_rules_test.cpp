// What Megatron-LM core 0.20 would refuse is refused here, and what our own rules allow is not.
#include "planner/frameworks/megatron_rules.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/plan/plan_rules.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/megatron_cases.hpp"

namespace megatron_rules_test {

using costmodel::ParallelPlan;
using costmodel::Recomputation;
using costmodel::Scenario;
using costmodel::ScheduleKind;
using fixtures::contains;
using megatron::Change;
using megatron::for_each_plan;
using megatron::refused_for;
using megatron::scenario_of;
using megatron::Strings;

namespace {

Strings keys(const Scenario& scenario, const ParallelPlan& plan) {
  Strings list;
  for (const auto& violation : planner::megatron_violations(scenario, plan))
    list.push_back(violation.key);
  return list;
}

// That a change is refused in these words.
void says(const Change& change, const char* part) {
  const std::string text = refused_for(change);
  CHECK_MESSAGE(contains(text, part), text);
}

}  // namespace

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

TEST_CASE("refused: sizes and batch") {
  says([](auto&, auto& p) { p.pp = 3; }, "world size 16 is not divisible by tp 2 x pp 3");
  says([](auto&, auto& p) { p.dp = 2; }, "makes dp 4 of 16 devices");
  says([](auto& s, auto& p) { s.cluster.devices = 20, p.dp = 5; }, "do not fill nodes of 8");
  says([](auto&, auto& p) { p.micro_batch = 3; }, "global batch 64 is not divisible by");
  says([](auto& s, auto&) { s.training.global_batch = 2; }, "global batch 2 is not divisible by");
  says([](auto& s, auto&) { s.model.heads = 5; }, "num_attention_heads 5 must be a multiple");
  says([](auto& s, auto&) { s.model.kv_heads = 3; }, "num_query_groups 3 must be a multiple");
  says([](auto& s, auto&) { s.model.ffn_hidden = 351; }, "ffn_hidden_size 351");
}

TEST_CASE("refused: sequences and the model") {
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
        halved(p), s.training.stack.kernels.attention = costmodel::AttentionKernel::unfused;
      },
      "context parallelism needs fused or flash attention");
  says([&](auto& s, auto& p) { halved(p), s.training.precision = costmodel::Precision::fp32; },
       "context parallelism needs fused or flash attention");
  says([&](auto&, auto& p) { halved(p), p.dp = 4; }, "tp 2 and pp 2 x cp 2");
  says([](auto& s, auto&) { s.model.state_size = 128; }, "pretrain_mamba.py");
  says([](auto& s, auto&) { s.model.encoder_layers = s.model.decoder_layers = 1; },
       "pretrain_t5.py");
  says([](auto& s, auto&) { s.model.embedding_norm = true; }, "normalisation after the embedding");
  says([](auto& s, auto&) { s.model.linear_bias = true; }, "set qkv_bias: true");
}

TEST_CASE("refused: pipelines") {
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

// "pp groups ... to be the same" (parallel_state.py): of two pipelines on four ranks, those of
// experts over two ranks are others.
TEST_CASE("refused: pipelines inside the data axis with experts over its ranks") {
  const Scenario scenario = scenario_of("{base: mixtral-8x7b, layers: 8}");
  ParallelPlan plan = megatron::small_plan();
  plan.tp = 1, plan.pp = 2, plan.dp = 8, plan.ep = 2;
  CHECK(keys(scenario, plan).empty());
  plan.rank_order = "tp-cp-ep-pp-dp";
  CHECK(keys(scenario, plan) == Strings{"rank_order"});
  plan.ep = 1;
  CHECK(keys(scenario, plan).empty());
}

TEST_CASE("refused: optimizer and recomputation") {
  says([](auto&, auto& p) { p.zero = 4; }, "there is no ZeRO 4");
  says([](auto& s, auto&) { s.training.stack.overlap.overlap_param_gather = false; },
       "--overlap-param-gather needs the distributed optimizer");
  says([](auto& s, auto& p) { s.training.overlap.overlap_grad_reduce = false, p.zero = 1; },
       "--overlap-param-gather needs --overlap-grad-reduce");
  says([](auto& s, auto& p) { s.training.optimizer = costmodel::Optimizer::sgd, p.zero = 1; },
       "with Adam only");
  says([](auto& s, auto&) { s.training.optimizer = costmodel::Optimizer::adam8bit; },
       "its optimizers are adam, sgd and muon");
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

TEST_CASE("what the configuration of a transformer asserts next to its arguments") {
  const auto refused = [](const std::string& model, const std::string& training,
                          const std::string& plan) {
    const auto s = scenarios::read(
        "model: " + model +
        "\ncluster: {base: dgx-h100, devices: 16}\ntraining: {global_batch: 64, sequence: 4096" +
        training + "}\nplan: {dp: 16, " + plan + "}\n");
    std::string text;
    for (const auto& violation : planner::megatron_violations(s, costmodel::resolve_plan(s)))
      text += violation.reason + " ";
    return text;
  };
  const std::string experts = "ep: 8, expert_overlap: true, dispatcher: alltoall",
                    graphs = ", overlap: {cuda_graph: [mlp]}";
  CHECK(refused("deepseek-v2-lite", "", experts).empty());
  CHECK(contains(refused("{base: deepseek-v2-lite, router_bias: true}", "", experts),
                 "--moe-router-enable-expert-bias works with sigmoid scores"));
  CHECK(contains(refused("deepseek-v2-lite", graphs, experts),
                 "does not go with the graph scope mlp"));
  CHECK(contains(refused("llama-3-8b", graphs, "offload: {activations: {layers: 2}}"),
                 "CUDA graphs do not go with --cpu-offloading-num-layers"));
  CHECK(contains(refused("deepseek-v2-lite", "",
                         "ep: 8, shared_expert_overlap: true, dispatcher: alltoall, "
                         "recompute: {modules: [shared_experts]}"),
                 "recomputed shared experts do not go with --moe-shared-expert-overlap"));
}

TEST_CASE("CUDA graphs of parts that the model has, without dropout that is drawn again") {
  using costmodel::bit_of;
  using costmodel::RecomputeModule;
  says(
      [](auto& s, auto& p) {
        s.training.overlap.graph_attention = true;
        p.recompute = {Recomputation::full, 0};
      },
      "CUDA graphs do not go with full recomputation");
  says([](auto& s, auto&) { s.training.overlap.graph_router = true; },
       "moe_router is of experts, which the model lacks");
  const auto dropped = [](RecomputeModule module) {
    return [module](auto& s, auto& p) {
      s.model.dropout = 0.1;
      s.training.overlap.graph_mlp = true;
      p.recompute = {Recomputation::selective, 0, bit_of(module)};
    };
  };
  says(dropped(RecomputeModule::mlp), "no dropout in what they compute again");
  CHECK(refused_for(dropped(RecomputeModule::layernorm)) == "accepted");
  Scenario experts = scenario_of(
      "{kind: moe, layers: 6, hidden: 256, heads: 8, experts: 8, top_k: 2, ffn_hidden: 512, "
      "vocab: 1000}");
  ParallelPlan plan{.tp = 1, .pp = 2, .dp = 8};
  CHECK(keys(experts, plan).empty());
  experts.training.overlap.graph_mlp = true;
  CHECK(keys(experts, plan) == Strings{"recompute"});
  experts.model.first_dense_layers = 2;
  CHECK(keys(experts, plan).empty());
  experts.training.overlap.graph_router = true;
  plan.recompute = {Recomputation::selective, 0, bit_of(RecomputeModule::moe)};
  CHECK(keys(experts, plan) == Strings{"recompute"});
}

TEST_CASE("hybrids: graph scopes, delta nets, and positions of multi-token prediction") {
  const auto hybrid = [](const std::string& more) {
    return scenario_of("{kind: hybrid, hidden: 256, heads: 8, ffn_hidden: 512, vocab: 1000, " +
                       more + "}");
  };
  const std::string experts = "experts: 8, top_k: 2, ", scan = "mamba_heads: 8, ssm_groups: 2, ";
  const ParallelPlan plan{.tp = 1, .pp = 2, .dp = 8}, four{.tp = 4, .pp = 2, .dp = 2};
  Scenario graphs = hybrid(scan + experts + "layer_pattern: MEMEMEM*");
  graphs.training.overlap.graph_scan = true;
  CHECK(keys(graphs, plan).empty());
  CHECK(megatron::has(planner::export_megatron(graphs, plan).arguments,
                      "--cuda-graph-modules mamba"));
  graphs.model.layer_pattern = "*E*E*E*E";
  CHECK(keys(graphs, plan) == Strings{"recompute"});
  graphs.model.layer_pattern = "M-ME*E*E";
  CHECK(keys(graphs, plan).empty());
  graphs.training.overlap.graph_mlp = true;
  CHECK(keys(graphs, plan) == Strings{"recompute"});

  const std::string delta =
      "layer_pattern: G-G*, linear_num_key_heads: 2, linear_num_value_heads: 4, gated_mlp: true, ";
  CHECK(keys(hybrid(delta + "activation: silu"), plan).empty());
  CHECK(keys(hybrid(delta + "activation: gelu"), plan) == Strings{"model"});
  CHECK(keys(hybrid(delta + "activation: silu"), four) == Strings{"tp"});
  Scenario narrow = hybrid(delta + "activation: silu");
  narrow.training.precision = costmodel::Precision::fp8;
  CHECK(keys(narrow, plan) == Strings{"model"});  // 1,544 columns

  Scenario more = hybrid(scan + experts + "mtp_layers: 1, layer_pattern: MEME");
  CHECK(keys(more, plan).empty());
  more.model.positions = costmodel::Positions::learned;
  more.model.max_positions = 4096;
  CHECK(keys(more, plan) == Strings{"model"});
}

TEST_CASE("a refusal names the place in the scenario") {
  CHECK(refused_for([](auto&, auto& p) { p.pp = 3; }).starts_with("test.yaml:3:"));
}

}  // namespace megatron_rules_test
