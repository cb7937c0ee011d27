// The axes of --over.
#include "planner/commands/sweep_axes.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/support/fixtures.hpp"

namespace sweep_axes_test {

using namespace planner;
using fixtures::config_error;
using fixtures::contains;

namespace {

std::vector<Axis> axes_over(const std::vector<std::string>& over) {
  Options options;
  options.over = over;
  return axes_of(options);
}

}  // namespace

TEST_CASE("a key without a dot is a key of the plan") {
  const Axis axis = parse_axis("tp=1,2,4");
  CHECK(axis.path == "plan.tp");
  CHECK(axis.values == std::vector<std::string>{"1", "2", "4"});
  CHECK(parse_axis("training.stack=a").path == "training.stack");
  CHECK(parse_axis("model=gpt2").path == "model");
}

TEST_CASE("a list or a map is one value, and a list alone is the values") {
  using Values = std::vector<std::string>;
  CHECK(parse_axis("plan=[{tp: 2, pp: 1},{tp: 4}]").values == Values{"{tp: 2, pp: 1}", "{tp: 4}"});
  CHECK(parse_axis("plan=[{tp: 2, pp: 1},{tp: 4}]").path == "plan");
  CHECK(parse_axis("stage_layers=[1,2],[2,1]").values == Values{"[1,2]", "[2,1]"});
  CHECK(parse_axis("recompute=none,{granularity: full, layers: 2}").values.size() == 2);
}

TEST_CASE("faulty axes are told") {
  CHECK(contains(config_error([] {
                   axes_over({"tp=1,2", "plan.tp=4"});
                 }),
                 "--over plan.tp=4: varies a key that another --over varies"));
  for (const auto* text : {"tp", "=1", "tp=", "", "="})
    CHECK(contains(config_error([&] { parse_axis(text); }), "is not KEY=A,B,..."));
  for (const auto* text : {"tp=,", "tp=1,", "tp=1,,2", "tp=,1"})
    CHECK(contains(config_error([&] { parse_axis(text); }), "has an empty value"));
  CHECK(contains(config_error([] { axes_over({}); }), "nothing to vary"));
  const std::string thousand = [] {
    std::string text = "1";
    for (int i = 2; i <= 1001; ++i) text += "," + std::to_string(i);
    return text;
  }();
  CHECK(contains(config_error([&] {
                   axes_over({"tp=" + thousand, "pp=" + thousand});
                 }),
                 "a million points"));
}

TEST_CASE("the last axis varies fastest, and sets what stands there") {
  const auto axes = axes_over({"tp=1,2", "training.global_batch=8,16,32"});
  costmodel::Value scenario;
  CHECK(place(axes, 4, scenario) == std::vector<std::string>{"2", "16"});
  CHECK(scenario.find("plan")->find("tp")->text == "2");
  CHECK(scenario.find("training")->find("global_batch")->text == "16");
}

}  // namespace sweep_axes_test
