// Checks before a run that all ranks were started with the same scenario: each rank sends rank 0
// what it is going to run, and none starts before rank 0 has compared them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

// What must be equal on all ranks: pairs of a name ("plan") and its value as text.
using Statements = std::vector<std::pair<std::string, std::string>>;

// The backend, model, training, plan, arithmetic, seed and iterations, as far as they affect what a
// rank computes and sends.
Statements statements(const RunRequest& request, const costmodel::ParallelPlan& plan);

// Collective; all ranks pass the same names. Throws RunFault on rank 0 only, so that one rank
// reports: wrong_world(ranks, plan, size) when the world has another size than `ranks`, else the
// first value that differs, as both ranks state it.
void require_agreement(Transport& transport, const Statements& own, std::int64_t ranks,
                       const std::string& plan);

// The error that a plan needs `wanted` ranks but `started` were started, with a remedy.
std::string wrong_world(std::int64_t wanted, const std::string& plan, int started);

}  // namespace runtime
