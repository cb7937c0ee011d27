// sweep of scenarios of serving at the command line.
#include "planner/commands/sweep.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/planner/support/in_process.hpp"

namespace sweep_serving_test {

using in_process::printed;
using nlohmann::json;

namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a sweep has a row a point, which is what evaluate says of it") {
  const auto rows = json::parse(printed(
      "sweep serve-llama-7b-nvlink-4 --over tp=1,2,3,4 --over serving.requests=8,64 --format "
      "json"));
  REQUIRE(rows.size() == 8);
  CHECK(rows[0]["tp"] == 1);
  CHECK(rows[1]["serving.requests"] == 64);
  CHECK(holds(rows[4]["error"], "not divisible by tp 3"));
  const auto one = json::parse(printed(
      "evaluate serve-llama-7b-nvlink-4 --set plan.tp=4 --set serving.requests=64 --format json"));
  CHECK(rows[7]["output_tokens_per_s"].get<double>() ==
        doctest::Approx(one["output_tokens_per_s"].get<double>()).epsilon(1e-5));
  CHECK(rows[7]["next_token_s"].get<double>() ==
        doctest::Approx(one["next_token"]["mean_s"].get<double>()).epsilon(1e-5));
  CHECK(rows[7]["fits"] == true);
}

TEST_CASE("a sweep says which points cannot keep up with what arrives") {
  const auto rows = json::parse(
      printed("sweep serve-small-llama-cpu --over serving.arrival_rate=0.1,100000 --format json"));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["saturated"] == false);
  CHECK(rows[0]["requests_per_s"] <= 0.1);
  CHECK(rows[1]["saturated"] == true);
  CHECK(rows[1]["requests_per_s"] < 100000);
}

TEST_CASE("a plan that is left open is searched at every point of a sweep") {
  const auto result = in_process::run(
      "shardplan sweep serve-llama-7b-nvlink-4 --set plan=auto --over cluster.devices=1,4 "
      "--format json");
  CHECK(result.status == 0);
  const auto rows = json::parse(result.text);
  const auto best =
      json::parse(printed("plan serve-llama-7b-nvlink-4 --set plan=auto --format "
                          "json"))["plans"][0];
  CHECK(rows[1]["output_tokens_per_s"].get<double>() ==
        doctest::Approx(best["output_tokens_per_s"].get<double>()).epsilon(1e-5));
  CHECK(rows[0]["output_tokens_per_s"] < rows[1]["output_tokens_per_s"]);
  REQUIRE(result.warnings.size() == 1);
  CHECK(holds(result.warnings.front(), "searched at every point"));
}

TEST_CASE("what sweep does not take of serving is refused with a remedy") {
  const auto refused = [](const std::string& command, const std::string& reason) {
    const std::string error = printed(command);
    CAPTURE(error);
    CHECK(holds(error, reason));
  };
  refused("sweep serve-llama-7b-pcie-2", "nothing to vary");
  refused("sweep serve-llama-7b-pcie-2 --weak --over cluster.devices=2,4", "--weak goes with");
  refused("sweep serve-llama-7b-pcie-2 --over tpp=1,2", "did you mean 'tp'?");
  refused("sweep serve-llama-7b-pcie-2 --over serving.weights=bf17,fp9", "weights");
}

}  // namespace sweep_serving_test
