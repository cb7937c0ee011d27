// Traces of simulated schedules, read back as a viewer does.
#include "costmodel/schedule/chrome_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/sanitized.hpp"

namespace chrome_trace_test {

using namespace costmodel;
using Json = nlohmann::json;

namespace {

struct Case {
  ScheduleKind kind;
  int ranks, chunks, micro_batches;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ScheduleKind kind : {ScheduleKind::ideal, ScheduleKind::serial, ScheduleKind::gpipe,
                                  ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble_h1}) {
    for (const int ranks : {1, 2, 3, 5}) all.push_back({kind, ranks, 1, 7});
  }
  for (const int ranks : {2, 4}) {
    all.push_back({ScheduleKind::interleaved, ranks, 3, 2 * ranks});
    all.push_back({ScheduleKind::zero_bubble_v, ranks, 2, 6});
  }
  return all;
}

struct Simulated {
  Schedule schedule;
  Timeline timeline;
};

// Times that are no whole nanoseconds.
Simulated simulated(const Case& c, bool blocking) {
  PipelineTimes times;
  const auto stages = static_cast<std::size_t>(c.ranks) * static_cast<std::size_t>(c.chunks);
  const bool split = splits_backward(c.kind);
  for (std::size_t k = 0; k < stages; ++k) {
    const double uneven = 1 + 0.01 * static_cast<double>(k);
    times.forward.emplace_back(1e-3 / 7 * uneven);
    times.backward.emplace_back(2e-3 / 7 * uneven / (split ? 2 : 1));
    if (split) times.weight_gradient.emplace_back(1e-3 / 7 * uneven);
  }
  times.transfer = Seconds(1e-3 / 11);
  times.blocking = blocking;
  const HeldShares shares{std::vector<double>(stages, 1.0 / c.chunks),
                          std::vector<double>(stages, 0.9 / c.chunks)};
  Schedule schedule = split ? generate(c.kind, c.ranks, c.chunks, c.micro_batches, times, shares)
                            : generate(c.kind, c.ranks, c.chunks, c.micro_batches);
  Timeline timeline = simulate_timeline(compile(schedule), times);
  return {std::move(schedule), std::move(timeline)};
}

Json trace_of(const Timeline& timeline) {
  return Json::parse(to_chrome_trace(timeline, {Seconds(21.5), 0.25}));
}

std::vector<Json> of_phase(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == phase) events.push_back(event);
  return events;
}

// As viewers round.
std::int64_t nanoseconds_at(const Json& event, const char* key = "ts") {
  return std::llround(event.at(key).get<double>() * 1000);
}

using Place = std::tuple<int, int, std::int64_t>;  // process, thread, start
Place place_of(const Json& event) {
  return {event.at("pid").get<int>(), event.at("tid").get<int>(), nanoseconds_at(event)};
}

}  // namespace

TEST_CASE("the trace is JSON with every event once") {
  Timeline timeline = simulated({ScheduleKind::one_f_one_b, 2, 1, 3}, false).timeline;
  timeline.events.push_back(
      {0, Stream::optimizer, "with \"quotes\" and \\", Seconds(20), Seconds(21)});
  for (const Timeline& t : {timeline, Timeline{1, {}}, Timeline{0, {}}}) {
    const Json trace = trace_of(t);
    CHECK(trace.at("iteration_s") == 21.5);
    CHECK(trace.at("bubble_fraction") == 0.25);
    std::multiset<std::tuple<int, std::string, std::int64_t, std::int64_t>> written, expected;
    for (const Json& event : of_phase(trace, "X")) {
      written.emplace(event.at("pid").get<int>(), event.at("cat").get<std::string>(),
                      nanoseconds_at(event), nanoseconds_at(event) + nanoseconds_at(event, "dur"));
    }
    for (const Event& e : t.events) {
      expected.emplace(e.rank, std::string(name_of(e.stream)), std::llround(e.start.value * 1e9),
                       std::llround(e.end.value * 1e9));
    }
    CHECK(written == expected);
  }
}

TEST_CASE("slices have the field's names") {
  const auto names = [](const Case& c) {
    std::set<std::string> all;
    for (const Json& event : of_phase(trace_of(simulated(c, false).timeline), "X"))
      all.insert(event.at("name").get<std::string>());
    return all;
  };
  const auto whole = names({ScheduleKind::one_f_one_b, 2, 1, 2}),
             split = names({ScheduleKind::zero_bubble_h1, 2, 1, 2});
  CHECK(whole == std::set<std::string>{
                     "forward 0 of stage 0", "forward 0 of stage 1", "forward 1 of stage 0",
                     "forward 1 of stage 1", "backward 0 of stage 0", "backward 0 of stage 1",
                     "backward 1 of stage 0", "backward 1 of stage 1",
                     "send activations 0 of stage 0", "send activations 1 of stage 0",
                     "send gradients 0 of stage 1", "send gradients 1 of stage 1"});
  CHECK(split.contains("input gradient 1 of stage 0"));
  CHECK(split.contains("weight gradient 1 of stage 0"));
  CHECK_FALSE(split.contains("backward 1 of stage 0"));
}

TEST_CASE("no slices of a thread overlap, and those that follow at once touch") {
  for (const bool blocking : {false, true}) {
    for (const Case& c : cases()) {
      CAPTURE(schedule_name(c.kind));
      CAPTURE(c.ranks);
      const auto run = simulated(c, blocking);
      std::map<std::pair<int, int>, std::int64_t> end;  // of each thread
      std::set<Place> starts;
      std::vector<Json> slices = of_phase(trace_of(run.timeline), "X");
      std::ranges::stable_sort(slices, {}, [](const Json& slice) { return nanoseconds_at(slice); });
      for (const Json& slice : slices) {
        const auto [process, thread, start] = place_of(slice);
        starts.insert({process, thread, start});
        std::int64_t& last = end.try_emplace({process, thread}, start).first->second;
        CHECK(start >= last);
        last = start + nanoseconds_at(slice, "dur");
      }
      std::map<std::tuple<int, double>, int> begun;
      for (const Event& e : run.timeline.events)
        if (e.stream == Stream::compute) begun[{e.rank, e.start.value}] = 1;
      int touching = 0;
      for (const Event& e : run.timeline.events) {
        if (e.stream != Stream::compute || !begun.contains({e.rank, e.end.value})) continue;
        ++touching;
        CHECK(starts.contains({e.rank, 0, std::llround(e.end.value * 1e9)}));
      }
      CHECK((touching > 0 || blocking));
    }
  }
}

TEST_CASE("transfers of a rank that run at once are on threads of their own") {
  const auto event = [](double from, double to, const char* name) {
    return Event{0, Stream::pipeline_transfer, name, Seconds(from), Seconds(to)};
  };
  const Json trace =
      trace_of({1, {event(0, 2, "0SEND_F0"), event(1, 3, "0SEND_F1"), event(2, 4, "0SEND_F2")}});
  std::vector<int> threads;
  for (const Json& slice : of_phase(trace, "X")) threads.push_back(slice.at("tid").get<int>());
  CHECK(threads == std::vector{1, 5, 1});
  std::set<std::string> names;
  for (const Json& event_ : of_phase(trace, "M"))
    if (event_.at("name") == "thread_name") names.insert(event_.at("args").at("name"));
  CHECK(names == std::set<std::string>{"pipeline transfer", "pipeline transfer (2)"});
}

TEST_CASE("an arrow leads from each send to the computation that it is for") {
  for (const Case& c : cases()) {
    CAPTURE(schedule_name(c.kind));
    CAPTURE(c.ranks);
    const auto run = simulated(c, false);
    const Json trace = trace_of(run.timeline);
    std::map<Place, std::string> name_at;
    for (const Json& slice : of_phase(trace, "X")) name_at[place_of(slice)] = slice.at("name");
    const auto sends =
        std::ranges::count(run.timeline.events, Stream::pipeline_transfer, &Event::stream);
    const auto starts = of_phase(trace, "s"), ends = of_phase(trace, "f");
    CHECK(starts.size() == static_cast<std::size_t>(sends));
    REQUIRE(ends.size() == starts.size());
    std::set<int> ids;
    for (std::size_t i = 0; i < starts.size(); ++i) {
      ids.insert(starts[i].at("id").get<int>());
      CHECK(starts[i].at("id") == ends[i].at("id"));
      CHECK(starts[i].at("name") == ends[i].at("name"));
      CHECK(ends[i].at("bp") == "e");
      CHECK(nanoseconds_at(starts[i]) < nanoseconds_at(ends[i]));
      REQUIRE(name_at.contains(place_of(starts[i])));
      REQUIRE(name_at.contains(place_of(ends[i])));
      const std::string from = name_at[place_of(starts[i])], to = name_at[place_of(ends[i])];
      const bool forward = starts[i].at("name") == "activations";
      int stage = 0, batch = 0, next = 0, same = 0;
      REQUIRE(
          std::sscanf(from.c_str(),
                      forward ? "send activations %d of stage %d" : "send gradients %d of stage %d",
                      &batch, &stage) == 2);
      const auto* const form = forward                   ? "forward %d of stage %d"
                               : splits_backward(c.kind) ? "input gradient %d of stage %d"
                                                         : "backward %d of stage %d";
      bool used = false;  // by one action of a cell
      for (std::size_t at = 0; at != std::string::npos && !used;) {
        used = std::sscanf(to.c_str() + at, form, &same, &next) == 2 && same == batch &&
               next == stage + (forward ? 1 : -1);
        at = to.find(" + ", at);
        if (at != std::string::npos) at += 3;
      }
      CHECK(used);
      CHECK(run.schedule.home_of(next, batch) == ends[i].at("pid").get<int>());
    }
    CHECK(ids.size() == starts.size());
  }
}

TEST_CASE("pipelines side by side, with stages of the same numbers, send nothing to one another") {
  Timeline two = simulated({ScheduleKind::one_f_one_b, 2, 1, 3}, false).timeline;
  const auto one = two.events;
  for (Event event : one) {
    event.rank += 2;
    two.events.push_back(event);
  }
  two.ranks = 4;
  const Json trace = trace_of(two);
  const auto starts = of_phase(trace, "s"), ends = of_phase(trace, "f");
  CHECK(starts.size() == 12);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int from = starts[i].at("pid"), to = ends[i].at("pid");
    CHECK(from / 2 == to / 2);
    CHECK(from != to);
  }
}

TEST_CASE("a result that is used before it was sent, by another clock, has no arrow") {
  const Timeline skewed{2,
                        {{0, Stream::compute, "0F0", Seconds(0), Seconds(1)},
                         {0, Stream::pipeline_transfer, "0SEND_F0", Seconds(1), Seconds(2)},
                         {1, Stream::compute, "1F0", Seconds(0.5), Seconds(1)}}};
  CHECK(of_phase(trace_of(skewed), "s").empty());
}

TEST_CASE("the counter of micro-batches in flight has the ledger's peaks and ends at nothing") {
  for (const Case& c : cases()) {
    CAPTURE(schedule_name(c.kind));
    CAPTURE(c.ranks);
    const auto run = simulated(c, false);
    const Json trace = trace_of(run.timeline);
    const InFlight held = in_flight(run.schedule);
    std::vector<double> most(static_cast<std::size_t>(c.ranks)), last = most;
    for (const Json& step : of_phase(trace, "C")) {
      REQUIRE(step.at("name") == "in flight");
      const auto rank = step.at("pid").get<std::size_t>();
      last[rank] = step.at("args").at("micro-batches");
      most[rank] = std::max(most[rank], last[rank]);
    }
    for (std::size_t rank = 0; rank < most.size(); ++rank) {
      double peak = 0;
      for (const auto& mix : held.peaks[rank]) {
        double chunks = 0;
        for (const int count : mix) chunks += count;
        peak = std::max(peak, chunks / c.chunks);
      }
      CHECK(most[rank] == doctest::Approx(peak));
      CHECK(last[rank] == 0);
    }
  }
}

TEST_CASE("of more ranks than a viewer shows well the first are traced, and it is said") {
  const auto run = simulated({ScheduleKind::one_f_one_b, most_traced_ranks + 3, 1, 2}, false);
  const Json trace = trace_of(run.timeline);
  std::set<int> shown;
  for (const Json& event : trace.at("traceEvents")) shown.insert(event.at("pid").get<int>());
  CHECK(shown.size() == most_traced_ranks);
  CHECK(*shown.rbegin() == most_traced_ranks - 1);
  CHECK(trace.at("otherData").at("note") == "the trace shows pipeline ranks 0 to 63 of 67");
  CHECK(left_out_of_trace(run.timeline) == trace.at("otherData").at("note"));
  CHECK(of_phase(trace, "s").size() == of_phase(trace, "f").size());
  const auto all = simulated({ScheduleKind::one_f_one_b, most_traced_ranks, 1, 2}, false);
  CHECK(left_out_of_trace(all.timeline) == "");
  CHECK_FALSE(trace_of(all.timeline).contains("otherData"));
}

TEST_CASE("a trace of very many slices has neither arrows nor counters, and it is said") {
  Timeline timeline = simulated({ScheduleKind::one_f_one_b, 2, 1, 3}, false).timeline;
  CHECK_FALSE(of_phase(trace_of(timeline), "s").empty());
  for (double at = 1; timeline.events.size() < most_annotated_slices; ++at)
    timeline.events.push_back({0, Stream::optimizer, "step", Seconds(at), Seconds(at + 1)});
  CHECK(left_out_of_trace(timeline) == "");
  timeline.events.push_back({0, Stream::optimizer, "last", Seconds(1e6), Seconds(2e6)});
  CHECK(left_out_of_trace(timeline) ==
        "a trace of more than 500,000 slices has neither arrows nor counters");
  if (sanitized) return;
  const std::string text = to_chrome_trace(timeline, {});
  CHECK(text.find(R"("ph":"s")") == std::string::npos);
  CHECK(text.find(R"("ph":"C")") == std::string::npos);
  CHECK(text.find(left_out_of_trace(timeline)) != std::string::npos);
}

TEST_CASE("times without end or number still are JSON") {
  const double endless = std::numeric_limits<double>::infinity();
  const Timeline timeline{1,
                          {{0, Stream::compute, "0F0", Seconds(0), Seconds(endless)},
                           {0, Stream::compute, "0B0", Seconds(std::nan("")), Seconds(endless)}}};
  const Json trace = Json::parse(to_chrome_trace(timeline, {Seconds(endless), endless}));
  CHECK(trace.at("iteration_s").is_null());
  CHECK(of_phase(trace, "X").size() == 2);
}

}  // namespace chrome_trace_test
