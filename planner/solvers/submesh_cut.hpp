// The cut of layers into stages on submeshes, in a 1F1B pipeline through groups of devices, that
// may end first.
//
// With f and b the forward and backward of a micro-batch on a stage, w = f + b, P the sum of w over
// the stages before it, S over those behind it, and n the forwards that it does before its first
// backward (it and the stages behind it, at most m: arXiv:2104.04473, section 2.2.1), no pipeline
// ends before any stage
//   has waited for all stages before it, done its m micro-batches, and been waited for by these:
//     P + m w, nor before it
//   has waited for its first backward: P + m w + S - (n - 1) f, nor before it
//   has waited for that and, behind its last forward, for its last backward:
//     P + (m - n + 1) w + 2 S where m > n, nor before
//   every n-th micro-batch came back from the last stage before its (n + 1)-th was sent:
//     P + ceil(m / n) (w + S) + ((m - 1) mod n) b.
// Transfers count as part of P and S, or of f and b where their sender waits for them. What follows
// the pipeline is added: the first stage's gradient reduction, and what the stage itself does then.
//
// Exact for the largest of these, unlike Alpa's objective (stage_slicing), which is no bound:
// pipelines of unlike stages may end earlier. For a limit on the time, the largest P with which the
// layers from some layer on can still be done on the devices left follows from that of later layers
// (submesh_states); the least limit with a cut is found by bisection.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "planner/solvers/stage_slicing.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

struct SubmeshProblem {
  // In pipeline order, with equal layers and micro-batches. Every group is used completely, and
  // every stage lies within one.
  std::vector<const SlicingProblem*> groups;
  int least_stages = 1, most_stages = std::numeric_limits<int>::max();
  // Seconds, at least, of one transfer into or out of a stage over the boundary before a layer;
  // `join`: from another group. Empty: none.
  std::function<double(std::size_t group, int devices, bool join, int layer)> transfer;
  bool blocking = false;    // senders wait for their transfers
  double start = 0;         // seconds: no cut is quicker
  double limit = infinity;  // seconds: slower cuts are left out
  double tolerance = 1e-4;  // relative; between the cut and the bound
  std::uint64_t most_effort = std::numeric_limits<std::uint64_t>::max();  // states tried
  std::function<bool()> expired;  // polled, unless empty; true ends the search
};

struct SubmeshCut {
  std::vector<SlicedStage> stages;  // empty when there is no cut within the limit, or none is found
  double time = infinity;           // the largest of the above, in seconds
  double bound = infinity;          // of all cuts
  std::uint64_t effort = 0;
  bool complete = true;  // false: effort or time ran out before all was settled
};

SubmeshCut best_submesh_cut(const SubmeshProblem& problem);

// The fewest stages of a cut, however long it takes; the largest int when there is none. Fewer are
// in flight then. `memory`: whether stages must fit.
int fewest_stages(const SubmeshProblem& problem, bool memory);

// Why a problem without a cut that fits has none, in a sentence.
std::string why_no_submesh_cut(const SubmeshProblem& problem);

}  // namespace planner
