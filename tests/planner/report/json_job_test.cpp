// JSON of `explain-job`.
#include "planner/report/json_job.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/planner/support/planted_logs.hpp"

namespace json_job_test {

using namespace planner;
using nlohmann::json;

namespace {

JobReport report_of(const planted::Case& one, const costmodel::Scenario& s) {
  JobReport job;
  job.log_file = "a.log";
  job.log = read_training_log(planted::file_of(one, ".log"), iteration_size(s));
  job.diagnosis = diagnose_job(s, resolve_plan(s), *job.log);
  job.estimate = job.diagnosis->estimate;
  return job;
}

}  // namespace

TEST_CASE("causes, measured and predicted, parts and changes") {
  const auto& one = planted::cases().front();
  const auto s = planted::scenario_of(one);
  JobReport job = report_of(one, s);
  job.changes = {{.knob = "vpp",
                  .change = "1 -> 2",
                  .ratio = 0.5,
                  .low = 0.4,
                  .high = 0.6,
                  .probability = 0.97}};
  job.best = BestPlan{job.estimate, {.ratio = 0.8}};
  const json j = json::parse(job_json(job, s));
  CHECK(j["cause"] == "slow-node");
  CHECK(j["log"] == "a.log");
  double sum = 0;
  for (const auto& c : j["causes"]) sum += c["probability"].get<double>();
  CHECK(sum == doctest::Approx(1));
  CHECK(j["causes"][0]["name"] == "slow-node");
  CHECK(j["causes"][0]["gained_s"] > 0);
  CHECK(j["measured"]["framework"] == "Megatron-LM");
  CHECK(j["measured"]["iteration_s"] == job.log->pace.median.value);
  CHECK(j["measured"]["said"]["training.global_batch"] == "256");
  CHECK(j["measured"]["sequences_per_s"].is_null());
  CHECK(j["predicted"]["time"]["iteration_s"] == job.estimate.iteration.value);
  CHECK(j["parts"].size() == job.log->parts.size());
  CHECK(j["parts"][1]["part"] == "forward");
  CHECK(j["parts"][1]["measured_s"].size() == 2);
  CHECK(j["ruled_out"][0]["name"] == "global-batch");
  CHECK(j["changes"][0]["interval"][1] == 0.6);
  CHECK(j["best"]["ratio"] == 0.8);
  CHECK(j["best"]["plan"]["tp"] == 2);
}

TEST_CASE("without a log its parts are null or empty") {
  const auto& one = planted::cases().front();
  const auto s = planted::scenario_of(one);
  JobReport job = report_of(one, s);
  job.log.reset();
  job.diagnosis.reset();
  const json j = json::parse(job_json(job, s));
  CHECK(j["cause"].is_null());
  CHECK(j["measured"].is_null());
  CHECK(j["best"].is_null());
  CHECK(j["causes"].empty());
  CHECK(j["predicted"]["plan"]["tp"] == 2);
}

}  // namespace json_job_test
