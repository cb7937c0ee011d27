// The times of a stage in longer pipelines than it is priced in, held against the cost model's.
#include "planner/search/stage_pace.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace stage_pace_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using planner::StageOption;
using scenarios::read;

TEST_CASE("a stage is never quicker in a longer pipeline than its pace says, and hardly slower") {
  int differ = 0;
  for (const std::string cluster : {"dgx-h100", "dgx-v100", "laptop-cpu"}) {
    const bool cpu = cluster == "laptop-cpu";
    const auto s = read("model: {base: gpt2-medium, layers: 48}\ncluster: {base: " + cluster +
                        ", devices: " + std::string(cpu ? "1" : "32") +
                        "}\ntraining: {global_batch: 64, sequence: 1024, precision: " +
                        std::string(cpu ? "fp32" : "fp16") + ", stack: megatron-core-2025}\n");
    for (const std::int64_t micro_batch : {1, 8}) {
      for (const int zero : {0, 3}) {
        Evaluator evaluator(s.model, s.cluster, s.training);
        ParallelPlan plan;
        plan.micro_batch = micro_batch;
        plan.zero = zero;
        const auto mix = layer_mix(s.model, 4, 2, {});
        const auto priced = [&](int stages) {
          plan.pp = stages;
          const auto& cost =
              evaluator.cost(plan, std::vector(static_cast<std::size_t>(stages), mix));
          StageOption option;
          option.stages = stages;
          option.forward = cost.times.forward[1].value;
          option.backward = cost.times.backward[1].value;
          option.computed_forward = cost.stages[1].forward.compute.value;
          option.computed_backward =
              (cost.stages[1].backward.compute + cost.stages[1].recompute.compute).value;
          return option;
        };
        const std::int64_t m = s.training.global_batch / micro_batch;
        const StageOption three = priced(3);
        for (const int stages : {3, 4, 8, 24}) {
          const StageOption real = priced(stages);
          const StageOption least = in_pipeline(three, s.cluster, m, stages);
          CHECK(least.forward <= real.forward * (1 + 1e-12));
          CHECK(least.backward <= real.backward * (1 + 1e-12));
          CHECK(least.forward >= real.forward * 0.9);
          CHECK(least.backward >= real.backward * 0.9);
          const bool changes = planner::waits_differ(s.cluster, m, 3, stages);
          CHECK((changes || least.forward >= three.forward * (1 - 1e-3)));
          differ += changes ? 1 : 0;
        }
        CHECK(in_pipeline(three, s.cluster, m, 2).forward == three.forward);
      }
    }
  }
  CHECK(differ > 10);
}

}  // namespace stage_pace_test
