// States on NVMe drives: bytes on device, host and drives by DeepSpeed's defaults, the step by
// hand.
#include "costmodel/estimate/node_drives.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace node_drives_test {

using namespace costmodel;

namespace {

Scenario scenario(const std::string& model, const std::string& offload,
                  const std::string& stack = "deepspeed-2021") {
  return scenarios::read(
      fmt::format("model: {}\ncluster: {{base: dgx-a100, devices: 8}}\n"
                  "training: {{global_batch: 64, sequence: 1024, precision: fp16, stack: {}}}\n"
                  "plan: {{tp: 1, pp: 1, micro_batch: 1, recompute: full, zero: 3, offload: {}}}\n",
                  model, stack, offload));
}

Estimate estimate(const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

constexpr double exact = 0.01;

}  // namespace

// fp32 parameter, two moments and a gradient on the drives; on the host four buffers for a group of
// at most a billion parameters each (offload_optimizer.buffer_count, sub_group_size).
TEST_CASE("the optimizer's states on drives: sixteen bytes a parameter, and buffers for a group") {
  const double psi = parameter_count(scenario("gpt-neox-20b", "none").model);
  const Estimate drives = estimate(scenario("gpt-neox-20b", "{optimizer: 1, to: nvme}"));
  const Estimate host = estimate(scenario("gpt-neox-20b", "{optimizer: 1}"));
  CHECK(drives.peak == host.peak);
  CHECK(drives.drives.value == doctest::Approx(16 * psi).epsilon(exact));
  CHECK(drives.host.value == doctest::Approx(8 * 4 * 4e9).epsilon(exact));
  const Estimate small = estimate(scenario("gpt2-xl", "{optimizer: 1, to: nvme}"));
  const double few = parameter_count(scenario("gpt2-xl", "none").model);
  CHECK(small.host.value == doctest::Approx(16 * few).epsilon(exact));
}

// A billion parameters of a rank stay in its host's memory (offload_param.max_in_cpu); five buffers
// of 1e8, and one of a group for those that do not.
TEST_CASE("parameters on drives: those that host memory has no place for") {
  const Scenario s = scenario("gpt-neox-20b", "{optimizer: 1, parameters: 1, to: nvme}");
  const double psi = parameter_count(s.model), shard = psi / 8;
  const Estimate e = estimate(s);
  CHECK(e.drives.value == doctest::Approx(16 * psi + 8 * 2 * (shard - 1e9)).epsilon(exact));
  CHECK(e.host.value == doctest::Approx(8 * (16e9 + 2e9 + 1e9 + 2e9)).epsilon(exact));
  const Estimate two = estimate(
      scenario("gpt-neox-20b", "{optimizer: 1, parameters: 1, to: nvme, parameters_to: host}"));
  CHECK(two.drives.value == doctest::Approx(16 * psi).epsilon(exact));
  CHECK(two.host.value == doctest::Approx(8 * 16e9 + 1.5 * 2 * psi).epsilon(exact));
}

TEST_CASE("the step reads and writes sixteen bytes a parameter more than in host memory") {
  Scenario s = scenario("gpt-neox-20b", "{optimizer: 1, to: nvme}");
  const double psi = parameter_count(s.model);
  const auto step = [&s](const char* read, const char* write) {
    s.cluster.drives.read = BytesPerSecond(std::stod(read) * 1e9);
    s.cluster.drives.write = BytesPerSecond(std::stod(write) * 1e9);
    return estimate(s).breakdown.optimizer.value;
  };
  const double host =
      estimate(scenario("gpt-neox-20b", "{optimizer: 1}")).breakdown.optimizer.value;
  CHECK(step("20", "10") - host ==
        doctest::Approx(16 * psi / 20e9 + 16 * psi / 10e9).epsilon(exact));
  CHECK(step("40", "10") < step("20", "10"));
  // Unknown rates are those of four drives.
  CHECK(step("0", "0") == doctest::Approx(step("10", "5")));
}

TEST_CASE("drives that are too small do not hold it, and unknown ones are not judged") {
  Scenario s = scenario("gpt-neox-20b", "{optimizer: 1, to: nvme}");
  CHECK(estimate(s).fits());
  s.cluster.drives.size = estimate(s).drives - Bytes(1);
  CHECK_FALSE(estimate(s).fits());
  s.cluster.drives.size = Bytes(0);
  CHECK(estimate(s).fits());
}

TEST_CASE("what cannot be kept on drives is refused with a remedy") {
  const auto fault = [](const std::string& offload, const std::string& stack) {
    return scenarios::fault_of([&] { return scenario("gpt2-xl", offload, stack); });
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(fault("{optimizer: 0.5, to: nvme}", "deepspeed-2021"), "set optimizer: 1"));
  CHECK(has(fault("{optimizer: 1, parameters: 1, to: nvme}", "torchtitan"), "deepspeed, peft"));
  CHECK(fault("{optimizer: 1, to: nvme}", "peft").empty());
  CHECK(has(fault("{to: nvme}", "deepspeed-2021"), "no states are kept there"));
  CHECK(has(fault("{optimizer: 1, parameters_to: nvme}", "deepspeed-2021"), "leave to and"));
}

}  // namespace node_drives_test
