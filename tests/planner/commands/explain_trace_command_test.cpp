#include "planner/commands/explain_trace_command.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/planner/support/own_logs.hpp"
#include "tests/planner/support/traced_job.hpp"

namespace explain_trace_command_test {

using fixtures::contains;
using own_logs::perform;
using program::Scratch;

TEST_CASE("a trace stands next to the prediction by kind and operator, of ranks and as JSON") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  scratch.write("s.yaml", traced_job::yaml);
  scratch.write("a.json", traced_job::trace({1, 1, 1, 1, 1, 1, 1, 1}));
  const std::string slower = traced_job::trace({1.5, 1, 1, 1, 1, 1, 1, 1});
  scratch.write("b.json", program::replaced(slower, "\"rank\": 3", "\"rank\": 4"));
  scratch.write("again.json", slower);
  const auto one = perform({"explain-job", at("s.yaml"), at("a.json")});
  CHECK(contains(one.text, "By operator"));
  CHECK(contains(one.text, "attention forward"));
  const auto markdown = perform({"explain-job", at("s.yaml"), at("a.json"), "--format", "md"});
  CHECK(contains(markdown.text, "| attention forward | "));
  CHECK(contains(markdown.text, "\n### By operator"));
  const auto json = nlohmann::json::parse(
      perform({"explain-job", at("s.yaml"), at("a.json"), at("b.json"), "--format", "json"}).text);
  CHECK(json["ranks"].size() == 2);
  REQUIRE(json["gains"].size() > 1);
  CHECK(
      contains(json["gains"][0]["what"].get<std::string>(), "rank 4 computes longer than rank 3"));
  CHECK(contains(json["gains"][1]["what"].get<std::string>(), "products"));
  double operators = 0;  // of the mean of both ranks, as all else
  for (const auto& row : json["traces"][0]["operators"])
    operators += row["measured_s"].get<double>();
  CHECK(operators == doctest::Approx(json["traces"][0]["kernels_s"].get<double>()));
  CHECK(contains(fixtures::config_error([&] {
                   perform({"explain-job", at("s.yaml"), at("a.json"), at("again.json")});
                 }),
                 "is of rank 3, as"));
  scratch.write("c.log", "iteration\n");
  CHECK(contains(fixtures::config_error([&] {
                   perform({"explain-job", at("s.yaml"), at("a.json"), at("c.log")});
                 }),
                 "is no trace"));
}

TEST_CASE(
    "what a calibration has predicted stays, and the trace's own constants do not add to it") {
  const Scratch scratch;
  const auto at = [&](const char* name) { return (scratch.path() / name).string(); };
  scratch.write("s.yaml", traced_job::yaml);
  scratch.write("a.json", traced_job::trace({1.4, 1, 1, 1.2, 1, 1, 1, 1}));
  perform({"calibrate", "--from-trace", at("a.json"), "--scenario", at("s.yaml"), "--out",
           at("mine.yaml")});
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"explain-job", at("s.yaml"), at("a.json"), "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto trace = nlohmann::json::parse(perform(words).text)["traces"][0];
    return std::pair(trace["predicted_s"].get<double>(),
                     trace["predicted_with_trace_s"].get<double>());
  };
  const auto [before, fitted] = predicted({});
  const auto [calibrated, again] = predicted({"--calibrated", at("mine.yaml")});
  CHECK(calibrated == doctest::Approx(fitted).epsilon(1e-3));
  CHECK(again == doctest::Approx(fitted).epsilon(1e-3));
  CHECK(before < fitted);
}

TEST_CASE("the actions of a simulated pipeline take what is predicted for them") {
  const Scratch scratch;
  const std::string trace = (scratch.path() / "sim.json").string();
  perform({"simulate", "tiny-gpt-cpu", "--trace", trace});
  const auto json = nlohmann::json::parse(
      perform({"explain-job", "tiny-gpt-cpu", trace, "--format", "json"}).text);
  REQUIRE(!json["ranks"].empty());
  const auto other = perform({"explain-job", "gpt3-175b-selene", trace});
  REQUIRE(!other.warnings.empty());
  CHECK(contains(other.warnings.front(), "give the scenario that ran (--set plan.pp="));
  for (const auto& rank : json["ranks"]) {
    CHECK(rank["forward_s"].get<double>() ==
          doctest::Approx(rank["predicted_forward_s"].get<double>()).epsilon(1e-3));
    CHECK(rank["backward_s"].get<double>() ==
          doctest::Approx(rank["predicted_backward_s"].get<double>()).epsilon(1e-3));
  }
}

}  // namespace explain_trace_command_test
