// Numbers with units, read and written.
#include "costmodel/base/unit_text.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace unit_text_test {

using namespace costmodel;

TEST_CASE("quantities are read into base units") {
  const auto value = [](const char* text, Dimension dimension) {
    const auto parsed = parse_quantity(text, dimension);
    REQUIRE_MESSAGE(parsed.value.has_value(), parsed.why);
    return *parsed.value;
  };
  CHECK(value("80 GiB", Dimension::size) == 80 * 1073741824.0);
  CHECK(value("80GiB", Dimension::size) == 80 * 1073741824.0);
  CHECK(value("  1.5 GB ", Dimension::size) == 1.5e9);
  CHECK(value("300 GB/s", Dimension::bandwidth) == 300e9);
  CHECK(value("200 Gb/s", Dimension::bandwidth) == 25e9);  // a small b is a bit
  CHECK(value("200 Gbps", Dimension::bandwidth) == 25e9);
  CHECK(value("312 TFLOP/s", Dimension::rate) == 312e12);
  CHECK(value("2.5 us", Dimension::time) == doctest::Approx(2.5e-6).epsilon(1e-15));
  for (const char* text : {"2.5 \u00b5s", "2.5\u03bcs"})  // the micro sign, and the letter mu
    CHECK(value(text, Dimension::time) == doctest::Approx(2.5e-6).epsilon(1e-15));
  CHECK(value("2 h", Dimension::time) == 7200);
  CHECK(value("12", Dimension::count) == 12);
  CHECK(value("1.7e9", Dimension::count) == 1.7e9);
  CHECK(value("+3", Dimension::count) == 3);
  CHECK(value("-3", Dimension::count) == -3);
  CHECK(value("25e9", Dimension::bandwidth) == 25e9);  // already in the base unit
  for (const auto d :
       {Dimension::count, Dimension::time, Dimension::size, Dimension::bandwidth, Dimension::rate})
    CHECK(value(std::string(example_of(d)).c_str(), d) > 0);
  for (const auto d : {Dimension::time, Dimension::size, Dimension::bandwidth, Dimension::rate})
    CHECK(value(("1 " + std::string(usual_unit(d))).c_str(), d) > 0);
}

TEST_CASE("what is no quantity of that dimension is refused with the reason") {
  const auto why = [](const std::string& text, Dimension dimension) {
    const auto parsed = parse_quantity(text, dimension);
    CHECK_FALSE(parsed.value.has_value());
    return parsed.why;
  };
  CHECK(why("80 GB/s", Dimension::size) == "'80 GB/s' is a bandwidth, not a size");
  CHECK(why("80 GB", Dimension::bandwidth) == "'80 GB' is a size, not a bandwidth");
  CHECK(why("5 us", Dimension::rate) == "'5 us' is a time, not an arithmetic rate");
  CHECK(why("5 s", Dimension::count) == "'5 s' is a time, not a plain number");
  CHECK(why("80 gigs", Dimension::size) == "'80 gigs' has the unknown unit 'gigs'");
  CHECK(why("80 gb", Dimension::size) == "'80 gb' has the unknown unit 'gb'");
  for (const std::string text :
       {"", " ", "GiB", "inf", "nan", "1e400", "--3", "+-3", "++3", "+", "one"}) {
    CAPTURE(text);
    CHECK(fixtures::contains(why(text, Dimension::size), "is not a number"));
  }
  CHECK(fixtures::contains(why("1,5 GB", Dimension::size), "unknown unit"));
  CHECK(fixtures::contains(why("0x10", Dimension::count), "unknown unit"));
}

TEST_CASE("quantities are written with four figures and a prefix") {
  CHECK(format_seconds(Seconds(0)) == "0 s");
  CHECK(format_seconds(Seconds(34.72)) == "34.72 s");
  CHECK(format_seconds(Seconds(0.0123)) == "12.3 ms");
  CHECK(format_seconds(Seconds(4.5e-6)) == "4.5 us");
  CHECK(format_seconds(Seconds(9.999e-4)) == "0.9999 ms");
  CHECK(format_seconds(Seconds(9.99999e-4)) == "1 ms");
  CHECK(format_seconds(Seconds(9.99e-4)) == "999 us");
  CHECK(format_seconds(Seconds(34567.4)) == "34567 s");
  CHECK(format_bytes(Bytes(71.4 * 1073741824)) == "71.4 GiB");
  CHECK(format_bytes(Bytes(512)) == "512 B");
  CHECK(format_bytes(Bytes(1048575.9)) == "1 MiB");
  CHECK(format_gib(Bytes(71.44 * 1073741824)) == "71.4");
  CHECK(format_rate(FlopsPerSecond(312e12)) == "312 TFLOP/s");
  CHECK(format_rate(FlopsPerSecond(999.99e12)) == "1 PFLOP/s");
  CHECK(format_bandwidth(BytesPerSecond(25e9)) == "25 GB/s");
  CHECK(format_count(174.6e9) == "174.6 B");
  CHECK(format_count(999) == "999");
  CHECK(format_integer(1536) == "1,536");
  CHECK(format_integer(999) == "999");
  CHECK(format_integer(-1234567) == "-1,234,567");
  CHECK(format_integer(0) == "0");
}

TEST_CASE("what is written reads back, to the figures written") {
  fixtures::Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const double x = std::exp(random.real(std::log(1e3), std::log(9e14)));
    const auto same = [](const std::string& text, Dimension dimension, double value, double bound) {
      CAPTURE(text);
      const auto parsed = parse_quantity(text, dimension);
      REQUIRE_MESSAGE(parsed.value.has_value(), parsed.why);
      CHECK(fixtures::relative_error(*parsed.value, value) <= bound);
    };
    same(format_bytes(Bytes(std::min(x, 1e15))), Dimension::size, std::min(x, 1e15), 5.01e-4);
    same(format_rate(FlopsPerSecond(x * 1e3)), Dimension::rate, x * 1e3, 5.01e-4);
    same(format_bandwidth(BytesPerSecond(x)), Dimension::bandwidth, x, 5.01e-4);
    const double t = std::exp(random.real(std::log(1e-7), std::log(9e5)));
    const std::string text = format_seconds(Seconds(t));
    CHECK_FALSE(fixtures::contains(text, "e+"));
    same(text, Dimension::time, t, 5.01e-3);
  }
}

}  // namespace unit_text_test
