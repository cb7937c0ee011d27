// All ranks of a run must have been started with the same scenario: each tells rank 0 what it runs
// before any of them begins.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/scenario.hpp"
#include "runtime/transport.hpp"

namespace runtime {

// What two ranks may not differ in: a name ("plan") and its value as text.
using Statements = std::vector<std::pair<std::string, std::string>>;

// Model, training, plan, seed and iterations, as far as they decide what a rank computes and sends.
Statements statements(const costmodel::Scenario& scenario, const costmodel::ParallelPlan& plan,
                      std::uint64_t seed, int iterations);

// Every rank calls it with the same names. Throws RunFault on rank 0 when one says another thing,
// with both values of the first that differs.
void require_agreement(Transport& transport, const Statements& own);

}  // namespace runtime
