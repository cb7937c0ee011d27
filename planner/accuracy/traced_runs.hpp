// What the trace of one run is worth for the other runs of an evidence file: `shardplan validate
// --traces`.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "planner/accuracy/evidence.hpp"
#include "planner/report/table.hpp"

namespace planner {

// A run that is known by its trace, and its group: the runs of its stack whose models have experts
// or none, as it. Errors in per cent of what is measured.
struct TracedGroup {
  std::string run, trace;
  double attributed = 0;         // of the kernels' time, a part
  double before = 0, after = 0;  // of the run itself, with a sign
  int others = 0;
  double others_before = 0, others_after = 0;  // mean of the absolute errors
  std::string worst;                           // of the others, with the trace
  double worst_error = 0;
};

// A trace is of the run whose id its file's name ends; throws ConfigError where there is none.
std::vector<TracedGroup> traced_groups(const std::vector<EvidenceRun>& runs,
                                       const std::vector<std::string>& traces,
                                       const costmodel::ConfigPath& path);

Table traced_group_table(const std::vector<TracedGroup>& groups);

}  // namespace planner
