// The text output of nccl-tests: comment lines that start with #, among them one per rank and the
// table header; then rows of numbers. Output of NCCL itself may be interleaved, and mpirun may have
// prefixed each line with a tag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"

namespace planner {

struct NcclTiming {
  double time_us = 0;
  double algorithm_gb_s = 0, bus_gb_s = 0;  // 0 when the log rounds to it
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
  std::string measured;  // the date, if the log has one
  std::vector<NcclRow> rows;
  costmodel::Mark mark;  // place of its header
};

// Throws ConfigError with the place for: no table, no ranks, a truncated row, a word where a number
// belongs, wrong results.
std::vector<NcclTable> read_nccl_text(const std::string& text, const std::string& file);

// "all_reduce" for all_reduce_perf, "all_to_all" for alltoall_perf, "send" for sendrecv_perf.
std::string nccl_operation(const std::string& program);

}  // namespace planner
