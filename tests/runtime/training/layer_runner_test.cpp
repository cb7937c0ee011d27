// What LayerRunner asks of the host. That it computes what it should is in training_run_test.
#include "runtime/training/layer_runner.hpp"

#include <doctest/doctest.h>

#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/trained.hpp"

namespace layer_runner_test {

namespace {

// The waits of the host in two iterations of a rank, with so many sequences a micro-batch.
std::int64_t waits_with(const char* plan) {
  const FarMemory::Unwatched open;
  const auto s = training_test::scenario(
      "{kind: gpt, layers: 2, hidden: 32, heads: 4, vocab: 96, max_positions: 32, dropout: 0.1}",
      "stack: shardplan-cuda", plan, 1);
  const std::int64_t before = FarMemory::waits();
  const auto own = training_test::trained(s, 2, std::make_unique<HostKernelDevice>);
  CHECK(own.measured.loss.size() == 2);
  return FarMemory::waits() - before;
}

}  // namespace

TEST_CASE("the host does not wait for the device inside a micro-batch") {
  const std::int64_t of_one = waits_with("{micro_batch: 8}");
  CHECK(of_one > 0);  // weights, and the losses once an iteration
  CHECK(waits_with("{micro_batch: 1}") == of_one);
  CHECK(waits_with("{micro_batch: 1, recompute: full}") == of_one);
}

}  // namespace layer_runner_test
