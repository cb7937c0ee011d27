// Is the plan that is predicted faster really faster? Compares the order of runs of one workload
// with different plans by prediction and by measurement, and checks whether the plan predicted
// fastest is the fastest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/accuracy/validation.hpp"

namespace planner {

// Spearman's rank correlation; ties get their mean rank. 0 when either side is constant. Throws
// InternalError when the sizes differ.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

// Runs of one source, model, software, cluster and batch with at least 3 plans. Several runs of one
// plan count once, with their geometric mean. Runs whose source does not state the plan are
// skipped.
struct RankGroup {
  std::string source, workload;
  int plans = 0;
  double spearman = 0;
  int pairs = 0;
  double pairs_right = 0;  // a pair predicted equal counts one half
  double ratio_error = 0;  // of the ratio of two plans' times: mean over pairs of |ln(predicted) -
                           // ln(measured)|; an error that all plans share is none
};

// Pairs grouped by the predicted probability (at least one half) of their predicted order.
struct ProbabilityBin {
  double from = 0, to = 0;
  int pairs = 0;
  double mean_probability = 0;
  double right_pct = 0;
};

// Measured times within this of a workload's fastest count as equally fast: repeated runs of one
// plan differ by as much.
inline constexpr double as_fast_pct = 3;

// The loss from running the plan that is predicted fastest among those measured. Includes workloads
// with 2 plans.
struct FirstChoice {
  std::string source, workload;
  int plans = 0;
  int fastest = 0;                  // plans measured as fast as the fastest
  std::string predicted, measured;  // the plan predicted fastest, the plan measured fastest
  double loss_pct = 0;              // measured excess of the former over the latter
  bool right() const { return loss_pct <= as_fast_pct; }
};

struct RankAgreement {
  std::vector<RankGroup> groups;
  std::vector<FirstChoice> choices;
  double mean_spearman = 0;  // mean over groups, weighted by their plans
  int pairs = 0;
  double pairs_right_pct = 0;
  double ratio_error_pct = 0;  // 100 times the mean over groups, weighted by their plans
  // Includes pairs from groups of 2 plans.
  std::vector<ProbabilityBin> calibration;  // without empty bins
};

struct ChoiceFigures {
  int workloads = 0, right = 0;
  double right_pct = 0;
  double by_chance_pct = 0;  // expected for a random plan
  double mean_loss_pct = 0, largest_loss_pct = 0;
};

ChoiceFigures figures_of(const std::vector<FirstChoice>& choices);

RankAgreement rank_agreement(const std::vector<ValidationRow>& rows);

// The scale of a Student t distribution with 3 degrees of freedom whose 90th percentile of the
// absolute value equals that of log(measured / predicted) between pairs of a group. A group has the
// weight of its plans less one. Empty for fewer than ten pairs.
std::optional<double> pair_spread_of(const std::vector<ValidationRow>& rows);

}  // namespace planner
