#include "planner/accuracy/own_runs.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace own_runs_test {

using namespace planner;
using costmodel::Seconds;
using fixtures::contains;

namespace {

const costmodel::SiteSpread published{30, 0.045, 0.07, 0.6, 0.8, 1.7};

OwnRun run(double measured) {
  return {"a.log", 40, Seconds(measured), Seconds(1), {0.87, 1.45, 0.1, {}, 0, ""}};
}

}  // namespace

TEST_CASE("runs that agree give a factor towards theirs, and a narrower interval that holds 1") {
  const OwnRunsFit own = fit_own_runs({run(1.1), run(1.12), run(1.11)}, "stack", published);
  CHECK(own.measured.runs == 3);
  CHECK(own.measured.stack == "stack");
  CHECK(own.measured.time_factor > 1.05);
  CHECK(own.measured.time_factor < 1.11);
  CHECK(own.measured.low < 1);
  CHECK(own.measured.high > 1);
  CHECK(own.measured.high / own.measured.low < 1.45 / 0.87);
  const std::string text = to_string(own, published.sources);
  CHECK(contains(text, "3 runs by stack"));
  CHECK(contains(text, "a prior of 30 published sources"));
  CHECK(contains(text, "narrower"));
}

TEST_CASE("runs that disagree leave the predictions as they are, and it is said") {
  const OwnRunsFit own = fit_own_runs({run(1.25), run(0.82)}, "stack", published);
  CHECK(own.measured.time_factor == 1);
  CHECK(contains(to_string(own, 30), "No factor is fitted"));
}

TEST_CASE("one run moves little, and the report asks for more") {
  const OwnRunsFit own = fit_own_runs({run(1.2)}, "stack", published);
  CHECK(own.measured.time_factor > 1);
  CHECK(own.measured.time_factor < 1.1);
  CHECK(contains(to_string(own, 30), "One run: nothing to hold it against"));
}

TEST_CASE("the file stands on the scenario's cluster and reads back") {
  const OwnRunsFit own = fit_own_runs({run(1.1), run(1.12)}, "stack", published);
  const auto of = [&](const std::string& cluster) {
    return own_cluster(*costmodel::parse_yaml("cluster: " + cluster, "s.yaml").find("cluster"), own,
                       published);
  };
  const costmodel::Value named = of("dgx-h100");
  CHECK(named.find("base")->text == "dgx-h100");
  const costmodel::Value based = of("{base: dgx-h100, devices: 64, measured: {runs: 9}}");
  CHECK(based.find("devices") == nullptr);
  CHECK(based.find("measured")->find("runs")->text == "2");
  const costmodel::Value whole = of("{device: h100-sxm5-80gb, devices: 8}");
  CHECK(whole.find("devices")->text == "8");
  const std::string text = to_yaml(based);
  CHECK(to_yaml(costmodel::parse_yaml(text, "mine.yaml")) == text);
  CHECK(contains(text, "a.log (median of 40 iterations)"));
}

}  // namespace own_runs_test
