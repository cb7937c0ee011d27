// What `explain-job` prints of the log itself: its series, the lines that name a fault, memory of
// the ranks, and an allocation that failed.
#pragma once

#include <string>

#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/job_refusals.hpp"
#include "planner/diagnosis/memory_answer.hpp"
#include "planner/logs/training_log.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

// Bullets: the framework and its lines, what is not steady, lines that name a fault, ranks that
// differ.
std::string log_text(const TrainingLog& log, const ReportStyle& style);

// "NCCL's network is TCP".
std::string_view sign_text(SignKind kind);

std::string refusal_text(const std::vector<Refusal>& refusals, const ReportStyle& style);

// Of the allocation that failed, one sentence.
std::string out_of_memory_text(const MemoryAnswer& answer, const TrainingLog& log);

std::string memory_text(const MemoryAnswer& answer, const costmodel::Estimate& estimate,
                        const TrainingLog& log, const ReportStyle& style);

}  // namespace planner
