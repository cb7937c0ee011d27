#include "planner/search/simplicity.hpp"

#include <doctest/doctest.h>

namespace simplicity_test {

using costmodel::ParallelPlan;
using costmodel::Recomputation;
using planner::simplicity;

TEST_CASE("features are counted first, then even layers and fewer virtual stages are simpler") {
  ParallelPlan data;
  data.dp = 64;
  data.zero = 2;
  data.recompute = {Recomputation::full, 0};
  CHECK(simplicity(data).features == 0);
  CHECK(simplicity(data) == simplicity(ParallelPlan{}));

  ParallelPlan pipeline = data;
  pipeline.tp = 4;
  pipeline.pp = 8;
  CHECK(simplicity(pipeline).features == 2);
  const auto changed = [&](auto change) {
    ParallelPlan plan = pipeline;
    change(plan);
    return simplicity(plan);
  };
  const auto chunks = [](int vpp) {
    return [vpp](ParallelPlan& p) {
      p.vpp = vpp;
      p.schedule = costmodel::usual_schedule(vpp);
    };
  };
  const auto uneven = changed([](ParallelPlan& p) { p.stage_layers = {3, 4}; });
  const auto two = changed(chunks(2)), three = changed(chunks(3));
  const auto context = changed([](ParallelPlan& p) { p.cp = 2; });
  const auto experts = changed([](ParallelPlan& p) { p.ep = 2; });
  const auto sharded = changed([](ParallelPlan& p) { p.zero = 3; });
  const auto by_count = changed([](ParallelPlan& p) { p.recompute = {Recomputation::full, 3}; });
  const auto split =
      changed([](ParallelPlan& p) { p.schedule = costmodel::ScheduleKind::zero_bubble_h1; });
  for (const auto& one : {uneven, two, three, context, experts, sharded, by_count, split})
    CHECK(one.features == 3);
  CHECK(changed([](ParallelPlan& p) { p.stage_layers = {4, 4, 3}; }).features == 2);
  CHECK(two < uneven);
  CHECK(two < three);
  CHECK(context < two);
  CHECK(by_count < context);
  CHECK(changed([](ParallelPlan& p) {
          p.cp = 2;
          p.ep = 2;
        }) > uneven);
}

TEST_CASE("of stages with sizes of their own each counts") {
  ParallelPlan plan;
  plan.pp = 2;
  plan.stages = {{.tp = 2}, {.dp = 2}};
  const auto plain = simplicity(plan);
  CHECK(plain.features == 3);  // pipeline, tensor, sizes of their own
  plan.stages[1].recompute = {Recomputation::full, 1};
  CHECK(simplicity(plan).features == 4);
}

}  // namespace simplicity_test
