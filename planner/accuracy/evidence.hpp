// Published, measured runs: a scenario each, with what was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// What a run measured.
struct Measured {
  std::optional<double> iteration, peak_memory;  // seconds, bytes
  std::optional<bool> fits;
  bool ran() const { return fits.value_or(true); }  // what was timed fitted
};

// A run of an evidence file, merged over the file's `defaults`.
struct EvidenceRun {
  std::string source;  // stem of the file
  std::string id;
  costmodel::Value scenario;
  Measured measured;
  std::string contradicted;  // why its source's own figures disagree; empty: they do not
};

// Reads evidence files, and all *.yaml of a folder that have runs (not below it), in order of name;
// a folder's others are named in `left_out`. Throws ConfigError for bad files.
std::vector<EvidenceRun> read_evidence_runs(const std::vector<std::string>& operands,
                                            std::vector<std::string>* left_out = nullptr);

// Where a source leaves the micro-batch or the stages of a rank open, the framework's own defaults
// go before the best choice.
void take_defaults(costmodel::Scenario& scenario);

}  // namespace planner
