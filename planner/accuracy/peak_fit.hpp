// The distribution of errors of published peaks of memory, and how good the chances of fitting are
// that follow from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

// Of the rows of peak_memory_bytes that count. All: median and scale of a Student t distribution of
// 3 degrees of freedom at the greatest likelihood, in which every source weighs the same. A stack's
// are mixed with those of all as if four more sources had measured it. `unmeasured`, by the rows of
// fits too: the factor by which sources whose stack no other source measured are likeliest when
// each is left out, by their peaks where they state some, else by whether their runs ran. Empty
// without a peak.
std::optional<costmodel::PeakResiduals> fit_peaks(const std::vector<ValidationRow>& rows);

// Mean squared differences between the chance of fitting and what happened, 1 or 0 (Brier 1950,
// "Verification of forecasts expressed in terms of probability"). Never wrong: 0; always 0.5: 0.25.
struct BrierScore {
  int runs = 0, out_of_memory = 0;
  double all = 0;           // over runs
  double over_sources = 0;  // the mean over sources of theirs
  double of_misfits = 0;    // over runs that were out of memory
};

struct Outcome {
  double chance = 0;  // predicted, of fitting
  bool ran = true;
  std::string source;
};
// Runs with a chance of at least `from`, below `to`.
struct ChanceBin {
  double from = 0, to = 0;
  int runs = 0;
  double mean_chance = 0, ran = 0;  // shares; 0 without runs
};
std::vector<ChanceBin> chance_bins(const std::vector<Outcome>& outcomes);

BrierScore brier_score(const std::vector<Outcome>& outcomes);

// Each source's runs by the peaks of the others; by the default distribution where there are none.
std::vector<Outcome> left_out_chances(const std::vector<ValidationRow>& rows);

}  // namespace planner
