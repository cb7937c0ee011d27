// Published, measured runs: each is a scenario with its measurements.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "costmodel/config/key_text.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// The measurements of a run.
struct Measured {
  std::optional<double> iteration, peak_memory;  // seconds, bytes as the stack's log counts them
  std::optional<double> peak_allocated;  // what PyTorch's tensors took (max_memory_allocated)
  std::optional<bool> fits;
  bool ran() const { return fits.value_or(true); }  // a timed run must have fitted
};

// Seconds of an iteration by kind of kernel (costmodel/cost/kernel_time); the last: in no kernel.
using KindSeconds = std::array<double, costmodel::kernel_kind_names.size() + 1>;
// By which an evidence file's `kinds` have them, and their names in reports.
inline constexpr auto kind_keys = [] {
  std::array<std::string_view, std::tuple_size_v<KindSeconds>> all;
  std::copy(costmodel::kernel_kind_keys.begin(), costmodel::kernel_kind_keys.end(), all.begin());
  all.back() = "gaps";
  return all;
}();
std::string_view kind_name(std::size_t kind);

// The keys of an evidence file, and of a run of training: "evidence.runs[].id".
std::vector<costmodel::KeyText> evidence_keys();

// A run of an evidence file, merged with the file's `defaults`.
struct EvidenceRun {
  std::string source;  // stem of the file
  std::string id;
  costmodel::Value scenario;
  Measured measured;
  std::optional<KindSeconds> kinds;
  std::string contradicted;  // how its source's own figures contradict each other, if they do
  std::string unstated;      // what memory depends on and its source does not state, if anything
  bool decides = true;       // whether constants are fitted to it; its error counts either way
  int year = 0;              // of the measurement, by its source; 0: not stated
};

// The scenario of a run, with the stack as it was in the run's year.
costmodel::Scenario scenario_of(const EvidenceRun& run, const costmodel::ConfigPath& path);

// A run as it is written, merged with the file's `defaults`.
struct WrittenRun {
  std::string source;  // stem of the file
  costmodel::Value run;
  int year = 0;  // of the file's source
};

// The runs of evidence files, of training or of serving; folders as below.
std::vector<WrittenRun> written_runs(const std::vector<std::string>& operands,
                                     std::vector<std::string>* left_out = nullptr);

// Reads evidence files. A folder stands for its *.yaml files that have runs, sorted by name, not
// recursively; `left_out` receives the names of its other files. Throws ConfigError for bad files.
std::vector<EvidenceRun> read_evidence_runs(const std::vector<std::string>& operands,
                                            std::vector<std::string>* left_out = nullptr);

// If a source does not state the micro-batch or the stages per rank, uses the framework's defaults
// instead of the best choice.
void take_defaults(costmodel::Scenario& scenario);

}  // namespace planner
