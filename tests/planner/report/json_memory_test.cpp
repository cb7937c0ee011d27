// The memory of an iteration as JSON.
#include "planner/report/json_memory.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace json_memory_test {

using namespace costmodel;

TEST_CASE("JSON has each sample in bytes and seconds, and which is the peak") {
  MemoryTrace trace;
  trace.samples.resize(2);
  trace.samples[0].op = "activation";
  trace.samples[0].end = trace.samples[1].begin = Seconds(2);
  trace.samples[0].pass = MemorySample::Pass::backward;
  trace.samples[0].held[0] = Bytes(1);
  trace.samples[0].held[3] = Bytes(7);
  trace.samples[1].pass = MemorySample::Pass::step;
  trace.allocated = trace.samples[0].allocated = Bytes(8);
  const auto json = nlohmann::json::parse(planner::memory_json(trace));
  CHECK(json.at("peak") == 0);
  CHECK(json.at("allocated_bytes") == 8);
  REQUIRE(json.at("samples").size() == 2);
  const auto& peak = json.at("samples").at(0);
  CHECK(peak.at("pass") == "backward");
  CHECK(peak.at("end_s") == 2);
  CHECK(peak.at("operator") == "activation");
  CHECK(peak.at("weights_bytes") == 1);
  CHECK(peak.at("activations_bytes") == 7);
  CHECK(json.at("samples").at(1).at("layer").is_null());  // the step is of no layer
  const auto unknown = nlohmann::json::parse(planner::memory_json({}));
  CHECK(unknown.at("peak").is_null());
  CHECK(unknown.at("samples").empty());
}

}  // namespace json_memory_test
