// Which shapes a profile lacks, and a profile to which measured shapes are added.
#include "calibrate/profile/measured_shapes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "calibrate/profile/measured_tables.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace measured_shapes_test {

using namespace costmodel;
using calibrate::add_shapes;
using calibrate::LackingShape;
using calibrate::lacks_shape;
using calibrate::Record;

namespace {

doctest::Approx about(double value) { return doctest::Approx(value).scale(0).epsilon(1e-5); }

calibrate::Timing taking(double seconds) { return {Seconds(seconds), Seconds(seconds), 5, 0.01}; }

const Linear product{64, 512, 32, true, false};
const Norm norm{64, 512, Normalization::layernorm};

// Products on a grid, the time of a bias, norms, in bf16.
Value profile() {
  return parse_yaml(
      "operators:\n"
      "  tables:\n"
      "  - {op: linear, pass: forward, precision: bf16, m: [64, 128], n: [512], k: [64], "
      "flops_per_s: [1e9, 2e9]}\n"
      "  - {op: bias, pass: forward, precision: bf16, bytes: [1000], bytes_per_s: [1e10]}\n"
      "  - {op: layernorm, pass: forward, precision: bf16, bytes: [1000, 1234567], "
      "bytes_per_s: [1e9, 2e9]}\n",
      "mine.yaml");
}

DeviceSpec device_of(const Value& value) {
  DeviceSpec device;
  device.measured = read_rate_tables(*value.find("operators")->find("tables"));
  return device;
}

OpList list_of(const std::vector<Op>& ops) {
  OpList list;
  for (const Op& op : ops) list.nodes.push_back({Site::other, op, {}, -1, {}});
  return list;
}

}  // namespace

TEST_CASE("a layer lacks what is neither listed nor on the grid, each shape once") {
  const DeviceSpec device = device_of(profile());
  const Linear on_grid{128, 512, 64, false, false};
  std::vector<LackingShape> all;
  const OpList list = list_of(
      {norm, product, on_grid, norm,
       Collective{CollectiveKind::all_reduce, CollectiveKind::none, Axis::tensor, Bytes(8)}});
  add_lacking(device, Precision::bf16, LayerKind::block, list, all);
  CHECK(calibrate::lacking_text(all, Precision::bf16, "mine.yaml", "small") ==
        "mine.yaml lacks 3 shapes of small\n"
        "  layernorm bytes 65536, rows 64: forward, input gradient\n"
        "  linear m 64, n 512, k 32: forward, input gradient, weight gradient\n"
        "  linear m 128, n 512, k 64: input gradient, weight gradient\n");
  CHECK(all.front().node == 0);
  add_lacking(device, Precision::bf16, LayerKind::head, list, all);
  CHECK(all.size() == 7);
  CHECK(calibrate::lacking_text({}, Precision::bf16, "mine.yaml", "small") ==
        "mine.yaml has every shape of small\n");
}

TEST_CASE("what was measured is what is predicted, biases included; the rest stays as it was") {
  Value value = profile();
  const DeviceSpec before = device_of(value);
  const auto record = [&](const Op& op, double seconds) {
    return calibrate::shape_record("t", op, Pass::forward, taking(seconds), before,
                                   Precision::bf16);
  };
  add_shapes(value, {record(product, 5e-5),
                     record(norm, 3e-5),
                     record(norm, 9e-5),
                     record(norm, 4e-5),
                     {"t", "layernorm", Pass::forward, {9}, 9, taking(1)}});
  const std::string text = to_yaml(value);
  const DeviceSpec after = device_of(parse_yaml(text, "mine.yaml"));
  const auto time = [](const Op& op, const DeviceSpec& device, Precision precision) {
    return measured_time(op, Pass::forward, device, precision)->value;
  };
  CHECK(time(product, after, Precision::bf16) == about(5e-5));
  CHECK(time(norm, after, Precision::bf16) == about(4e-5));  // the median
  CHECK(time(norm, after, Precision::fp16) == about(4e-5));  // as wide
  CHECK(!lacks_shape(after, product, Pass::forward, Precision::bf16));
  CHECK(lacks_shape(after, product, Pass::weight_gradient, Precision::bf16));
  CHECK(lacks_shape(after, product, Pass::forward, Precision::fp16));
  for (const Op& other : {Op(Linear{65, 512, 32, false, false}), Op(Norm{65, 512, norm.kind})})
    CHECK(time(other, after, Precision::bf16) == time(other, before, Precision::bf16));
  CHECK(text.find("bytes: [1000, 1234567]") != std::string::npos);  // not rounded
}

TEST_CASE("an operator without a table gets one, and one of another precision that serves it") {
  Value value = profile();
  const DeviceSpec before = device_of(value);
  add_shapes(value, {calibrate::shape_record("t", norm, Pass::forward, taking(3e-5), before,
                                             Precision::fp16),
                     calibrate::shape_record("t", product, Pass::forward, taking(5e-5), before,
                                             Precision::fp16)});
  const DeviceSpec after = device_of(value);
  REQUIRE(after.measured.size() == before.measured.size() + 1);
  CHECK(after.measured[2].shapes.size() == 1);  // of layernorm, in bf16
  CHECK((after.measured.back().op == MeasuredOp::linear));
  CHECK((after.measured.back().precision == Precision::fp16));
  CHECK(after.measured.back().rates.empty());
  CHECK(measured_time(product, Pass::forward, after, Precision::fp16)->value == about(5e-5));
  const Linear other{65, 512, 32, false, false};
  CHECK(!measured_time(other, Pass::forward, after, Precision::fp16));  // by the formula
}

TEST_CASE("a shape that is measured again takes the new rate") {
  Value value = profile();
  for (const double seconds : {3e-5, 6e-5}) {
    add_shapes(value, {calibrate::shape_record("t", norm, Pass::forward, taking(seconds),
                                               device_of(value), Precision::bf16)});
    CHECK(measured_time(norm, Pass::forward, device_of(value), Precision::bf16)->value ==
          about(seconds));
  }
  CHECK(device_of(value).measured[2].shapes.size() == 1);
}

}  // namespace measured_shapes_test
