// Records of a machine become profiles that the cost model reads, with the measured times at the
// measured shapes.
#include "calibrate/profile/cpu_profile.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "calibrate/profile/measured_tables.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"

namespace cpu_profile_test {

using calibrate::Record;
using costmodel::Linear;
using costmodel::Op;
using costmodel::Pass;
using costmodel::Precision;
using costmodel::Seconds;

namespace {

calibrate::Timing taking(double seconds) { return {Seconds(seconds), Seconds(seconds), 5, 0.01}; }

Record of(const Op& op, Pass pass, double seconds) {
  const auto work = costmodel::measured_work(op, pass, Precision::fp32);
  return {"task",         std::string(costmodel::measured_name(op)), pass, work.point, work.amount,
          taking(seconds)};
}

const Op small = Linear{64, 128, 128, false, false}, wide = Linear{64, 512, 128, false, false};
const Op norm = costmodel::Norm{64, 128, costmodel::Normalization::layernorm};

std::vector<Record> records() {
  std::vector<Record> all;
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    all.push_back(of(small, pass, 2e-5));
    all.push_back(of(wide, pass, 7e-5));
  }
  all.push_back(of(norm, Pass::forward, 3e-6));
  all.push_back(of(norm, Pass::forward, 5e-6));  // of another round
  all.push_back({"t", "optimizer", Pass::forward, {4e6}, 4e6, taking(1e-3)});
  all.push_back({"t", "copy", Pass::forward, {1e6}, 1e6, taking(1e-4)});
  all.push_back({"t", "call", Pass::forward, {1}, 1, taking(3e-7)});
  all.push_back({"t", "yardstick", Pass::forward, {1}, 1, taking(5e-6)});
  all.push_back({"t", "alone", Pass::forward, {1}, 1, taking(0.1)});
  all.push_back({"t", "together", Pass::forward, {1}, 1, taking(0.12)});
  all.push_back({"t", "yardstick together", Pass::forward, {1}, 1, taking(5.5e-6)});
  all.push_back({"t", "together", Pass::forward, {2}, 2, taking(0.15)});
  all.push_back({"t", "yardstick together", Pass::forward, {2}, 2, taking(6e-6)});
  for (const double bytes : {1e3, 1e5, 1e6, 1e7})
    all.push_back(
        {"t", "all-reduce", Pass::forward, {bytes, 2}, bytes, taking(2e-5 + bytes / 4e9)});
  return all;
}

const calibrate::Machine machine{
    "2026-01-02", "Some \"fast\" processor", 2, "Linux", "gcc", "Eigen", 16e9};

costmodel::DeviceSpec written_and_read() {
  const auto text = to_yaml(calibrate::device_profile(records(), machine, "shardplan calibrate x"));
  return costmodel::read_device(costmodel::parse_yaml(text, "mine.yaml"), "mine");
}

}  // namespace

TEST_CASE("a written device gives the measured times at the measured shapes") {
  const auto device = written_and_read();
  const auto time = [&](const Op& op, Pass pass) {
    return costmodel::device_time(op, pass, device, Precision::fp32).value;
  };
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    CHECK(time(small, pass) == doctest::Approx(2e-5).epsilon(1e-5));
    CHECK(time(wide, pass) == doctest::Approx(7e-5).epsilon(1e-5));
  }
  CHECK(time(norm, Pass::forward) ==
        doctest::Approx(std::sqrt(3e-6 * 5e-6)).epsilon(1e-5));  // the median rate
  CHECK(costmodel::measured_optimizer(costmodel::Bytes(4e6), device)->value ==
        doctest::Approx(1e-3).epsilon(1e-5));
  CHECK(!costmodel::measured_time(norm, Pass::input_gradient, device, Precision::fp32));
  CHECK(time(norm, Pass::input_gradient) > 0);  // by the formula
  CHECK(device.memory_bandwidth.value == doctest::Approx(1e10));
  CHECK(device.kernel_launch.value == doctest::Approx(3e-7));
  CHECK(costmodel::slowdown_together(device, 1) == doctest::Approx(1.2).epsilon(1e-4));
  CHECK(costmodel::slowdown_together(device, 1.5) == doctest::Approx(1.35).epsilon(1e-4));
  CHECK(costmodel::slowdown_together(device, 2) == doctest::Approx(1.5).epsilon(1e-4));
}

TEST_CASE("another pace leaves what ranks share beside their cores") {
  const auto device = written_and_read();
  CHECK(device.yardstick == Seconds(5e-6));
  CHECK(device.together.back().pace == doctest::Approx(1.2).epsilon(1e-4));
  CHECK(costmodel::pace_together(device, 1) == doctest::Approx(1.1).epsilon(1e-4));
  CHECK(costmodel::pace_together(device, 2) == doctest::Approx(1.2).epsilon(1e-4));
  CHECK(costmodel::pace_together(device, 8) == doctest::Approx(1.2).epsilon(1e-4));
  const auto slow = costmodel::at_pace(device, 2);
  CHECK(costmodel::slowdown_together(slow, 1) == doctest::Approx(2 * 1.2 / 1.1).epsilon(1e-4));
  CHECK(costmodel::slowdown_together(slow, 2) == doctest::Approx(2 * 1.5 / 1.2).epsilon(1e-4));
  // Turns that more ranks than cores take are in the pace.
  CHECK(costmodel::slowdown_together(slow, 8) == doctest::Approx(2 * 1.5 / 1.2).epsilon(1e-4));
  CHECK(costmodel::slowdown_together(device, 8) == doctest::Approx(4 * 1.5).epsilon(1e-4));
  costmodel::DeviceSpec unsaid = device;
  unsaid.together.front().pace = 0;
  CHECK(costmodel::slowdown_together(costmodel::at_pace(unsaid, 2), 2) ==
        doctest::Approx(1.5).epsilon(1e-4));
}

TEST_CASE("a grid is brought to what its operator takes in a layer") {
  auto all = records();
  for (const double times : {1.1, 1.3, 1.2}) {
    all.push_back(of(small, Pass::forward, 2e-5 * times));
    all.back().op = calibrate::in_a_layer("linear");
  }
  const auto tables = calibrate::tables_of(all);
  const auto time = [&](const Op& op, Pass pass) {
    const auto work = costmodel::measured_work(op, pass, Precision::fp32);
    for (const auto& table : tables)
      if (table.op == costmodel::MeasuredOp::linear && table.pass == pass)
        return work.amount / costmodel::rate_at(table, work.point);
    return 0.0;
  };
  CHECK(time(small, Pass::forward) == doctest::Approx(2.4e-5));
  CHECK(time(wide, Pass::forward) == doctest::Approx(8.4e-5));
  CHECK(time(wide, Pass::weight_gradient) == doctest::Approx(7e-5));
}

TEST_CASE("a written cluster names its device and has the fitted times") {
  const auto text = to_yaml(calibrate::cluster_profile(
      records(), machine, {.are = "processes", .count = 2}, "command", "./mine.yaml"));
  const auto value = costmodel::parse_yaml(text, "machine.yaml");
  CHECK(value.find("device")->text == "./mine.yaml");
  CHECK(value.find("machine")->find("processor")->text == "Some \"fast\" processor");
  const auto cluster = costmodel::read_cluster(value, "machine", {});
  CHECK(cluster.devices == 2);
  costmodel::GroupLayout pair;
  pair.size = 2;
  pair.tiers = 1;
  pair.fan.fill(1);
  pair.fan[0] = 2;
  const auto time = costmodel::collective_time(costmodel::CollectiveKind::all_reduce,
                                               costmodel::Bytes(1e6), pair, cluster);
  CHECK(time.value == doctest::Approx(2e-5 + 1e6 / 4e9).epsilon(0.001));
  CHECK(!cluster.tiers.front().measured.empty());
  CHECK(cluster.tiers.front().name == "processes");
}

TEST_CASE("a machine of one core has a cluster without measured collectives") {
  const calibrate::Ranks one;
  const auto text = to_yaml(calibrate::cluster_profile({}, machine, one, "command", "./mine.yaml"));
  CHECK(costmodel::read_cluster(costmodel::parse_yaml(text, "m"), "m", {}).devices == 1);
}

TEST_CASE("points close together are one, and rows of a grid that lack points are left out") {
  const auto streamed = [](double bytes, double seconds) {
    return Record{"t", "softmax", Pass::forward, {bytes}, bytes, taking(seconds)};
  };
  auto all = std::vector{streamed(1000, 1e-6), streamed(1100, 1e-6), streamed(4000, 2e-6)};
  all.push_back(of(small, Pass::forward, 1e-5));
  all.push_back(of(wide, Pass::forward, 1e-5));
  all.push_back(of(Op{Linear{256, 128, 128, false, false}}, Pass::forward, 1e-5));
  const auto tables = calibrate::tables_of(all);
  REQUIRE(tables.size() == 2);
  CHECK(tables[0].axes == std::vector<std::vector<double>>{{64}, {128, 512}, {128}});
  REQUIRE(tables[1].axes[0].size() == 2);
  CHECK(tables[1].axes[0][0] == doctest::Approx(std::sqrt(1.1e6)));
}

TEST_CASE("the processor's name") {
  CHECK(calibrate::processor_in("a: b\nmodel name\t: X 1 @ 2GHz\nmodel name\t: Y\n") ==
        "X 1 @ 2GHz");
  CHECK(calibrate::processor_in("model name") == "unknown");
  CHECK(calibrate::processor_in("") == "unknown");
}

}  // namespace cpu_profile_test
