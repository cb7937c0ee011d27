// What of an iteration is the bubble, and what is waiting for a slower stage.
#include "costmodel/estimate/breakdown.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "costmodel/plan/plan_rules.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace breakdown_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

// Stages of equal blocks between free transfers; a large vocabulary makes the last one slower.
Estimate pipelined(const ParallelPlan& plan, std::int64_t vocab, std::int64_t batch) {
  ModelSpec model = fixtures::gpt(8, 2048, 16, vocab, 1024);
  model.tie_embeddings = false;
  ClusterSpec cluster = fixtures::cluster(plan.devices());
  for (Tier& tier : cluster.tiers) {
    tier.bandwidth = BytesPerSecond(1e30);
    tier.latency = Seconds(0);
  }
  return Evaluator(model, cluster, fixtures::training(batch, 1024)).estimate(plan);
}

Seconds of_rank(const Estimate& e, int rank) {
  Seconds time;
  for (int k = 0; k < e.plan.virtual_stages(); ++k) {
    const auto stage = static_cast<std::size_t>(k);
    if (rank_of(e.plan.schedule, e.plan.pp, k) == rank)
      time += e.stage_forward[stage] + e.stage_backward[stage];
  }
  return time;
}

}  // namespace

TEST_CASE("bubble fraction: (T - m·max(t_f + t_b)) / (m·max(t_f + t_b)); (p - 1)/m if even") {
  ParallelPlan plan;
  plan.pp = 4;
  for (const std::int64_t m : {4, 8, 64}) {
    CAPTURE(m);
    const double even = 3.0 / static_cast<double>(m);
    // A vocabulary so small that embedding and loss weigh little.
    CHECK(pipelined(plan, 512, m).bubble_fraction == doctest::Approx(even).epsilon(0.05));
    // A slow last stage leaves less to fill and drain, and is no reason for a longer bubble.
    const Estimate heavy = pipelined(plan, 256000, m);
    CHECK(heavy.bubble_fraction < even);
    Seconds slowest;
    for (int r = 0; r < 4; ++r) slowest = max(slowest, of_rank(heavy, r));
    const double work = static_cast<double>(m) * slowest.value;
    CHECK(relative_error(heavy.bubble_fraction, (heavy.pipeline.value - work) / work) <= 1e-12);
    // Rank 0 waits for the last: m times the difference, whatever m is.
    REQUIRE(heavy.critical_rank == 0);
    const double wait = static_cast<double>(m) * (slowest - of_rank(heavy, 0)).value;
    CHECK(relative_error(heavy.breakdown.imbalance.value, wait) <= 1e-9);
    const double idle = (heavy.breakdown.bubble + heavy.breakdown.pp_comm).value;
    CHECK(relative_error(idle, heavy.bubble_fraction * work) <= 1e-9);
    CHECK(relative_error(heavy.breakdown.total().value, heavy.iteration.value) <= 1e-12);
  }
}

TEST_CASE("simulation and estimate agree on time and bubble, for every schedule") {
  const ModelSpec model = fixtures::gpt(16, 1024, 16, 51200, 512);
  const ClusterSpec cluster = fixtures::cluster(8);
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    ParallelPlan plan;
    plan.schedule = static_cast<ScheduleKind>(i);
    plan.pp = 4, plan.dp = 2;
    plan.vpp = row_of(plan.schedule).fewest_chunks;
    for (const bool post_validation : {false, true}) {
      for (const bool overlap : {false, true}) {
        CAPTURE(to_string(plan));
        CAPTURE(post_validation);
        CAPTURE(overlap);
        TrainingSpec training = fixtures::training(32, 512);
        training.stack.offers.zero_bubble = true;
        training.stack.offers.dualpipe = true;
        training.stack.collectives.post_validation = post_validation;
        training.overlap.pp_overlap = overlap;
        REQUIRE(is_valid(plan, model, cluster, training));
        Evaluator evaluator(model, cluster, training);
        const Estimate e = evaluator.estimate(plan);
        const Timeline timeline = evaluator.timeline(plan);
        const bool apart = ends_apart(plan.schedule, training.stack.collectives);
        CHECK(std::abs(bubble_fraction(timeline, apart) - e.bubble_fraction) <= 1e-9);
        // Where ranks do not meet, an iteration is the longest span of one.
        std::vector<Seconds> start(4, Seconds(1e9)), end(4);
        for (const Event& event : timeline.events) {
          const auto rank = static_cast<std::size_t>(event.rank);
          start[rank] = min(start[rank], event.start);
          end[rank] = max(end[rank], event.end);
        }
        Seconds longest;
        for (std::size_t r = 0; r < 4; ++r) longest = max(longest, end[r] - start[r]);
        CHECK(relative_error((apart ? longest : timeline.end()).value, e.iteration.value) <= 1e-9);
      }
    }
  }
}

}  // namespace breakdown_test
