// The cut of layers into the stages of a 1F1B pipeline, one chunk a rank, that may end first.
//
// With f and b the forward and backward of a micro-batch on a stage, n = min(p - r, m) the forwards
// that rank r does before its first backward (arXiv:2104.04473, section 2.2.1) and W the sum of
// f + b over all stages, no pipeline ends before any rank r
//   has waited for all stages before it, done its m micro-batches, and been waited for by these:
//     (sum of f + b over the stages before it) + m (f + b), nor before it
//   has waited for its first backward: W + (m - 1) (f + b) - (n - 1) f;
// transfers that no sender waits for lie 2 r times on the first way and 2 (p - 1) times on the
// second.
//
// Where transfers count, ranks also wait for each other in turn. On rank r + q - 1 the forward of
// micro-batch i is followed by a backward, whose gradient goes back to rank r, which then begins
// the forward of i + q: between the first and the last of these round trips through q ranks and
// 2 (q - 1) transfers lies no pause. With n = min(p - r - q + 1, m) forwards first on the last of
// the q ranks, and q a divisor of m - n, the ranks r .. r + q - 1 with the sum V of f + b end after
//     (sum of f + b over the stages before) + (m + q - 1) / q V
//       + 2 r transfers + ((m - n) / q + 1) 2 (q - 1) transfers.
//
// What lies before a rank depends on the cut alone, so a dynamic program over (rank, first
// layer) finds the least maximum over all cuts. Where sums depend on more than the layers that they
// are of, each counts as the least of all cuts: the result is a bound in any case.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/solvers/tolerances.hpp"

namespace planner {

// A stage of layers first .. end - 1. Times in seconds.
struct CutStage {
  double forward = 0,
         backward = 0;     // of a micro-batch, with the transfers that its sender waits for
  int most_in_flight = 0;  // micro-batches that fit in memory
  double after = 0;        // as the first stage: what follows the pipeline
};

struct CutProblem {
  int layers = 0;
  int stages = 1;                  // p
  std::int64_t micro_batches = 1;  // m
  double transfer = 0;             // seconds, beyond what its sender waits
  double limit = infinity;         // cuts whose bound is larger are left out
  bool whatever_fits = false;      // cuts that do not fit in memory are as good as others
  bool some_is_quick = false;      // a cut is known that is within the limit, whatever fits
  // The stage of layers first .. end - 1; null: there is none. One more layer takes longer, and
  // more memory.
  std::function<const CutStage*(int first, int end)> stage;
  // Called with the stages looked at since the last call, unless empty; true ends the search.
  std::function<bool(std::uint64_t)> expired;
};

struct PipelineCut {
  std::vector<int> ends;    // by stage, of its layers; empty when no cut is within the limit
  double bound = infinity;  // seconds: no pipeline of any cut ends before
  // Likewise, of the cut whose stages take least together; few micro-batches favour it.
  std::vector<int> least_work;
  bool too_slow = false;  // there is no cut, and with all memory there would be none
  bool expired = false;   // there may be a cut: `expired` said so, or the tables would be too large
};

// Stages times layers of the largest tables.
inline constexpr std::int64_t most_cut_cells = std::int64_t{1} << 22;

// Whether some cut fits in memory, however long it takes.
bool some_cut_fits(const CutProblem& problem);

// Among cuts of equal bound, one whose other stages are even.
PipelineCut best_cut(const CutProblem& problem);

}  // namespace planner
