// Rates between measured points.
#include "costmodel/machine/rate_table.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace rate_table_test {

using namespace costmodel;

namespace {

RateTable products() {
  RateTable table;
  table.op = MeasuredOp::linear;
  table.axes = {{64, 256}, {128, 512, 2048}, {32, 1024}};
  for (int i = 0; i < 12; ++i) table.rates.push_back(1e9 * (1 + (i * 7) % 12));
  return table;
}

RateTable softmax() {
  RateTable table;
  table.op = MeasuredOp::softmax;
  table.axes = {{1e3, 1e4, 1e6}};
  table.rates = {1e9, 4e9, 2e9};
  return table;
}

// Measured in two shapes too, of which one lies on the grid.
RateTable products_with_shapes() {
  RateTable table = products();
  table.shapes = {{{64, 512, 32}, 3e10}, {{100, 300, 50}, 5e10}};
  return table;
}

ConfigError fault_of(const std::string& text) {
  try {
    read_rate_tables(parse_yaml(text, "t.yaml"));
  } catch (const ConfigError& fault) {
    return fault;
  }
  FAIL("no fault in " << text);
  return {{}, "", ""};
}

}  // namespace

TEST_CASE("exact at the points") {
  const RateTable table = products();
  std::size_t i = 0;
  for (const double m : table.axes[0])
    for (const double n : table.axes[1])
      for (const double k : table.axes[2])
        CHECK(rate_at(table, std::vector{m, n, k}) == doctest::Approx(table.rates[i++]));
}

TEST_CASE("between two points between their rates, in one direction, without steps") {
  const RateTable table = softmax();
  CHECK(rate_at(table, std::vector{std::sqrt(1e3 * 1e4)}) == doctest::Approx(2e9));
  double last = 1e9;
  for (double bytes = 1e3; bytes < 1e4; bytes *= 1.01) {
    const double rate = rate_at(table, std::vector{bytes});
    CHECK(rate >= last * (1 - 1e-12));
    CHECK(rate <= last * 1.02);
    last = rate;
  }
}

TEST_CASE("inside a cell within its corners, outside the grid as at its edge") {
  const RateTable table = products();
  for (double m = 16; m < 1e4; m *= 1.7)
    for (double n = 16; n < 1e5; n *= 1.9)
      for (double k = 16; k < 1e5; k *= 2.3) {
        const double rate = rate_at(table, std::vector{m, n, k});
        CHECK(rate >= 1e9 * (1 - 1e-12));
        CHECK(rate <= 12e9 * (1 + 1e-12));
      }
  CHECK(rate_at(table, std::vector{1.0, 1.0, 1.0}) == doctest::Approx(table.rates.front()));
  CHECK(rate_at(table, std::vector{1e9, 1e9, 1e9}) == doctest::Approx(table.rates.back()));
  RateTable one = softmax();
  one.axes = {{1e4}};
  one.rates = {3e9};
  CHECK(rate_at(one, std::vector{7.0}) == doctest::Approx(3e9));
}

TEST_CASE("tables read back as they were written") {
  const auto read = read_rate_tables(parse_yaml(to_yaml(to_value({products(), softmax()})), "t"));
  REQUIRE(read.size() == 2);
  CHECK(read[0].axes == products().axes);
  CHECK(read[0].rates == products().rates);
  CHECK((read[1].op == MeasuredOp::softmax));
}

TEST_CASE("a shape that was measured has its own rate, and its neighbours that of the grid") {
  const RateTable table = products_with_shapes();
  CHECK(rate_of(table, std::vector<double>{100, 300, 50}) == 5e10);
  CHECK(rate_of(table, std::vector<double>{64, 512, 32}) == 3e10);
  for (const auto& near : {std::vector<double>{101, 300, 50},
                           {100, 299, 50},
                           {100, 300, 51},
                           {64, 128, 32},
                           {64, 512, 33},
                           {1, 1, 1}}) {
    CAPTURE(near[1]);
    CHECK(rate_of(table, near) == rate_at(products(), near));
  }
  for (const double n : {128.0, 300.0, 600.0})
    CHECK(rate_of(products(), std::vector<double>{100, n, 50}) ==
          rate_at(products(), std::vector<double>{100, n, 50}));
  RateTable without_grid = table;
  without_grid.axes.clear();
  without_grid.rates.clear();
  CHECK(rate_of(without_grid, std::vector<double>{100, 300, 50}) == 5e10);
  CHECK(!rate_of(without_grid, std::vector<double>{64, 128, 32}));
}

TEST_CASE("what was measured are the listed shapes, and points of a grid with all its sizes") {
  const RateTable table = products_with_shapes();
  CHECK(has_shape(table, std::vector<double>{100, 300, 50}));
  CHECK(has_shape(table, std::vector<double>{256, 2048, 1024}));
  CHECK(!has_shape(table, std::vector<double>{100, 2048, 1024}));
  RateTable rows = softmax();
  CHECK(!has_shape(rows, std::vector<double>{1e4, 10}));  // the grid has bytes alone
  rows.shapes = {{{1e4, 10}, 1e9}};
  CHECK(has_shape(rows, std::vector<double>{1e4, 10}));
  CHECK(!has_shape(rows, std::vector<double>{1e4, 20}));
}

TEST_CASE("shapes read back as they were written, to the last digit of a size") {
  RateTable attention;
  attention.op = MeasuredOp::flash_attention;
  attention.shapes = {{{16777217, 96, 7, 1}, 2e9}, {{16777217, 96, 8, 2}, 3e9}};
  RateTable rows = softmax();
  rows.shapes = {{{123456789, 33}, 4e9}};
  const auto text = to_yaml(to_value({products_with_shapes(), attention, rows}));
  const auto read = read_rate_tables(parse_yaml(text, "t"));
  REQUIRE(read.size() == 3);
  CHECK(read[0].axes == products().axes);
  CHECK(rate_of(read[0], std::vector<double>{100, 300, 50}) == 5e10);
  CHECK(read[1].rates.empty());
  CHECK(rate_of(read[1], std::vector<double>{16777217, 96, 7, 1}) == 2e9);
  CHECK(rate_of(read[1], std::vector<double>{16777217, 96, 8, 2}) == 3e9);
  CHECK(!rate_of(read[1], std::vector<double>{16777216, 96, 8, 2}));
  CHECK(rate_of(read[2], std::vector<double>{123456789, 33}) == 4e9);
  CHECK(to_yaml(to_value(read)) == text);
}

TEST_CASE("faults of shapes") {
  const auto fault = [](const std::string& shapes) {
    return std::string(
        fault_of("- {op: softmax, pass: forward, precision: fp32, shapes: " + shapes + "}").what());
  };
  const auto holds = [&](const std::string& shapes, const char* words) {
    CAPTURE(shapes);
    CHECK(fault(shapes).find(words) != std::string::npos);
  };
  holds("{bytes: [8, 4], rows: [1], bytes_per_s: [1, 1]}", "rows has 1 values, bytes_per_s has 2");
  holds("{bytes: [8, 8], rows: [1, 1], bytes_per_s: [1, 2]}", "shapes has one twice");
  holds("{bytes: [8], bytes_per_s: [1]}", "rows");
  holds("{bytes: [8], rows: [1], heads: [1], bytes_per_s: [1]}", "heads");
  holds("{bytes: [-8], rows: [1], bytes_per_s: [1]}", "bytes");
  holds("{bytes: [8], rows: [1], bytes_per_s: [0]}", "bytes_per_s");
  holds("{bytes: [], rows: [], bytes_per_s: []}", "is not a list");
  holds("[1]", "shapes");
  holds("{bytes: [8], rows: [1], bytes_per_s: [1]}, bytes: [1]", "bytes");  // half a grid
}

TEST_CASE("faults of tables") {
  const std::string head = "- {op: softmax, pass: forward, precision: fp32, ";
  const auto told = [](const ConfigError& fault) { return std::string(fault.what()); };
  CHECK(told(fault_of("{}")).find("not a list") != std::string::npos);
  CHECK(told(fault_of(head + "bytes: [2, 1], bytes_per_s: [1, 1]}")).find("does not grow") !=
        std::string::npos);
  CHECK(told(fault_of(head + "bytes: [1, 2], bytes_per_s: [1]}")).find("has 1 values") !=
        std::string::npos);
  CHECK(told(fault_of(head + "sequence: [1], bytes_per_s: [1]}")).find("bytes") !=
        std::string::npos);
  CHECK(told(fault_of("- {op: softmx, pass: forward, precision: fp32, bytes: [1], "
                      "bytes_per_s: [1]}"))
            .find("softmax") != std::string::npos);
  const std::string whole = head + "bytes: [1], bytes_per_s: [1]}\n";
  CHECK(told(fault_of(whole + whole)).find("two tables") != std::string::npos);
}

TEST_CASE("devices that compute together") {
  DeviceSpec device;
  CHECK(slowdown_together(device, 8) == 1);
  device.together = {{2, 1.5}, {4, 2}};
  CHECK(slowdown_together(device, 1) == 1);
  CHECK(slowdown_together(device, 1.5) == doctest::Approx(1.25));
  CHECK(slowdown_together(device, 2) == 1.5);
  CHECK(slowdown_together(device, 3) == doctest::Approx(1.75));
  CHECK(slowdown_together(device, 8) == doctest::Approx(4));  // they take turns
}

}  // namespace rate_table_test
