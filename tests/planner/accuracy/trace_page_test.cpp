#include "planner/accuracy/trace_page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/pages.hpp"
#include "tests/planner/support/traced_job.hpp"

namespace trace_page_test {

using costmodel::Seconds;
using fixtures::contains;
using planner::TracedPart;
using planner::TraceRows;

namespace {

// Two iterations, the second shorter: a product, 20 us in which nothing runs, and two norms that
// follow one another.
planner::Trace trace() {
  planner::Trace of;
  const auto name = [&](const char* text) { return of.texts.of(text); };
  const auto kernel = [&](const char* text, std::int64_t begin, std::int64_t length) {
    planner::TracedKernel k;
    k.name = name(text);
    k.begin = begin;
    k.length = length;
    of.kernels.push_back(k);
  };
  of.iterations = {{0, 1'000'000}, {1'000'000, 1'200'000}};
  kernel("nvjet_tst", 1000, 500'000);
  kernel("nvjet_tst", 1'010'000, 50'000);
  kernel("layer_norm_kernel", 1'080'000, 10'000);
  kernel("layer_norm_kernel", 1'091'000, 9'000);
  return of;
}

}  // namespace

TEST_CASE("the shortest iteration is drawn, from its start, kernels of one operator as one") {
  const costmodel::Scenario s = traced_job::scenario();
  const planner::Attributor attributor = planner::attributor_of(s, resolve_plan(s));
  TraceRows rows;
  rows.add_measured(trace(), attributor, "measured");
  const auto& events = rows.slices.events;
  REQUIRE(events.size() == 2);
  CHECK(events[0].start.value == doctest::Approx(10e-6));
  CHECK(events[0].end.value == doctest::Approx(60e-6));
  CHECK(events[1].start.value == doctest::Approx(80e-6));
  CHECK(events[1].end.value == doctest::Approx(100e-6));
  CHECK(rows.kinds.at(events[0].name).words == "products");
  CHECK(rows.slices.ranks == 1);
}

TEST_CASE("the predicted row holds every kernel of an iteration, in the order of its passes") {
  const costmodel::Scenario s = traced_job::scenario();
  TraceRows rows;
  rows.add_predicted(s, resolve_plan(s));
  const auto& events = rows.slices.events;
  double sum = 0, listed = 0;
  for (const auto& event : events) sum += (event.end - event.start).value;
  for (const auto& part : traced_job::predicted().parts) listed += part.time.value;
  CHECK(sum == doctest::Approx(listed));
  CHECK(events.front().name == "token embedding");
  CHECK(contains(events.back().name, "optimizer"));
  const auto at = [&](const std::string& name) {
    return std::ranges::find(events, name, &costmodel::Event::name) - events.begin();
  };
  CHECK(at("attention, layer 1") < at("attention, layer 2"));
  CHECK(at("logits") < at("loss"));
  CHECK(at("loss") < at("loss, backward"));
  CHECK(at("attention, backward, layer 2") < at("attention, backward, layer 1"));
}

TEST_CASE("the page has both rows on one scale, what would be gained, and every figure") {
  const costmodel::Scenario s = traced_job::scenario();
  const auto plan = resolve_plan(s);
  TraceRows rows;
  rows.add_measured(trace(), planner::attributor_of(s, plan), "measured");
  rows.add_predicted(s, plan);
  planner::TraceExplanation all;
  all.trace.read.file = "folder/rank<0>.json";
  all.trace.unprofiled = Seconds(0.2);
  all.trace.before.iteration = Seconds(0.3);
  all.gains = {{"loss: slower than predicted", "another <loss>", Seconds(0.01)}};
  const std::string html = planner::trace_page(all, rows, s, planner::explanation_json(all));
  pages::check_balanced(html);
  CHECK(contains(html, "data-rows=\"2\" data-labels=\"measured|predicted\""));
  CHECK(contains(html, "predicted <b>300 ms</b> (+50.0 %)"));
  CHECK(contains(html, "another &lt;loss&gt;"));
  CHECK(contains(html, "rank&lt;0&gt;.json"));
  CHECK(contains(html, "All figures"));
}

}  // namespace trace_page_test
