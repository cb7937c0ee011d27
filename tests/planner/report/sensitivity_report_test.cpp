#include "planner/report/sensitivity_report.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace sensitivity_report_test {

using costmodel::Dimension;
using costmodel::Seconds;
using fixtures::contains;
using planner::InputEffect;
using planner::PlanChange;
using planner::Sensitivity;

namespace {

Sensitivity example() {
  Sensitivity found;
  found.plan.iteration = Seconds(10);
  found.searched = true;
  InputEffect links;
  links.input.name = "bandwidth of infiniband";
  links.input.unit = Dimension::bandwidth;
  links.input.value = 25e9;
  links.input.low = 20e9;
  links.input.high = 31.25e9;
  links.input.spread = 0.223;
  links.input.from = "configs/fit.yaml";
  links.at_low = Seconds(10.5);
  links.at_high = Seconds(9.8);
  links.effect = 0.05;
  PlanChange change;
  change.value = 22e9;
  change.best = costmodel::Estimate{};
  change.best->plan.tp = 8;
  change.inside = true;
  change.loss = 0.25;
  links.below = change;
  PlanChange none;
  none.value = 90e9;
  links.above = none;
  found.inputs = {links};
  found.unmoved = {"device.power.idle_boost", "stack.launch.kernel_s"};
  return found;
}

}  // namespace

TEST_CASE("an input is told in its unit") {
  CHECK(planner::input_text(25e9, Dimension::bandwidth) == "25 GB/s");
  CHECK(planner::input_text(45e-6, Dimension::time) == "45 us");
  CHECK(planner::input_text(0.78331, Dimension::count) == "0.7833");
  CHECK(planner::input_text(1ULL << 30, Dimension::size) == "1 GiB");
}

TEST_CASE("the report has the ends, the changes, and where another plan is best") {
  const std::string text = sensitivity_report(example(), {});
  for (const char* part :
       {"What the answer hangs on", "25 GB/s", "20 GB/s", "31.25 GB/s", "10.5 s .. 9.8 s", "+5.0 %",
        "-2.0 %", "22 %, configs/fit.yaml", "changes",
        "Most on the bandwidth of infiniband: within its uncertainty the iteration takes 2.0 % "
        "less to 5.0 % more.",
        "Another plan is best with the bandwidth of infiniband below 22 GB/s t 8",
        "up to 20.0 % faster", "above 90 GB/s, beyond its uncertainty, none fits",
        "Without any effect here: device.power.idle_boost, stack.launch.kernel_s."}) {
    CAPTURE(part);
    CHECK(contains(text, part));
  }
  Sensitivity priced = example();
  priced.searched = false;
  CHECK_FALSE(contains(sensitivity_report(priced, {}), "best plan"));
}

TEST_CASE("a plan that no longer fits is no slower one, and nothing at all is said") {
  Sensitivity found = example();
  found.inputs[0].below->fits = false;
  CHECK(contains(sensitivity_report(found, {}), "for this one no longer fits"));
  found.inputs.clear();
  CHECK(contains(sensitivity_report(found, {}), "No input changes anything."));
}

}  // namespace sensitivity_report_test
