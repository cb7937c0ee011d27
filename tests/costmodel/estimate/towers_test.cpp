// Towers in the estimate of a plan: they stand on the first stage, and cost what their parts do.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/operators/tower_layers.hpp"
#include "costmodel/plan/trained_parameters.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace towers_test {

using namespace costmodel;

namespace {

Scenario scenario(const std::string& training, const std::string& plan,
                  const std::string& model = "") {
  return scenarios::read(
      "model: {base: llama-3.2-1b, vision: {patch: 14, image_size: 336, "
      "stem: [linear 1024, tokens 1, positions 577, layernorm], layers: 24, hidden: 1024, "
      "heads: 16, ffn_hidden: 4096, projector: [layernorm, drop 1, linear 2048 bias, gelu, "
      "linear 2048 bias]}" +
      model +
      "}\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 16, sequence: 4096, precision: bf16" +
      training + "}\nplan: " + plan + "\n");
}

Estimate estimated(const Scenario& s) {
  return estimate_of(s.model, s.cluster, s.training, resolve_plan(s));
}

Estimate estimated(const std::string& training, const std::string& plan) {
  return estimated(scenario(training, plan));
}

}  // namespace

TEST_CASE("states: 2 + 4 + 12 bytes of a trained parameter, 2 of a frozen one, on the first rank") {
  const Scenario s = scenario(", images: 2", "{dp: 8}");
  const TowerSpec& tower = towers_of(s.model).front();
  const double all = tower_parameters(tower), projector = projector_parameters(tower);
  const auto states = [](const Estimate& e, std::size_t rank = 0) {
    const StageMemory& m = e.memory[rank];
    return (m.weights + m.gradients + m.optimizer).value;
  };
  const double text = states(estimated(", images: 0", "{dp: 8}"));
  CHECK(states(estimated(s)) == doctest::Approx(text + 18 * all).epsilon(1e-12));
  CHECK(states(estimated(", images: 2, frozen: [vision]", "{dp: 8}")) ==
        doctest::Approx(text + 18 * projector + 2 * (all - projector)).epsilon(1e-12));
  const Estimate none = estimated(", images: 2, frozen: [projector, vision]", "{dp: 8}");
  CHECK(states(none) == doctest::Approx(text + 2 * all).epsilon(1e-12));
  CHECK(none.parameters - none.trained_parameters == all);
  const Estimate stages = estimated(", images: 2", "{pp: 2, dp: 4}"),
                 without = estimated(", images: 0", "{pp: 2, dp: 4}");
  CHECK(states(stages) == doctest::Approx(states(without) + 18 * all).epsilon(1e-12));
  CHECK(states(stages, 1) == states(without, 1));
}

TEST_CASE("time: the first stage has the towers' passes, no other stage changes") {
  const std::string plan = "{tp: 2, dp: 4, sequence_parallel: true}";
  const Scenario s = scenario(", images: 2", plan);
  Evaluator evaluator(s.model, s.cluster, s.training);
  Seconds forward, backward;
  for (const TowerLayers& own : tower_layers(s.model)) {
    const LayerCost& cost = evaluator.layer(own.kind, resolve_plan(s), Recomputed::nothing);
    forward += own.number * cost.forward.time();
    backward += own.number * cost.backward.time();
  }
  const Estimate with = estimated(s), without = estimated(", images: 0", plan);
  CHECK(with.stage_forward[0].value ==
        doctest::Approx((without.stage_forward[0] + forward).value).epsilon(1e-12));
  CHECK(with.stage_backward[0].value ==
        doctest::Approx((without.stage_backward[0] + backward).value).epsilon(1e-12));
  const std::string pipeline = "{pp: 2, dp: 4}";
  const Estimate first = estimated(", images: 2", pipeline),
                 text = estimated(", images: 0", pipeline);
  CHECK(first.stage_forward[0] > text.stage_forward[0]);
  CHECK(first.stage_forward[1] == text.stage_forward[1]);
  CHECK(first.stage_backward[1] == text.stage_backward[1]);
  CHECK(with.breakdown.total().value == doctest::Approx(with.iteration.value).epsilon(1e-12));
  CHECK(with.traffic.all_reduce > without.traffic.all_reduce);
}

TEST_CASE("model FLOPs: three passes of a trained tower, one of a frozen one, two a projector's") {
  const std::string plan = "{dp: 8}";
  const auto flops = [&](const std::string& training) {
    return estimated(training, plan).model_flops.value;
  };
  const double text = flops(", images: 0"), h = 1024, s = 577, images = 16;
  const double layers = 24 * images * (24 * s * h * h + 4 * s * s * h);
  const double stem = 2 * images * 576 * 588 * h,
               projector = 2 * images * 576 * (1024.0 * 2048 + 2048.0 * 2048);
  CHECK(flops(", images: 1") - text ==
        doctest::Approx(3 * layers + 2 * stem + 3 * projector).epsilon(1e-9));
  CHECK(flops(", images: 2") - text ==
        doctest::Approx(2 * (3 * layers + 2 * stem + 3 * projector)).epsilon(1e-9));
  // The layernorm before the first product is trained, which needs that product's input gradient.
  CHECK(flops(", images: 1, frozen: [vision]") - text ==
        doctest::Approx(layers + stem + 3 * projector).epsilon(1e-9));
  CHECK(flops(", images: 1, frozen: [vision, projector]") - text ==
        doctest::Approx(layers + stem + projector).epsilon(1e-9));
}

TEST_CASE("a frozen tower keeps nothing, recomputation leaves a trained one its layers' inputs") {
  const auto kept = [](const std::string& training, const std::string& plan) {
    const Scenario s = scenario(training, plan);
    Evaluator evaluator(s.model, s.cluster, s.training);
    return evaluator.cost(resolve_plan(s)).ranks.front().memory.activations.value;
  };
  const std::string full = "{dp: 8, recompute: full}";
  CHECK(kept(", images: 4, frozen: [vision, projector]", "{dp: 8}") <=
        kept(", images: 4", "{dp: 8}"));
  const double inputs = 24 * 4 * 577 * 1024 * 2;
  CHECK(kept(", images: 4", full) - kept(", images: 4, frozen: [vision]", full) >= inputs);
  CHECK(kept(", images: 4", "{dp: 8}") > kept(", images: 4", full));
}

TEST_CASE("schedules, ZeRO, chunks and optimizers take towers as they take layers") {
  for (const char* const plan :
       {"{dp: 8, zero: 3}", "{pp: 2, vpp: 2, dp: 4}",
        "{pp: 4, dp: 2, schedule: gpipe, recompute: selective}",
        "{pp: 2, dp: 4, stage_layers: [2, 14]}", "{tp: 2, cp: 2, dp: 2}"}) {
    for (const char* const training :
         {", images: 3", ", images: 3, frozen: [vision]", ", images: 3, optimizer: adam-8bit"}) {
      CAPTURE(std::string(plan));
      CAPTURE(std::string(training));
      const Estimate with = estimated(training, plan), without = estimated(", images: 0", plan);
      CHECK(with.iteration > without.iteration);
      CHECK(with.breakdown.total().value == doctest::Approx(with.iteration.value).epsilon(1e-9));
      CHECK(with.hfu <= 1);
    }
  }
}

TEST_CASE("a split backward has a tower's weight gradients as well") {
  const auto split = [&](const std::string& images) {
    return estimated(", images: " + images + ", stack: zero-bubble-fork",
                     "{pp: 4, dp: 2, schedule: zero-bubble-h1}");
  };
  const Estimate with = split("2"), without = split("0");
  CHECK(with.stage_backward[0] > without.stage_backward[0]);
  CHECK(with.breakdown.total().value == doctest::Approx(with.iteration.value).epsilon(1e-9));
}

}  // namespace towers_test
