// Files told apart by what they hold.
#include "planner/frameworks/read_job.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/planner/support/megatron_runs.hpp"

namespace read_job_test {

namespace {

// What format a file of this text is read as.
planner::ImportedJob job_of(const std::string& text) {
  const auto file =
      std::filesystem::temp_directory_path() / ("shardplan-read-job-" + std::to_string(::getpid()));
  std::ofstream(file) << text;
  planner::ImportedJob job = planner::read_job(file.string());
  std::filesystem::remove(file);
  return job;
}

}  // namespace

TEST_CASE("a scenario, a script and a log") {
  const auto scenario = job_of("model: gpt3-175b\ncluster: selene\nplan: {tp: 8}\n");
  CHECK(scenario.format == planner::JobFormat::scenario);
  CHECK(scenario.scenario.find("plan")->find("tp")->text == "8");
  CHECK(job_of(megatron_runs::script).format == planner::JobFormat::megatron);
  CHECK(job_of(megatron_runs::log).missing.size() == 1);
  CHECK(job_of("config.parallelism.tensor_parallel_degree = 2\n").format ==
        planner::JobFormat::torchtitan);
  CHECK(job_of("{\"train_batch_size\": 8}").format == planner::JobFormat::deepspeed);
  CHECK_THROWS_WITH(job_of("hello\n"), doctest::Contains("is no description of a job"));
}

}  // namespace read_job_test
