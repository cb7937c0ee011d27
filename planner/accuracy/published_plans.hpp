// The planner against experts: is a plan that somebody ran predicted faster than the best that the
// search finds for the same model, devices, batch and software?
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/accuracy/evidence.hpp"

namespace planner {

// A plan that takes longer by no more than this is as fast: of stages of more than 64 layers the
// search tries not every count of recomputed layers, and long schedules are simulated in part.
inline constexpr double equal_pct = 0.05;

// What runs share that are held against one search: everything but the plan. Of that, context and
// expert parallel sizes above 1 are kept, everything else is free.
struct ExpertWorkload {
  std::string model;  // for people: "354.9 M gpt"
  std::string rest;   // "8 x v100-sxm2-16gb, batch 1,024 x 1,024, fp16, alpa-2022"
  std::optional<costmodel::Estimate> even;  // the best plan of the grid; where devices differ, of
                                            // the search over meshes
  std::optional<costmodel::Estimate> any;   // of any layout, where asked for
  std::string error;                        // why there is neither
  const costmodel::Estimate* best() const { return any ? &*any : even ? &*even : nullptr; }
};

struct ExpertRun {
  std::string source, id;
  std::optional<double> measured;  // seconds of an iteration
  std::size_t workload = 0;
  std::optional<costmodel::Estimate> own;  // of the plan that was run
  std::string error;                       // why there is none
};

struct ExpertComparison {
  std::vector<ExpertRun> runs;            // in the order of the evidence
  std::vector<ExpertWorkload> workloads;  // by kind of model, parameters, devices; then as in runs
  bool layouts = false;                   // searched too

  // Seconds that the planner's best plan saves, in per cent of the run's own prediction; nothing
  // where one of them is missing.
  std::optional<double> gain_pct(const ExpertRun& run) const;
};

struct ComparisonRequest {
  bool layouts = false;  // plans of any layout, as `plan --strategy alpa` searches them
  int threads = 1;       // the answer is the same for any number
  std::function<void(std::size_t done, std::size_t all)> progress;  // called by one at a time
};

// Runs that did not fit when they were measured are left out. A run or a workload that the model
// refuses has an error.
ExpertComparison compare_with_experts(const std::vector<EvidenceRun>& runs,
                                      const costmodel::ConfigPath& path,
                                      const ComparisonRequest& request);

struct ComparisonFigures {
  int runs = 0;  // with a prediction
  int as_fast = 0;
  int slower = 0;  // the planner's best; or it found nothing that fits
  double median_gain_pct = 0, largest_gain_pct = 0, smallest_gain_pct = 0;
};

// Of one source, or of all.
ComparisonFigures figures_of(const ExpertComparison& comparison, const std::string& source = "");

// How much longer than a run's own plan the planner's best takes at most, per cent; negative where
// it is always faster, infinite where nothing was found to fit.
double worst_loss_pct(const ExpertComparison& comparison);

// Runs of which the planner's best is slower, the slowest first; what it found nothing for before.
std::vector<const ExpertRun*> slower_runs(const ExpertComparison& comparison);

}  // namespace planner
