#include "planner/report/json_plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/json_estimate.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/fine_tuning_report.hpp"
#include "planner/report/packing_report.hpp"
#include "planner/report/tower_report.hpp"
#include "planner/sharding/known_schemes.hpp"

namespace planner {

using namespace costmodel;

using Json = nlohmann::ordered_json;

Json printed_plan(const Estimate& e) {
  Json plan = costmodel::plan_json(e);
  if (!plan.contains("stages")) return plan;
  const Json& stages = plan["stages"];
  for (const char* key : {"tp", "cp", "cp_comm", "ep", "etp", "recompute", "zero"}) {
    const Json& first = stages.front()[key];
    const bool common =
        std::ranges::all_of(stages, [&](const Json& stage) { return stage[key] == first; });
    plan[key] = common ? first : Json();
  }
  return plan;
}

Json fitting_changes_json(const std::vector<Remedy>& remedies) {
  Json rows = Json::array();
  for (const Remedy& remedy : remedies) {
    rows.push_back({{"change", remedy.what},
                    {"set", remedy.settings},
                    {"iteration_s", remedy.best.iteration.value},
                    {"peak_bytes", remedy.best.peak.value},
                    {"fits_probability", remedy.probability},
                    {"plan", printed_plan(remedy.best)}});
  }
  return rows;
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

Json towers_json(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  Json rows = Json::array();
  for (const TowerFigures& f : tower_figures(e, s, evaluator)) {
    rows.push_back({{"input", f.name},
                    {"layers", f.layers},
                    {"parameters", f.parameters},
                    {"trained_parameters", f.trained},
                    {"inputs_per_sequence", f.inputs},
                    {"encoder_tokens", f.tokens.encoder},
                    {"language_tokens", f.tokens.language},
                    {"tensor_parallel", f.cut},
                    {"forward_s", f.forward.value},
                    {"backward_s", f.backward.value},
                    {"kept_bytes", f.kept.value},
                    {"model_flops_per_iteration", f.model.value}});
  }
  return rows;
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

namespace {

// What the costmodel knows of the peak, before the stages.
Json with_peak(Json memory, const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  const Json stages = memory["stages"];
  memory.erase("stages");
  memory["fits_probability"] = fits_probability(e.peak, e.capacity, s.training.peak_errors);
  const costmodel::CountedPeak counted = evaluator.counted_peak(e);
  memory["allocated_bytes"] = counted.allocated.value;
  memory["reserved_bytes"] = counted.reserved.value;
  memory["allocator_retries"] = counted.retries();
  const PeakPlace peak = evaluator.peak_place(e);
  const auto known = [&peak](const std::string& text) {
    return peak.known() && !text.empty() ? Json(text) : Json();
  };
  memory["peak_at"] = {{"stage", peak.stage},
                       {"layer", known(peak.layer)},
                       {"operator", known(peak.op)},
                       {"pass", known(peak.pass)},
                       {"working_bytes", peak.known() ? Json(peak.working.value) : Json()},
                       {"tensor", known(peak.tensor)},
                       {"tensor_bytes", peak.known() ? Json(peak.kept.value) : Json()}};
  memory["stages"] = stages;
  return memory;
}

}  // namespace

Json evaluation_json(const Estimate& e, const Scenario& s) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  Json json{{"scenario", s.name},
            {"plan", printed_plan(e)},
            {"plan_text", to_string(e.plan)},
            {"time", time_json(e)},
            {"bubble_fraction", e.bubble_fraction},
            {"throughput", throughput_json(e, s.cluster)},
            {"memory", with_peak(memory_json(e), e, s, evaluator)},
            {"communication", communication_json(e.traffic, e.rank_traffic)},
            {"parameters", e.parameters},
            {"notes", e.notes}};
  json["time"]["hidden"] = hidden_json(hidden_time(e, evaluator));
  if (s.training.fine_tuning.method != FineTuningMethod::pretraining)
    json["fine_tuning"] = fine_tuning_json(e, s, evaluator);
  if (s.training.packing.any()) json["packing"] = packing_json(e, s);
  if (s.model.towers != nullptr) json["towers"] = towers_json(e, s, evaluator);
  if (!e.unknown.empty()) json["unknown"] = e.unknown;
  if (s.model.experts > 0) json["active_parameters"] = e.active_parameters;
  if (e.mtp_parameters > 0) json["mtp_parameters"] = e.mtp_parameters;
  const auto goodput = costmodel::goodput(e, s.cluster, s.training);
  const auto run = training_run(e, goodput, s.cluster, s.training);
  if (run || s.cluster.devices > few_failures) json["goodput"] = goodput_json(goodput);
  if (run) json["training_run"] = training_run_json(*run, s.training.run_tokens);
  return json;
}

namespace {

Json exchanges_json(const std::vector<Exchange>& exchanges) {
  Json list = Json::array();
  for (const Exchange& e : exchanges) {
    list.push_back({{"collective", costmodel::collective_names[static_cast<std::size_t>(e.kind)]},
                    {"axis", e.axis == 2 ? Json("both") : Json(e.axis)},
                    {"message_bytes", e.message.value}});
  }
  return list;
}

Json operator_json(const StageSharding& s, std::size_t node) {
  const OperatorStrategy& o = s.graph.strategy(node, s.found.choice);
  Json splits = Json::array();
  for (const Split split : o.split) splits.push_back(split_names[static_cast<std::size_t>(split)]);
  return {{"operator", s.graph.site(node).node.name()},
          {"strategy", to_string(o, s.graph.spec.mesh)},
          {"axes", splits},
          {"zero", o.zero},
          {"forward", exchanges_json(o.forward)},
          {"backward", exchanges_json(o.backward)},
          {"weights", exchanges_json(o.ending)},
          {"compute_s", (o.compute + o.optimizer).value},
          {"communication_s", o.communication.value},
          {"resharding_s", resharding_time(s.graph, node, s.found.choice).value},
          {"states_bytes", o.states.value},
          {"activations_bytes", o.activations.value}};
}

Json layers_json(const StageSharding& s) {
  Json groups = Json::array();
  for (const AlikeLayers& alike : alike_layers(s.graph, s.found.choice)) {
    Json operators = Json::array();
    for (const std::size_t node : alike.nodes) operators.push_back(operator_json(s, node));
    groups.push_back({{"layers", told(s.graph, alike)},
                      {"count", alike.layers.size()},
                      {"schemes", known_names(s.graph, alike, s.found.choice)},
                      {"operators", operators}});
  }
  return groups;
}

Json hand_json(const StageSharding& s) {
  if (s.hand.choice.empty()) return {{"time_s", nullptr}, {"reason", s.hand.reason}};
  return {{"time_s", s.hand.price.seconds},
          {"memory_bytes", s.hand.price.bytes},
          {"fits", s.hand.price.bytes <= s.graph.problem.memory_limit}};
}

// What the sharding amounts to; null where no plan that the scenario allows cuts the stage so.
Json as_plan_json(const ShardedStage& stage) {
  Json json = Json::object();
  if (stage.as_plan) {
    Json unlike = Json::array();
    for (const std::size_t node : stage.as_plan->unlike) {
      const Json name = stage.sharding.graph.site(node).node.name();
      if (std::ranges::find(unlike, name) == unlike.end()) unlike.push_back(name);
    }
    json = {{"plan", printed_plan(*stage.estimate)},
            {"iteration_s", stage.estimate->iteration.value},
            {"peak_bytes", stage.estimate->peak.value},
            {"fits", stage.fits},
            {"leads_ranking", stage.better},
            {"cut_otherwise", unlike},
            {"cut_otherwise_gain_s", stage.as_plan->unlike_gain.value}};
  }
  if (stage.refused) json["refused"] = stage.reason;
  return json.empty() ? Json() : json;
}

}  // namespace

Json sharding_json(const ShardedStage& stage) {
  const StageSharding& s = stage.sharding;
  const DeviceMesh& mesh = s.graph.spec.mesh;
  const bool found = !s.found.choice.empty();
  Json json{{"mesh", {mesh.size(0), mesh.size(1)}},
            {"time_s", found ? Json(s.found.seconds) : Json()},
            {"lower_bound_s", found ? Json(s.found.lower_bound) : Json()},
            {"gap_pct", found ? Json(100 * (s.found.seconds / s.found.lower_bound - 1)) : Json()},
            {"memory_bytes", found ? Json(s.found.bytes) : Json()},
            {"memory_limit_bytes", s.graph.problem.memory_limit},
            {"plans_own", hand_json(s)}};
  if (!found) json["reason"] = s.found.reason;
  json["layers"] = found ? layers_json(s) : Json::array();
  json["as_plan"] = as_plan_json(stage);
  return json;
}

}  // namespace planner
