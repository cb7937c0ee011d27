// All ranks of a run must have been started with the same scenario: each tells rank 0 what it runs,
// and none begins before rank 0 has heard all.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/run/run_command.hpp"

namespace runtime {

// What two ranks may not differ in: a name ("plan") and its value as text.
using Statements = std::vector<std::pair<std::string, std::string>>;

// Backend, model, training, plan, arithmetic, seed and iterations, as far as they decide what a
// rank computes and sends.
Statements statements(const RunRequest& request, const costmodel::ParallelPlan& plan);

// Every rank calls it with the same names. Throws RunFault on rank 0, so that one rank speaks: when
// the world has another size than `ranks`, with wrong_world(ranks, plan, size); when a rank says
// another thing, with both values of the first that differs.
void require_agreement(Transport& transport, const Statements& own, std::int64_t ranks,
                       const std::string& plan);

// That a plan of so many ranks cannot run on so few or many, and what to do.
std::string wrong_world(std::int64_t wanted, const std::string& plan, int started);

}  // namespace runtime
