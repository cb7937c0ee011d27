// Everything that `validate` says about its rows, before it is printed.
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
  // Per cent of the runs inside the intervals of the table fitted to the other sources; "": of all.
  std::map<std::string, double> left_out;
};

Scorecard scorecard_of(const std::vector<ValidationRow>& rows);

// The largest errors of iteration time, largest first, `most` of them; of one source, or of all.
std::vector<const ValidationRow*> worst_rows(const std::vector<ValidationRow>& rows,
                                             std::size_t most, const std::string& source = "");

// What stands in the way of a prediction and how often, the commonest first. Places in files are
// left out.
std::vector<std::pair<int, std::string>> error_counts(const std::vector<ValidationRow>& rows);

}  // namespace planner
