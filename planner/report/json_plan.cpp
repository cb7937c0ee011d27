#include "planner/report/json_plan.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/fine_tuning_report.hpp"
#include "planner/report/packing_report.hpp"

namespace planner {

using namespace costmodel;

using Json = nlohmann::ordered_json;

Json printed_plan(const Estimate& e) {
  Json plan = costmodel::plan_json(e);
  if (!plan.contains("stages")) return plan;
  const Json& stages = plan["stages"];
  for (const char* key : {"tp", "cp", "cp_comm", "ep", "etp", "recompute", "zero"}) {
    const Json& first = stages.front()[key];
    const bool common = std::all_of(stages.begin(), stages.end(),
                                    [&](const Json& stage) { return stage[key] == first; });
    plan[key] = common ? first : Json();
  }
  return plan;
}

namespace {

Json known(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json goodput_json(const Goodput& g) {
  return {{"fraction", g.fraction},
          {"between_failures_s", g.between_failures.value},
          {"checkpoint_bytes", g.checkpoint.value},
          {"checkpoint_s", g.write.value},
          {"checkpoint_every_s", g.every.value},
          {"restart_s", g.restart.value},
          {"assumed", g.assumed}};
}

}  // namespace

Json fine_tuning_json(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  const FineTuning& f = s.training.fine_tuning;
  Json json{{"method", fine_tuning_names[static_cast<std::size_t>(f.method)]},
            {"trained_parameters", e.trained_parameters}};
  if (!f.adapts()) return json;
  json.update({{"rank", f.rank},
               {"alpha", f.alpha},
               {"targets", target_names(f)},
               {"base_precision", base_precision_names[static_cast<std::size_t>(f.base)]}});
  if (!e.plan.even()) return json;
  const FrozenBase base = frozen_base(e, s, evaluator);
  json.update({{"bits_per_base_value", base.bits},
               {"base_bytes", base.held.value},
               {"adapter_bytes", base.adapters.value},
               {"dequantisation_s", base.dequantisation.value}});
  return json;
}

namespace {

Json packing_json(const Estimate& e, const Scenario& s) {
  const Packing& packing = s.training.packing;
  Json json{{"packed", packing.packed},
            {"samples_per_sequence", packing.samples},
            {"filled", packing.filled},
            {"samples_per_s", samples_per_s(e, s)},
            {"sample_tokens_per_s", e.tokens_per_s * packing.filled}};
  if (!packing.packed) return json;
  json["attended_tokens"] = packing.attended;
  json["attended_deviation_tokens"] = packing.spread;
  json["longest_wait_s"] = e.longest_samples.value;
  return json;
}

}  // namespace

Json training_run_json(const TrainingRun& run, double tokens) {
  return {{"tokens", tokens},
          {"iterations", run.iterations},
          {"days", run.days},
          {"interval_days", {run.days_low, run.days_high}},
          {"days_with_failures", run.days_with_failures},
          {"device_hours", run.device_hours},
          {"usd", known(run.usd)},
          {"price_date", run.price_date},
          {"megawatt_hours", known(run.megawatt_hours)}};
}

Json evaluation_json(const Estimate& e, const Scenario& s) {
  Json json{{"scenario", s.name},
            {"plan", printed_plan(e)},
            {"plan_text", to_string(e.plan)},
            {"time", time_json(e)},
            {"bubble_fraction", e.bubble_fraction},
            {"throughput", throughput_json(e, s.cluster)},
            {"memory", memory_json(e)},
            {"communication", communication_json(e.traffic, e.rank_traffic)},
            {"parameters", e.parameters},
            {"notes", e.notes}};
  Evaluator evaluator(s.model, s.cluster, s.training);
  json["time"]["hidden"] = hidden_json(hidden_time(e, evaluator));
  if (s.training.fine_tuning.method != FineTuningMethod::pretraining)
    json["fine_tuning"] = fine_tuning_json(e, s, evaluator);
  if (s.training.packing.any()) json["packing"] = packing_json(e, s);
  if (s.model.experts > 0) json["active_parameters"] = e.active_parameters;
  const auto goodput = costmodel::goodput(e, s.cluster, s.training);
  const auto run = training_run(e, goodput, s.cluster, s.training);
  if (run || s.cluster.devices > few_failures) json["goodput"] = goodput_json(goodput);
  if (run) json["training_run"] = training_run_json(*run, s.training.run_tokens);
  return json;
}

}  // namespace planner
