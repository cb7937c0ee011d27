// Is the plan that is predicted faster really faster? Runs of one workload that differ in their
// plan, ordered by prediction and by measurement; and whether the plan predicted fastest is it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace planner {

// Spearman's rank correlation, ties at their mean rank. 0 when either side is constant. Throws
// InternalError when the sizes differ.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

// Runs of one source, model, software, cluster and batch under at least 3 plans; runs of one plan
// count once, at their geometric mean. Runs whose plan the source does not tell are left out.
struct RankGroup {
  std::string source, workload;
  int plans = 0;
  double spearman = 0;
  int pairs = 0;
  double pairs_right = 0;  // a pair predicted equal is half right
};

// Pairs by the probability, at least a half, that the prediction gives to its own order.
struct ProbabilityBin {
  double from = 0, to = 0;
  int pairs = 0;
  double mean_probability = 0;
  double right_pct = 0;
};

// Measured times closer than this to the fastest of a workload are as fast: repeated runs of one
// plan differ by as much.
inline constexpr double as_fast_pct = 3;

// What somebody gets who runs the plan predicted fastest of those measured. Workloads of 2 plans
// too.
struct FirstChoice {
  std::string source, workload;
  int plans = 0;
  int fastest = 0;                  // of these, measured as fast as the fastest
  std::string predicted, measured;  // the plan predicted fastest, and the one measured fastest
  double loss_pct = 0;              // what the former was measured to take longer than the latter
  bool right() const { return loss_pct <= as_fast_pct; }
};

struct RankAgreement {
  std::vector<RankGroup> groups;
  std::vector<FirstChoice> choices;
  double mean_spearman = 0;  // groups weighted by their plans
  int pairs = 0;
  double pairs_right_pct = 0;
  // Pairs of groups of 2 plans too.
  std::vector<ProbabilityBin> calibration;  // empty bins are left out
};

struct ChoiceFigures {
  int workloads = 0, right = 0;
  double right_pct = 0;
  double by_chance_pct = 0;  // right, had the plan been drawn
  double mean_loss_pct = 0, largest_loss_pct = 0;
};

ChoiceFigures figures_of(const std::vector<FirstChoice>& choices);

RankAgreement rank_agreement(const std::vector<ValidationRow>& rows);

// Scale of the Student t distribution of 3 degrees of freedom whose 90th percentile of the absolute
// value is that of log(measured / predicted) between pairs of a group; a group counts by its plans
// less one. Nothing for fewer than ten pairs.
std::optional<double> pair_spread_of(const std::vector<ValidationRow>& rows);

}  // namespace planner
