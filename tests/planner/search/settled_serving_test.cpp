#include "planner/search/settled_plan.hpp"

#include <doctest/doctest.h>

#include "planner/search/serving_search.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {

costmodel::ServingScenario two_devices(const std::string& plan, const std::string& more = "") {
  return served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64" + more,
                          "llama-2-7b", "dgx-h100", 2, plan.c_str());
}

}  // namespace

TEST_CASE("Sizes that are written stay, and without any the best plan's are taken") {
  const auto written = settled_serving(two_devices("{tp: 2}"));
  REQUIRE(written);
  CHECK(written->plan.tp == 2);
  CHECK_FALSE(written->plan.pp);
  const auto open = two_devices("{}");
  const auto best = search_serving(open, usually_ranked).best.front().choice;
  const auto chosen = settled_serving(open);
  REQUIRE(chosen);
  CHECK(chosen->plan.tp == best.sizes.tp);
  CHECK(chosen->plan.dp == best.sizes.dp);
  CHECK(chosen->serving.limits.max_num_seqs == best.max_num_seqs);
}

TEST_CASE("Nothing is settled where no plan keeps what is asked") {
  CHECK_FALSE(settled_serving(two_devices("{}", ", latency_bound: {tpot_s: 3 ms}")));
}
