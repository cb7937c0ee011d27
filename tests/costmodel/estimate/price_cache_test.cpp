// What is priced once for several plans, and what is not.
#include <doctest/doctest.h>

#include <optional>

#include "costmodel/estimate/price_cache.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace price_cache_test {

using namespace costmodel;

const Workload& workload() {
  static const Workload on{fixtures::gpt(24, 1024, 16, 51200, 512), fixtures::cluster(64),
                           fixtures::training(64, 512)};
  return on;
}

TEST_CASE("plans that change no layer share its price") {
  PriceCache cache;
  ParallelPlan plan;
  plan.tp = 4;
  const LayerPrices& first = cache.layers(plan, workload());
  plan.pp = 4, plan.dp = 2, plan.zero = 1;
  CHECK(&cache.layers(plan, workload()) == &first);
  CHECK(&cache.layer(LayerKind::block, plan, Recomputed::nothing, workload()) ==
        first.kinds[0].whole);
}

TEST_CASE("plans that change a layer do not") {
  PriceCache cache;
  const ParallelPlan plain;
  const LayerCost& block = cache.layer(LayerKind::block, plain, Recomputed::nothing, workload());
  const auto differs = [&](auto change) {
    ParallelPlan plan;
    change(plan);
    return cache.layer(LayerKind::block, plan, Recomputed::nothing, workload()).forward.time() !=
               block.forward.time() ||
           cache.layer(LayerKind::block, plan, Recomputed::nothing, workload()).backward.time() !=
               block.backward.time();
  };
  CHECK(differs([](ParallelPlan& plan) { plan.tp = 2; }));
  CHECK(differs([](ParallelPlan& plan) { plan.cp = 2; }));
  CHECK(differs([](ParallelPlan& plan) { plan.micro_batch = 2; }));
  CHECK(differs([](ParallelPlan& plan) {  // no accumulation of gradients
    plan.zero = 3;
    plan.dp = 2;
  }));
  CHECK(!differs([](ParallelPlan& plan) { plan.pp = 2; }));
}

TEST_CASE("a recomputed layer and a whole one, where only some are recomputed") {
  PriceCache cache;
  ParallelPlan plan;
  plan.recompute = {Recomputation::full, 0};
  const LayerPrices& all = cache.layers(plan, workload());
  CHECK(all.kinds[0].whole == all.kinds[0].again);
  plan.recompute.layers = 1;
  const LayerPrices& some = cache.layers(plan, workload());
  CHECK(some.kinds[0].again == all.kinds[0].again);
  CHECK(some.kinds[0].whole->footprint.kept > some.kinds[0].again->footprint.kept);
}

TEST_CASE("prices of a copy outlive the original") {
  std::optional<PriceCache> original(std::in_place);
  const ParallelPlan plan;
  const double weights = original->layers(plan, workload()).kinds[0].again->weights;
  PriceCache copy = *original;
  original.reset();
  CHECK(copy.layers(plan, workload()).kinds[0].again->weights == weights);
}

TEST_CASE("a schedule is simulated once for equal times") {
  PriceCache cache;
  ParallelPlan plan;
  plan.pp = 2;
  PipelineTimes times;
  times.forward.assign(2, Seconds(1));
  times.backward.assign(2, Seconds(2));
  const Seconds makespan = cache.simulated(plan, 4, times).makespan;
  CHECK(makespan == Seconds((4 + 1) * 3));
  plan.zero = 1;  // no micro-batch waits for it
  CHECK(&cache.simulated(plan, 4, times) == &cache.simulated(plan, 4, times));
  times.transfer = Seconds(1);
  CHECK(cache.simulated(plan, 4, times).makespan > makespan);
  times.transfer = Seconds(0);
  times.backward[1] = Seconds(3);
  CHECK(cache.simulated(plan, 4, times).makespan > makespan);
  CHECK(cache.simulated(plan, 8, times).makespan > cache.simulated(plan, 4, times).makespan);
}

TEST_CASE("schedules and their mixes in flight, found once") {
  PriceCache cache;
  ParallelPlan plan;
  plan.pp = 4;
  CHECK(cache.held(plan, 16, workload().model).ends == nullptr);
  CHECK(&cache.program(plan, 16) == &cache.program(plan, 16));
  plan.vpp = 2, plan.schedule = ScheduleKind::interleaved;
  const HeldMixes even = cache.held(plan, 16, workload().model);
  REQUIRE(even.ends != nullptr);
  CHECK(even.ends == cache.held(plan, 64, workload().model).ends);  // they repeat
  CHECK(cache.stages(plan, workload().model) == cache.stages(plan, workload().model));
  plan.stage_layers = {2, 3, 3, 4, 3, 3, 3, 3};
  CHECK(cache.held(plan, 16, workload().model).chunks != nullptr);
  CHECK(cache.stages(plan, workload().model)->mixes[3].number[0] == 4);
}

}  // namespace price_cache_test
