// Known constants come back from data made with the formulas of costmodel themselves.
#include "calibrate/fit/fit.hpp"

#include <doctest/doctest.h>

#include <map>

#include "calibrate/fit/fit_device.hpp"
#include "calibrate/fit/fit_network.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/calibrate/support/synthetic.hpp"

namespace fit_test {

using namespace calibrate;
using costmodel::Pass;
using costmodel::Precision;
using synthetic::point;
using synthetic::with_outliers;

namespace {

std::vector<Measurement> products(const costmodel::DeviceSpec& truth, Precision precision) {
  std::vector<Measurement> points;
  for (const double m : {1024.0, 4096.0, 8192.0}) {
    for (const double n : {1536.0, 5120.0, 12288.0}) {
      for (const double k : {256.0, 512.0, 1024.0, 2048.0, 8192.0, 24576.0}) {
        points.push_back(point(Product{1, m, n, k, precision},
                               costmodel::product_time(1, m, n, k, truth, precision)));
      }
    }
  }
  return points;
}

std::vector<Measurement> copies(const costmodel::DeviceSpec& truth) {
  std::vector<Measurement> points;
  for (double bytes = 1e5; bytes < 4e9; bytes *= 2)
    points.push_back(point(Copy{synthetic::Bytes(bytes)},
                           costmodel::streaming_time(synthetic::Bytes(bytes), 1, truth)));
  return points;
}

std::vector<Measurement> attention(const costmodel::DeviceSpec& truth) {
  using Passes = AttentionRun::Passes;
  std::vector<Measurement> points;
  for (std::int64_t s = 512; s <= 32768; s *= 2) {
    for (const bool causal : {false, true}) {
      const costmodel::FlashAttention op{65536 / s, s, 32, 8, 128, causal, false};
      const auto forward = costmodel::device_time(op, Pass::forward, truth, Precision::bf16);
      const auto backward =
          costmodel::device_time(op, Pass::input_gradient, truth, Precision::bf16);
      points.push_back(point(AttentionRun{op, Precision::bf16, Passes::forward}, forward));
      points.push_back(point(AttentionRun{op, Precision::bf16, Passes::backward}, backward));
      points.push_back(point(AttentionRun{op, Precision::bf16, Passes::both}, forward + backward));
    }
  }
  return points;
}

std::map<std::string, FittedConstant> constants(const std::vector<FittedGroup>& groups) {
  std::map<std::string, FittedConstant> all;
  for (const auto& group : groups)
    for (const auto& c : group.constants) all.insert({c.name, c});
  return all;
}

std::vector<Measurement> device_points(const costmodel::DeviceSpec& truth) {
  auto points = copies(truth);
  for (const auto& m : products(truth, Precision::bf16)) points.push_back(m);
  for (const auto& m : attention(truth)) points.push_back(m);
  return points;
}

costmodel::DeviceSpec device_truth() {
  auto truth = synthetic::device();
  truth.memory_efficiency = 0.91;
  truth.memory_half = synthetic::Bytes(0.7e6);
  truth.gemm_efficiency = 0.66;
  truth.gemm_half_k = 410;
  truth.attention_forward = truth.attention2_forward = 0.44;
  truth.attention_backward = truth.attention2_backward = 0.37;
  truth.attention_half_sequence = 900;
  return truth;
}

void check_device(const std::vector<Measurement>& points, double tolerance) {
  std::vector<Unused> unused;
  const auto truth = device_truth();
  const auto found = constants(fit_device(synthetic::device(), points, false, unused));
  CHECK(unused.empty());
  const auto near = [&](const char* name, double value) {
    CAPTURE(name);
    CHECK(found.at(name).fitted);
    CHECK(found.at(name).after == doctest::Approx(value).epsilon(tolerance));
  };
  near("memory_efficiency.large", truth.memory_efficiency);
  near("memory_efficiency.half_bytes", truth.memory_half.value);
  near("gemm.efficiency", truth.gemm_efficiency);
  near("gemm.half_k", truth.gemm_half_k);
  near("attention.forward_efficiency", truth.attention_forward);
  near("attention.backward_efficiency", truth.attention_backward);
  near("attention.half_sequence", truth.attention_half_sequence);
  CHECK_FALSE(found.at("attention.flash2_forward_efficiency").fitted);
}

std::vector<Measurement> collectives(const costmodel::ClusterSpec& truth) {
  using Kind = costmodel::CollectiveKind;
  std::vector<Measurement> points;
  for (const int ranks : {2, 4, 8, 16, 32, 64}) {
    for (const auto kind : {Kind::all_reduce, Kind::all_gather, Kind::all_to_all}) {
      for (double bytes = 4096; bytes < 1e10; bytes *= 8) {
        const auto time = costmodel::collective_time(kind, synthetic::Bytes(bytes),
                                                     costmodel::layout_of(ranks, 1, truth), truth);
        points.push_back(point(
            CollectiveRun{kind, synthetic::Bytes(bytes), ranks, std::max(1, ranks / 8)}, time));
      }
    }
  }
  return points;
}

costmodel::ClusterSpec cluster_truth() {
  auto truth = synthetic::cluster();
  truth.tiers[0].efficiency = 0.7;
  truth.tiers[0].latency = synthetic::Seconds(2.5e-6);
  truth.tiers[0].fixed = synthetic::Seconds(20e-6);
  truth.tiers[1].efficiency = 0.6;
  truth.tiers[1].latency = synthetic::Seconds(9e-6);
  truth.tiers[1].fixed = synthetic::Seconds(70e-6);
  return truth;
}

void check_cluster(const std::vector<Measurement>& points, double tolerance) {
  std::vector<Unused> unused;
  const auto truth = cluster_truth();
  const auto groups = fit_network(synthetic::cluster(), points, unused);
  CHECK(unused.empty());
  REQUIRE(groups.size() == 2);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto values = groups[i].values();
    CAPTURE(groups[i].what);
    CHECK(values[0] == doctest::Approx(truth.tiers[i].efficiency).epsilon(tolerance));
    CHECK(values[1] == doctest::Approx(truth.tiers[i].latency.value).epsilon(tolerance));
    CHECK(values[2] == doctest::Approx(truth.tiers[i].fixed.value).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("a device's constants come back, to 1 % from exact data, to 3 % with 10 % outliers") {
  check_device(device_points(device_truth()), 0.01);
  check_device(with_outliers(device_points(device_truth())), 0.03);
}

TEST_CASE("a network's constants come back, to 1 % from exact data, to 3 % with 10 % outliers") {
  check_cluster(collectives(cluster_truth()), 0.01);
  check_cluster(with_outliers(collectives(cluster_truth())), 0.03);
}

TEST_CASE("every precision of products is a group of its own, most points first") {
  auto truth = synthetic::device();
  std::vector<Measurement> points = products(truth, Precision::bf16);
  truth.gemm_efficiency = 0.5;
  const auto narrow = products(truth, Precision::fp8);
  points.insert(points.end(), narrow.begin(), narrow.begin() + 20);
  std::vector<Unused> unused;
  const auto groups = fit_device(synthetic::device(), points, false, unused);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].what == "bf16 products");
  CHECK(groups[0].values()[0] == doctest::Approx(0.8));
  CHECK(groups[1].what == "fp8 products");
  CHECK(groups[1].values()[0] == doctest::Approx(0.5));
  CHECK(groups[1].points == 20);
}

TEST_CASE("forward and backward measured together keep their ratio") {
  auto truth = synthetic::device();
  truth.attention_forward *= 0.8;
  truth.attention_backward *= 0.8;
  auto points = attention(truth);
  std::erase_if(points, [](const Measurement& m) {
    return std::get<AttentionRun>(m.what).passes != AttentionRun::Passes::both;
  });
  std::vector<Unused> unused;
  const auto found = constants(fit_device(synthetic::device(), points, false, unused));
  CHECK(found.at("attention.forward_efficiency").fitted);
  CHECK(found.at("attention.forward_efficiency").after == doctest::Approx(0.48).epsilon(0.001));
  CHECK(found.at("attention.backward_efficiency").after == doctest::Approx(0.4).epsilon(0.001));
}

TEST_CASE("FlashAttention 2 beside a better kernel has constants of its own") {
  auto points = attention(synthetic::device());
  auto truth = synthetic::device();
  truth.attention_forward = 0.3;
  truth.attention_backward = 0.2;
  for (auto m : attention(truth)) {
    std::get<AttentionRun>(m.what).op.second_generation = true;
    points.push_back(m);
  }
  std::vector<Unused> unused;
  const auto found = constants(fit_device(synthetic::device(), points, false, unused));
  const auto near = [&](const char* name, double value) {
    CAPTURE(name);
    CHECK(found.at(name).after == doctest::Approx(value).epsilon(0.001));
  };
  near("attention.forward_efficiency", 0.6);
  near("attention.backward_efficiency", 0.5);
  near("attention.flash2_forward_efficiency", 0.3);
  near("attention.flash2_backward_efficiency", 0.2);
}

TEST_CASE("a constant that the data do not show is kept") {
  auto truth = synthetic::device();
  truth.gemm_efficiency = 0.7;
  truth.gemm_half_k = 100;
  std::vector<Measurement> points;
  for (const double m : {2048.0, 4096.0, 8192.0}) {
    points.push_back(point(Product{1, m, 8192, 8192, Precision::bf16},
                           costmodel::product_time(1, m, 8192, 8192, truth, Precision::bf16)));
  }
  std::vector<Unused> unused;
  const auto groups = fit_device(synthetic::device(), points, false, unused);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].constants[0].fitted);
  CHECK_FALSE(groups[0].constants[1].fitted);
  CHECK(groups[0].constants[1].after == 200);
  CHECK(groups[0].after.median < 0.01);
  CHECK(groups[0].measured == "2026-01-02");
}

TEST_CASE("a constant that would have to leave its range says so") {
  auto truth = synthetic::device();
  truth.gemm_efficiency = 1.2;
  std::vector<Unused> unused;
  const auto groups =
      fit_device(synthetic::device(), products(truth, Precision::bf16), false, unused);
  CHECK(groups.at(0).constants[0].after == 1);
  CHECK(groups.at(0).constants[0].at_bound);
  CHECK_FALSE(groups.at(0).constants[1].at_bound);
}

TEST_CASE("groups of products start one by one, and change no constant of the device") {
  const auto truth = synthetic::device();
  std::vector<Measurement> points;
  for (const double groups : {2.0, 8.0, 32.0}) {
    const auto time = groups * costmodel::Seconds(7e-6) +
                      costmodel::product_time(groups, 512, 4096, 7168, truth, Precision::bf16);
    points.push_back(point(Product{groups, 512, 4096, 7168, Precision::bf16, true}, time));
  }
  std::vector<Unused> unused;
  const auto groups = fit_device(truth, points, false, unused, costmodel::Seconds(7e-6));
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].what == "bf16 products in groups");
  CHECK(groups[0].before.p90 == doctest::Approx(0));
  CHECK(fit_device(truth, points, false, unused).at(0).before.bias < -1);
  CHECK_FALSE(groups[0].any_fitted());
}

TEST_CASE("the efficiency of exchanges comes back, relative to the tiers as they are") {
  const auto truth = synthetic::cluster();
  costmodel::ExpertRouting routing{costmodel::Dispatcher::hybridep, 8, 0, 0, 0.6};
  std::vector<Measurement> points;
  for (const int ranks : {8, 16, 64}) {
    const synthetic::Bytes message(4096.0 * 8 * 7168 * 2);
    const auto layout = costmodel::layout_of(ranks, 1, truth);
    const auto time = costmodel::expert_exchange(message, routing, layout, truth).time;
    points.push_back(point(ExpertRun{message, routing, ranks, ranks / 8}, time));
  }
  std::vector<Unused> unused;
  const auto groups = fit_network(synthetic::cluster(), points, unused, 0.9);
  REQUIRE(groups.size() == 2);
  for (const auto& group : groups) {
    CHECK(group.values().at(0) == doctest::Approx(0.6).epsilon(0.01));
    CHECK(group.constants[0].before == 0.9);
    CHECK(group.before.bias < -10);
    CHECK_FALSE(group.any_fitted());
  }
}

TEST_CASE("what cannot be priced is said") {
  auto base = synthetic::device();
  base.peak[static_cast<std::size_t>(Precision::fp8)] = {};
  std::vector<Unused> unused;
  CHECK(fit_device(base, products(synthetic::device(), Precision::fp8), false, unused).empty());
  REQUIRE(unused.size() == 54);
  CHECK(unused[0].reason == "the device has no fp8 rate");
  unused.clear();
  const CollectiveRun odd{costmodel::CollectiveKind::all_reduce, synthetic::Bytes(1e6), 12, 1};
  CHECK(fit_network(synthetic::cluster(), {point(odd, synthetic::Seconds(1))}, unused).empty());
  REQUIRE(unused.size() == 1);
  CHECK(unused[0].reason == "12 ranks on 1 nodes have no place in the cluster");
}

}  // namespace fit_test
