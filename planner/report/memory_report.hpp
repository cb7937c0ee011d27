// The memory of the fullest rank over an iteration, as a table of its passes.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "costmodel/estimate/memory_trace.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

inline constexpr std::array<std::string_view, 3> memory_pass_names{"forward", "backward", "step"};

// "forward of block, number 3 of stage 0, micro-batch 1": what a sample is of.
std::string pass_text(const costmodel::MemorySample& sample);

// A row for consecutive layers of one kind: pass, stage, micro-batch, layers, the operator at their
// fullest moment, and then what tensors take in GiB by kind, in all, and what the allocator holds.
Table memory_rows(const costmodel::MemoryTrace& trace);

// The rows with a bar each, and what leads to the peak. "" where nothing is known of it.
std::string memory_report(const costmodel::MemoryTrace& trace, costmodel::Bytes capacity,
                          const ReportStyle& style);

}  // namespace planner
