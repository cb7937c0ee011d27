// Logs of nccl-tests and rccl-tests (all_reduce_perf and its sisters; text as printed, or the JSON
// that --json writes) and what becomes of them: microbenchmarks in the shape of configs/microbench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/exchange/nccl_text.hpp"

namespace planner {

// Throws ConfigError with the place: no table, no ranks, a row cut off, a word that is no number,
// wrong results.
std::vector<NcclTable> read_nccl_json(const std::string& text, const std::string& file);

// Reads either, by its first character.
std::vector<NcclTable> read_nccl_tests(const std::string& file);

// One measurement a line, YAML whose lines are JSON.
std::string to_microbenchmarks(const std::vector<NcclTable>& tables, const std::string& file,
                               bool json);

}  // namespace planner
