// Which plan is best: one answer, whichever command asks. `plan` prints the whole of it; every
// other command that leaves a plan to the search takes its first plan.
//
// `plan --strategy`: even stages (grid), stages of any layout too (layouts), and besides stages
// with sizes of their own and other shardings inside a stage (alpa, both).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/layout_search.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/sharded_stage.hpp"

namespace planner {

// A key that is searched only with `auto`, and the fastest even plan with it where that is worth
// the key (unasked_keys.hpp).
struct UnaskedKey {
  std::string key, what;  // of the plan; for people
  std::optional<costmodel::Estimate> plan;
};

struct Strategies {
  SearchResult found;  // the reported result over all searches: the chosen plan, then the fastest
                       // of each other family
  std::optional<costmodel::Estimate> fastest;  // where the chosen plan is a simpler one
  std::vector<costmodel::Estimate> even;       // the grid's plans, best first
  std::optional<LayoutSearch> layouts;         // but for grid
  std::optional<MeshSearch> meshes;      // for sizes and all; its plans are below layouts' best
  std::optional<ShardedStage> sharding;  // for all: the critical stage of layouts' best plan
  int sharded = 0;                       // plans of the ranking whose stages were sharded so
  bool two_stacks = false;               // encoder-decoder model: no `sharding`
  // Of the chosen plan, what no published run has; and where that is something, the best plan
  // without it that fits (measured_plan.hpp).
  costmodel::PlanFeatures unmeasured = 0;
  std::optional<costmodel::Estimate> measured;
  std::vector<UnaskedKey> unasked;  // those that were looked at
  std::int64_t mtp_layers = 0;      // of the model: a layout in words has them
  std::string interrupted;          // by which signal, told by the command; then nothing is proved
};

// Above this many devices, stages with different sizes are searched only by `--strategy meshes`.
inline constexpr std::int64_t most_mesh_devices = 4096;

// `meshes`: stages with sizes of their own and nothing else, and on several kinds of devices also
// replicas of unequal shares.
enum class Reach { even, layouts, sizes, all, meshes };

// Above this many devices, and wherever the stack has no words for them, they are searched only
// where the user asks.
inline constexpr std::int64_t most_own_devices = 64;

// Above this many layers, layouts are searched only where the user asks: the usual effort ends
// before their proof.
inline constexpr std::int64_t most_cut_layers = 192;

// Where the user names none: layouts and sizes, as far as the scenario's stack has words for them;
// meshes where stages or devices differ.
Reach usual_reach(const costmodel::Scenario& scenario);

// Runs the grid search; with `layouts` the layout search too, which starts from the grid's result;
// with `sizes` also the search over stages with sizes of their own, whose plans must be below that;
// with `all` also the sharding search on the mesh of every plan of the ranking; a plan that this
// amounts to enters the ranking where it is faster; with `meshes` only the search over stages with
// sizes of their own, and over replicas. Of the plans found the simplest is chosen that is within
// search.simpler_within of the fastest; with `meshes` of those simulated. All searches poll
// `interrupted`, and all but the grid search `expired`: no time limit cuts the grid short.
Strategies run_strategies(const costmodel::Scenario& scenario, Reach reach, int threads,
                          const std::function<bool()>& expired,
                          const std::function<bool()>& interrupted = {},
                          std::uint64_t effort = usual_effort);

// How far a search goes, wherever a command asks for the best plan.
struct SearchMethod {
  std::optional<Reach> reach = {};      // nothing: usual_reach() of the scenario that is searched
  int threads = 1;                      // they do not change the answer
  std::uint64_t effort = usual_effort;  // of layouts
};

// The plan that `plan` reports first. Nothing where no plan fits, or once `stopped` returns true.
// It keeps the scenario's own search.top: how many plans are ranked decides which layouts are
// improved.
std::optional<costmodel::Estimate> chosen_plan(const costmodel::Scenario& scenario,
                                               const SearchMethod& method = {},
                                               const std::function<bool()>& stopped = {});

// Of `plan --all`. Of each row of a ranking, the other members of its family; empty: they were not
// asked for.
using FamilyMembers = std::vector<std::vector<costmodel::Estimate>>;

// For each plan of `ranked` the fastest others of its t, p, d, c and e, at most search.top less one
// of them: a search of that family alone, with the proof of any search. None of a plan with stages
// of own sizes, which is no family's.
FamilyMembers family_members(const costmodel::Scenario& scenario,
                             const std::vector<costmodel::Estimate>& ranked,
                             const SearchMethod& method = {},
                             const std::function<bool()>& stopped = {});

}  // namespace planner
