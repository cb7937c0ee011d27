// A cluster's time factor and interval by a user's own runs on it: `shardplan calibrate
// --from-log`.
//
// One factor, on all time. Factors on parts of it (communication, host) were tried on the published
// runs and predict no better (`validate --runs-known`, docs/calibrate.md), so none is fitted.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/text_width.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/error_band.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/site_model.hpp"

namespace planner {

// A run with its log, and what is predicted for it without any own run.
struct OwnRun {
  std::string log;
  int iterations = 0;  // in their steady state
  costmodel::Seconds measured, predicted;
  costmodel::ErrorBand usual;  // its interval by published runs
  double residual() const;     // log(measured / predicted)
};

struct OwnRunsFit {
  std::vector<OwnRun> runs;
  SiteFit fit;
  costmodel::OwnRuns measured;  // as the cluster's file has it
};

// `runs`: at least one, all by `stack` and on one cluster.
OwnRunsFit fit_own_runs(std::vector<OwnRun> runs, const std::string& stack,
                        const costmodel::SiteSpread& published);

// The cluster of a scenario as a file of its own: on its base, with these runs and without a number
// of devices where the base says none.
costmodel::Value own_cluster(const costmodel::Value& cluster, const OwnRunsFit& fit,
                             const costmodel::SiteSpread& published);

// `sources`: of published runs, that the prior is of.
std::string to_string(const OwnRunsFit& fit, int sources,
                      std::size_t columns = costmodel::unlimited_width);

}  // namespace planner
