// What a tired engineer reads: the culprit in the first line, numbers beside it, then what to do.
#include "planner/report/job_report.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/input_file.hpp"
#include "tests/golden.hpp"
#include "tests/planner/support/planted_logs.hpp"

namespace job_report_test {

using namespace planner;
using fixtures::contains;

namespace {

struct Asked {
  costmodel::Scenario scenario;
  JobReport job;

  explicit Asked(const std::string& name) {
    for (const auto& one : planted::cases()) {
      if (one.name != name) continue;
      scenario = planted::scenario_of(one);
      job.log_file = name + ".log";
      job.log = read_training_log(planted::file_of(one, ".log"), iteration_size(scenario));
      job.diagnosis = diagnose_job(scenario, resolve_plan(scenario), *job.log);
      job.estimate = job.diagnosis->estimate;
    }
  }
  std::string text() const { return job_report(job, scenario, {}); }
  std::string first_line() const { return golden::lines_of(text()).front(); }
};

}  // namespace

TEST_CASE("the first line names the cause and its probability; then numbers, then what to do") {
  const Asked asked("megatron_slow_node");
  const auto lines = golden::lines_of(asked.text());
  CHECK(lines[0].starts_with("Most likely (over 99 %): one node computes about"));
  CHECK(contains(lines[1], "was predicted"));
  CHECK(contains(lines[2], "Repaired"));
  CHECK(lines[3].starts_with("  Do: Find the node"));
}

TEST_CASE("where the log settles nothing, the report says so, and what to log") {
  const Asked asked("bridge_tp_across_nodes");
  const std::string log =
      planted::without_timers(costmodel::read_file(planted::file_of(planted::cases()[3], ".log")));
  JobReport job = asked.job;
  job.log = parse_training_log(log, "a.log", iteration_size(asked.scenario));
  job.diagnosis = diagnose_job(asked.scenario, job.estimate.plan, *job.log);
  const std::string text = job_report(job, asked.scenario, {});
  CHECK(text.starts_with("This log does not settle it"));
  CHECK(contains(text, "--timing-log-level 2"));
  CHECK_FALSE(contains(asked.text(), "--timing-log-level 2"));
}

TEST_CASE("nothing wrong is said as that") {
  Asked asked("megatron_slow_node");
  asked.job.diagnosis->culprits = {{.name = "as-configured",
                                    .what = "it runs as configured",
                                    .remedy = "Nothing.",
                                    .prior = 0.3,
                                    .probability = 0.8}};
  CHECK(asked.first_line() ==
        "Nothing stands out (80 %): the job runs as its configuration makes it.");
}

TEST_CASE("settings that the log says otherwise are the first suspect, or told before all") {
  Asked asked("deepspeed_accumulation");
  CHECK(asked.first_line().starts_with("This cannot be judged: the log is of another job"));
  asked.job.diagnosis->refusals.clear();
  CHECK(contains(asked.first_line(), "training.global_batch 256 by the log, 128 by the scenario"));
  asked.job.diagnosis->culprits.erase(asked.job.diagnosis->culprits.begin());
  CHECK(
      asked.first_line() ==
      "Mend the scenario first, it is of another job: training.global_batch 256 by the log, 128 by "
      "the scenario.");
}

TEST_CASE("iterations that are slow now and then are told with their mean and rhythm") {
  const Asked asked("nanotron_data_stall");
  CHECK(contains(asked.text(), "on average with the slow ones"));
  CHECK(contains(asked.text(), "one every 8 iterations"));
  const Culprit& c = asked.job.diagnosis->culprits.front();
  CHECK(c.repaired == asked.job.log->pace.median);
  CHECK(c.gained.value ==
        doctest::Approx((asked.job.log->pace.mean - asked.job.log->pace.median).value));
}

TEST_CASE("a job far from its prediction is told in times") {
  Asked asked("megatron_slow_node");
  asked.job.log->pace.median = asked.job.estimate.iteration * 12.5;
  CHECK(contains(asked.text(), "12.5 times as long, outside that interval"));
}

TEST_CASE("tables: causes above half a per cent; parts with both ends of the ranks") {
  const Asked asked("megatron_slow_node");
  const auto causes = culprit_table(*asked.job.diagnosis);
  REQUIRE_FALSE(causes.rows.empty());
  CHECK(causes.rows.front()[2] == "slow-node");
  CHECK(causes.rows.size() < asked.job.diagnosis->culprits.size());
  const auto parts = job_parts_table(*asked.job.diagnosis, *asked.job.log);
  std::vector<std::string> names;
  for (const auto& row : parts.rows) names.push_back(row.front());
  CHECK(names.front() == "iteration");
  CHECK(std::ranges::find(names, "forward, least") != names.end());
  CHECK(std::ranges::find(names, "forward, most") != names.end());
  CHECK(names.back() == "memory, allocated");
}

TEST_CASE("changes are told in the job's own time, the best plan too") {
  Asked asked("megatron_slow_node");
  asked.job.changes = {{.knob = "vpp",
                        .change = "1 -> 2",
                        .ratio = 0.5,
                        .low = 0.4,
                        .high = 0.6,
                        .probability = 0.97,
                        .breaks_fixed = true}};
  asked.job.best =
      BestPlan{asked.job.estimate,
               {.change = "t 1", .ratio = 0.8, .low = 0.6, .high = 1.1, .probability = 0.9}};
  const std::string text = asked.text();
  CHECK(contains(text, costmodel::format_seconds(asked.job.log->pace.median * 0.5)));
  CHECK(contains(text, "100.0 %"));
  CHECK(contains(text, "(fixed by the scenario)"));
  CHECK(contains(text, "25.0 % faster"));
  asked.job.best->change.ratio = 1;
  CHECK(contains(asked.text(), "The plan is the best one, or as good"));
  asked.job.stopped = true;
  CHECK(contains(asked.text(), "was stopped"));
}

TEST_CASE("without a log: the prediction and what would help") {
  Asked asked("megatron_slow_node");
  asked.job.log.reset();
  asked.job.diagnosis.reset();
  const std::string text = asked.text();
  CHECK(contains(text, "Predicted: "));
  CHECK(contains(text, "Where the time goes"));
  CHECK(contains(text, "No plan one step away is faster and fits."));
  CHECK_FALSE(contains(text, "Most likely"));
}

TEST_CASE("Markdown has headings and tables") {
  const Asked asked("megatron_slow_node");
  const std::string text = job_report(asked.job, asked.scenario, {Markup::markdown, {}});
  CHECK(contains(text, "\n### Causes"));
  CHECK(contains(text, "| ---"));
}

}  // namespace job_report_test
