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
  scratch.write("b.json", traced_job::trace({1.5, 1, 1, 1, 1, 1, 1, 1}));
  const auto one = perform({"explain-job", at("s.yaml"), at("a.json")});
  CHECK(contains(one.text, "By operator"));
  CHECK(contains(one.text, "attention forward"));
  const auto json = nlohmann::json::parse(
      perform({"explain-job", at("s.yaml"), at("a.json"), at("b.json"), "--format", "json"}).text);
  CHECK(json["ranks"].size() == 2);
  REQUIRE(!json["gains"].empty());
  CHECK(contains(json["gains"][0]["what"].get<std::string>(), "products"));
  scratch.write("c.log", "iteration\n");
  CHECK(contains(fixtures::config_error([&] {
                   perform({"explain-job", at("s.yaml"), at("a.json"), at("c.log")});
                 }),
                 "is no trace"));
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
