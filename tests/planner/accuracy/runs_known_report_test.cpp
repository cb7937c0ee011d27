#include "planner/accuracy/runs_known_report.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/own_logs.hpp"
#include "tests/sanitized.hpp"

namespace runs_known_report_test {

using namespace planner;
using fixtures::contains;

TEST_CASE("a row a source and their mean; the report says what was gained and what was not") {
  RunsKnown known;
  known.known = 2;
  known.by_source["one"] = {5, 8, 6, 7, 88, 95, 0.4, 0.5};
  known.by_source["two"] = {3, 6, 6.5, 7, 92, 97, 0.4, 0.5};
  known.mean = {8, 7, 6.25, 7, 90, 96, 0.4, 0.5};
  known.better = 1;
  known.small = {"few"};
  known.prior = {{0.04}, 0.07, 0.5, 1, 1};
  const Table table = known_table(known);
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0] == std::vector<std::string>{"one", "5", "8.00", "6.00", "7.00", "95.0",
                                                  "88.0", "0.50", "0.40"});
  CHECK(table.rows[2][0] == "mean over sources");
  const std::string text = known_report(known, to_text(table));
  CHECK(contains(text, "falls from 7.00 to 6.25 %, over 2 sources,\nof which 1 have"));
  CHECK(contains(text, "holds 90.0 % of them"));
  CHECK(contains(text, "Too few runs on one device by one stack: few."));
  CHECK(contains(text, "varies by 0.040, a run by itself by 0.070"));
}

TEST_CASE("validate --runs-known: on the runs of two sources, and what it refuses") {
  const std::string folder = SHARDPLAN_SOURCE_DIR "/configs/evidence/";
  const std::vector<std::string> asked{"validate", folder + "megatron-sc21.yaml",
                                       folder + "megatron-readme-jan2021.yaml", "--runs-known"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = asked;
    words.insert(words.end(), more.begin(), more.end());
    return own_logs::perform(words);
  };
  const std::string rows = with({"2", "--format", "csv"}).text;
  CHECK(contains(rows, "megatron-sc21,"));
  CHECK(contains(rows, "mean over sources,"));
  if (!sanitized) CHECK(contains(with({"2"}).text, "With 2 runs of a source known"));
  const auto refused = [&](const std::vector<std::string>& more) {
    return fixtures::config_error([&] { with(more); });
  };
  CHECK(contains(refused({"500"}), "--runs-known 500 leaves no run to predict"));
  CHECK(contains(
      fixtures::config_error([&] {
        own_logs::perform({"validate", folder + "megatron-sc21.yaml", "--runs-known", "2"});
      }),
      "needs runs of two sources or more"));
  CHECK(contains(refused({"0"}), "allowed: 1 to 1,000"));
  CHECK(contains(refused({"2", "--format", "html"}), "allowed: text, json, csv, md"));
  CHECK(contains(refused({"2", "--write-residuals", "x.yaml"}), "does not go with --runs-known"));
  CHECK(contains(refused({"2", "--against-planner"}), "does not go with --against-planner"));
}

}  // namespace runs_known_report_test
