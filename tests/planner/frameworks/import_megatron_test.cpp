// Runs of Megatron-LM as scenarios; and plans that are exported and come back the same.
#include "planner/frameworks/import_megatron.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_flags.hpp"
#include "planner/frameworks/megatron_log.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/megatron_runs.hpp"
#include "tests/planner/support/random_scenario.hpp"

namespace import_megatron_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using planner::ImportedJob;

namespace {

ImportedJob of_script(const std::string& text) {
  return planner::import_megatron(planner::read_megatron_script(text, "x.sh"));
}

// As a file that `evaluate` takes.
Scenario scenario_of(ImportedJob job, const std::string& cluster) {
  planner::set_cluster(job, cluster);
  CHECK(job.missing.empty());
  return scenarios::read(to_yaml(job));
}

// The model's keys but those that say which layers have experts, for which several pairs may stand.
std::string sizes(const Scenario& s) {
  costmodel::Value map = to_value(s.model), kept;
  for (const auto& entry : map.entries) {
    const bool layers = entry.key == "first_dense_layers" || entry.key == "moe_every";
    if (entry.key != "kind" && entry.key != "source" && !layers) kept.set(entry.key, entry.value);
  }
  std::string text = to_yaml(kept);
  for (std::int64_t i = 0; i < s.model.layers; ++i) text += s.model.has_experts(i) ? '1' : '0';
  return text;
}

void check_training(const Scenario& in, const Scenario& out, const ParallelPlan& plan) {
  const auto &a = in.training, &b = out.training;
  CHECK(a.global_batch == b.global_batch);
  CHECK(a.sequence == b.sequence);
  CHECK(a.precision == b.precision);
  CHECK((a.gradient_precision == costmodel::Precision::fp32) ==
        (b.gradient_precision == costmodel::Precision::fp32));
  CHECK(a.sgd == b.sgd);
  CHECK(a.moment_precision == b.moment_precision);
  CHECK(a.capacity_factor == b.capacity_factor);
  CHECK(a.overlap.overlap_grad_reduce == b.overlap.overlap_grad_reduce);
  CHECK(a.overlap.cuda_graph == b.overlap.cuda_graph);
  CHECK((plan.zero > 0 && a.overlap.overlap_param_gather) == b.overlap.overlap_param_gather);
  CHECK((plan.sequence_parallel && a.overlap.tp_comm_overlap) == b.overlap.tp_comm_overlap);
  if (plan.vpp > 1) CHECK(a.overlap.pp_overlap == b.overlap.pp_overlap);
  const auto &k = a.stack.kernels, &l = b.stack.kernels;
  const bool full = a.precision == costmodel::Precision::fp32;
  const bool unfused = k.attention == costmodel::AttentionKernel::unfused || full;
  CHECK(unfused == (l.attention == costmodel::AttentionKernel::unfused));
  CHECK(k.fused_softmax == l.fused_softmax);
  CHECK(k.fused_bias_activation == l.fused_bias_activation);
  CHECK(k.fused_bias_dropout_add == l.fused_bias_dropout_add);
  CHECK(k.fused_cross_entropy == l.fused_cross_entropy);
}

// Exports the plan, reads the script and holds what comes back against what went out.
void check_round_trip(const Scenario& in, const ParallelPlan& plan, const std::string& cluster) {
  const auto exported = planner::export_megatron(in, plan);
  const auto arguments =
      planner::read_megatron_script(planner::launch_script(exported, in, plan), "x.sh");
  for (const auto& a : arguments.list) CHECK_MESSAGE(planner::is_megatron_flag(a.flag), a.flag);
  const ImportedJob job = planner::import_megatron(arguments);
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  const Scenario out = scenario_of(job, cluster);
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

}  // namespace

TEST_CASE("a launch script becomes a scenario; what no key says is named") {
  const ImportedJob job = of_script(megatron_runs::script);
  REQUIRE(job.missing.size() == 1);
  CHECK(job.missing.front().key == "cluster.base");
  REQUIRE(job.left_out.size() == 2);
  CHECK(job.left_out[0] == "--window-size 128: no key says it");
  CHECK(job.left_out[1] == "--foo 3: no argument of Megatron-LM core 0.20");
  const Scenario s = scenario_of(job, "selene");
  CHECK(s.model.layers == 96);
  CHECK(s.model.vocab == 50257);
  CHECK(s.model.ffn_hidden == 4 * 12288);
  CHECK(s.training.precision == costmodel::Precision::bf16);
  const ParallelPlan plan = resolve_plan(s);
  CHECK(plan.tp == 8);
  CHECK(plan.pp == 16);
  CHECK(plan.dp == 1);
  CHECK(plan.sequence_parallel);
}

TEST_CASE("a log becomes a scenario") {
  const ImportedJob job =
      planner::import_megatron(planner::read_megatron_log(megatron_runs::log, "x.log"));
  CHECK(job.left_out.empty());
  const Scenario s = scenario_of(job, "dgx-h100");
  CHECK(s.model.kv_heads == 8);
  CHECK(s.model.gated_mlp);
  CHECK(s.model.kv_lora_rank == 0);
  CHECK(s.model.rotary_base == 500'000);
  CHECK_FALSE(s.model.linear_bias);
  CHECK(resolve_plan(s).zero == 1);
  CHECK(resolve_plan(s).dp == 8);
}

TEST_CASE("200 random plans that Megatron-LM takes come back from their scripts") {
  int accepted = 0;
  for (std::uint32_t seed = 1; accepted < 200 && seed < 20'000; ++seed) {
    random_scenario::Draw draw(seed);
    const auto drawn = random_scenario::draw_scenario(draw);
    try {
      const Scenario in = scenarios::read(drawn.yaml());
      const ParallelPlan plan = resolve_plan(in);
      if (!planner::megatron_violations(in, plan).empty()) continue;
      ++accepted;
      INFO("seed ", seed, "\n", drawn.yaml());
      check_round_trip(in, plan, drawn.cluster);
    } catch (const costmodel::ConfigError& error) {
      // A random scenario need not be valid; one that was exported must come back.
      const std::string what = error.what();
      CHECK_MESSAGE(what.starts_with("test.yaml") == true, what);
    }
  }
  CHECK(accepted == 200);
}

}  // namespace import_megatron_test
