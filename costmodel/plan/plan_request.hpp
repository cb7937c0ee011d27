// A plan as a scenario writes it: which keys have a value, which are `auto`, and where each stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/value.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

// One entry of `plan.stages`; a missing key is taken from the plan.
struct StageRequest {
  std::optional<int> tp, dp, cp, ep, etp, zero, layers;
  std::optional<ContextExchange> cp_comm;
  std::optional<Recompute> recompute;
  std::string group;
  Mark mark;
};

// One entry of `plan.replicas`; a missing key is taken from the plan.
struct ReplicaRequest {
  std::string group;
  std::optional<int> tp, pp, dp, zero;
  std::optional<std::int64_t> micro_batch;
  std::int64_t micro_batches = 1;
  std::optional<Recompute> recompute;
  Mark mark;
};

// A plan as written. A missing key takes its default in `evaluate` and is searched by `plan`; a key
// with the value `auto` is searched by both.
struct PlanRequest {
  std::optional<int> tp, pp, dp, cp, ep, etp, vpp, zero, dp_replicate;
  OuterSharding outer_sharding = OuterSharding::no_shard;
  ZeroPlusPlus zero_plus_plus;
  HostOffload offload;
  std::optional<ContextExchange> cp_comm;
  std::optional<std::int64_t> micro_batch;
  std::optional<bool> sequence_parallel;
  std::optional<ScheduleKind> schedule;
  std::shared_ptr<const ListedSchedule> listed;           // of a schedule from a file
  std::optional<int> micro_batch_group, in_flight_limit;  // of the schedule's order
  std::optional<Recompute> recompute;
  std::optional<Dispatcher> dispatcher;
  std::optional<int> dispatcher_multiprocessors;
  std::optional<bool> expert_overlap, delayed_weight_gradient, shared_expert_overlap;
  std::vector<int> stage_layers;
  std::optional<int> split_rank;  // the first rank of the decoder; stage_layers follows from it
  std::vector<StageRequest> stages;
  std::vector<ReplicaRequest> replicas;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::vector<std::string> automatic;  // keys with the value `auto`
  Mark mark;                           // place of the plan map
  std::vector<Value::Entry> written;   // for the places of single keys
  bool is_auto(std::string_view key) const;
  bool is_written(std::string_view key) const;  // with a value or `auto`
  Mark mark_of(std::string_view key) const;
  // The key that lists sizes for stages or for groups, "stages" or "replicas"; "" where all have
  // those of the plan.
  std::string_view lists() const;
};

}  // namespace costmodel
