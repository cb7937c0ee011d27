// The op lists of towers against closed forms: parameters, FLOPs, windows, tensor parallelism, and
// what is left of a part that is not trained.
#include "costmodel/operators/tower_layers.hpp"

#include <doctest/doctest.h>

#include "costmodel/operators/lifetimes.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace tower_layers_test {

using namespace costmodel;

namespace {

constexpr LayerKind vision_stem{Part::tower_stem, 0}, vision_layer{Part::tower_layer, 0},
    vision_window{Part::tower_layer, 0, Mixer::window}, projector{Part::projector, 0};

// Images of 16 patches, and a language model of 64 columns.
ModelSpec model() {
  return read_model(
      parse_yaml(
          "{kind: llama, layers: 2, hidden: 64, heads: 4, ffn_hidden: 64, vocab: 128, "
          "vision: {patch: 4, image_size: 16, stem: [linear 32 bias], layers: 3, hidden: 32, "
          "heads: 4, ffn_hidden: 128, window: 4, full_layers: 1, "
          "projector: [layernorm, merge 4, linear 96 bias, gelu, linear 64 bias]}}",
          "m.yaml"),
      "m");
}

LayerContext context(int tp = 1, std::int64_t images = 3) {
  LayerContext c;
  c.tp = tp;
  c.sequence = 64;
  c.micro_batch = 2;
  c.towers.number[0] = images;
  return c;
}

double forward_flops(const OpList& list) {
  double sum = 0;
  for (const Step& step : forward_steps(list))
    sum += work_of(step.node->op, step.pass, 2).model.value;
  return sum;
}

}  // namespace

TEST_CASE("a layer has the FLOPs of 24 b s h^2 + 4 b s^2 h, and a window those of its tokens") {
  const double h = 32, s = 16, b = 2 * 3, products = 24 * b * s * h * h;
  CHECK(forward_flops(build_layer(vision_layer, model(), context())) ==
        products + 4 * b * s * s * h);
  CHECK(forward_flops(build_layer(vision_window, model(), context())) ==
        products + 4 * b * s * 4 * h);
  // Nothing else of the sequence or of context parallelism reaches a tower.
  LayerContext other = context();
  other.sequence = 4096;
  other.cp = 2;
  other.sequence_parallel = true;
  other.attended = 7;
  CHECK(forward_flops(build_layer(vision_layer, model(), other)) == products + 4 * b * s * s * h);
}

TEST_CASE("stem and projector: a product a step over all patches") {
  const double rows = 2 * 3 * 16;
  CHECK(forward_flops(build_layer(vision_stem, model(), context())) == 2 * rows * 48 * 32);
  CHECK(forward_flops(build_layer(projector, model(), context())) ==
        2 * (rows / 4) * (128 * 96 + 96 * 64));
}

TEST_CASE("tensor parallelism cuts layers and pairs of products, or every rank has all of them") {
  const auto weights = [](LayerKind kind, int tp) {
    return weights_of(build_layer(kind, model(), context(tp)));
  };
  // Norms, and biases after a sum, are not cut.
  const double uncut = 4 * 32 + 2 * 32;
  CHECK(weights(vision_layer, 2) == (weights(vision_layer, 1) - uncut) / 2 + uncut);
  const double ends = 2 * 32 + 64;
  CHECK(weights(projector, 2) == (weights(projector, 1) - ends) / 2 + ends);
  CHECK(weights(vision_layer, 8) == weights(vision_layer, 1));  // 4 heads
  CHECK(weights(projector, 8) == weights(projector, 1));
  for (const LayerKind kind : {vision_layer, projector}) {
    double sent = 0;
    const OpList list = build_layer(kind, model(), context(2));
    for (const Node& node : list.nodes) {
      const auto* collective = std::get_if<Collective>(&node.op);
      if (collective == nullptr) continue;
      CHECK(collective->axis == Axis::tensor);
      if (collective->forward == CollectiveKind::all_reduce) sent += collective->bytes.value;
    }
    const double layer = 2 * (2.0 * 3 * 16 * 32 * 2), last = 2.0 * 3 * 4 * 64 * 2;
    CHECK(sent == (kind == projector ? last : layer));
  }
}

TEST_CASE(
    "a frozen part keeps nothing and has no backward; what follows it has no input gradient") {
  LayerContext frozen = context();
  frozen.tuning.frozen = bit_of(ModelPiece::vision);
  for (const LayerKind kind : {vision_stem, vision_layer, vision_window}) {
    const OpList list = build_layer(kind, model(), frozen);
    CHECK(backward_steps(list).empty());
    CHECK(footprint(list, Recomputed::nothing).kept.value == 0);
  }
  const auto passes = [](const OpList& list, Pass pass) {
    std::size_t number = 0;
    for (const Step& step : backward_steps(list))
      number += step.pass == pass && std::holds_alternative<Linear>(step.node->op) ? 1 : 0;
    return number;
  };
  const OpList trained = build_layer(projector, model(), context());
  CHECK(
      (passes(trained, Pass::weight_gradient) == 2 && passes(trained, Pass::input_gradient) == 2));
  const OpList after = build_layer(projector, model(), frozen);
  CHECK(passes(after, Pass::weight_gradient) == 2);
  // Patches have no gradient.
  CHECK(passes(build_layer(vision_stem, model(), context()), Pass::input_gradient) == 0);
  // A frozen projector passes the gradient on to a trained tower, and has none of its own.
  LayerContext through = context();
  through.tuning.frozen = bit_of(ModelPiece::projector);
  const OpList passed = build_layer(projector, model(), through);
  CHECK((passes(passed, Pass::weight_gradient) == 0 && passes(passed, Pass::input_gradient) == 2));
  // With adapters of the language model all of a tower is frozen.
  LayerContext adapters = context();
  adapters.tuning.method = FineTuningMethod::lora;
  CHECK(backward_steps(build_layer(projector, model(), adapters)).empty());
}

TEST_CASE("the parts of towers in their order, each with a name and a number of its own") {
  const auto parts = tower_layers(model());
  REQUIRE(parts.size() == 4);
  CHECK((parts[1].number == 2 && parts[2].number == 1));
  CHECK(describe(parts[0].kind) == "vision stem");
  CHECK(describe(parts[1].kind) == "vision tower with a window");
  CHECK(describe(parts[3].kind) == "vision projector");
  for (std::size_t i = 1; i < parts.size(); ++i)
    CHECK(parts[i].kind.code() != parts[i - 1].kind.code());
  CHECK(LayerKind(Part::tower_stem, 1).code() != vision_stem.code());
  CHECK(describe(LayerKind(Part::branch, 1)) == "audio branch");
}

}  // namespace tower_layers_test
