// Logs of nccl-tests and rccl-tests (all_reduce_perf and its sisters; text as printed, or the JSON
// that --json writes) and what becomes of them: microbenchmarks in the shape of configs/microbench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"

namespace planner {

struct NcclTiming {
  double time_us = 0;
  double algorithm_gb_s = 0, bus_gb_s = 0;  // 0 where the log rounds to it
};

struct NcclRow {
  double bytes = 0;
  std::string type;  // as printed: float, half, ...
  std::optional<NcclTiming> out_of_place, in_place;
  int line = 0;
};

struct NcclTable {
  std::string op;  // all_reduce, all_gather, reduce_scatter, all_to_all, send, ...
  std::string device;
  int ranks = 0;
  int nodes = 0;
  std::string measured;  // the date, where the log has one
  std::vector<NcclRow> rows;
  costmodel::Mark mark;  // of its header
};

// Throws ConfigError with the place: no table, no ranks, a row cut off, a word that is no number,
// wrong results.
std::vector<NcclTable> read_nccl_text(const std::string& text, const std::string& file);
std::vector<NcclTable> read_nccl_json(const std::string& text, const std::string& file);

// Reads either, by its first character.
std::vector<NcclTable> read_nccl_tests(const std::string& file);

// "all_reduce" for all_reduce_perf, "all_to_all" for alltoall_perf, "send" for sendrecv_perf.
std::string nccl_operation(const std::string& program);

// One measurement a line, YAML whose lines are JSON.
std::string to_microbenchmarks(const std::vector<NcclTable>& tables, const std::string& file,
                               bool json);

}  // namespace planner
