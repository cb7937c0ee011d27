#include "costmodel/scenario/residuals.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/run_program.hpp"

namespace residuals_test {

using namespace costmodel;

namespace {

// Two stacks: one with many runs on one device and a few on another; one with a single odd run.
ResidualTable table() {
  ResidualTable t;
  t.all = {113, 4, 0.05, 0.10, {}};
  t.between = 0.08;
  t.pair_spread = 0.1;
  t.devices["fast"] = {101, 3, 0.02, 0.09, {}};
  t.devices["slow"] = {12, 2, 0.06, 0.12, {}};
  t.stacks["steady"] = {112, 3, 0.03, 0.05, {}};
  t.stacks["odd"] = {1, 1, 0.9, 0, {}};
  t.kinds[{"steady", "fast"}] = {100, 2, 0.02, 0.05, std::pair(-0.06, 0.11)};
  t.kinds[{"steady", "slow"}] = {12, 1, 0.08, 0.04, {}};
  t.kinds[{"odd", "fast"}] = {1, 1, 0.9, 0, {}};
  return t;
}

double log_width(const ErrorBand& band) { return std::log(band.high / band.low); }

struct Folder {
  program::Scratch scratch;
  explicit Folder(const std::string& text) {
    if (!text.empty()) scratch.write("residuals.yaml", text);
  }
  ErrorBand find() const {
    return find_band(ConfigPath{{scratch.path().string()}}, "steady", "fast");
  }
};

}  // namespace

TEST_CASE("a kind of many runs has its own percentiles, told in words") {
  const ErrorBand band = band_of(table(), "steady", "fast");
  CHECK(band.low == doctest::Approx(std::exp(-0.06)));
  CHECK(band.high == doctest::Approx(std::exp(0.11)));
  CHECK(band.pair_spread == 0.1);
  CHECK(band.basis == "interval: 100 published runs of steady on fast");
}

TEST_CASE("a kind of few runs lies between its own figures and those of all") {
  const ErrorBand band = band_of(table(), "steady", "slow");
  const double middle = std::log(band.low * band.high) / 2;
  CHECK(middle > 0.03);  // the stack's mean, on the other device
  CHECK(middle < 0.08);  // its own
  const double own = 2 * 1.645 * 0.04, all = 2 * 1.645 * 0.10;
  CHECK(log_width(band) > own);
  CHECK(log_width(band) < all);
}

TEST_CASE("the less is known the wider: stack and device, one of them, neither") {
  const auto t = table();
  const double known = log_width(band_of(t, "steady", "slow"));
  const double stack = log_width(band_of(t, "steady", "new"));
  const double device = log_width(band_of(t, "new", "fast"));
  const double neither = log_width(band_of(t, "new", "newer"));
  CHECK(known < stack);
  CHECK(known < device);
  CHECK(stack < neither);
  CHECK(device < neither);
  CHECK(neither < log_width(ErrorBand{}));
  CHECK(band_of(t, "new", "newer").basis ==
        "interval: no published run of new, and none on newer: widest");
}

TEST_CASE("a run far from the others widens, and the prediction stays inside") {
  const ErrorBand odd = band_of(table(), "odd", "fast");
  CHECK(log_width(odd) > log_width(band_of(table(), "steady", "slow")));
  CHECK(odd.low <= 1);
  ResidualTable biased = table();
  biased.kinds[{"steady", "fast"}].range = {0.1, 0.3};
  const ErrorBand band = band_of(biased, "steady", "fast");
  CHECK(band.low == 1);
  CHECK(band.high == doctest::Approx(std::exp(0.3)));
}

TEST_CASE("a table reads back as it was written") {
  const auto t = table();
  const std::string text = to_yaml(t);
  const ResidualTable back = read_residuals(parse_yaml(text, "residuals.yaml"));
  CHECK(to_yaml(back) == text);
  CHECK(back.kinds.at({"steady", "fast"}).range->second == doctest::Approx(0.11));
  ResidualTable named = table();
  named.stacks["with \"quotes\": and more"] = {1, 1, -0.1, 0, {}};
  named.kinds[{"with \"quotes\": and more", "fast"}] = {1, 1, -0.1, 0, {}};
  CHECK(read_residuals(parse_yaml(to_yaml(named), "x")).stacks.size() == 3);
}

TEST_CASE("without a table, or with one that is no use, the interval is the widest and says why") {
  CHECK(Folder(to_yaml(table())).find().high == doctest::Approx(std::exp(0.11)));
  const ErrorBand missing = Folder("").find();
  CHECK(missing.high == ErrorBand{}.high);
  CHECK(missing.basis.find("no residuals.yaml was found") != std::string::npos);
  const ErrorBand older = Folder("all: {runs: 3}\n").find();
  CHECK(older.high == ErrorBand{}.high);
  CHECK(older.basis.find("residuals.yaml:1:") != std::string::npos);
  CHECK(Folder("[").find().low == ErrorBand{}.low);
}

TEST_CASE("the chance of an order: even for equal times, 95 % at the tabled Student quantile") {
  CHECK(probability_faster(2, 2, 0.1) == doctest::Approx(0.5));
  CHECK(probability_faster(1, std::exp(0.2353), 0.1) == doctest::Approx(0.95).epsilon(1e-3));
  CHECK(probability_faster(3, 2, 0.1) + probability_faster(2, 3, 0.1) == doctest::Approx(1));
  CHECK(probability_faster(1, 10, 0.1) > 0.999);
}

}  // namespace residuals_test
