// All results of `validate`, before they are printed.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/residuals.hpp"
#include "planner/accuracy/peak_fit.hpp"
#include "planner/accuracy/rank_agreement.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

struct Scorecard {
  ValidationSummary summary;
  RankAgreement rank;
  std::vector<Outcome> outcomes;  // chances of fitting by the peaks of other sources
  // The table of residuals, if it is of these rows: how well runs are predicted that the constants
  // have not seen.
  const costmodel::ResidualTable* unseen = nullptr;
};

// `kept`: the table of residuals of the configurations, or null. It is of these rows if its runs
// are as many and their error by the configured constants is as large.
Scorecard scorecard_of(const std::vector<ValidationRow>& rows,
                       const costmodel::ResidualTable* kept = nullptr);

// The `most` largest errors of iteration time, largest first, of one source or of all.
std::vector<const ValidationRow*> worst_rows(const std::vector<ValidationRow>& rows,
                                             std::size_t most, const std::string& source = "");

// Why a run is not predicted, without the place in its file.
std::string without_place(const std::string& error);

// The errors that prevent predictions with their counts, most frequent first. Places in files are
// removed.
std::vector<std::pair<int, std::string>> error_counts(const std::vector<ValidationRow>& rows);

}  // namespace planner
