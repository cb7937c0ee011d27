// The engine over emulated stages against the simulator: the same times, to the bit.
#include "runtime/engine/emulated_stages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/sanitized.hpp"

namespace emulated_stages_test {

using namespace costmodel;

namespace {

constexpr ScheduleKind kinds[] = {
    ScheduleKind::serial,         ScheduleKind::gpipe,         ScheduleKind::one_f_one_b,
    ScheduleKind::interleaved,    ScheduleKind::ideal,         ScheduleKind::zero_bubble_h1,
    ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_v, ScheduleKind::v_half,
    ScheduleKind::v_min,          ScheduleKind::dualpipe,      ScheduleKind::dualpipe_v};
constexpr int kind_count = static_cast<int>(std::size(kinds));

struct Plan {
  Schedule schedule;
  PipelineTimes times;
};

// Uneven stages, some far slower than the rest, with and without (blocking) transfers.
Plan draw(fixtures::Random& random, ScheduleKind kind) {
  const bool interleaved = kind == ScheduleKind::interleaved;
  const bool split = splits_backward(kind);
  int p = random.integer(0, 3) == 0 ? random.integer(1, 32) : random.integer(1, 8);
  if (row_of(kind).two_way) p += p % 2;
  const int v = interleaved ? random.integer(2, 4) : row_of(kind).fewest_chunks;
  int m = interleaved ? p * random.integer(1, 3) : random.integer(1, 48);
  if (overlaps(kind)) m = 2 * p + 2 * random.integer(0, 12);
  const double spread = random.integer(0, 2) * 1.2;
  const auto stages = static_cast<std::size_t>(p) * static_cast<std::size_t>(v);
  PipelineTimes times;
  HeldShares shares;
  for (std::size_t k = 0; k < stages; ++k) {
    times.forward.emplace_back(std::exp(random.real(-spread, spread)));
    times.backward.emplace_back(std::exp(random.real(-spread, spread)));
    if (split) times.weight_gradient.emplace_back(std::exp(random.real(-spread, spread)));
    shares.forward.push_back(1.0 / v);
    shares.pending.push_back(random.real(0, 1) / v);
    if (overlaps(kind)) times.together.emplace_back(std::exp(random.real(-spread, spread)));
  }
  times.transfer = Seconds(random.integer(0, 2) == 0 ? 0 : std::exp(random.real(-4, 1)));
  times.blocking = random.integer(0, 1) == 1;
  return {generate(kind, p, v, m, times, shares), times};
}

std::vector<Event> compute_of(const Timeline& timeline) {
  std::vector<Event> events;
  for (const Event& event : timeline.events)
    if (event.stream == Stream::compute) events.push_back(event);
  return events;
}

// How many compute events differ in anything.
int differing(const std::vector<Event>& a, const std::vector<Event>& b) {
  if (a.size() != b.size()) return -1;
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i].rank == b[i].rank && a[i].name == b[i].name &&
                      a[i].start.value == b[i].start.value && a[i].end.value == b[i].end.value;
    count += same ? 0 : 1;
  }
  return count;
}

void check_equal(const Plan& plan, const Timeline& emulated) {
  const SimulationProgram program = compile(plan.schedule);
  std::vector<double> scratch;
  const SimulationResult simulated = simulate(program, plan.times, scratch);
  const std::vector<Event> computed = compute_of(emulated);
  CHECK(differing(computed, compute_of(simulate_timeline(program, plan.times))) == 0);
  const auto ranks = static_cast<std::size_t>(plan.schedule.ranks);
  std::vector<double> begin(ranks, -1), finish(ranks);
  for (const Event& event : computed) {
    double& first = begin[static_cast<std::size_t>(event.rank)];
    if (first < 0) first = event.start.value;
  }
  double makespan = 0;
  for (const Event& event : emulated.events) {
    finish[static_cast<std::size_t>(event.rank)] = event.end.value;
    makespan = std::max(makespan, event.end.value);
  }
  CHECK(makespan == simulated.makespan.value);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(begin[rank] == simulated.begin[rank].value);
    CHECK(finish[rank] == simulated.finish[rank].value);
  }
}

}  // namespace

TEST_CASE("512 random plans take the simulated time, event by event, to the bit" *
          doctest::skip(thread_sanitized)) {  // on one thread
  fixtures::Random random(20250701);
  int large = 0, blocking = 0;
  for (int round = 0; round < (sanitized ? 256 : 512); ++round) {
    const Plan plan = draw(random, kinds[round % kind_count]);
    CAPTURE(round);
    CAPTURE(plan.schedule.ranks);
    CAPTURE(plan.schedule.micro_batches);
    check_equal(plan, runtime::emulate_virtual(lower(plan.schedule), plan.times));
    large += plan.schedule.ranks > 16 ? 1 : 0;
    blocking += plan.times.blocking && plan.times.transfer.value > 0 ? 1 : 0;
  }
  CHECK(large > (sanitized ? 10 : 30));
  CHECK(blocking > (sanitized ? 50 : 100));
}

TEST_CASE("a thread a rank: the same, whenever which thread runs") {
  fixtures::Random random(20250702);
  for (int round = 0; round < (thread_sanitized ? 2 * kind_count : 64); ++round) {
    const Plan plan = draw(random, kinds[round % kind_count]);
    const Schedule lowered = lower(plan.schedule);
    std::vector<std::vector<Event>> events(static_cast<std::size_t>(lowered.ranks));
    runtime::run_ranks(lowered.ranks, {}, [&](runtime::Transport& transport) {
      runtime::VirtualStages stages(transport, lowered, plan.times);
      events[static_cast<std::size_t>(transport.rank())] =
          runtime::execute(lowered, transport.rank(), stages);
    });
    Timeline timeline{lowered.ranks, {}};
    for (const auto& list : events)
      timeline.events.insert(timeline.events.end(), list.begin(), list.end());
    CAPTURE(round);
    check_equal(plan, timeline);
  }
}

TEST_CASE("a schedule that cannot end is named with its rank and action") {
  Schedule lowered = lower(generate(ScheduleKind::one_f_one_b, 2, 1, 2));
  auto& first = lowered.actions[0];  // rank 0 forgets to send its second result
  REQUIRE(to_text(first[3]) == "0SEND_F1");
  first.erase(first.begin() + 3);
  const PipelineTimes times{{Seconds(1), Seconds(1)}, {Seconds(1), Seconds(1)}, Seconds(0)};
  CHECK_THROWS_WITH_AS(runtime::emulate_virtual(lowered, times),
                       "rank 0 waits for ever at 1RECV_B1", runtime::RunFault);
}

}  // namespace emulated_stages_test
