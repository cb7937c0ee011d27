// Compares published plans with the planner's: is the plan of a published run predicted to be
// faster than the best plan that the search finds for the same model, devices, batch and software?
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "planner/accuracy/evidence.hpp"

namespace planner {

// Plans within this difference count as equally fast: for stages with more than 64 layers the
// search does not try every count of recomputed layers, and long schedules are simulated in part.
inline constexpr double equal_pct = 0.05;

// The common part of runs that are compared with one search: everything except the plan. Of the
// plan, context and expert parallel sizes above 1 stay fixed; all else is free.
struct ExpertWorkload {
  std::string model;  // for people: "354.9 M gpt"
  std::string rest;   // "8 x v100-sxm2-16gb, batch 1,024 x 1,024, fp16, alpa-2022"
  // The grid's best plan; where devices differ, that of the search over meshes.
  std::optional<costmodel::Estimate> even;
  // The best plan of any layout, if requested.
  std::optional<costmodel::Estimate> any;
  std::string error;  // why there is neither
  const costmodel::Estimate* best() const { return any ? &*any : even ? &*even : nullptr; }
};

struct ExpertRun {
  std::string source, id;
  std::optional<double> measured;  // seconds per iteration
  std::size_t workload = 0;
  std::optional<costmodel::Estimate> own;  // prediction for the published plan
  std::string error;                       // why there is none
};

struct ExpertComparison {
  std::vector<ExpertRun> runs;            // in the order of the evidence
  std::vector<ExpertWorkload> workloads;  // by kind of model, parameters, devices; then as in runs
  bool layouts = false;                   // layouts were searched too

  // Time that the planner's best plan saves, in per cent of the prediction for the published plan;
  // empty when either is missing.
  std::optional<double> gain_pct(const ExpertRun& run) const;
};

struct ComparisonRequest {
  bool layouts = false;  // search any layout, as `plan --strategy alpa`
  int threads = 1;       // the result does not depend on it
  std::function<void(std::size_t done, std::size_t all)> progress;  // calls are serialised
};

// Runs that did not fit in memory when measured are skipped. A run or workload that the cost model
// rejects has an error.
ExpertComparison compare_with_experts(const std::vector<EvidenceRun>& runs,
                                      const costmodel::ConfigPath& path,
                                      const ComparisonRequest& request);

struct ComparisonFigures {
  int runs = 0;  // with a prediction
  int as_fast = 0;
  int slower = 0;  // the planner's best is slower, or nothing fits
  double median_gain_pct = 0, largest_gain_pct = 0, smallest_gain_pct = 0;
};

// Figures of one source, or of all.
ComparisonFigures figures_of(const ExpertComparison& comparison, const std::string& source = "");

// The largest excess of the planner's best over a published plan, in per cent; negative if the
// planner is always faster, infinite if it found nothing that fits for some run.
double worst_loss_pct(const ExpertComparison& comparison);

// The runs that the planner's best does not match: first those for which nothing fits, then the
// slowest first.
std::vector<const ExpertRun*> slower_runs(const ExpertComparison& comparison);

}  // namespace planner
