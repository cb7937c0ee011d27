#include "planner/accuracy/json_traces.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "planner/accuracy/trace_explanation.hpp"

namespace json_traces_test {

TEST_CASE("JSON has each kind, measured and predicted, and names hostile text as text") {
  planner::FittedTrace trace;
  trace.read.file = "\xff\"\n";
  trace.read.times.kernels = costmodel::Seconds(1);
  trace.read.times.kinds[0] = costmodel::Seconds(0.5);
  trace.before.kinds[0] = 0.25;
  const auto json = nlohmann::json::parse(planner::traces_json({trace}, {1, "torchtitan"}));
  CHECK(json["stack"] == "torchtitan");
  const auto& kinds = json["traces"][0]["kinds"];
  CHECK(kinds.size() == costmodel::kernel_kind_count);
  CHECK(kinds[0]["kind"] == "products");
  CHECK(kinds[0]["measured_s"] == 0.5);
  CHECK(kinds[0]["predicted_s"] == 0.25);
  planner::TraceExplanation all;
  all.trace = trace;
  all.gains = {{"x", "y", costmodel::Seconds(2)}};
  CHECK(nlohmann::json::parse(planner::explanation_json(all))["gains"][0]["gained_s"] == 2);
}

}  // namespace json_traces_test
