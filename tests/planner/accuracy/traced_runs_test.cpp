#include "planner/accuracy/traced_runs.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/traced_job.hpp"
#include "tests/run_program.hpp"

namespace traced_runs_test {

using fixtures::contains;
using program::Scratch;

namespace {

// Three runs of one device, products of which take 1.3 times what is predicted.
std::string evidence() {
  std::string text = "source: {title: synthetic, ref: none}\nruns:\n";
  for (const int sequence : {8192, 4096, 16384}) {
    const std::string yaml = traced_job::large(sequence);
    const costmodel::Scenario s = scenarios::read(yaml);
    const auto times = planner::predicted_times(s, resolve_plan(s));
    std::string indented = "  " + yaml;
    for (std::size_t at = 0; (at = indented.find('\n', at)) != std::string::npos; at += 3)
      indented.replace(at, 1, "\n  ");
    text += fmt::format("- id: run-{}\n{}measured: {{iteration_s: {:.6f}}}\n", sequence, indented,
                        times.iteration.value + 0.3 * times.kinds[0]);
  }
  return text;
}

}  // namespace

TEST_CASE("the trace of one run makes the others of its stack better known") {
  const Scratch scratch;
  scratch.write("runs.yaml", evidence());
  scratch.write("run-8192.trace.json", traced_job::trace({1.3, 1, 1, 1, 1, 1, 1, 1}));
  const auto runs = planner::read_evidence_runs({(scratch.path() / "runs.yaml").string()});
  const std::string trace = (scratch.path() / "run-8192.trace.json").string();
  const auto groups = traced_groups(runs, {trace}, fixtures::configs());
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].others == 2);
  CHECK(std::abs(groups[0].after) < 2);
  CHECK(groups[0].others_after < groups[0].others_before);
  CHECK(planner::traced_group_table(groups).rows.size() == 1);
  scratch.write("stranger.json", "{}");
  CHECK(contains(fixtures::config_error([&] {
                   traced_groups(runs, {(scratch.path() / "stranger.json").string()},
                                 fixtures::configs());
                 }),
                 "of no run of this evidence"));
  auto twice = runs;
  twice[1].id = "another-run-8192";
  CHECK(
      contains(fixtures::config_error([&] { traced_groups(twice, {trace}, fixtures::configs()); }),
               "may be of 2 runs of this evidence"));
  scratch.write("8192.trace.json", "{}");
  CHECK_FALSE(contains(fixtures::config_error([&] {
                         traced_groups(runs, {(scratch.path() / "8192.trace.json").string()},
                                       fixtures::configs());
                       }),
                       "of no run of this evidence"));
}

}  // namespace traced_runs_test
