// The columns of `compare`: scenarios, and variants of the first.
#include "planner/commands/compare_command.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/in_process.hpp"

namespace compare_command_test {

using namespace planner;
using fixtures::config_error;
using fixtures::contains;

namespace {

CommandResult compare(const std::vector<std::string>& operands,
                      const std::vector<std::string>& with) {
  Options options;
  options.command = "compare";
  options.operands = operands;
  options.with = with;
  options.format = Format::json;
  return compare_command({options, {}, fixtures::configs()});
}

}  // namespace

TEST_CASE("several assignments stand between semicolons") {
  CHECK(assignments_of("plan.tp=4; plan={pp: 2, dp: 2};a=b") ==
        std::vector<std::string>{"plan.tp=4", "plan={pp: 2, dp: 2}", "a=b"});
  for (const auto* text : {"", ";", "a=b;", ";a=b", " "})
    CHECK(contains(config_error([&] { assignments_of(text); }), "has an empty assignment"));
}

TEST_CASE("a variant is the first scenario with its assignments; names are distinct") {
  const auto json = nlohmann::json::parse(
      compare({"tiny-gpt-cpu", "tiny-gpt-cpu"}, {"plan={tp: 4}", "plan={tp: 2, dp: 2}"}).text);
  REQUIRE(json["scenarios"].size() == 4);
  CHECK(json["scenarios"][1]["name"] == "tiny-gpt-cpu (2)");
  CHECK(json["scenarios"][2]["name"] == "plan={tp: 4}");
  CHECK(json["scenarios"][2]["plan"]["tp"] == 4);
  CHECK(json["scenarios"][3]["plan"]["dp"] == 2);
  CHECK(json["against_first"][0]["speedup"] == 1);
}

TEST_CASE("what is wrong is told with its place") {
  CHECK(contains(config_error([] { compare({"tiny-gpt-cpu"}, {}); }), "one scenario only"));
  CHECK(contains(config_error([] { compare({"tiny-gpt-cpu"}, {"plan.tp"}); }), "--with"));
  CHECK(contains(config_error([] { compare({"tiny-gpt-cpu"}, {"plan.tp=3"}); }), "tp"));
  CHECK(contains(config_error([] {
                   compare({"tiny-gpt-cpu", "tiny-gpt-cup"}, {});
                 }),
                 "tiny-gpt-cpu"));
}

TEST_CASE("scenarios of serving and variants stand side by side") {
  const std::string text = in_process::printed(
      "compare serve-llama-7b-pcie-1 serve-llama-7b-pcie-2 --with cluster.devices=4");
  CAPTURE(text);
  CHECK(contains(text, "times the tokens a second of serve-llama-7b-pcie-1 (0."));
  CHECK_FALSE(contains(text, "issue 367"));  // a remark is no input
  const auto rows = nlohmann::json::parse(
      in_process::printed("compare serve-llama-7b-pcie-1 serve-llama-7b-pcie-2 --format json"));
  CHECK(rows[0]["quantity"] == "cluster.devices");
  // Pools, limits and formats of a plan that was searched are among what differs.
  const std::string pools = in_process::printed(
      "compare serve-deepseek-v3-2x8-h100 --set model=llama-2-70b --set "
      "serving.latency_bound.tpot_s=0.03 --with plan=auto");
  CHECK(contains(pools, "  plan.disaggregation.prefill.tp "));
  CHECK(contains(pools, "  serving.max_num_seqs "));
}

TEST_CASE("what compare does not take of serving is refused with a remedy") {
  CHECK(contains(in_process::printed("compare serve-llama-7b-pcie-2"), "one scenario only"));
  CHECK(
      contains(in_process::printed("compare serve-llama-7b-pcie-2 gpt3-175b-selene"), "workload"));
  CHECK(contains(in_process::printed("compare serve-llama-7b-pcie-2 --with plan.tp=3"),
                 "not divisible by tp 3"));
}

}  // namespace compare_command_test
