// The time of an operator from rates measured on a device.
#include "costmodel/cost/measured_time.hpp"

#include <doctest/doctest.h>

#include "costmodel/cost/layer_cost.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace measured_time_test {

using namespace costmodel;

namespace {

// Relative to the value, however small.
doctest::Approx about(double value) { return doctest::Approx(value).scale(0); }

RateTable curve(MeasuredOp op, Precision precision, double rate) {
  return {op, Pass::forward, precision, {{1e3, 1e6}}, {rate, rate}};
}

RateTable products(Precision precision, double rate) {
  return {MeasuredOp::linear, Pass::forward, precision, {{64}, {512}, {32}}, {rate}};
}

const Linear product{64, 512, 32, false, false};
const Norm norm{64, 512, Normalization::layernorm};

Seconds forward_time(const Op& op, const DeviceSpec& device, Precision precision) {
  const auto time = measured_time(op, Pass::forward, device, precision);
  REQUIRE(time);
  return *time;
}

}  // namespace

TEST_CASE("a bias costs where the product itself adds it") {
  DeviceSpec device;
  device.measured = {products(Precision::fp32, 1e9), curve(MeasuredOp::bias, Precision::fp32, 2e9)};
  const auto time = [&](const Linear& op) {
    return forward_time(op, device, Precision::fp32).value;
  };
  const double bare = time(product), bytes = 4.0 * 64 * 512;
  CHECK(bare == about(2.0 * 64 * 512 * 32 / 1e9));
  CHECK(time({64, 512, 32, true, false, true}) == bare);
  CHECK(time({64, 512, 32, true, false}) == about(bare + bytes / 2e9));
}

TEST_CASE("tables serve what is stored alike; a product's serve its precision alone") {
  DeviceSpec device;
  device.measured = {products(Precision::bf16, 4e9),
                     curve(MeasuredOp::layernorm, Precision::bf16, 1e9)};
  const double in_bf16 = forward_time(norm, device, Precision::bf16).value;
  CHECK(in_bf16 == about(2.0 * 64 * 512 / 1e9));
  CHECK(forward_time(norm, device, Precision::fp16).value == in_bf16);
  CHECK(forward_time(norm, device, Precision::fp8).value == in_bf16);
  CHECK(!measured_time(norm, Pass::forward, device, Precision::fp32));
  CHECK(!measured_time(norm, Pass::input_gradient, device, Precision::fp16));
  for (const Precision other : {Precision::fp16, Precision::fp8, Precision::fp32})
    CHECK(!measured_time(product, Pass::forward, device, other));
  device.measured.push_back(
      curve(MeasuredOp::layernorm, Precision::fp16, 2e9));  // its own comes first
  CHECK(forward_time(norm, device, Precision::fp16).value == about(in_bf16 / 2));
  CHECK(forward_time(norm, device, Precision::bf16).value == in_bf16);
}

TEST_CASE("a shape is known by all its sizes: rows of a result, heads of all sequences") {
  DeviceSpec device;
  device.measured = {curve(MeasuredOp::layernorm, Precision::fp32, 1e9)};
  const double bytes = 4.0 * 64 * 512;
  device.measured.front().shapes = {{{bytes, 64}, 4e9}};
  CHECK(forward_time(norm, device, Precision::fp32).value == about(bytes / 4e9));
  const Norm narrow{128, 256, Normalization::layernorm};
  CHECK(forward_time(narrow, device, Precision::fp32).value == about(bytes / 1e9));

  const FlashAttention attention{2, 256, 6, 3, 96, true};
  RateTable heads;
  heads.op = MeasuredOp::flash_attention;
  heads.shapes = {{{256, 96, 12, 6}, 7e9}};  // no grid
  device.measured.push_back(heads);
  const double flops = work_of(attention, Pass::forward, 4).executed.value;
  CHECK(forward_time(attention, device, Precision::fp32).value == about(flops / 7e9));
  for (const FlashAttention& other :
       {FlashAttention{1, 256, 6, 3, 96, true}, FlashAttention{2, 256, 6, 6, 96, true},
        FlashAttention{2, 512, 6, 3, 96, true}})
    CHECK(!measured_time(other, Pass::forward, device, Precision::fp32));
  CHECK(!measured_time(attention, Pass::input_gradient, device, Precision::fp32));
}

TEST_CASE("measured rates are of the device: a pass takes no less than its launches") {
  ClusterSpec cluster = fixtures::cluster(1);
  OpList list;
  list.tensors = {{"x", 64, 512}, {"y", 64, 512}, {"z", 64, 512}};
  list.nodes = {{Site::other, norm, {0}, 1, {0}}, {Site::other, norm, {1}, 2, {1}}};
  Pricing pricing;
  pricing.cluster = &cluster;
  const auto time = [&](double rate, double launch) {
    cluster.device.measured = {curve(MeasuredOp::layernorm, Precision::bf16, rate)};
    pricing.kernel_launch = Seconds(launch);
    return price(forward_steps(list), list, pricing).time().value;
  };
  const double bytes = 2.0 * 2 * 64 * 512;
  CHECK(time(1e12, 0) == about(bytes / 1e12));     // launches of a graph
  CHECK(time(1e12, 4e-6) == about(2 * 4e-6));      // by the host
  CHECK(time(1e12, 1.5e-6) == about(2 * 1.5e-6));  // by a graph that costs something
  CHECK(time(1e9, 4e-6) == about(bytes / 1e9));    // it runs ahead
}

}  // namespace measured_time_test
