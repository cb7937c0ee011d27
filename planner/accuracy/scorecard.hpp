// All results of `validate`, before they are printed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/accuracy/rank_agreement.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

struct Scorecard {
  ValidationSummary summary;
  RankAgreement rank;
  // Per cent of the runs inside the intervals of the table fitted to the other sources, by source;
  // "": over all runs.
  std::map<std::string, double> left_out;
};

Scorecard scorecard_of(const std::vector<ValidationRow>& rows);

// The `most` largest errors of iteration time, largest first, of one source or of all.
std::vector<const ValidationRow*> worst_rows(const std::vector<ValidationRow>& rows,
                                             std::size_t most, const std::string& source = "");

// Why a run is not predicted, without the place in its file.
std::string without_place(const std::string& error);

// The errors that prevent predictions with their counts, most frequent first. Places in files are
// removed.
std::vector<std::pair<int, std::string>> error_counts(const std::vector<ValidationRow>& rows);

}  // namespace planner
