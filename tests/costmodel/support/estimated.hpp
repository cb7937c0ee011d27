// Estimates of plans for GPTs of several sizes on the machines of fixtures.hpp.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_rules.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace fixtures {

struct Case {
  std::int64_t layers, hidden, heads, vocab, sequence, batch;
};
inline constexpr Case cases[] = {{8, 1024, 16, 51200, 512, 16},
                                 {16, 2048, 32, 51200, 2048, 32},
                                 {4, 6144, 48, 128 * 401 * 8, 1024, 64},
                                 {96, 12288, 96, 51200, 2048, 48}};

inline costmodel::ModelSpec gpt(const Case& c) {
  return gpt(c.layers, c.hidden, c.heads, c.vocab, c.sequence);
}

inline costmodel::Estimate estimated(
    const Case& c, const costmodel::ParallelPlan& plan,
    costmodel::AttentionKernel kernel = costmodel::AttentionKernel::unfused) {
  auto how = training(c.batch, c.sequence);
  how.stack.kernels.attention = kernel;
  how.overlap.pp_overlap = plan.vpp > 1;
  const auto model = gpt(c);
  const auto machines = cluster(plan.devices());
  REQUIRE(violations(plan, model, machines, how).empty());
  return costmodel::Evaluator(model, machines, how).estimate(plan);
}

}  // namespace fixtures
