// A job named on the command line, in whatever words; explain_job_command_test.cpp has launch
// scripts.
#include "planner/commands/session.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/own_logs.hpp"

namespace job_operand_test {

using namespace planner;

namespace {

JobOperand read(const std::string& file, Options options) {
  std::vector<std::string> told;
  return read_job_operand({options, {}, fixtures::configs()}, file, told);
}

}  // namespace

TEST_CASE("a scenario as it is written, and with --set") {
  const program::Scratch scratch;
  scratch.write("a.yaml", own_logs::job(1, 16));
  const std::string file = (scratch.path() / "a.yaml").string();
  const JobOperand plain = read(file, {});
  CHECK(plain.scenario.cluster.devices == 16);
  CHECK(plain.written.find("cluster")->find("base")->text == "dgx-h100");
  Options options;
  options.assignments = {"cluster.devices=32"};
  const JobOperand changed = read(file, options);
  CHECK(changed.scenario.cluster.devices == 32);
  CHECK(changed.written.find("cluster")->find("devices")->text == "32");
}

TEST_CASE("--cluster names the cluster of a scenario too") {
  const program::Scratch scratch;
  scratch.write("a.yaml", own_logs::job(1, 16));
  Options options;
  options.cluster = "dgx-a100";
  const JobOperand job = read((scratch.path() / "a.yaml").string(), options);
  CHECK(job.scenario.cluster.device.name == "a100-sxm4-80gb");
  CHECK(job.written.find("cluster")->find("base")->text == "dgx-a100");
}

}  // namespace job_operand_test
