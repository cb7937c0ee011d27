// An allocation that failed leads to changes with which the job fits.
#include "planner/diagnosis/memory_answer.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace memory_answer_test {

using namespace planner;
using costmodel::Bytes;

namespace {

constexpr double gibi = 1024.0 * 1024 * 1024;

costmodel::Scenario scenario(const char* micro_batch) {
  return scenarios::read(std::string("model: gpt2-large\ncluster: {base: dgx-v100, devices: 1}\n"
                                     "training: {sequence: 1024, global_batch: 16, precision: "
                                     "fp16, stack: {base: megatron-core-2026, attention: "
                                     "unfused}}\nplan: {tp: 1, pp: 1, zero: 0, recompute: none, "
                                     "micro_batch: ") +
                         micro_batch + "}\n");
}

MemoryAnswer answer_of(const costmodel::Scenario& s, const OutOfMemory& failed) {
  const auto e = costmodel::estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
  return answer_out_of_memory(s, e, failed);
}

}  // namespace

TEST_CASE("a job that is predicted not to fit: the first change is of the plan, and each fits") {
  const auto s = scenario("8");
  const auto a = answer_of(s, {.wanted = Bytes(272 * 1048576.0)});
  CHECK_FALSE(a.predicted_fits);
  REQUIRE_FALSE(a.changes.empty());
  CHECK(a.changes.front().settings == std::vector<std::string>{"plan.micro_batch=2"});
  for (const Remedy& change : a.changes) CHECK(change.best.fits());
}

TEST_CASE("a job that is predicted to fit: the changes leave room for what the prediction lacks") {
  const auto s = scenario("2");
  const auto a = answer_of(s, {.in_use = Bytes(31.5 * gibi), .rank = 0});
  CHECK(a.predicted_fits);
  CHECK(a.low_by > 1);
  CHECK(a.stage == 0);
  REQUIRE_FALSE(a.changes.empty());
  for (const Remedy& change : a.changes) {
    CHECK(change.best.fits());
    CHECK(change.best.peak * a.low_by <= s.cluster.device.memory);
  }
}

TEST_CASE("an allocation of the size of the logits is named") {
  const auto s = scenario("8");
  const double vocab = 50304;  // 50,257 padded to a multiple of 128
  const auto a = answer_of(s, {.wanted = Bytes(8 * 1024 * vocab * 4)});
  CHECK(a.tensor == "the logits of a micro-batch in 32 bits");
  CHECK(answer_of(s, {.wanted = Bytes(33e6)}).tensor == "");
}

}  // namespace memory_answer_test
