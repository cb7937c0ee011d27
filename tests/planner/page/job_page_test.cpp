// The page of explain-job holds what its text does.
#include "planner/page/job_page.hpp"

#include <doctest/doctest.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/report/json_job.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/planted_logs.hpp"

namespace job_page_test {

using namespace planner;
using fixtures::contains;

namespace {

JobReport job_of(const planted::Case& one, const std::string& log) {
  const auto& s = planted::scenario_of(one);
  const auto plan = resolve_plan(s);
  JobReport job;
  job.estimate = costmodel::estimate_of(s.model, s.cluster, s.training, plan);
  job.log_file = "a.log";
  job.log = parse_training_log(log, "a.log", iteration_size(s));
  if (job.log->out_of_memory) {
    job.memory = answer_out_of_memory(s, job.estimate, *job.log->out_of_memory);
  } else {
    job.diagnosis = diagnose_job(s, plan, *job.log);
  }
  return job;
}

std::string page_of(const planted::Case& one, const std::string& log) {
  const auto& s = planted::scenario_of(one);
  const JobReport job = job_of(one, log);
  return job_page(job, s, job_json(job, s));
}

}  // namespace

TEST_CASE("verdict, remedy, waterfall, causes and series of a slow job") {
  const auto& one = planted::cases().front();
  const std::string page = page_of(one, planted::log_of(one, 3));
  for (const char* text : {"Do this", "Measured against predicted", "not explained", "Causes",
                           "one node computes", "Iterations", "What settles it", "All figures"})
    CHECK_MESSAGE(contains(page, text), text);
  CHECK(contains(page, "default-src 'none'"));
  CHECK_FALSE(contains(page, "http://"));
}

TEST_CASE("of a log that cannot be judged: why, and no causes") {
  const auto& one = planted::cases().front();
  const std::string page = page_of(one, "  num_layers ....... 3\n" + planted::log_of(one, 3));
  CHECK(contains(page, "This cannot be judged"));
  CHECK_FALSE(contains(page, "<h2>Causes"));
}

TEST_CASE("of an allocation that failed: changes, and no series") {
  const std::string page = page_of(planted::cases().front(),
                                   "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
                                   "2.00 GiB. GPU 0 has a total capacity of 79.15 GiB <b>\n");
  CHECK(contains(page, "Out of memory: 2 GiB more were wanted"));
  CHECK_FALSE(contains(page, "<h2>Iterations"));
  CHECK_FALSE(contains(page, "GiB <b>"));
}

}  // namespace job_page_test
