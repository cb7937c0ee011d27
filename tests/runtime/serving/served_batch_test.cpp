// The messages of a batch, by hand and as step_time prices them.
#include "runtime/serving/served_batch.hpp"

#include <doctest/doctest.h>

#include "costmodel/serving/step_time.hpp"
#include "tests/costmodel/serving/support/served.hpp"

namespace served_batch_test {

using namespace costmodel;
using runtime::ServedBatch;

TEST_CASE("a batch sends two sums a layer, the embedding's, and the logits of its rows") {
  const auto s = served::usual("{tp: 2, dp: 1}");
  const ServedBatch batch{.requests = 3, .input = 7, .output = 5, .budget = 100, .parts = 1};
  const Traffic sent =
      runtime::served_traffic(s.model, s.serving.engine, {2, 1, 1, 1}, 0, batch, 2);
  const double rows = 3 * (7 + 4), h = 4096;
  CHECK(sent.all_reduce.value == (2 * 32 + 1) * rows * h * 2);  // 2 (n - 1) / n = 1
  const StepTimes times(s.model, s.cluster, s.serving, {2, 1, 1, 1});
  CHECK(times.all_reduces() * rows * h * 2 == sent.all_reduce.value);
  CHECK(sent.all_gather.value == 3 * 5 * 32000.0 * 2 / 2);
  CHECK(sent.send.value == 0);
}

TEST_CASE("stages pass on hidden states, and the last gives the tokens back") {
  const auto s = served::usual("{tp: 2, pp: 2, dp: 1}");
  const ServedBatch batch{.requests = 3, .input = 7, .output = 5, .budget = 100, .parts = 2};
  EngineSpec engine = s.serving.engine;
  const double rows = 3 * (7 + 4), h = 4096;
  const auto sent = [&](int stage) {
    return runtime::served_traffic(s.model, engine, {2, 2, 1, 1}, stage, batch, 2);
  };
  CHECK(sent(0).send.value == 2 * rows * h * 2 / 2);  // two tensors, half from each tensor rank
  engine.stage_tensors = 1;
  engine.splits_transfers = false;
  CHECK(sent(0).send.value == rows * h * 2);
  CHECK(sent(1).send.value == 3 * 4 * 8);
  CHECK(sent(0).all_gather.value == 0);
  CHECK(sent(0).all_reduce.value == (2 * 16 + 1) * rows * h * 2);
  CHECK(sent(1).all_reduce.value == 2 * 16 * rows * h * 2);
}

TEST_CASE("the cache holds whole blocks of all tokens but the last") {
  const ServedBatch batch{.requests = 3, .input = 10, .output = 7, .budget = 100, .parts = 1};
  CHECK(runtime::cache_blocks(batch, 16) == 3);
  CHECK(runtime::cache_blocks(batch, 15) == 6);
  CHECK(runtime::cache_blocks(batch, 1) == 3 * 16);
}

}  // namespace served_batch_test
