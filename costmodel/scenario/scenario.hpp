// A scenario: model, cluster, training, and which keys of the plan are fixed or free.
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
#include "costmodel/plan/plan_request.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// The part of device memory that plans leave free where a scenario does not say. Of the published
// runs in configs/evidence nine in ten peaked at no more than 1 / (1 - this) of what is predicted
// for them (docs/accuracy.md, peak memory), so as many plans that just fit would really run.
// tests/planner/accuracy/validation_test.cpp holds it to them.
inline constexpr double usual_memory_margin = 0.05;

// What the ranking has a row for: a family, all plans of one (t, p, d, c, e), which shows its best
// member; or a plan.
enum class RankingRows { families, plans };
inline constexpr std::array<std::string_view, 2> ranking_rows_names{"families", "plans"};

// A plan that is not so much faster is not worth more features. Errors of published runs of one
// scenario differ by several times as much between two plans (ErrorBand::pair_spread).
inline constexpr double usual_simpler_within = 0.01;

// Limits of the search of `plan`: each key is the largest value tried, or the list of values. A
// missing key sets no limit beyond the rules.
struct SearchLimits {
  int max_tp = 0;  // 0: no limit, also for the keys below (vpp: 128)
  int max_pp = 0;
  int max_cp = 0;  // 0: a rank keeps at least 4,096 tokens of a sequence
  int max_ep = 0;
  int max_vpp = 0;
  std::int64_t max_micro_batch = 0;
  std::vector<int> zero;                 // ZeRO stages tried; empty: 0 .. the stack's highest
  std::vector<Recomputation> recompute;  // empty: all
  std::vector<ScheduleKind> schedules;   // empty: 1f1b, interleaved, and zero-bubble where the
                                         // stack offers it
  int top = 5;                           // rows of the ranking
  RankingRows rows = RankingRows::families;
  double simpler_within = usual_simpler_within;  // the simplest of the plans that are slower than
                                                 // the fastest by no more of its time is chosen
  double memory_margin = usual_memory_margin;    // fraction of device memory that plans leave
                                                 // free; `validate` never uses it
  // The chance wanted that a plan fits (0 to 1): where it is given, memory_margin follows from it
  // and the errors of published peaks.
  std::optional<double> memory_confidence;
};

struct Scenario {
  std::string name;  // stem of the file
  std::string file;
  std::string model_text, cluster_text;  // their names as written
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  PlanRequest plan;
  SearchLimits search;
};

// The file of a scenario, given a path or the name of a file in configs/scenarios. Throws
// ConfigError with the nearest known name.
std::string scenario_file(const std::string& operand, const ConfigPath& path);

// `assignments` are the --set key.path=value options. Throws ConfigError.
Scenario load_scenario(const std::string& file, const ConfigPath& path,
                       const std::vector<std::string>& assignments);
Scenario read_scenario(const Value& root, const std::string& name, const ConfigPath& path);

// By what its kernels are compared with those of traces.
TracedShape traced_shape(const Scenario& scenario);

// Takes the constants of its cluster's own runs into its device and stack. Runs of another stack
// are dropped, and the report has that.
void settle_own_runs(Scenario& scenario);

// Throws ConfigError at `mark` when a device of the cluster has no rate in `precision`; the remedy
// names the precisions that it has, and `otherwise` follows.
void require_precision(const ClusterSpec& cluster, Precision precision, const Mark& mark,
                       const std::string& otherwise = "");

// Whether the plan asks for stages of the same sizes, on devices of one kind: what may be
// interleaved and laid out by the stack, and what the search of one size for all stages knows.
bool stages_alike(const Scenario& scenario);

// The request with every missing key set to its default (1, none, false, or the default of the
// stack's recipes), and stage_layers to the stack's layout of layers that do not divide. Keys with
// the value `auto` stay open.
PlanRequest with_defaults(const Scenario& scenario);

// What a plan says of its schedule's order.
OrderChoices order_choices(const PlanRequest& plan);

// How the scenario's plan, else the recipes of its stack, move tokens to their experts.
ExpertRecipe expert_recipe(const Scenario& scenario);

// How many groups of ranks each hold all of ZeRO's shards where a plan has no dp_replicate:
// as many as nodes where the stack's recipes shard within one, else 1. Reads the plan's sizes.
int usual_shard_groups(const Scenario& scenario, const ParallelPlan& plan);
// Whether the plan has as many, so that it means the same without the key.
bool has_usual_shard_groups(const Scenario& scenario, const ParallelPlan& plan);

// The plan as the scenario writes it: every key but those that are implied there.
Value plan_map(const ParallelPlan& plan, const Scenario& scenario);

// The plan that an evaluation uses: missing keys at their defaults, dp from the number of devices.
// Keys with the value `auto` take the default too, unless the caller has settled them by a search.
// Throws ConfigError at the key when the plan breaks a rule.
ParallelPlan resolve_plan(const Scenario& scenario);
// The same for callers that look for violations themselves: it may break rules.
ParallelPlan unchecked_plan(const Scenario& scenario);
// Throws ConfigError for the first violation, at the key's place in the scenario.
void require_valid(const ParallelPlan& plan, const Scenario& scenario);
// Check before a search: throws ConfigError at a key whose value the stack does not offer in any
// plan.
void require_offered(const Scenario& scenario);

}  // namespace costmodel
