// Fits constants of devices and stacks to measured runs, with cross-validation: how well are the
// runs of a source, of a model family, of a device ... predicted by constants fitted without them?
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/fitted_constants.hpp"

namespace planner {

// What the constants behind a prediction were fitted to: nothing (those of configs/), all runs, all
// but those of the run's source, model family, device, stack; for runs on many devices and of large
// models, all runs on fewer devices and of smaller models (see most_seen).
enum class FittedTo {
  configured,
  all,
  other_sources,
  other_families,
  other_devices,
  other_stacks,
  fewer_devices,
  smaller_models
};
inline constexpr std::size_t fitted_to_count = 8;

// Runs of more devices, or of models of more parameters, are those that the last two leave out: six
// doublings below the most measured.
inline constexpr double most_seen = 1.0 / 64;

struct FittedRun {
  std::string id, source;
  costmodel::RunTraits traits;
  costmodel::PlanFeatures features = 0;  // of its plan; none where a key was not published
  bool decides = true;                   // see EvidenceRun
  // log(predicted / measured) by FittedTo; NaN: no prediction, or not asked for.
  std::array<double, fitted_to_count> errors{};
  double error(FittedTo to) const { return errors[static_cast<std::size_t>(to)]; }
};

struct RefitResult {
  std::vector<FittedConstant> constants;
  std::vector<FittedRun>
      runs;  // with a measured time that its source does not contradict, in order
  double objective = 0, objective_before = 0;
  bool cross_validated = false;

  std::map<std::string, double> by_source(FittedTo to) const;  // mean absolute error, per cent
  costmodel::MeanErrors means(FittedTo to) const;
};

struct RefitRequest {
  bool cross_validate = false;
  int threads = 1;
  // Called with each fold before it is fitted.
  std::function<void(const std::string&)> progress = {};
  bool sources_alone = false;  // cross-validated by sources, and by nothing else
};

// Minimises the sum over sources of the mean of |log(predicted / measured)| of iteration times,
// plus the priors, by Gauss-Newton steps in the logarithms of the constants (robust_step.hpp);
// slopes are differences. Afterwards the loaded configurations of `path` hold the fitted values. A
// fold starts at the fit to all runs and keeps its slopes; a constant that only the runs left out
// determine takes its prior.
RefitResult refit(const std::vector<std::string>& operands,
                  const std::vector<FittedConstant>& constants, const costmodel::ConfigPath& path,
                  const RefitRequest& request);

std::string to_string(const RefitResult& result);

}  // namespace planner
