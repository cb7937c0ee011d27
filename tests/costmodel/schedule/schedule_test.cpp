// The orders of the schedules, the faults a schedule may have, and its text.
#include "costmodel/schedule/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "costmodel/schedule/simulator.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace schedule_test {

using namespace costmodel;

namespace {

// Every kind over small grids.
template <class Visit>
void for_each_schedule(int most_ranks, int most_batches, Visit visit) {
  for (int p = 1; p <= most_ranks; ++p) {
    for (int m = 1; m <= most_batches; ++m) {
      for (const auto kind : {ScheduleKind::ideal, ScheduleKind::serial, ScheduleKind::gpipe,
                              ScheduleKind::one_f_one_b})
        visit(kind, p, 1, m);
      for (int v = 2; v <= 4 && m % p == 0; ++v) visit(ScheduleKind::interleaved, p, v, m);
    }
  }
}

std::string line(const Schedule& schedule, std::size_t rank) {
  const std::string text = to_text(schedule);
  std::size_t from = 0;
  for (std::size_t i = 0; i < rank; ++i) from = text.find('\n', from) + 1;
  return text.substr(from, text.find('\n', from) - from);
}

ScheduleFault fault_of(const Schedule& schedule) {
  const auto fault = validate(schedule);
  REQUIRE(fault.has_value());
  return *fault;
}

}  // namespace

TEST_CASE("published orders") {
  CHECK(to_text(generate(ScheduleKind::gpipe, 2, 1, 3)) ==
        "0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1F1 1F2 1B0 1B1 1B2\n");
  CHECK(to_text(generate(ScheduleKind::serial, 2, 1, 2)) == "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1\n");
  // Figure 4 of Narayanan et al. 2021, top, four ranks and eight micro-batches.
  const Schedule plain = generate(ScheduleKind::one_f_one_b, 4, 1, 8);
  CHECK(line(plain, 0) == "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7");
  CHECK(line(plain, 3) == "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7");
  // Bottom, two chunks: rank 0 runs 4 + 4 + 3 forwards (micro-batches 0-3 of both chunks and 4-6)
  // before its first backward.
  const Schedule chunks = generate(ScheduleKind::interleaved, 4, 2, 8);
  CHECK(line(chunks, 0) ==
        "0F0 0F1 0F2 0F3 4F0 4F1 4F2 4F3 0F4 0F5 0F6 4B0 0F7 4B1 4F4 4B2 4F5 4B3 4F6 0B0 4F7 0B1 "
        "0B2 0B3 "
        "4B4 4B5 4B6 4B7 0B4 0B5 0B6 0B7"
        "");
  CHECK(line(chunks, 3).starts_with("3F0 3F1 3F2 3F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 3F4 3B0"));
}

TEST_CASE("every generated schedule is valid") {
  int count = 0;
  for_each_schedule(6, 18, [&](ScheduleKind kind, int p, int v, int m) {
    const auto fault = validate(generate(kind, p, v, m));
    CAPTURE(p);
    CAPTURE(v);
    CAPTURE(m);
    CAPTURE(static_cast<int>(kind));
    CHECK_MESSAGE(!fault.has_value(), (fault ? fault->reason + "\n" + fault->grid : ""));
    ++count;
  });
  CHECK(count == 6 * 18 * 4 + 3 * (18 + 9 + 6 + 4 + 3 + 3));
}

TEST_CASE(
    "micro-batches in flight: m, min(p - k, m), and the interleaved p·v + p - 1 chunks of rank 0") {
  for_each_schedule(6, 24, [](ScheduleKind kind, int p, int v, int m) {
    const InFlight held = in_flight(generate(kind, p, v, m));
    CAPTURE(p);
    CAPTURE(v);
    CAPTURE(m);
    for (int rank = 0; rank < p; ++rank) {
      const auto& peaks = held.peaks[static_cast<std::size_t>(rank)];
      REQUIRE(!peaks.empty());
      if (kind == ScheduleKind::interleaved) {
        int most = 0;
        for (const auto& mix : peaks) {
          int sum = 0;
          for (const int count : mix) sum += count;
          most = std::max(most, sum);
        }
        // Warm-up forwards and the one that runs before the first backward.
        const int warm_up = m == p ? m * v : std::min(m * v, 2 * (p - rank - 1) + (v - 1) * p + 1);
        CHECK(most == warm_up);
      } else {
        const int expected = kind == ScheduleKind::gpipe    ? m
                             : kind == ScheduleKind::serial ? 1
                                                            : std::min(p - rank, m);
        CHECK(peaks == std::vector<std::vector<int>>{{expected}});
      }
    }
  });
}

TEST_CASE("the mixes of chunks in flight repeat: four groups of micro-batches show all of them") {
  for (int p = 2; p <= 8; ++p) {
    for (int v = 2; v <= 5; ++v) {
      const auto mixes = [&](int m) {
        auto peaks = in_flight(generate(ScheduleKind::interleaved, p, v, m)).peaks;
        for (auto& of_rank : peaks) std::sort(of_rank.begin(), of_rank.end());
        return peaks;
      };
      const auto shown = mixes(4 * p);
      for (const int groups : {5, 6, 7, 8, 13}) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(groups);
        CHECK(mixes(groups * p) == shown);
      }
    }
  }
}

TEST_CASE("faults are found at their place and shown in brackets") {
  const Schedule good = generate(ScheduleKind::one_f_one_b, 3, 1, 4);
  REQUIRE_FALSE(validate(good).has_value());
  SUBCASE("backward before its forward") {
    Schedule s = good;
    std::swap(s.actions[2][0], s.actions[2][1]);
    const auto fault = fault_of(s);
    CHECK(fault.rank == 2);
    CHECK(fault.step == 0);
    CHECK(fault.reason == "backward stands before its forward");
    CHECK(fixtures::contains(fault.grid, "rank   2: [2B0]"));
  }
  SUBCASE("twice") {
    Schedule s = good;
    s.actions[1][1] = s.actions[1][0];
    const auto fault = fault_of(s);
    CHECK(fault.rank == 1);
    CHECK(fault.step == 1);
    CHECK(fault.reason == "runs a second time");
    CHECK(fixtures::contains(fault.grid, "[1F0]"));
  }
  SUBCASE("backward twice") {
    Schedule s = good;
    s.actions[2].back() = s.actions[2][1];
    const auto fault = fault_of(s);
    CHECK(fault.rank == 2);
    CHECK(fault.step == 7);
    CHECK(fault.reason == "runs a second time");
  }
  SUBCASE("missing") {
    Schedule s = good;
    s.actions[0].pop_back();
    const auto fault = fault_of(s);
    CHECK(fault.rank == 0);
    CHECK(fault.step == 7);
    CHECK(fault.reason == "1 actions are missing, 0B3 the first of them");
    CHECK(fixtures::contains(fault.grid, "[nothing]"));
  }
  SUBCASE("on the wrong rank") {
    Schedule s = good;
    s.actions[1][3].stage = 2;
    const auto fault = fault_of(s);
    CHECK(fault.rank == 1);
    CHECK(fault.step == 3);
    CHECK(fault.reason == "stage 2 does not live on rank 1");
  }
  SUBCASE("a stage or micro-batch that is not there") {
    Schedule s = good;
    s.actions[1][0].stage = 4;  // 4 mod 3 is this rank, but there are three stages
    CHECK(fault_of(s).reason == "stage 4 does not live on rank 1");
    s = good;
    s.actions[1][0].stage = -2;
    CHECK(fault_of(s).reason == "stage -2 does not live on rank 1");
    s = good;
    s.actions[2][6].micro_batch = 4;
    CHECK(fault_of(s).step == 6);
    CHECK(fault_of(s).reason == "there is no micro-batch 4");
    s = good;
    s.actions[2][6].micro_batch = -1;
    CHECK(fault_of(s).reason == "there is no micro-batch -1");
  }
  SUBCASE("a transfer") {
    Schedule s = good;
    s.actions[0][2].kind = ActionKind::send_forward;
    const auto fault = fault_of(s);
    CHECK(fault.step == 2);
    CHECK(fixtures::contains(fault.grid, "[0SEND_F2]"));
  }
  SUBCASE("deadlock") {  // rank 0 waits for micro-batch 0 to come back, rank 1 wants micro-batch 1
                         // first
    Schedule s{ScheduleKind::one_f_one_b, 2, 1, 2, {}};
    s.actions = fixtures::actions_of("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n");
    const auto fault = fault_of(s);
    CHECK(fault.rank == 0);
    CHECK(fault.step == 1);
    CHECK(fixtures::contains(fault.reason, "waits for ever"));
    CHECK(fixtures::contains(fault.grid, "[0B0]"));
    CHECK_THROWS_AS(compile(s), InternalError);
  }
  SUBCASE("lists for other ranks") {
    Schedule s = good;
    s.actions.pop_back();
    CHECK(fault_of(s).reason == "2 ranks have lists, 3 are expected");
  }
}

TEST_CASE("two actions exchanged at random: what validate accepts runs, what it faults is marked") {
  fixtures::Random random(20240917);
  int faulty = 0, sound = 0;
  for (int round = 0; round < 600; ++round) {
    const bool interleaved = random.integer(0, 1) == 1;
    const int p = random.integer(2, 4), v = interleaved ? 2 : 1,
              m = interleaved ? 2 * p : random.integer(2, 6);
    Schedule s =
        generate(interleaved ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b, p, v, m);
    const int rank = random.integer(0, p - 1);
    auto& list = s.actions[static_cast<std::size_t>(rank)];
    const int last = static_cast<int>(list.size()) - 1;
    const int from = random.integer(0, last), to = std::min(last, from + random.integer(1, 4));
    std::swap(list[static_cast<std::size_t>(from)], list[static_cast<std::size_t>(to)]);
    const auto fault = validate(s);
    if (!fault) {
      ++sound;
      CHECK_NOTHROW(compile(s));
      CHECK_NOTHROW(lower(s));
      continue;
    }
    ++faulty;
    const auto& at = s.actions[static_cast<std::size_t>(fault->rank)];
    REQUIRE(fault->step < static_cast<int>(at.size()));
    CHECK(fixtures::contains(fault->grid,
                             "[" + to_text(at[static_cast<std::size_t>(fault->step)]) + "]"));
    CHECK_THROWS_AS(lower(s), InternalError);
    if (fault->reason.starts_with("waits")) {
      CHECK_THROWS_AS(compile(s), InternalError);
    } else {
      CHECK(fault->rank == rank);
      CHECK(fault->step >= std::min(from, to));
      CHECK(fault->step <= to);
    }
  }
  CHECK(faulty > 100);
  CHECK(sound > 100);
}

TEST_CASE(
    "lowered: each send has one receive, on the neighbour's rank, beside the action it serves") {
  for_each_schedule(5, 10, [](ScheduleKind kind, int p, int v, int m) {
    const Schedule schedule = generate(kind, p, v, m);
    const Schedule lowered = lower(schedule);
    CAPTURE(p);
    CAPTURE(v);
    CAPTURE(m);
    struct End {
      int count = 0, rank = -1;
    };
    std::map<std::tuple<bool, int, int>, End> sends, receives;
    std::size_t transfers = 0;
    for (int rank = 0; rank < p; ++rank) {
      const auto& list = lowered.actions[static_cast<std::size_t>(rank)];
      std::vector<Action> compute;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const Action& a = list[i];
        const bool send = a.kind == ActionKind::send_forward || a.kind == ActionKind::send_backward;
        const bool receive =
            a.kind == ActionKind::recv_forward || a.kind == ActionKind::recv_backward;
        if (!send && !receive) {
          compute.push_back(a);
          continue;
        }
        ++transfers;
        const bool forward =
            a.kind == ActionKind::send_forward || a.kind == ActionKind::recv_forward;
        End& end = (send ? sends : receives)[{forward, a.stage, a.micro_batch}];
        ++end.count;
        end.rank = rank;
        const int step = forward ? 1 : -1;
        const auto run = forward ? ActionKind::forward : ActionKind::backward;
        if (send) {
          REQUIRE(i > 0);
          CHECK(list[i - 1] == Action{run, a.stage, a.micro_batch});
        } else {
          REQUIRE(i + 1 < list.size());
          CHECK(list[i + 1] == Action{run, a.stage + step, a.micro_batch});
        }
      }
      CHECK(compute == schedule.actions[static_cast<std::size_t>(rank)]);
    }
    const bool crosses = p > 1 && kind != ScheduleKind::ideal;
    CHECK(transfers == (crosses ? static_cast<std::size_t>(4 * (p * v - 1) * m) : 0));
    CHECK(sends.size() == receives.size());
    for (const auto& [key, end] : sends) {
      REQUIRE(receives.contains(key));
      CHECK(end.count == 1);
      CHECK(receives.at(key).count == 1);
      const auto& [forward, stage, micro_batch] = key;
      CHECK(end.rank == stage % p);
      CHECK(receives.at(key).rank == (stage + (forward ? 1 : -1)) % p);
    }
  });
}

TEST_CASE("end mixes say of in-flight chunks what full mixes say") {
  // For any weights of the first, the last and all other chunks, both lists have the same maximum.
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int v : {2, 3, 5}) {
      for (const int groups : {1, 2, 4}) {
        const Schedule schedule = generate(ScheduleKind::interleaved, p, v, groups * p);
        const InFlight full = in_flight(schedule);
        const auto ends = end_mixes(schedule);
        for (const auto& weights :
             {std::array{1, 1, 1}, std::array{5, 2, 1}, std::array{1, 3, 7}, std::array{9, 0, 9}}) {
          for (std::size_t r = 0; r < ends.size(); ++r) {
            int by_full = 0, by_ends = 0;
            for (const auto& mix : full.peaks[r]) {
              int sum = 0;
              for (std::size_t c = 0; c < mix.size(); ++c) {
                sum += mix[c] * (c == 0                ? weights[0]
                                 : c + 1 == mix.size() ? weights[2]
                                                       : weights[1]);
              }
              by_full = std::max(by_full, sum);
            }
            for (const EndMix& mix : ends[r]) {
              const int middle = mix.total - mix.first - mix.last;
              by_ends = std::max(
                  by_ends, mix.first * weights[0] + middle * weights[1] + mix.last * weights[2]);
            }
            CHECK(by_ends == by_full);
          }
        }
      }
    }
  }
}

}  // namespace schedule_test
