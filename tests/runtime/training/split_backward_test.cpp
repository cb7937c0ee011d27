// Schedules with split backward, and schedules from files, learn what one device learns.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/run_program.hpp"
#include "tests/runtime/support/trained.hpp"

namespace split_backward_test {

using namespace training_test;

namespace {

const std::string stack = "stack: {base: shardplan-cpu, zero_bubble: true, dualpipe: true}";

struct Cut {
  const char* model;
  const char* plan;
  int devices;
};

}  // namespace

TEST_CASE("weight gradients put off are the same gradients, and a rank holds what is predicted") {
  std::vector<double> references[2];
  for (const Cut& cut :
       {Cut{gpt, "pp: 2, schedule: zero-bubble-h1", 2}, Cut{gpt, "pp: 2, schedule: v-half", 2},
        Cut{gpt, "pp: 4, schedule: v-half, zero: 1", 4},
        Cut{llama, "pp: 2, dp: 2, schedule: v-half, zero: 3", 4},
        Cut{gpt, "pp: 2, dp: 2, schedule: v-half, zero: 2", 4},
        Cut{gpt, "pp: 2, schedule: v-min", 2}, Cut{gpt, "pp: 2, schedule: dualpipe-v", 2},
        Cut{llama, "tp: 2, pp: 2, sequence_parallel: true, schedule: zero-bubble-v", 4},
        Cut{gpt, "pp: 2, dp: 2, schedule: zero-bubble-v, recompute: selective", 4},
        Cut{llama, "pp: 2, schedule: zero-bubble-h2, recompute: full", 2}}) {
    CAPTURE(cut.plan);
    auto& reference = references[cut.model == gpt ? 0 : 1];
    if (reference.empty())
      reference =
          trained(scenario(cut.model, stack, "{micro_batch: 2}", 1), steps_cut).measured.loss;
    const Outcome outcome = trained(
        scenario(cut.model, stack, fmt::format("{{micro_batch: 2, {}}}", cut.plan), cut.devices),
        steps_cut);
    CHECK(loss_difference(outcome.measured.loss, reference) <= loss_bound);
    for (std::size_t p = 0; p < outcome.predicted.memory.size(); ++p) {
      const auto held = static_cast<double>(outcome.measured.memory[p][3]);
      // The gradients that a layer's products wait with stand beside its working tensors for a
      // moment, which the prediction does not count.
      CHECK(held <= 1.05 * outcome.predicted.memory[p].activations.value);
      CHECK(outcome.measured.stage_backward[p].value > 0);
    }
  }
}

TEST_CASE("a schedule from a file is executed, in any order of micro-batches that it lists") {
  const program::Scratch scratch;
  scratch.write("own.csv", "0F1,0F0,0B0,0F2,0F3,0B1,0B3,0B2\n1F1,1F0,1B0,1B1,1F2,1F3,1B3,1B2\n");
  scratch.write("split.csv",
                "0F0,0F1,0I1,0F2,0W1,0F3,0I0,0B3,0I2,0W2,0W0\n"
                "1F0,1F1,1I1,1I0,1W0,1F2,1F3,1B3,1I2,1W1,1W2\n");
  const auto reference = trained(scenario(gpt, stack, "{micro_batch: 4}", 1), steps_cut);
  for (const char* file : {"own.csv", "split.csv"}) {
    CAPTURE(file);
    const Outcome outcome =
        trained(scenario(gpt, stack + ", overlap: {overlap_grad_reduce: true}",
                         fmt::format("{{pp: 2, dp: 2, micro_batch: 2, schedule: {{file: {}}}}}",
                                     (scratch.path() / file).string()),
                         4),
                steps_cut);
    CHECK(loss_difference(outcome.measured.loss, reference.measured.loss) <= loss_bound);
  }
}

}  // namespace split_backward_test
