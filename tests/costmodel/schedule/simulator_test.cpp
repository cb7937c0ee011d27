// The event simulator against the closed forms and against its own rules.
#include "costmodel/schedule/simulator.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "costmodel/schedule/closed_form.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace simulator_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

PipelineTimes even(int stages, double forward, double backward, double transfer = 0) {
  const auto n = static_cast<std::size_t>(stages);
  return {std::vector<Seconds>(n, Seconds(forward)), std::vector<Seconds>(n, Seconds(backward)),
          Seconds(transfer)};
}

Seconds makespan(ScheduleKind kind, int p, int v, int m, const PipelineTimes& times,
                 const OrderChoices& choices = {}) {
  std::vector<double> scratch;
  return simulate_makespan(compile(generate(kind, p, v, m, choices)), times, scratch);
}

struct Drawn {
  ScheduleKind kind;
  int p, v, m;
  PipelineTimes times;
};

// Uneven stages, some of them far slower than the rest, with and without (blocking) transfers.
Drawn draw(fixtures::Random& random, ScheduleKind kind) {
  Drawn d{kind, random.integer(1, 7), 1, 1, {}};
  const bool interleaved = kind == ScheduleKind::interleaved;
  d.v = interleaved ? random.integer(2, 4) : 1;
  d.m = interleaved ? d.p * random.integer(1, 5) : random.integer(1, 20);
  const double spread = random.integer(0, 2) * 1.5;
  for (int k = 0; k < d.p * d.v; ++k) {
    d.times.forward.emplace_back(std::exp(random.real(-spread, spread)));
    d.times.backward.emplace_back(std::exp(random.real(-spread, spread)));
  }
  d.times.transfer = Seconds(random.integer(0, 2) == 0 ? 0 : std::exp(random.real(-4, 1)));
  d.times.blocking = random.integer(0, 1) == 1;
  return d;
}

constexpr ScheduleKind kinds[] = {ScheduleKind::ideal, ScheduleKind::serial, ScheduleKind::gpipe,
                                  ScheduleKind::one_f_one_b, ScheduleKind::interleaved};

}  // namespace

TEST_CASE("even stages: the simulator meets the closed form of every kind") {
  const std::pair<double, double> ratios[] = {{1, 2}, {0.3, 1.7}, {1, 0.25}, {1e-3, 1}};
  int count = 0;
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 27; ++m) {
      for (const auto& [f, b] : ratios) {
        for (const auto kind : kinds) {
          const bool interleaved = kind == ScheduleKind::interleaved;
          for (int v = interleaved ? 2 : 1;
               v <= (interleaved ? 4 : 1) && (!interleaved || m % p == 0); ++v) {
            CAPTURE(p);
            CAPTURE(m);
            CAPTURE(v);
            CAPTURE(static_cast<int>(kind));
            const double closed = pipeline_time(kind, p, v, m, Seconds(f), Seconds(b)).value;
            CHECK(relative_error(makespan(kind, p, v, m, even(p * v, f, b)).value, closed) <=
                  1e-12);
            ++count;
          }
        }
      }
    }
  }
  CHECK(count > 4000);
}

TEST_CASE(
    "even stages with transfers beside computation: serial, GPipe and 1F1B meet the closed form") {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 24; ++m) {
      for (const double transfer : {1e-3, 0.1, 0.5, 1.0, 3.0, 20.0}) {
        for (const auto kind :
             {ScheduleKind::serial, ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(transfer);
          CAPTURE(static_cast<int>(kind));
          const double closed =
              pipeline_time(kind, p, 1, m, Seconds(1), Seconds(2), Seconds(transfer)).value;
          CHECK(relative_error(makespan(kind, p, 1, m, even(p, 1, 2, transfer)).value, closed) <=
                1e-12);
        }
      }
    }
  }
}

TEST_CASE("no simulated pipeline is shorter than its bound: 1,000 uneven ones of each kind") {
  for (const auto kind : kinds) {
    fixtures::Random random(7 + static_cast<std::uint32_t>(kind));
    for (int round = 0; round < 1000; ++round) {
      const Drawn d = draw(random, kind);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(round);
      CAPTURE(d.p);
      CAPTURE(d.v);
      CAPTURE(d.m);
      CAPTURE(d.times.transfer.value);
      CAPTURE(d.times.blocking);
      const double bound = pipeline_lower_bound(kind, d.p, d.v, d.m, d.times).value;
      CHECK(bound <= makespan(kind, d.p, d.v, d.m, d.times).value * (1 + 1e-12));
      CHECK(bound > 0);
    }
  }
}

TEST_CASE("in groups of micro-batches neither, and a larger group has no higher bound") {
  fixtures::Random random(11);
  int rests = 0;
  for (int round = 0; round < 400; ++round) {
    Drawn d = draw(random, ScheduleKind::interleaved);
    d.m = random.integer(d.p, 6 * d.p);
    double before = std::numeric_limits<double>::infinity();
    for (int group = d.p; group <= d.m; ++group) {
      if (!takes_groups(d.p, d.m, group)) continue;
      CAPTURE(round);
      CAPTURE(group);
      const OrderChoices choices{.group = group};
      const double time =
          makespan(ScheduleKind::interleaved, d.p, d.v, d.m, d.times, choices).value;
      const double bound =
          pipeline_lower_bound(ScheduleKind::interleaved, d.p, d.v, d.m, d.times, choices).value;
      CHECK(bound <= time * (1 + 1e-12));
      if (d.m % group != 0) {
        ++rests;
        continue;
      }
      CHECK(bound <= before * (1 + 1e-12));
      before = bound;
    }
  }
  CHECK(rests > 100);
}

TEST_CASE("a sender that waits is as one that computes so much longer, in the bound too") {
  for (const auto kind : {ScheduleKind::serial, ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                          ScheduleKind::interleaved}) {
    const int v = kind == ScheduleKind::interleaved ? 3 : 1, p = 4, m = 8;
    PipelineTimes waits = even(p * v, 1, 2, 0.25);
    waits.blocking = true;
    PipelineTimes computes = even(p * v, 1.25, 2.25);
    computes.forward.back() = Seconds(1);
    computes.backward.front() = Seconds(2);
    CAPTURE(static_cast<int>(kind));
    CHECK(makespan(kind, p, v, m, waits).value ==
          doctest::Approx(makespan(kind, p, v, m, computes).value).epsilon(1e-12));
    CHECK(pipeline_lower_bound(kind, p, v, m, waits).value ==
          doctest::Approx(pipeline_lower_bound(kind, p, v, m, computes).value).epsilon(1e-12));
  }
}

TEST_CASE("the bound is tight on even stages without transfers") {
  for (const auto kind : {ScheduleKind::ideal, ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                          ScheduleKind::interleaved}) {
    const bool interleaved = kind == ScheduleKind::interleaved;
    for (int p = 1; p <= 6; ++p) {
      for (int m = interleaved ? p : 1; m <= 24; m += interleaved ? p : 1) {
        for (int v = interleaved ? 2 : 1; v <= (interleaved ? 4 : 1); ++v) {
          for (const double b : {0.25, 1.0, 2.0}) {
            CAPTURE(p);
            CAPTURE(m);
            CAPTURE(v);
            CAPTURE(b);
            CAPTURE(static_cast<int>(kind));
            const double bound = pipeline_lower_bound(kind, p, v, m, even(p * v, 1, b)).value;
            CHECK(relative_error(
                      bound, pipeline_time(kind, p, v, m, Seconds(1), Seconds(b)).value) <= 1e-12);
          }
        }
      }
    }
  }
}

TEST_CASE("a simulated run keeps the rules: one action at a time on a rank, after what it needs") {
  for (const auto kind : kinds) {
    fixtures::Random random(100 + static_cast<std::uint32_t>(kind));
    for (int round = 0; round < 60; ++round) {
      const Drawn d = draw(random, kind);
      const Schedule schedule = generate(kind, d.p, d.v, d.m);
      const SimulationProgram program = compile(schedule);
      std::vector<double> scratch;
      const SimulationResult result = simulate(program, d.times, scratch);
      CHECK(result.makespan.value == simulate_makespan(program, d.times, scratch).value);
      const Timeline timeline = simulate_timeline(program, d.times);
      CHECK(timeline.end().value == result.makespan.value);
      std::map<std::string, Event> ran;
      std::vector<Seconds> free(static_cast<std::size_t>(d.p));
      std::vector<std::vector<std::string>> order(static_cast<std::size_t>(d.p));
      for (const Event& e : timeline.events) {
        const auto rank = static_cast<std::size_t>(e.rank);
        if (e.stream == Stream::pipeline_transfer) {
          CHECK((e.end - e.start).value <= d.times.transfer.value * (1 + 1e-9));
          if (d.times.blocking) free[rank] = e.end;
          continue;
        }
        CHECK(e.start >= free[rank]);
        free[rank] = e.end;
        CHECK(ran.emplace(e.name, e).second);
        order[rank].push_back(e.name);
      }
      CHECK(ran.size() == static_cast<std::size_t>(2 * d.p * d.v * d.m));
      for (int rank = 0; rank < d.p; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        std::vector<std::string> written;
        for (const Action& a : schedule.actions[at]) written.push_back(to_text(a));
        CHECK(order[at] == written);
      }
      if (kind == ScheduleKind::ideal) continue;
      const Seconds delay = d.p > 1 ? d.times.transfer : Seconds(0);
      const int last = d.p * d.v - 1;
      for (const auto& [name, event] : ran) {
        const auto letter = name.find_first_of("FB");
        const int stage = std::stoi(name.substr(0, letter));
        const std::string batch = name.substr(letter + 1);
        const bool forward = name[letter] == 'F';
        const int from = forward ? stage - 1 : stage + 1;
        if (!forward) CHECK(event.start >= ran.at(std::to_string(stage) + "F" + batch).end);
        if (from < 0 || from > last) continue;
        CHECK(event.start >= ran.at(std::to_string(from) + name[letter] + batch).end + delay);
      }
    }
  }
}

TEST_CASE("longer stages or transfers never shorten a run, and blocking never helps") {
  fixtures::Random random(42);
  for (int round = 0; round < 400; ++round) {
    Drawn d = draw(random, kinds[round % 5]);
    const double before = makespan(d.kind, d.p, d.v, d.m, d.times).value;
    PipelineTimes blocked = d.times;
    blocked.blocking = true;
    CHECK(makespan(d.kind, d.p, d.v, d.m, blocked).value >= before);
    d.times.forward[static_cast<std::size_t>(random.integer(0, d.p * d.v - 1))] += Seconds(0.7);
    const double slower = makespan(d.kind, d.p, d.v, d.m, d.times).value;
    CHECK(slower >= before);
    d.times.transfer += Seconds(0.3);
    CHECK(makespan(d.kind, d.p, d.v, d.m, d.times).value >= slower);
  }
}

TEST_CASE("times scale: twice as slow is twice as long, to the bit") {
  fixtures::Random random(43);
  for (int round = 0; round < 200; ++round) {
    Drawn d = draw(random, kinds[round % 5]);
    const double before = makespan(d.kind, d.p, d.v, d.m, d.times).value;
    for (auto& t : d.times.forward) t *= 2;
    for (auto& t : d.times.backward) t *= 2;
    d.times.transfer *= 2;
    CHECK(makespan(d.kind, d.p, d.v, d.m, d.times).value == 2 * before);
  }
}

TEST_CASE("finish and last backward of each rank") {
  // Two ranks, two micro-batches, 1F1B: 0F0 0F1 . 0B0 . 0B1 over 1F0 1B0 1F1 1B1.
  PipelineTimes times = even(2, 1, 2);
  std::vector<double> scratch;
  const SimulationResult r =
      simulate(compile(generate(ScheduleKind::one_f_one_b, 2, 1, 2)), times, scratch);
  CHECK(r.makespan.value == 9);
  CHECK(r.finish[0].value == 9);
  CHECK(r.finish[1].value == 7);
  CHECK(r.last_backward_start[0].value == 7);
  CHECK(r.last_backward_start[1].value == 5);
  // A blocking send of 0.5 s delays the sender's next action and ends the last rank's run.
  times.transfer = Seconds(0.5);
  times.blocking = true;
  const SimulationResult b =
      simulate(compile(generate(ScheduleKind::one_f_one_b, 2, 1, 2)), times, scratch);
  // 0F0 0-1, 0F1 1.5-2.5; 1F0 1.5-2.5, 1B0 2.5-4.5; 1F1 5-6, 1B1 6-8 (sends until 8.5); 0B0 5-7,
  // 0B1 8.5-10.5.
  CHECK(b.finish[1].value == 8.5);
  CHECK(b.makespan.value == 10.5);
}

}  // namespace simulator_test
