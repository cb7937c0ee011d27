// Reads logs of nccl-tests and rccl-tests (all_reduce_perf etc.; printed text, or the JSON of
// --json) and writes them as microbenchmarks in the format of configs/microbench.
#pragma once

#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/logs/nccl_text.hpp"

namespace planner {

// Throws ConfigError with the place for: no table, no ranks, a truncated row, a word where a number
// belongs, wrong results.
std::vector<NcclTable> read_nccl_json(const std::string& text, const std::string& file);

// Reads either format; the first character decides.
std::vector<NcclTable> read_nccl_tests(const std::string& file);

// One measurement per line, as YAML whose lines are JSON.
std::string to_microbenchmarks(const std::vector<NcclTable>& tables, const std::string& file,
                               bool json);

}  // namespace planner
