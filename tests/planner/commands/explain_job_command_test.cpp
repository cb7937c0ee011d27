// `shardplan explain-job` as a user runs it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/golden.hpp"
#include "tests/planner/support/planted_logs.hpp"
#include "tests/run_program.hpp"

namespace explain_job_command_test {

using fixtures::contains;
using program::Run;
using program::run;
using program::Scratch;

namespace {

const auto& slow_node = planted::cases().front();

}  // namespace

TEST_CASE("the report of a job with a slow node is frozen") {
  const Scratch scratch;
  const Run text = run(
      {"explain-job", planted::file_of(slow_node, ".yaml"), planted::file_of(slow_node, ".log")},
      scratch);
  CHECK(text.status == 0);
  CHECK(golden::compare("report_explain_job.txt", text.out) == "");
}

TEST_CASE("JSON names the cause") {
  const Scratch scratch;
  const Run json = run({"explain-job", planted::file_of(slow_node, ".yaml"),
                        planted::file_of(slow_node, ".log"), "--format", "json"},
                       scratch);
  CHECK(json.status == 0);
  CHECK(nlohmann::json::parse(json.out)["cause"] == "slow-node");
}

TEST_CASE("without a log: the prediction, and what would help") {
  const Scratch scratch;
  const Run text = run({"explain-job", planted::file_of(slow_node, ".yaml")}, scratch);
  CHECK(text.status == 0);
  CHECK(contains(text.out, "Predicted: "));
  CHECK(contains(text.out, "What would help most"));
}

TEST_CASE(
    "a Megatron-LM launch script and its log: the cluster is named, and the cause is the same") {
  const Scratch scratch;
  const Run script = run(
      {"export", planted::file_of(slow_node, ".yaml"), "--to", "megatron", "--out", "launch.sh"},
      scratch);
  REQUIRE(script.status == 0);
  const std::string log = planted::file_of(slow_node, ".log");
  const Run unnamed = run({"explain-job", "launch.sh", log}, scratch);
  CHECK(unnamed.status == 2);
  CHECK(contains(unnamed.err, "cluster"));
  const Run json =
      run({"explain-job", "launch.sh", log, "--cluster", "dgx-h100", "--format", "json"}, scratch);
  CHECK(json.status == 0);
  CHECK(nlohmann::json::parse(json.out)["cause"] == "slow-node");
}

TEST_CASE("a log in which nothing is measured: status 2, with what was looked for") {
  const Scratch scratch;
  scratch.write("empty.log", "done with setup ...\n");
  const Run text = run({"explain-job", planted::file_of(slow_node, ".yaml"), "empty.log"}, scratch);
  CHECK(text.status == 2);
  CHECK(text.out == "");
  CHECK(contains(text.err, "empty.log: nothing measured in this log"));
  CHECK(contains(text.err, "elapsed time per iteration (ms)"));
  CHECK(run({"explain-job", planted::file_of(slow_node, ".yaml"), "none.log"}, scratch).status ==
        2);
  CHECK(run({"explain-job"}, scratch).status == 2);
}

}  // namespace explain_job_command_test
