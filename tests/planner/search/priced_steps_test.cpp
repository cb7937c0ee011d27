#include "planner/search/serving_search.hpp"

#include <doctest/doctest.h>

#include "costmodel/serving/steady_state.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE("Step times are made once for sizes, whatever the number of replicas, and format") {
  const auto s = served::usual();
  PricedSteps steps(s);
  const auto& one = steps.of({2, 1, 1, 1}, costmodel::WeightFormat::bf16);
  CHECK(&one == &steps.of({2, 1, 1, 4}, costmodel::WeightFormat::bf16));
  const auto& narrow = steps.of({2, 1, 1, 1}, costmodel::WeightFormat::fp8);
  CHECK(&one != &narrow);
  const auto load = decode_load(s.serving, 8);
  CHECK(narrow.of(load).weights < one.of(load).weights);
  const costmodel::StepTimes alone(s.model, s.cluster, s.serving, {2, 1, 1, 1});
  CHECK(one.of(load).total() == alone.of(load).total());
}

TEST_CASE("Experts that are spread over replicas have step times for each number of them") {
  const auto s =
      served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 32", "mixtral-8x7b");
  PricedSteps steps(s);
  CHECK(&steps.of({1, 1, 4, 4}, costmodel::WeightFormat::bf16) !=
        &steps.of({1, 1, 8, 8}, costmodel::WeightFormat::bf16));
}
