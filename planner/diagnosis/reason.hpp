// Explains the time of a plan in words, and evaluates the neighbours of the plan: each knob moved
// by one step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// The pipeline rank that works longest. The breakdown of an iteration is that of the rank that ends
// last, which may be a light one that waits: what limits the time is then read off this one.
struct BusiestRank {
  int rank = 0;
  costmodel::Breakdown breakdown;  // sums to the iteration; all of its waiting is in the bubble
};

// Where the rank that ends last waits for it for at least this part of the iteration, and loses
// more to one thing at most.
inline constexpr double least_wait = 0.01;

// Nothing where it does not, or pipelines differ. `evaluator` is the estimate's.
std::optional<BusiestRank> busiest_rank(const costmodel::Estimate& estimate,
                                        costmodel::Evaluator& evaluator);

struct Share {
  std::string name;  // "pipeline bubble"
  costmodel::Seconds time;
  double of_iteration = 0;
};

// All parts of the iteration, zero or not, in the order of the breakdown; they sum to the iteration
// time.
std::vector<Share> all_shares(const costmodel::Estimate& estimate);
std::vector<Share> all_shares(const costmodel::Estimate& estimate,
                              const costmodel::Breakdown& of_rank);

// Those that are not zero.
std::vector<Share> shares(const costmodel::Estimate& estimate);

// How long the device of the rank that ends last, or of the busiest, waits in an iteration for its
// host, which launches kernels more slowly than they run: a part of its computation. `evaluator` is
// the estimate's.
costmodel::Seconds host_waits(const costmodel::Estimate& estimate,
                              const std::optional<BusiestRank>& busiest,
                              costmodel::Evaluator& evaluator);

// One sentence per line: the largest part, the largest losses, the host where its launches set the
// pace, the memory use. Of the time, those of the slowest rank, if the last to finish waits for it.
std::vector<std::string> reasons(const costmodel::Estimate& estimate,
                                 const std::optional<BusiestRank>& busiest = {},
                                 costmodel::Seconds host_waits = {});

// "+1.20 s bubble, +0.31 s recomputation": the time that `other` loses to `best` by part, largest
// first; includes gains.
std::string difference(const costmodel::Estimate& best, const costmodel::Estimate& other);

// The keys in which `to` differs from `from`: {"pp 1 -> 2", "stage_layers even -> 3+2+3x9+0"}. What
// follows from others, as the usual schedule, is left out.
std::vector<std::string> plan_changes(const costmodel::ParallelPlan& from,
                                      const costmodel::ParallelPlan& to);

// The plan keys to which the scenario gives a value, as written there: the search keeps them.
std::vector<std::string> fixed_keys(const costmodel::PlanRequest& plan);

struct Step {
  std::string knob;    // "micro_batch"
  std::string change;  // "1 -> 2"
  costmodel::Seconds iteration;
  costmodel::Bytes peak;
  bool fits = false;
  bool breaks_fixed = false;  // changes a key that the scenario fixes
  costmodel::ParallelPlan plan;
};

// How far a knob is moved: to the next value that makes a valid plan, or on to the first that also
// fits.
enum class StepLength { next, fitting };

// Moves each knob one step up and down with the others kept, including knobs that the scenario
// fixes. dp takes what tp and pp leave; vpp falls back to a value that divides. None where stages
// have sizes of their own.
std::vector<Step> one_step_away(const costmodel::Estimate& from,
                                const costmodel::Scenario& scenario,
                                costmodel::Evaluator& evaluator,
                                StepLength length = StepLength::next);

// The keys by which the scenario's plan, chosen as `from`, becomes `to`, as --set takes them:
// {"plan.micro_batch=2"}. Those that `asked` leaves to the search are named wherever they are not
// what a written plan has without them: one key that is set makes the others' values usual.
// `changed`: the scenario in which `to` stands, for what its stack takes where nothing is written.
std::vector<std::string> plan_assignments(const costmodel::PlanRequest& asked,
                                          const costmodel::ParallelPlan& from,
                                          const costmodel::ParallelPlan& to,
                                          const costmodel::Scenario& changed);

}  // namespace planner
