#include "costmodel/estimate/json_estimate.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "costmodel/base/json_text.hpp"
#include "costmodel/plan/plan_key_values.hpp"
#include "costmodel/plan/plan_keys.hpp"

namespace costmodel {

using Json = nlohmann::ordered_json;

std::vector<double> by_rank(const std::vector<Seconds>& by_virtual_stage,
                            const ParallelPlan& plan) {
  std::vector<double> sums(static_cast<std::size_t>(plan.pp), 0);
  for (std::size_t k = 0; k < by_virtual_stage.size(); ++k) {
    const int rank = rank_of(plan.schedule, plan.pp, static_cast<int>(k));
    sums[static_cast<std::size_t>(rank)] += by_virtual_stage[k].value / plan.ways();
    if (plan.ways() > 1) {  // the other half of the micro-batches
      sums[sums.size() - 1 - static_cast<std::size_t>(rank)] +=
          by_virtual_stage[k].value / plan.ways();
    }
  }
  return sums;
}

namespace {

// A number or a switch of a plan as such, all else as text.
Json json_of(const Value& value) {
  if (value.is_map()) {
    Json map = Json::object();
    for (const auto& entry : value.entries) map[entry.key] = json_of(entry.value);
    return map;
  }
  if (value.kind == Value::Kind::sequence) {
    Json list = Json::array();
    for (const Value& item : value.items) list.push_back(json_of(item));
    return list;
  }
  return json_scalar(value.text);
}

std::string_view exchange_name(const ParallelPlan& p) {
  return p.cp > 1 ? context_exchange_names[static_cast<std::size_t>(p.cp_comm)] : "none";
}

// Each stage's own sizes, and its devices within their group.
Json stages_json(const Estimate& e) {
  Json stages = Json::array();
  for (std::size_t k = 0; k < e.meshes.size(); ++k) {
    const StageMesh& mesh = e.meshes[k];
    Json stage{{"tp", mesh.plan.tp},
               {"dp", mesh.plan.dp},
               {"cp", mesh.plan.cp},
               {"cp_comm", exchange_name(mesh.plan)},
               {"ep", mesh.plan.ep},
               {"etp", mesh.plan.etp},
               {"micro_batch", mesh.plan.micro_batch},
               {"recompute", json_of(recompute_value(mesh.plan.recompute))},
               {"zero", mesh.plan.zero}};
    if (!e.plan.stage_layers.empty()) stage["layers"] = e.plan.stage_layers[k];
    if (!mesh.name.empty()) stage["group"] = mesh.name;
    stage["first_device"] = mesh.first;
    stage["devices"] = mesh.devices;
    stages.push_back(stage);
  }
  return stages;
}

// For replica groups the plan has the values common to all groups, and null for the others.
void join_groups(Json& plan) {
  const Json groups = plan["replicas"];
  for (const auto& [key, first] : groups.front().items()) {
    if (key == "group") continue;
    const bool common = std::ranges::all_of(
        groups, [&, &k = key, &v = first](const Json& group) { return group[k] == v; });
    plan[key] = common ? first : Json();
  }
}

}  // namespace

Json plan_json(const Estimate& e) {
  Json plan = Json::object();
  for (const PlanKey& key : plan_key_rows()) {
    if (!key.value) continue;
    if (const Value value = key.value(e.plan); value.kind != Value::Kind::null)
      plan[std::string(key.row.name)] = json_of(value);
  }
  plan["devices"] = e.plan.devices();
  plan["micro_batches"] = e.micro_batches;
  if (!e.plan.replica_groups.empty()) {
    join_groups(plan);
  } else if (!e.meshes.empty()) {
    plan["stages"] = stages_json(e);
  }
  return plan;
}

Json time_json(const Estimate& e) {
  const auto forward = by_rank(e.stage_forward, e.plan),
             backward = by_rank(e.stage_backward, e.plan);
  Json stages = Json::array();
  for (std::size_t r = 0; r < forward.size(); ++r)
    stages.push_back({{"forward_s", forward[r]}, {"backward_s", backward[r]}});
  const auto& b = e.breakdown;
  return {{"iteration_s", e.iteration.value},
          {"interval_s", {e.interval.low.value, e.interval.high.value}},
          {"forward_s", *std::ranges::max_element(forward)},
          {"backward_s", *std::ranges::max_element(backward)},
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
            {"imbalance_s", b.imbalance.value},
            {"optimizer_s", b.optimizer.value},
            {"other_s", b.other.value}}}};
}

Json hidden_json(const HiddenTime& hidden) {
  return {{"tp_comm_s", hidden.tp_comm.value}, {"cp_comm_s", hidden.cp_comm.value},
          {"ep_comm_s", hidden.ep_comm.value}, {"pp_comm_s", hidden.pp_comm.value},
          {"dp_comm_s", hidden.dp_comm.value}, {"offload_s", hidden.offload.value}};
}

Json throughput_json(const Estimate& e, const ClusterSpec& cluster) {
  return {{"tokens_per_s", e.tokens_per_s},
          {"tokens_per_s_per_device", e.tokens_per_s / static_cast<double>(cluster.devices)},
          {"model_flops_per_iteration", e.model_flops.value},
          {"hardware_flops_per_iteration", e.hardware_flops.value},
          {"model_tflops_per_device", e.model_rate_per_device.value / 1e12},
          {"mfu", e.mfu},
          {"hfu", e.hfu},
          {"causal",
           {{"model_flops_per_iteration", e.causal_model_flops.value},
            {"model_tflops_per_device", e.causal_rate_per_device.value / 1e12},
            {"mfu", e.causal_mfu}}}};
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
  for (std::size_t r = 0; r < e.stage_capacity.size(); ++r)
    stages[r]["capacity_bytes"] = e.stage_capacity[r].value;
  Json memory{{"peak_bytes", e.peak.value},
              {"capacity_bytes", e.capacity.value},
              {"fits", e.fits()},
              {"host_bytes", e.host.value}};
  if (e.host.value > 0) {
    for (std::size_t r = 0; r < e.memory.size(); ++r)
      stages[r]["host_bytes"] = e.memory[r].host.value;
    if (e.host_capacity.value > 0) memory["host_capacity_bytes"] = e.host_capacity.value;
    if (e.drives.value > 0) memory["nvme_bytes"] = e.drives.value;
    if (e.drives.value > 0 && e.drive_capacity.value > 0)
      memory["nvme_capacity_bytes"] = e.drive_capacity.value;
  }
  memory["stages"] = std::move(stages);
  return memory;
}

namespace {

Json traffic_json(const Traffic& t) {
  return {{"all_reduce_bytes", t.all_reduce.value},
          {"all_gather_bytes", t.all_gather.value},
          {"reduce_scatter_bytes", t.reduce_scatter.value},
          {"all_to_all_bytes", t.all_to_all.value},
          {"send_bytes", t.send.value}};
}

}  // namespace

Json communication_json(const Traffic& busiest, const std::vector<Traffic>& by_rank) {
  Json stages = Json::array();
  for (const Traffic& sent : by_rank) stages.push_back(traffic_json(sent));
  return {{"per_device", traffic_json(busiest)}, {"stages", stages}};
}

}  // namespace costmodel
