// Clusters of several kinds of devices, as scenarios write them.
#include "costmodel/machine/cluster_groups.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/plan/stage_plan.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace cluster_groups_test {

using namespace costmodel;
using fixtures::contains;
using scenarios::tiny;

TEST_CASE("groups are read: kinds of their own, tiers lent or of their own, and what joins them") {
  const std::string join = "join: {bandwidth_bytes_per_s: 1.25 GB/s, latency_s: 20 us}";
  const Scenario s = scenarios::read(
      tiny +
      "cluster:\n"
      "  title: two kinds\n"
      "  groups: [{base: dgx-a100, devices: 16}, {name: h, base: dgx-h100, devices: 8}]\n"
      "  " +
      join +
      "\n"
      "plan: {tp: 4, pp: 3, dp: 2}\n");
  REQUIRE(s.cluster.groups.size() == 2);
  CHECK(s.cluster.devices == 24);
  CHECK(s.cluster.groups[0].name == "a100-sxm4-80gb");
  CHECK(s.cluster.groups[1].name == "h");
  CHECK(s.cluster.groups[0].tiers.size() == 2);
  CHECK(s.cluster.groups[1].tiers.size() == 1);
  CHECK(s.cluster.tiers.back().bandwidth.value == 1.25e9);
  CHECK(device_names(s.cluster) == "a100-sxm4-80gb+h100-sxm5-80gb");
  CHECK(devices_text(s.cluster) ==
        "16 x NVIDIA A100-SXM4-80GB and 8 x " + s.cluster.groups[1].device.title);
  CHECK(peak_of(s.cluster, Precision::bf16).value ==
        doctest::Approx(16 * s.cluster.groups[0].device.peak_of(Precision::bf16).value +
                        8 * s.cluster.groups[1].device.peak_of(Precision::bf16).value));
  const auto meshes = stage_meshes(resolve_plan(s), s.cluster);
  CHECK(meshes[1].group == 0);
  CHECK(meshes[2].group == 1);
  const Scenario lent = scenarios::read(
      tiny +
      "cluster:\n"
      "  groups: [{device: a100-sxm4-80gb, devices: 8}, {device: h100-sxm5-80gb, devices: 8}]\n"
      "  devices_per_node: 8\n"
      "  tiers: [{name: in, devices: 8, bandwidth_bytes_per_s: 300 GB/s, latency_s: 2 us},\n"
      "          {name: out, devices: 16, bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}]\n");
  CHECK(lent.cluster.groups[1].tiers.size() == 1);
  CHECK(lent.cluster.tiers.back().name == "out");
  CHECK(lent.cluster.tiers.back().devices == 16);
}

TEST_CASE("groups that cannot be read say so") {
  const auto fault_of = [](const std::string& cluster) {
    return fixtures::config_error([&] { scenarios::read(tiny + "cluster: {" + cluster + "}\n"); });
  };
  const std::string join = ", join: {bandwidth_bytes_per_s: 1 GB/s, latency_s: 20 us}";
  const std::string two = "groups: [{base: dgx-a100, devices: 8}, {base: dgx-h100, devices: 8}]";
  CHECK(fault_of(two + join) == "");
  CHECK(contains(fault_of("groups: 4" + join), "groups is not a list of groups"));
  CHECK(contains(fault_of(two), "the cluster does not say what joins its groups"));
  CHECK(contains(fault_of(two + join + ", devices: 12"), "devices is 12, the groups have 16"));
  CHECK(contains(
      fault_of("groups: [{base: dgx-a100, devices: 8}, {base: dgx-a100, devices: 8}]" + join),
      "two groups are called 'a100-sxm4-80gb'"));
  CHECK(contains(fault_of("groups: [{devices: 4}]" + join), "the group lacks the key 'device'"));
  CHECK(contains(fault_of("groups: [{base: dgx-a100, color: red}]" + join), "color"));
  CHECK(contains(fault_of("groups: [{base: dgx-a100, devices: 8}, {base: dgx-h100}]" + join),
                 "cluster 'dgx-h100' is a kind of cluster, not one of so many devices; write "
                 "{base: dgx-h100, devices: N}"));
}

}  // namespace cluster_groups_test
