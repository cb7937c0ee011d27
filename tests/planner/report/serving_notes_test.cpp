#include "planner/report/serving_notes.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/serving/serving_reader.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

namespace {

bool notes_have(const costmodel::ServingScenario& s, const std::string& words) {
  const auto notes = serving_notes(s, planned_estimate(s));
  return std::any_of(notes.begin(), notes.end(),
                     [&](const auto& note) { return note.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("Replicas without a request, and devices without a replica, are named") {
  auto s = served::usual("{tp: 1, dp: 7}");
  CHECK(notes_have(s, "1 of 8 devices are in no replica"));
  s.serving.concurrency = 1;
  CHECK(notes_have(s, "6 of 7 replicas have no request: there are fewer in flight"));
}

TEST_CASE("Requests that no engine takes are named") {
  auto s = served::usual("{tp: 1}");
  CHECK_FALSE(notes_have(s, "no engine starts so"));
  s.model.context_length = longest_request(s.serving) - 1;
  CHECK(notes_have(s, "no engine starts so (model.context_length"));
}

TEST_CASE("Own runs of training on a cluster change nothing of serving, with a note") {
  auto s = served::usual("{tp: 1}");
  CHECK_FALSE(notes_have(s, "cluster.measured"));
  const double before = planned_estimate(s).output_per_s;
  s.cluster.measured.runs = 1;
  s.cluster.measured.time_factor = 2;
  CHECK(notes_have(s, "cluster.measured is of training runs"));
  CHECK(planned_estimate(s).output_per_s == before);
}

TEST_CASE("Of towers the weights are held, and that their time is not counted is noted") {
  auto s = served::usual("{tp: 1, dp: 7}");
  const auto held = planned_estimate(s).memory.weights;
  costmodel::TowerSpec tower;
  tower.encoder = s.model;
  tower.encoder.layers = 1;
  s.model.towers = std::make_shared<const costmodel::Towers>(costmodel::Towers{{tower}});
  CHECK(notes_have(s, "requests are text"));
  CHECK(planned_estimate(s).memory.weights > held);
}

TEST_CASE("More requests than are simulated are named") {
  const auto s = served::scenario("input_tokens: 100, output_tokens: 4000, requests: 100000",
                                  "llama-2-7b", "dgx-h100", 1, "{dp: 1}");
  CHECK(notes_have(s, "of 100,000 requests of a replica are simulated"));
  CHECK_FALSE(notes_have(served::usual(), "are simulated"));
}
