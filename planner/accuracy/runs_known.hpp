// How much a few known runs of a source tell of its others: with so many of a site's runs known,
// the error and the interval of the rest, against none known.
//
// Every figure of a source rests on the other sources alone: the predictions are by constants
// fitted without it (FittedTo::other_sources), and so are the site model's prior and its stretch.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "planner/accuracy/refit.hpp"
#include "planner/accuracy/site_model.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

// A run whose time is predicted by constants fitted without its source.
struct SourceRun {
  std::string source, site;  // a site: the source's runs on one device by one stack
  SiteRun run;
  double usual_low = 0, usual_high = 0;  // logarithms, of its usual interval over its prediction
};

// The constants of which a site may have its own, and the shares of a predicted time that each
// moves: all of it; collectives within a stage (tp, cp, ep); transfers and gradients between them
// (pp, dp); host and optimizer. Waits for a stage count as that stage's work.
inline constexpr std::array<const char*, most_site_constants> site_constant_names{
    "all time", "tp, cp and ep communication", "pp and dp communication", "host and optimizer"};
std::array<double, most_site_constants> site_shares(const costmodel::Breakdown& breakdown);

// The runs of `rows` for which `fitted`, cross-validated, has a prediction.
std::vector<SourceRun> source_runs(const std::vector<ValidationRow>& rows,
                                   const RefitResult& fitted);

// Means over draws of the known runs, and over the runs that were not drawn.
struct KnownFigures {
  int runs = 0;                       // of sites with more runs than are known
  double none = 0;                    // mean error, per cent, with no run known
  double time = 0, parts = 0;         // with one factor on all time; with one on each constant
  double covered = 0, usual = 0;      // runs inside the interval, per cent: of the site, the usual
  double width = 0, usual_width = 0;  // log(high / low)
};

struct RunsKnown {
  int known = 0;
  std::map<std::string, KnownFigures> by_source;
  KnownFigures mean;               // over sources
  int better = 0;                  // sources with a smaller error than with none known
  std::vector<std::string> small;  // sources without a site of more runs than are known
  SitePrior prior;                 // of all sources, for a site that is none of them
  SitePrior parts;
};

// With `known` runs of each site: of all ways to choose them, 200 by a fixed sequence.
RunsKnown runs_known(const std::vector<SourceRun>& runs, int known, int threads);

// The prior as a table of residuals keeps it.
costmodel::SiteSpread site_spread(const RunsKnown& result);
SitePrior site_prior(const costmodel::SiteSpread& kept);

}  // namespace planner
