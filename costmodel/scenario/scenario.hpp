// A scenario: model, cluster, training, and what is fixed or free of the plan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// One of `plan.stages`; what is missing is the plan's.
struct StageRequest {
  std::optional<int> tp, dp, cp, ep, etp, zero, layers;
  std::optional<ContextExchange> cp_comm;
  std::optional<Recompute> recompute;
  std::string group;
  Mark mark;
};

// One of `plan.replicas`; what is missing is the plan's.
struct ReplicaRequest {
  std::string group;
  std::optional<int> tp, pp, dp, zero;
  std::optional<std::int64_t> micro_batch;
  std::int64_t micro_batches = 1;
  std::optional<Recompute> recompute;
  Mark mark;
};

// A plan as written: a key that is missing takes its default in `evaluate` and is searched by
// `plan`; `auto` is searched by both.
struct PlanRequest {
  std::optional<int> tp, pp, dp, cp, ep, etp, vpp, zero;
  std::optional<ContextExchange> cp_comm;
  std::optional<std::int64_t> micro_batch;
  std::optional<bool> sequence_parallel;
  std::optional<ScheduleKind> schedule;
  std::optional<Recompute> recompute;
  std::vector<int> stage_layers;
  std::vector<StageRequest> stages;
  std::vector<ReplicaRequest> replicas;
  std::string rank_order = "tp-cp-ep-dp-pp";
  std::vector<std::string> automatic;  // keys written `auto`
  Mark mark;                           // of the plan map
  std::vector<Value::Entry> written;   // for marks of single keys
  bool is_auto(std::string_view key) const;
  bool is_written(std::string_view key) const;  // as a value or as `auto`
  Mark mark_of(std::string_view key) const;
};

// Limits of `plan`'s search; each key is the most (or the list of) values tried. A missing key has
// no limit but the rules.
struct SearchLimits {
  int max_tp = 0;  // 0: no limit, here and below (vpp: 128)
  int max_pp = 0;
  int max_cp = 0;  // 0: at least 4,096 tokens of a sequence stay on a rank
  int max_ep = 0;
  int max_vpp = 0;
  std::int64_t max_micro_batch = 0;
  std::vector<int> zero;                 // stages tried; empty: 0 .. the stack's highest
  std::vector<Recomputation> recompute;  // empty: all
  std::vector<ScheduleKind> schedules;   // empty: 1f1b, interleaved, and zero-bubble where the
                                         // stack offers it
  int top = 5;                           // plans reported
  double memory_margin = 0;              // fraction of device memory left free
};

struct Scenario {
  std::string name;  // stem of the file
  std::string file;
  std::string model_text, cluster_text, stack_text;  // how they were named
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  PlanRequest plan;
  SearchLimits search;
};

// The file of a scenario named by path, or by the name of one in configs/scenarios. Throws
// ConfigError with the nearest known name.
std::string scenario_file(const std::string& operand, const ConfigPath& path);

// `assignments` are --set key.path=value. Throws ConfigError.
Scenario load_scenario(const std::string& file, const ConfigPath& path,
                       const std::vector<std::string>& assignments);
Scenario read_scenario(const Value& root, const std::string& name, const ConfigPath& path);

// The request with every missing key at its default (1, none, false, or what the stack's own
// recipes set); keys written `auto` stay open.
PlanRequest with_defaults(const Scenario& scenario);

// The plan an evaluation uses: defaults for what is missing, dp from the devices. Keys written
// `auto` take the default too; the caller settles them first when it can. Throws ConfigError at the
// key when the plan breaks a rule.
ParallelPlan resolve_plan(const Scenario& scenario);
// Throws for the first violation, at the key's place in the scenario.
void require_valid(const ParallelPlan& plan, const Scenario& scenario);
// Before a search: throws ConfigError at a key whose value the stack offers in no plan.
void require_offered(const Scenario& scenario);

// The plan as a YAML map, every key resolved.
Value to_value(const ParallelPlan& plan);

}  // namespace costmodel
