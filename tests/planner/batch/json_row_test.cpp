#include "planner/batch/json_row.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/run_program.hpp"

namespace json_row_test {

using nlohmann::json;
using planner::index_row;
using planner::JobState;

const std::string evaluated = R"({"plan": {"tp": 2, "pp": 1, "dp": 4, "micro_batch": 1,
  "devices": 8}, "plan_text": "t 2 · p 1 · d 4", "time": {"iteration_s": 2.5, "interval_s": [2, 3]},
  "throughput": {"tokens_per_s": 100, "mfu": 0.4},
  "memory": {"peak_bytes": 1073741824, "capacity_bytes": 2147483648, "fits": true}})";

TEST_CASE("a row has the figures of the best plan") {
  for (const auto& report : {evaluated, R"({"best": 0, "plans": [)" + evaluated + "]}"}) {
    const json row = json::parse(index_row("x", "plan", JobState::done, report, ""));
    CHECK(row["status"] == "done");
    CHECK(row["iteration_s"] == 2.5);
    CHECK(row["high_s"] == 3);
    CHECK(row["devices"] == 8);
    CHECK(row["plan"] == "t 2 · p 1 · d 4");
    CHECK(row["message"].is_null());
  }
}

TEST_CASE("a report of another shape has no row") {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& report :
       {deep, std::string("{"), std::string("7"), std::string(R"({"plans": [], "best": 0})"),
        std::string(R"({"plans": 7, "best": null, "time": 1, "throughput": 2})"),
        R"({"best": 7, "plans": [)" + evaluated + "]}", program::replaced(evaluated, "2.5", "{}"),
        program::replaced(evaluated, "true", "[[]]")}) {
    CAPTURE(report.substr(0, 80));
    CHECK(index_row("x", "plan", JobState::done, report, "") == "");
  }
}

TEST_CASE("a plan that does not fit is told") {
  std::string report = evaluated;
  report.replace(report.find("true"), 4, "false");
  const json row = json::parse(index_row("x", "evaluate", JobState::done, report, ""));
  CHECK(row["fits"] == false);
  CHECK(row["message"] == "does not fit in memory");
}

TEST_CASE("a row has the fastest point of a sweep that fits") {
  const json row = json::parse(index_row(
      "x", "sweep", JobState::done,
      R"([{"format_version": 1, "program": {}, "tp": 1, "dp": 8, "iteration_s": 1, "tokens_per_s": 9, "mfu": 0.5, "peak_gib": 90,
           "fits": false}, {"format_version": 1, "program": {}, "tp": 2, "dp": 4, "iteration_s": 3, "tokens_per_s": 3, "mfu": 0.3,
           "peak_gib": 10, "fits": true}, {"tp": 3, "dp": null, "iteration_s": null,
           "fits": null}])",
      ""));
  CHECK(row["iteration_s"] == 3);
  CHECK(row["plan"] == "fastest of 3 points: tp 2");
}

TEST_CASE("of a simulation the row has the time") {
  const std::string trace = R"({"traceEvents": [], "iteration_s": 2.5, "bubble_fraction": 0})";
  CHECK(json::parse(index_row("x", "simulate", JobState::done, trace, ""))["iteration_s"] == 2.5);
}

TEST_CASE("what has no figures has a message") {
  const std::string none = R"({"best": null, "plans": [], "obstacles": ["too large"]})";
  const std::string row = index_row("x", "plan", JobState::no_plan, none, "");
  CHECK(json::parse(row)["message"] == "too large");
  const std::string bad = index_row("y", "plan", JobState::failed, "", "no model");
  const json index = json::parse(planner::index_json({row, bad}));
  CHECK(index["counts"]["failed"] == 1);
  CHECK(index["counts"]["no plan"] == 1);
  CHECK(index["counts"]["done"] == 0);
  const auto table = planner::index_table({row, bad}, true);
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1].back() == "no model");
  CHECK(table.rows[1][3] == "-");
  CHECK(planner::index_table({bad}, false).rows[0][3].empty());
}

TEST_CASE("a row of serving has the plan's own line, all its devices and no time without end") {
  const json row = json::parse(index_row(
      "x", "plan", JobState::done,
      R"({"workload": "inference", "fits": true, "plan": {"tp": 8, "devices": 32}, "plan_text": "two pools",
      "memory": {"device_bytes": 80}, "output_tokens_per_s": 10, "saturated": true,
      "first_token": {"mean_s": null}, "next_token": {"mean_s": 0.01}})",
      ""));
  CHECK(row["devices"] == 32);
  CHECK(row["message"] == "overloaded; first token -, next tokens 10 ms");
}

}  // namespace json_row_test
