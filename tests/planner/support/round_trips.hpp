// Random plans that go out in a framework's words and come back as scenarios.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/random_scenario.hpp"

namespace round_trips {

using costmodel::ParallelPlan;
using costmodel::Scenario;

// The model's keys but those that say which layers have experts, for which several pairs may stand,
// and those of serving, which no training script has.
inline std::string sizes(const Scenario& s) {
  costmodel::Value map = to_value(s.model), kept;
  for (const auto& entry : map.entries) {
    const bool layers =
        entry.key == "first_dense_layers" || entry.key == "moe_every" || entry.key == "moe_offset";
    const bool served = entry.key == "context_length" || entry.key == "checkpoint" ||
                        entry.key.starts_with("unquantized_");
    const bool other = entry.key == "kind" || entry.key == "source" || layers || served;
    if (!other) kept.set(entry.key, entry.value);
  }
  std::string text = to_yaml(kept);
  for (std::int64_t i = 0; i < s.model.layers; ++i) text += s.model.has_experts(i) ? '1' : '0';
  return text;
}

inline void check_training(const Scenario& in, const Scenario& out, const ParallelPlan& plan) {
  const auto &a = in.training, &b = out.training;
  CHECK(a.global_batch == b.global_batch);
  CHECK(a.sequence == b.sequence);
  CHECK(a.precision == b.precision);
  CHECK((a.gradient_precision == costmodel::Precision::fp32) ==
        (b.gradient_precision == costmodel::Precision::fp32));
  CHECK(a.optimizer == b.optimizer);
  CHECK(a.moment_precision == b.moment_precision);
  CHECK(a.capacity_factor == b.capacity_factor);
  CHECK(a.overlap.overlap_grad_reduce == b.overlap.overlap_grad_reduce);
  CHECK(a.overlap.cuda_graph == b.overlap.cuda_graph);
  CHECK(a.overlap.graph_attention == b.overlap.graph_attention);
  CHECK(a.overlap.graph_mlp == b.overlap.graph_mlp);
  CHECK(a.overlap.graph_router == b.overlap.graph_router);
  CHECK((plan.zero > 0 && a.overlap.overlap_param_gather) == b.overlap.overlap_param_gather);
  CHECK((plan.sequence_parallel && a.overlap.tp_comm_overlap) == b.overlap.tp_comm_overlap);
  if (plan.vpp > 1) CHECK(a.overlap.pp_overlap == b.overlap.pp_overlap);
  const auto &k = a.stack.kernels, &l = b.stack.kernels;
  const bool full = a.precision == costmodel::Precision::fp32;
  const bool unfused = k.attention == costmodel::AttentionKernel::unfused || full;
  CHECK(unfused == (l.attention == costmodel::AttentionKernel::unfused));
  CHECK(k.fused_softmax == l.fused_softmax);
  CHECK((in.model.experts == 0 || k.fused_router == l.fused_router));  // of no matter without
  CHECK(k.fused_rotary == l.fused_rotary);
  CHECK(k.fused_bias_activation == l.fused_bias_activation);
  CHECK(k.fused_bias_dropout_add == l.fused_bias_dropout_add);
  using costmodel::LossKernel;
  CHECK((k.loss == LossKernel::unfused) == (l.loss == LossKernel::unfused));
  if (k.loss == LossKernel::native) CHECK(l.loss == LossKernel::native);
}

// Holds what came back against what went out.
inline void check_same(const Scenario& in, const Scenario& out, const ParallelPlan& plan) {
  CHECK(out.cluster.devices == plan.devices());
  CHECK(sizes(in) == sizes(out));
  check_training(in, out, plan);
  ParallelPlan expected = plan;
  if (!planner::has_uneven_stages(plan)) expected.stage_layers.clear();
  if (in.model.experts == 0) expected.experts = {};
  expected.rank_order = planner::rank_order_of(plan) == planner::RankOrder::tensor_pipeline_data
                            ? "tp-cp-ep-pp-dp"
                            : "tp-cp-ep-dp-pp";
  CHECK(to_yaml(to_value(costmodel::resolve_plan(out))) == to_yaml(to_value(expected)));
}

// What exports have to carry and searches need not know: numbers of the model, windows, experts in
// odd layers, groups of micro-batches.
inline void add_numbers(random_scenario::Scenario& s, random_scenario::Draw& draw) {
  const auto has = [&](const char* word) { return s.model.find(word) != std::string::npos; };
  const bool hybrid = has("hybrid"), latent = has("kv_lora_rank"), rotary = !hybrid && !has("gpt");
  std::string more;
  if (draw.once_in(2)) more += ", norm_epsilon: " + draw.word({"1e-06", "1e-05"});
  if (draw.once_in(5)) more += ", layernorm_1p: true";
  if (rotary && draw.once_in(3)) {
    more += draw.word({", rope_scaling_factor: 8",
                       ", rope_scaling_type: linear, rope_scaling_factor: 4",
                       ", rope_scaling_type: yarn, rope_scaling_factor: 40, rope_mscale: 0.707, "
                       "rope_original_positions: 4096"});
  }
  if (!hybrid && !latent && draw.once_in(4))
    more += draw.word({", sliding_window: 128", ", sliding_window: 512, attention_pattern: SSF"});
  if (has("moe_every") && draw.once_in(2)) more += ", moe_offset: 1";
  s.model.insert(s.model.rfind('}'), more);
  if (draw.once_in(6)) s.plan.add("micro_batch_group", draw.size({2, 4, 8}));
}

using Accepts = std::function<bool(const Scenario&, const ParallelPlan&)>;
using Check = std::function<void(const Scenario&, const ParallelPlan&, const std::string& cluster)>;

// Checks so many random plans that the framework accepts; returns how many there were.
inline int of_random_plans(int count, const Accepts& accepts, const Check& check) {
  int accepted = 0;
  for (std::uint32_t seed = 1; accepted < count && seed < 40'000; ++seed) {
    random_scenario::Draw draw(seed);
    auto drawn = random_scenario::draw_scenario(draw);
    // Models of programs that no framework's export writes, whose reading takes longest.
    const auto is = [&](const char* kind) { return drawn.model.find(kind) != std::string::npos; };
    if (is("kind: t5") || is("kind: mamba")) continue;
    add_numbers(drawn, draw);
    try {
      const Scenario in = scenarios::read(drawn.yaml());
      const ParallelPlan plan = resolve_plan(in);
      if (!accepts(in, plan)) continue;
      ++accepted;
      INFO("seed ", seed, "\n", drawn.yaml());
      check(in, plan, drawn.cluster);
    } catch (const costmodel::ConfigError& error) {
      // A random scenario need not be valid; one that was exported must come back.
      const std::string what = error.what();
      CHECK_MESSAGE(what.starts_with("test.yaml") == true, what);
    }
  }
  return accepted;
}

}  // namespace round_trips
