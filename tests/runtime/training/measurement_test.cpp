// What ranks saw, brought together.
#include "runtime/training/measurement.hpp"

#include <doctest/doctest.h>

#include "runtime/ranks/thread_transport.hpp"

namespace measurement_test {

using costmodel::Action;
using costmodel::ActionKind;
using costmodel::ParallelPlan;
using costmodel::Seconds;
using runtime::RankMeasurement;

namespace {

// Two pipeline ranks, two micro-batches of 1 s forward and 2 s backward, one iteration to warm up.
RankMeasurement seen_by(int rank) {
  RankMeasurement m;
  m.pipeline_rank = rank;
  m.iterations = {Seconds(90), Seconds(9.5 + rank), Seconds(11.5 - rank)};
  m.loss_sums = {rank == 1 ? 40.0 : 0, rank == 1 ? 20.0 : 0, rank == 1 ? 10.0 : 0};
  m.forward = {Seconds(rank == 0 ? 1 : 0), Seconds(rank == 1 ? 1 : 0)};
  m.backward = {Seconds(rank == 0 ? 2 : 0), Seconds(rank == 1 ? 2 : 0)};
  double at = rank;
  for (const int b : {0, 1}) {
    for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
      const double length = kind == ActionKind::forward ? 1 : 2;
      m.actions.push_back({{kind, rank, b}, Seconds(at), Seconds(at + length)});
      at += length;
    }
  }
  m.pipeline_end = m.reduced = Seconds(9);
  m.end = Seconds(10);
  m.reductions = {{Seconds(8), Seconds(9)}};
  m.traffic.send = 64 * (rank + 1);
  m.peaks = {1, 2, 3, 4 + rank, 5};
  m.peak = 15 + rank;
  return m;
}

ParallelPlan two_stages() {
  ParallelPlan plan;
  plan.pp = 2;
  return plan;
}

}  // namespace

TEST_CASE("measurements of all ranks reach rank 0 as they are") {
  std::vector<RankMeasurement> all;
  runtime::run_ranks(2, {}, [&](runtime::Transport& transport) {
    auto here = gather_measurements(transport, seen_by(transport.rank()));
    if (transport.rank() == 0) {
      all = std::move(here);
    } else {
      CHECK(here.empty());
    }
  });
  REQUIRE(all.size() == 2);
  CHECK(all[1].pipeline_rank == 1);
  CHECK(all[1].iterations == seen_by(1).iterations);
  CHECK(all[1].loss_sums == seen_by(1).loss_sums);
  REQUIRE(all[1].actions.size() == 4);
  CHECK(all[1].actions[3].action == Action{ActionKind::backward, 1, 1});
  CHECK(all[1].actions[3].end == Seconds(7));
  CHECK(all[1].traffic == seen_by(1).traffic);
  CHECK(all[1].peaks == seen_by(1).peaks);
  CHECK(all[1].peak == 16);
  CHECK(all[1].reductions[0].end == Seconds(9));
}

TEST_CASE("a summary takes the slowest rank of an iteration, the median iteration, the mean loss") {
  const auto summary = runtime::summarise({seen_by(0), seen_by(1)}, two_stages(), 20);
  CHECK(summary.iteration == Seconds(11));  // of max(9.5, 10.5) and max(11.5, 10.5)
  CHECK(summary.loss == std::vector<double>{2, 1, 0.5});
  CHECK(summary.stage_forward == std::vector<Seconds>{Seconds(1), Seconds(1)});
  CHECK(summary.stage_backward == std::vector<Seconds>{Seconds(2), Seconds(2)});
  CHECK(summary.memory[1][3] == 5);
  CHECK(summary.peak == std::vector<std::int64_t>{15, 16});
  CHECK(summary.traffic[1].send.value == 128);
  // Both are busy 6 s, the last until 7 s.
  CHECK(summary.bubble_fraction == doctest::Approx(1.0 / 6));
  CHECK(summary.timeline.events.size() == 12);
}

TEST_CASE("the bubble is measured against the slowest rank, not against the one that ends last") {
  using costmodel::Stream;
  runtime::RunSummary summary;
  summary.timeline = {2,
                      {{0, Stream::compute, "0F0", Seconds(0), Seconds(1)},
                       {0, Stream::compute, "0B0", Seconds(7), Seconds(9)},
                       {1, Stream::compute, "1F0", Seconds(1), Seconds(3)},
                       {1, Stream::compute, "1B0", Seconds(3), Seconds(7)}}};
  summarise_stages(two_stages(), 1, false, summary);
  CHECK(summary.bubble_fraction == doctest::Approx((9.0 - 6) / 6));
  summarise_stages(two_stages(), 1, true, summary);  // rank 0's span
  CHECK(summary.bubble_fraction == doctest::Approx((9.0 - 6) / 6));
  CHECK(summary.stage_backward[1] == Seconds(4));
}

TEST_CASE("the checksum of losses tells any bit apart") {
  CHECK(runtime::checksum({1.0, 2.0}) == runtime::checksum({1.0, 2.0}));
  CHECK(runtime::checksum({1.0, 2.0}) != runtime::checksum({2.0, 1.0}));
  CHECK(runtime::checksum({1.0}) != runtime::checksum({1.0 + 1e-16 + 2.3e-16}));
}

}  // namespace measurement_test
