// Is the plan that is predicted faster really faster? Runs of one workload that differ in their
// plan, ordered by prediction and by measurement.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "planner/validation.hpp"

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

struct RankAgreement {
  std::vector<RankGroup> groups;
  double mean_spearman = 0;  // groups weighted by their plans
  int pairs = 0;
  double pairs_right_pct = 0;
  // Pairs of groups of 2 plans too.
  std::vector<ProbabilityBin> calibration;  // empty bins are left out
};

RankAgreement rank_agreement(const std::vector<ValidationRow>& rows);

// Scale of the Student t distribution of 3 degrees of freedom whose 90th percentile of the absolute
// value is that of log(measured / predicted) between pairs of a group; a group counts by its plans
// less one. Nothing for fewer than ten pairs.
std::optional<double> pair_spread_of(const std::vector<ValidationRow>& rows);

}  // namespace planner
