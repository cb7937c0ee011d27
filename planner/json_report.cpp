#include "planner/json_report.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

namespace planner {

using costmodel::Estimate;
using costmodel::Scenario;
using Json = nlohmann::ordered_json;

namespace {

Json plan_json(const Estimate& e) {
  const auto& p = e.plan;
  Json recompute =
      costmodel::recomputation_names[static_cast<std::size_t>(p.recompute.granularity)];
  if (p.recompute.layers > 0)
    recompute = Json{{"granularity", recompute}, {"layers", p.recompute.layers}};
  return {
      {"tp", p.tp},
      {"pp", p.pp},
      {"dp", p.dp},
      {"cp", p.cp},
      {"ep", p.ep},
      {"etp", p.etp},
      {"vpp", p.vpp},
      {"micro_batch", p.micro_batch},
      {"sequence_parallel", p.sequence_parallel},
      {"schedule", costmodel::schedule_names[static_cast<std::size_t>(p.schedule)]},
      {"recompute", recompute},
      {"zero", p.zero},
      {"cp_comm",
       p.cp > 1 ? costmodel::context_exchange_names[static_cast<std::size_t>(p.cp_comm)] : "none"},
      {"offload", "none"},
      {"stage_layers", p.stage_layers},
      {"rank_order", p.rank_order},
      {"devices", p.devices()},
      {"micro_batches", e.micro_batches}};
}

// One micro-batch through all chunks of each pipeline rank.
std::vector<double> by_rank(const std::vector<costmodel::Seconds>& by_virtual_stage, int ranks) {
  std::vector<double> sums(static_cast<std::size_t>(ranks), 0);
  for (std::size_t k = 0; k < by_virtual_stage.size(); ++k)
    sums[k % sums.size()] += by_virtual_stage[k].value;
  return sums;
}

Json time_json(const Estimate& e) {
  const auto forward = by_rank(e.stage_forward, e.plan.pp),
             backward = by_rank(e.stage_backward, e.plan.pp);
  Json stages = Json::array();
  for (std::size_t r = 0; r < forward.size(); ++r)
    stages.push_back({{"forward_s", forward[r]}, {"backward_s", backward[r]}});
  const auto& b = e.breakdown;
  return {{"iteration_s", e.iteration.value},
          {"interval_s", {e.interval.low.value, e.interval.high.value}},
          {"forward_s", *std::max_element(forward.begin(), forward.end())},
          {"backward_s", *std::max_element(backward.begin(), backward.end())},
          {"stages", stages},
          {"breakdown",
           {{"compute_s", b.compute.value},
            {"recompute_s", b.recompute.value},
            {"tp_comm_s", b.tp_comm.value},
            {"cp_comm_s", b.cp_comm.value},
            {"ep_comm_s", b.ep_comm.value},
            {"pp_comm_s", b.pp_comm.value},
            {"dp_comm_s", b.dp_comm.value},
            {"bubble_s", b.bubble.value},
            {"optimizer_s", b.optimizer.value},
            {"other_s", b.other.value}}}};
}

Json memory_json(const Estimate& e) {
  Json stages = Json::array();
  for (const auto& s : e.memory) {
    stages.push_back({{"weights_bytes", s.weights.value},
                      {"gradients_bytes", s.gradients.value},
                      {"optimizer_bytes", s.optimizer.value},
                      {"activations_bytes", s.activations.value},
                      {"buffers_bytes", s.buffers.value},
                      {"total_bytes", s.total().value},
                      {"in_flight_micro_batches", s.in_flight_micro_batches}});
  }
  return {{"peak_bytes", e.peak.value},
          {"capacity_bytes", e.capacity.value},
          {"fits", e.fits()},
          {"stages", stages}};
}

Json throughput_json(const Estimate& e, const Scenario& s) {
  return {{"tokens_per_s", e.tokens_per_s},
          {"tokens_per_s_per_device", e.tokens_per_s / static_cast<double>(s.cluster.devices)},
          {"model_flops_per_iteration", e.model_flops.value},
          {"hardware_flops_per_iteration", e.hardware_flops.value},
          {"model_tflops_per_device", e.model_rate_per_device.value / 1e12},
          {"mfu", e.mfu},
          {"hfu", e.hfu}};
}

Json to_json(const Estimate& e, const Scenario& s) {
  const auto& t = e.traffic;
  Json json{{"scenario", s.name},
            {"plan", plan_json(e)},
            {"time", time_json(e)},
            {"bubble_fraction", e.bubble_fraction},
            {"throughput", throughput_json(e, s)},
            {"memory", memory_json(e)},
            {"communication",
             {{"per_device",
               {{"all_reduce_bytes", t.all_reduce.value},
                {"all_gather_bytes", t.all_gather.value},
                {"reduce_scatter_bytes", t.reduce_scatter.value},
                {"all_to_all_bytes", t.all_to_all.value},
                {"send_bytes", t.send.value}}}}},
            {"parameters", e.parameters},
            {"notes", e.notes}};
  if (s.model.experts > 0) json["active_parameters"] = e.active_parameters;
  return json;
}

Json searched_json(const SearchResult& r, double seconds) {
  const auto& n = r.statistics;
  return {{"configurations", n.configurations},
          {"feasible", n.feasible},
          {"pruned", n.pruned},
          {"seconds", seconds},
          {"evaluated", n.evaluated},
          {"simulated", n.simulated}};
}

}  // namespace

std::string estimate_json(const Estimate& e, const Scenario& s) {
  return to_json(e, s).dump(2) + "\n";
}

std::string search_json(const SearchResult& r, const std::vector<Step>& steps, const Scenario& s,
                        double seconds) {
  const Estimate& best = r.plans.front();
  const double gap = 100 * (best.iteration / r.lower_bound - 1);
  Json json{{"scenario", s.name},
            {"searched", searched_json(r, seconds)},
            {"best", 0},
            {"certificate", {{"lower_bound_s", r.lower_bound.value}, {"gap_pct", gap}}}};
  json["reasons"] = reasons(best);
  Json near = Json::array();
  for (const Step& step : steps) {
    Json row{{"knob", step.knob},
             {"change", step.change},
             {"fits", step.fits},
             {"iteration_s", step.iteration.value},
             {"peak_bytes", step.peak.value}};
    near.push_back(row);
  }
  json["one_step_away"] = near;
  json["plans"] = Json::array();
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    Json entry = to_json(r.plans[i], s);
    const auto faster_than = [&](const Estimate& other) {
      return Json(costmodel::probability_faster(r.plans[i].iteration.value, other.iteration.value,
                                                s.training.error_band.pair_spread));
    };
    entry["probability_faster_than_best"] = i > 0 ? faster_than(best) : Json();
    entry["probability_faster_than_next"] =
        i + 1 < r.plans.size() ? faster_than(r.plans[i + 1]) : Json();
    json["plans"].push_back(entry);
  }
  return json.dump(2) + "\n";
}

std::string failure_json(const SearchResult& r, const std::vector<std::string>& obstacles,
                         const std::vector<std::string>& remedies, const Scenario& s,
                         double seconds) {
  const Json json{{"scenario", s.name},     {"searched", searched_json(r, seconds)},
                  {"best", nullptr},        {"certificate", nullptr},
                  {"obstacles", obstacles}, {"remedies", remedies},
                  {"plans", Json::array()}};
  return json.dump(2) + "\n";
}

std::string rows_json(const Table& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      double number = 0;
      std::int64_t whole = 0;
      const char* end = row[c].data() + row[c].size();
      const auto [stop, status] = std::from_chars(row[c].data(), end, number);
      const auto [whole_stop, whole_status] = std::from_chars(row[c].data(), end, whole);
      if (row[c].empty()) {
        object[table.columns[c].title] = nullptr;
      } else if (row[c] == "true" || row[c] == "false") {
        object[table.columns[c].title] = row[c] == "true";
      } else if (whole_status == std::errc() && whole_stop == end) {
        object[table.columns[c].title] = whole;
      } else if (status == std::errc() && stop == end) {
        object[table.columns[c].title] = number;
      } else {
        object[table.columns[c].title] = row[c];
      }
    }
    rows.push_back(object);
  }
  return rows.dump(2) + "\n";
}

}  // namespace planner
