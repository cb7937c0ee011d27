// Devices and clusters: every shipped one, and what an override does to the tiers.
#include "costmodel/machine/cluster_spec.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace cluster_spec_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

Value file_of(const std::string& kind, const std::string& name) {
  return resolve_config(fixtures::configs(), kind, scalar_value(name)).value;
}

ClusterSpec cluster_of(const Value& map) {
  const std::string device = map.find("device")->text;
  return read_cluster(map, "c", read_device(file_of("devices", device), device));
}

const char* const two_tiers =
    "{device: a100-sxm4-80gb, devices: 64, devices_per_node: 8, tiers: ["
    "{name: in, devices: 8, bandwidth_bytes_per_s: 300 GB/s, latency_s: 1 us},"
    "{name: out, devices: 64, bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}]}";

ClusterSpec overridden(const std::string& over) {
  return cluster_of(merged(parse_yaml(two_tiers, "c.yaml"), parse_yaml(over, "s.yaml")));
}

}  // namespace

TEST_CASE("every device loads, and every group of figures says where it comes from") {
  const auto names = config_names(fixtures::configs(), "devices");
  CHECK(names.size() >= 17);
  for (const auto& name : names) {
    CAPTURE(name);
    const Value file = file_of("devices", name);
    const DeviceSpec device = read_device(file, name);
    int groups = 0;
    for (const auto& entry : file.entries) {
      if (!entry.value.is_map() || entry.key == "machine") continue;  // which is what was measured
      CAPTURE(entry.key);
      const Value* source = entry.value.find("source");
      REQUIRE(source != nullptr);
      CHECK(source->text.size() > 10);
      ++groups;
      // Without it the file is refused.
      Value without = file;
      std::erase_if(without.find(entry.key)->entries,
                    [](const auto& e) { return e.key == "source"; });
      CHECK(contains(config_error([&] { read_device(without, name); }), "lacks the key 'source'"));
    }
    CHECK(groups == 8 + (device.idle_boost > 0 ? 1 : 0) +
                        (device.host_bandwidth.value > 0 ? 1 : 0) +
                        (file.find("operators") != nullptr ? 1 : 0) +
                        (file.find("flex_dispatcher") != nullptr ? 1 : 0) + (device.alone ? 1 : 0) +
                        (device.cache_bandwidth.value > 0 ? 1 : 0));
    CHECK(device.peak_of(Precision::fp32).value > 0);
    CHECK(device.memory.value > 1e9);
    CHECK(device.memory_bandwidth.value > 1e9);
    CHECK(device.multiprocessors >= 1);
    // Faster formats are not slower than fp32.
    for (const auto p : {Precision::fp16, Precision::bf16, Precision::fp8})
      CHECK((device.peak_of(p).value == 0 || device.peak_of(p) >= device.peak_of(Precision::fp32)));
  }
}

TEST_CASE("every cluster loads, its tiers grow and hold it whole") {
  const auto names = config_names(fixtures::configs(), "clusters");
  CHECK(names.size() >= 29);
  for (const auto& name : names) {
    CAPTURE(name);
    const Value file = file_of("clusters", name);
    const ClusterSpec cluster = cluster_of(file);
    CHECK(cluster.assumed.empty());  // a shipped file needs no mending
    REQUIRE(!cluster.tiers.empty());
    CHECK(cluster.tiers.size() <= most_tiers);
    CHECK(cluster.tiers.back().devices == cluster.devices);
    CHECK(cluster.devices % cluster.devices_per_node == 0);
    for (std::size_t i = 0; i < cluster.tiers.size(); ++i) {
      const Tier& tier = cluster.tiers[i];
      CHECK(tier.bandwidth.value > 0);
      CHECK(tier.efficiency > 0);
      CHECK(tier.efficiency <= 1);
      if (i > 0) CHECK(tier.devices > cluster.tiers[i - 1].devices);
    }
    for (const auto& tier : file.find("tiers")->items) CHECK(tier.find("source") != nullptr);
  }
}

// A kind of cluster is only planned for where somebody chose its size; one machine has its own.
TEST_CASE("a scenario says how many devices of a kind of cluster") {
  const auto fault = [](const std::string& cluster) {
    return config_error([&] { scenarios::read(scenarios::tiny + "cluster: " + cluster + "\n"); });
  };
  CHECK(fault("dgx-h100") ==
        "test.yaml:3:10: cluster 'dgx-h100' is a kind of cluster, not one of so many devices; "
        "write cluster: {base: dgx-h100, devices: N}; its links are described for up to 16,384");
  CHECK(fault("{base: dgx-h100, devices:}") == fault("dgx-h100"));
  CHECK(fault("{base: dgx-h100, devices: 16}") == "");
  CHECK(fault("selene") == "");
  CHECK(fault("{device: a100-sxm4-80gb, tiers: [{name: a, devices: 8, bandwidth_bytes_per_s: "
              "1 GB/s, latency_s: 1 us}]}") ==
        "test.yaml:3:10: cluster lacks the key 'devices'; add devices: N, all of them");
  for (const auto& name : config_names(fixtures::configs(), "clusters")) {
    CAPTURE(name);
    CHECK((fault(name) == "") == says_devices(file_of("clusters", name)));
  }
}

TEST_CASE("another number of devices: the tiers follow, and stretching is told") {
  CHECK(overridden("{devices: 32}").tiers.back().devices == 32);
  CHECK(overridden("{devices: 32}").assumed.empty());
  const ClusterSpec node = overridden("{devices: 8}");
  CHECK(node.tiers.size() == 1);
  CHECK(node.tiers[0].name == "in");
  const ClusterSpec part = overridden("{devices: 4}");
  CHECK(part.tiers.size() == 1);
  CHECK(part.tiers[0].devices == 4);
  const ClusterSpec large = overridden("{devices: 128}");
  CHECK(large.tiers.back().devices == 128);
  CHECK(large.assumed ==
        std::vector<std::string>{"128 devices are more than the 64 that the description of c "
                                 "joins: links between are priced "
                                 "as its widest tier's, 'out'"});
  const ClusterSpec wide = overridden("{devices_per_node: 4}");
  CHECK(wide.tiers[0].devices == 4);
  CHECK(overridden("{devices: 256, devices_per_node: 64}").tiers[0].devices == 64);
}

TEST_CASE("a file that has tiers and devices_per_node means what it has") {
  const auto of = [](const std::string& node) {
    return cluster_of(parse_yaml(
        "{device: a100-pcie-80gb, devices: 64, devices_per_node: " + node +
            ", tiers: [{name: bridge, devices: 2, bandwidth_bytes_per_s: 300 GB/s, latency_s: 1 "
            "us},"
            "{name: pcie, devices: 8, bandwidth_bytes_per_s: 20 GB/s, latency_s: 5 us},"
            "{name: out, devices: 64, bandwidth_bytes_per_s: 12 GB/s, latency_s: 8 us}]}",
        "c.yaml"));
  };
  for (const char* node : {"8", "4"}) {
    const ClusterSpec pairs = of(node);
    CHECK(pairs.tiers[0].devices == 2);
    CHECK(pairs.tiers[1].devices == 8);
    CHECK(pairs.devices_per_node == std::stoi(node));
    CHECK(resized(pairs, 32).tiers[0].devices == 2);
  }
}

TEST_CASE("a node that is written over a base leaves no tier that is smaller than one inside it") {
  const Value rack = parse_yaml("{devices: 288, devices_per_node: 72}", "s.yaml");
  const ClusterSpec wide = cluster_of(merged(file_of("clusters", "dgx-gb200"), rack));
  CHECK(wide.tiers[0].devices == 72);
  REQUIRE(wide.tiers.size() == 2);
  CHECK(wide.tiers[1].devices == 288);
}

TEST_CASE("operators measured on a device are not those of one with another peak or bandwidth") {
  const auto device = [](const std::string& over) {
    const Value map = merged(file_of("devices", "h100-sxm5-80gb-shardplan"), parse_yaml(over, "s"));
    return read_device(map, "own");
  };
  CHECK_FALSE(device("{title: mine}").measured.empty());
  CHECK_FALSE(device("{memory: {bytes: 40 GB, source: mine}}").measured.empty());
  for (const char* over : {"{peak_flops_per_s: {bf16: 100 TFLOP/s, source: mine}}",
                           "{memory: {bandwidth_bytes_per_s: 500 GB/s, source: mine}}"}) {
    const DeviceSpec own = device(over);
    CHECK(own.measured.empty());
    CHECK(contains(own.left_out, "the operators that were measured on it are left out"));
    ClusterSpec cluster = read_cluster(parse_yaml(two_tiers, "c.yaml"), "c", own);
    CHECK(cluster.assumed == std::vector{own.left_out});
  }
}

TEST_CASE("faulty clusters and devices") {
  const auto fault = [](const std::string& over) {
    return config_error([&] { overridden(over); });
  };
  CHECK(contains(fault("{devices: 0}"), "s.yaml:1:11: devices: 0 is out of range"));
  CHECK(contains(fault("{tiers: []}"), "tiers is not a list of tiers"));
  CHECK(contains(fault("{tiers: 3}"), "tiers is not a list of tiers"));
  CHECK(contains(
      fault("{tiers: [{name: a, devices: 8, bandwidth_bytes_per_s: 1 GB/s, latency_s: 1 us},"
            "{name: b, devices: 8, bandwidth_bytes_per_s: 1 GB/s, latency_s: 1 us}]}"),
      "tier 'b' is not larger than the tier inside it"));
  std::string tiers;
  for (std::size_t i = 0; i <= most_tiers; ++i)
    tiers += "{name: a, devices: " + std::to_string(2 << i) +
             ", bandwidth_bytes_per_s: 1 GB/s, latency_s: 1 us}, ";
  CHECK(contains(fault("{tiers: [" + tiers + "]}"), "tiers lists more than 6"));
  CHECK(contains(
      fault("{tiers: [{name: a, devices: 8, bandwidth_bytes_per_s: 1 GB, latency_s: 1 us}]}"),
      "is a size, not a bandwidth"));
  CHECK(contains(fault("{device_per_node: 8}"), "did you mean 'devices_per_node'"));
}

}  // namespace cluster_spec_test
