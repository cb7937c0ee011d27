// What a search leaves out unless the scenario writes `auto`, and what it would gain: states and
// activations in host memory (plan.offload), and shards in groups of ranks (plan.dp_replicate).
// With both in every search a space has three to six times as many plans.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

// A plan must be this many times as fast to be worth a key that nobody asked for.
inline constexpr double worth_a_key = 1.02;

// Such a key, in a row.
struct UnaskedRow {
  std::string_view key, what;  // of the plan; what it brings, for people
  // Whether the stack offers it, it matters on this many devices and the scenario leaves it out.
  bool (*open)(const costmodel::Scenario& scenario);
  bool (*used)(const costmodel::ParallelPlan& plan);
};

// Those that are open.
std::vector<UnaskedRow> unasked_keys(const costmodel::Scenario& scenario);

// Fills `all.unasked`: of each key the fastest even plan with it, if that is worth_a_key times as
// fast as the chosen plan. Exact, but within an effort that does not depend on the machine: of keys
// that take more, and after `stopped` returned true, nothing is known, and they are left out. So
// are all where no plan fits. For scenarios without stages or devices that differ.
void add_unasked(Strategies& all, const costmodel::Scenario& scenario, int threads,
                 const std::function<bool()>& stopped = {});

}  // namespace planner
