#include "planner/diagnosis/priced_inputs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "costmodel/estimate/plan_estimate.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace priced_inputs_test {

using costmodel::Scenario;
using planner::priced_inputs;
using planner::PricedInput;
using planner::StatedSpread;
using scenarios::read;

namespace {

const char* const dense =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2025}\n"
    "plan: {tp: 2, pp: 2, micro_batch: 1}\n";

const PricedInput& input_of(const std::vector<PricedInput>& all, const std::string& key) {
  const auto at = std::ranges::find(all, key, &PricedInput::key);
  REQUIRE_MESSAGE(at != all.end(), key);
  return *at;
}

double time_of(const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s)).iteration.value;
}

}  // namespace

TEST_CASE("every input is named once, its ends hold its value, and setting it changes nothing") {
  const Scenario s = read(dense);
  std::set<std::string> keys;
  const double before = time_of(s);
  for (const PricedInput& input : priced_inputs(s, {})) {
    CAPTURE(input.key);
    CHECK(keys.insert(input.key).second);
    CHECK(input.low <= input.value);
    CHECK(input.high >= input.value);
    CHECK(input.spread > 0);
    CHECK((input.from == "assumed" || input.key == "device.memory.bytes"));
    Scenario same = s;
    input.set(same, input.value);
    CHECK(time_of(same) == doctest::Approx(before).epsilon(1e-12));
  }
  CHECK(keys.count("device.gemm.efficiency") == 1);
  CHECK(keys.count("cluster.tiers.infiniband.bandwidth_bytes_per_s") == 1);
  CHECK(keys.count("stack.launch.micro_batch_s") == 1);
  CHECK(keys.count("training.expert_imbalance") == 0);  // no experts
}

TEST_CASE("the slow-down of computation beside a collective is moved, where any runs beside one") {
  const Scenario s = read(dense);
  const PricedInput slowdown = input_of(priced_inputs(s, {}), "overlap_slowdown");
  CHECK(slowdown.value == costmodel::overlap_slowdown);
  CHECK(slowdown.low > 1);
  Scenario more = s, none = s;
  slowdown.set(more, slowdown.high);
  slowdown.set(none, 1);
  CHECK(time_of(more) > time_of(s));
  CHECK(time_of(none) < time_of(s));
}

TEST_CASE("an input that is set is the scenario with that number written") {
  const Scenario s = read(dense);
  const auto all = priced_inputs(s, {});
  Scenario moved = s;
  input_of(all, "cluster.tiers.nvlink.bandwidth_bytes_per_s").set(moved, 300e9);
  std::string written = dense;
  written.replace(written.find("devices: 16"), 11,
                  "devices: 16, tiers: {0: {bandwidth_bytes_per_s: 300 GB/s}}");
  CHECK(time_of(moved) == time_of(read(written)));
  CHECK(time_of(moved) > time_of(s));

  Scenario slower = s;
  const PricedInput& products = input_of(all, "device.gemm.efficiency");
  products.set(slower, products.value / 2);
  CHECK(slower.cluster.device.gemm_efficiency == products.value / 2);
  CHECK(time_of(slower) > 1.3 * time_of(s));
}

TEST_CASE("a stated spread counts: for its own files, else the widest of the same key") {
  const Scenario s = read(dense);
  const std::vector<StatedSpread> stated{
      {{"devices/h100-sxm5-80gb"}, "gemm.efficiency", 0.4, 1, 0.02},
      {{"devices/a100-sxm4-80gb"}, "memory_efficiency.large", 0.4, 1, 0.03},
      {{"devices/v100-sxm2-16gb"}, "memory_efficiency.large", 0.4, 1, 0.07},
      {{"clusters/selene"}, "tiers.infiniband.efficiency", 0.3, 1, 0.2},
      {{"stacks/megatron-core-2025"}, "launch.micro_batch_s", 0, 1, 1},
      {{"stacks/other"}, "launch.kernel_s", 0, 1, 0.9}};
  const auto all = priced_inputs(s, stated);
  const PricedInput& products = input_of(all, "device.gemm.efficiency");
  CHECK(products.from == "configs/fit.yaml");
  CHECK(products.low == doctest::Approx(products.value * std::exp(-0.02)));
  CHECK(products.high == doctest::Approx(products.value * std::exp(0.02)));
  CHECK(input_of(all, "device.memory_efficiency.large").spread == 0.07);
  CHECK(input_of(all, "device.memory_efficiency.large").from ==
        "configs/fit.yaml, for devices/v100-sxm2-16gb");
  CHECK(input_of(all, "cluster.tiers.infiniband.bandwidth_bytes_per_s").spread == 0.2);
  CHECK(input_of(all, "stack.launch.micro_batch_s").spread == 1);
  // The same key of a framework says nothing of a device.
  CHECK(input_of(all, "device.launch.kernel_s").from == "assumed");
}

TEST_CASE("what is possible bounds an input") {
  const Scenario s = read(dense);
  for (const PricedInput& input :
       priced_inputs(s, {{{"devices/h100-sxm5-80gb"}, "gemm.efficiency", 0, 1, 3}})) {
    CAPTURE(input.key);
    if (input.key == "device.gemm.efficiency") CHECK(input.high == 1);
    if (input.key == "stack.beside_sharding.factor") CHECK(input.low >= 1);
    if (input.key == "cluster.tiers.infiniband.bandwidth_bytes_per_s") {
      const auto& tier = s.cluster.tiers.back();
      CHECK(input.most == doctest::Approx(tier.bandwidth.value / tier.efficiency));
    }
  }
}

TEST_CASE("experts and groups of devices have inputs of their own") {
  const Scenario moe = read(
      "model: mixtral-8x7b\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 4096, stack: megatron-core-2025, "
      "expert_imbalance: 1.2}\nplan: {tp: 1, ep: 8}\n");
  const PricedInput imbalance = input_of(priced_inputs(moe, {}), "training.expert_imbalance");
  CHECK(imbalance.value == 1.2);
  CHECK(imbalance.low > 1);
  Scenario fuller = moe;
  imbalance.set(fuller, 2);
  CHECK(time_of(fuller) > time_of(moe));

  const Scenario mixed =
      read("model: llama-3-8b\n" + scenarios::mixed(8, 8) +
           "training: {global_batch: 32, sequence: 2048, stack: megatron-core-2025}\n");
  const auto all = priced_inputs(mixed, {});
  Scenario moved = mixed;
  input_of(all, "h100.device.gemm.efficiency").set(moved, 0.1);
  CHECK(moved.cluster.groups[0].device.gemm_efficiency == 0.1);
  CHECK(moved.cluster.groups[1].device.gemm_efficiency ==
        mixed.cluster.groups[1].device.gemm_efficiency);
  input_of(all, "a100.tiers.nvlink.latency_s").set(moved, 1);
  CHECK(moved.cluster.groups[1].tiers[0].latency.value == 1);
}

}  // namespace priced_inputs_test
