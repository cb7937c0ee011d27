// The stages and op lists of serving.
#include "costmodel/serving/served_program.hpp"

#include <doctest/doctest.h>

#include "costmodel/serving/serving_memory.hpp"
#include "tests/costmodel/serving/support/served.hpp"

namespace served_program_test {

using namespace costmodel;

TEST_CASE("layers that are left over stand before the last stage, as vLLM deals them") {
  ModelSpec model = served::usual().model;
  model.layers = 10;
  const auto layers = [&](int pp) {
    std::vector<std::int64_t> all;
    std::int64_t next = 0;
    for (int k = 0; k < pp; ++k) {
      const ServedStage stage = served_stage(model, pp, k);
      CHECK(stage.first_layer == next);
      CHECK(stage.first == (k == 0));
      CHECK(stage.last == (k == pp - 1));
      next += stage.layers;
      all.push_back(stage.layers);
    }
    CHECK(next == 10);
    return all;
  };
  using Layers = std::vector<std::int64_t>;
  CHECK(layers(1) == Layers{10});
  CHECK(layers(4) == Layers{2, 3, 3, 2});
  CHECK(layers(3) == Layers{3, 4, 3});
  CHECK(layers(10) == Layers(10, 1));
}

TEST_CASE("a served head ends with logits, and stages hold the model's weights together") {
  const auto s = served::usual();
  const OpList head = served_list(LayerKind::head, s.model, 1, {3, 1}, 2);
  CHECK(head.nodes.back().site == Site::logits);
  CHECK(head.output == head.nodes.back().output);
  ModelSpec tied = s.model;
  tied.tie_embeddings = true;
  const auto weights = [](const ModelSpec& model, int pp) {
    double sum = 0;
    for (int k = 0; k < pp; ++k)
      sum +=
          stage_weights(model, WeightFormat::bf16, {1, pp, 1, 1}, served_stage(model, pp, k)).value;
    return sum;
  };
  CHECK(weights(s.model, 1) == 2 * 6'738'415'616.0);
  CHECK(weights(s.model, 3) == weights(s.model, 1));
  const double table = 2 * 32000.0 * 4096;
  CHECK(weights(tied, 1) == weights(s.model, 1) - table);
  CHECK(weights(tied, 2) == weights(s.model, 1));  // both ends have it
}

TEST_CASE("in fp32 messages and weights are twice as large as in 16 bits") {
  CHECK(element_bytes(WeightFormat::fp32) == 4);
  CHECK(element_bytes(WeightFormat::int4) == 2);
  const auto model = served::usual().model;
  CHECK(weights_held(model, WeightFormat::fp32, {}).value ==
        2 * weights_held(model, WeightFormat::bf16, {}).value);
}

}  // namespace served_program_test
