// The text of nccl-tests: comment lines that begin with #, among them one a rank and the header of
// the table; then rows of numbers. Lines of NCCL itself may stand between them, and mpirun may have
// put a tag before each.
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

// "all_reduce" for all_reduce_perf, "all_to_all" for alltoall_perf, "send" for sendrecv_perf.
std::string nccl_operation(const std::string& program);

}  // namespace planner
