// A layer's operators against the published closed forms: activations (Korthikanti et al. 2022,
// arXiv:2205.05198, table 2), parameters and shapes.
#include "costmodel/operators/transformer.hpp"

#include <doctest/doctest.h>

#include "costmodel/operators/op_list.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace transformer_test {

using namespace costmodel;
using fixtures::gpt;
using fixtures::layer_context;

namespace {

struct Shape {
  std::int64_t s, b, h, a;
};
constexpr Shape shapes[] = {{2048, 1, 12288, 96}, {2048, 4, 6144, 64}, {1024, 8, 2304, 24},
                            {512, 3, 1024, 16},   {4096, 2, 1600, 8},  {8192, 1, 768, 24}};
constexpr int tensor_sizes[] = {1, 2, 4, 8};

double kept(const Shape& shape, int t, bool sequence_parallel, Recomputed what) {
  const OpList block = build_layer(LayerKind::block, gpt(1, shape.h, shape.a, 51200, shape.s),
                                   layer_context(t, sequence_parallel, shape.b, shape.s));
  return footprint(block, what).kept_activations.value;
}

template <class Check>
void for_each_case(Check check) {
  for (const Shape& shape : shapes) {
    for (const int t : tensor_sizes) {
      CAPTURE(shape.s);
      CAPTURE(shape.b);
      CAPTURE(shape.h);
      CAPTURE(shape.a);
      CAPTURE(t);
      // Integers below 2^53 throughout: equality is exact.
      check(shape, t, static_cast<double>(shape.s * shape.b * shape.h),
            static_cast<double>(shape.a * shape.s * shape.s * shape.b));
    }
  }
}

}  // namespace

TEST_CASE("activations of a layer: table 2, without tensor parallelism") {
  for (const Shape& shape : shapes) {
    const auto sbh = static_cast<double>(shape.s * shape.b * shape.h);
    const auto ass_b = static_cast<double>(shape.a * shape.s * shape.s * shape.b);
    CHECK(kept(shape, 1, false, Recomputed::nothing) == 34 * sbh + 5 * ass_b);
    CHECK(kept(shape, 1, false, Recomputed::attention_core) == 34 * sbh);
    CHECK(kept(shape, 1, false, Recomputed::everything) == 2 * sbh);
  }
}

TEST_CASE("activations of a layer: table 2, tensor parallel") {
  for_each_case([](const Shape& shape, int t, double sbh, double assb) {
    CHECK(kept(shape, t, false, Recomputed::nothing) == 10 * sbh + 24 * sbh / t + 5 * assb / t);
    CHECK(kept(shape, t, false, Recomputed::attention_core) == 10 * sbh + 24 * sbh / t);
    CHECK(kept(shape, t, false, Recomputed::everything) == 2 * sbh);
  });
}

TEST_CASE("activations of a layer: table 2, tensor and sequence parallel") {
  for_each_case([](const Shape& shape, int t, double sbh, double assb) {
    if (t == 1) return;
    CHECK(kept(shape, t, true, Recomputed::nothing) == 34 * sbh / t + 5 * assb / t);
    CHECK(kept(shape, t, true, Recomputed::attention_core) == 34 * sbh / t);
    CHECK(kept(shape, t, true, Recomputed::everything) == 2 * sbh / t);
  });
}

TEST_CASE("activations without dropout lose the masks and the dropped copy") {
  for (const Shape& shape : shapes) {
    ModelSpec model = gpt(1, shape.h, shape.a, 51200, shape.s);
    model.dropout = 0;
    const OpList block =
        build_layer(LayerKind::block, model, layer_context(1, false, shape.b, shape.s));
    const auto sbh = static_cast<double>(shape.s * shape.b * shape.h);
    const auto assb = static_cast<double>(shape.a * shape.s * shape.s * shape.b);
    CHECK(footprint(block, Recomputed::nothing).kept_activations.value == 32 * sbh + 2 * assb);
  }
}

TEST_CASE("flash attention keeps no scores: 34sbh minus nothing but its own softmax") {
  for (const Shape& shape : shapes) {
    LayerContext context = layer_context(1, false, shape.b, shape.s);
    context.attention = AttentionKernel::flash;
    const OpList block =
        build_layer(LayerKind::block, gpt(1, shape.h, shape.a, 51200, shape.s), context);
    const auto sbh = static_cast<double>(shape.s * shape.b * shape.h);
    CHECK(footprint(block, Recomputed::nothing).kept_activations.value == 34 * sbh);
  }
}

TEST_CASE("grouped-query attention keeps fewer keys and values") {
  ModelSpec model = gpt(1, 4096, 32, 51200, 2048);
  model.kv_heads = 8;  // K and V are a quarter each: 6sbh of QKV becomes 3sbh
  const OpList block = build_layer(LayerKind::block, model, layer_context(1, false, 1, 2048));
  const double sbh = 2048.0 * 4096, assb = 32.0 * 2048 * 2048;
  CHECK(footprint(block, Recomputed::nothing).kept_activations.value == 31 * sbh + 5 * assb);
}

TEST_CASE("activations of the embedding and the head") {
  const std::int64_t s = 1024, b = 2, h = 1024, v = 51200;
  const ModelSpec model = gpt(1, h, 16, v, s);
  for (const int t : tensor_sizes) {
    CAPTURE(t);
    const double sbh = static_cast<double>(s * b * h), sbv = static_cast<double>(s * b * v);
    const auto of = [&](LayerKind kind, bool sp) {
      return footprint(build_layer(kind, model, layer_context(t, sp, b, s)), Recomputed::nothing)
          .kept_activations.value;
    };
    // Korthikanti et al. 2022, section 4.3: sbh dropout mask of the input, 2sbh final norm, 2sbh
    // output projection, 4sbv/t logits in fp32.
    CHECK(of(LayerKind::embedding, false) == sbh);
    CHECK(of(LayerKind::head, false) == 4 * sbh + 4 * sbv / t);
    if (t == 1) continue;
    CHECK(of(LayerKind::embedding, true) == sbh / t);
    CHECK(of(LayerKind::head, true) == 4 * sbh / t + 4 * sbv / t);
  }
}

TEST_CASE("parameters of a layer divide over the tensor ranks") {
  for (const Shape& shape : shapes) {
    const ModelSpec model = gpt(1, shape.h, shape.a, 51200, shape.s);
    for (const int t : tensor_sizes) {
      const auto h = static_cast<double>(shape.h);
      const OpList block =
          build_layer(LayerKind::block, model, layer_context(t, false, shape.b, shape.s));
      // 12h² and the biases of the column-parallel products (3h + 4h) are cut; norms (4h) and the
      // row-parallel biases (2h) are on every rank.
      CHECK(weights_of(block) == 12 * h * h / t + 7 * h / t + 6 * h);
    }
  }
}

TEST_CASE("a vocabulary is padded to 128·t before it is cut") {
  const ModelSpec model = gpt(1, 64, 4, 50257, 128);
  CHECK(weights_of(build_layer(LayerKind::embedding, model, layer_context(1, false, 1, 128))) ==
        50304.0 * 64 + 128 * 64);
  CHECK(weights_of(build_layer(LayerKind::embedding, model, layer_context(8, false, 1, 128))) ==
        51200.0 / 8 * 64 + 128 * 64);
  CHECK(weights_of(build_layer(LayerKind::head, model, layer_context(8, false, 1, 128))) ==
        51200.0 / 8 * 64 + 2 * 64);
}

TEST_CASE("gradients of what every tensor rank holds are summed where each sees a part") {
  const ModelSpec model = fixtures::gpt(2, 64, 4, 512, 32);
  const auto of = [&](LayerKind kind, int tp, bool sequence_parallel) {
    const auto context = fixtures::layer_context(tp, sequence_parallel, 2, 32);
    return costmodel::partial_weights(build_layer(kind, model, context), context);
  };
  // Two norms of gain and shift, two biases behind a reduce-scatter; the final norm; positions.
  CHECK(of(LayerKind::block, 2, true) == 6 * 64);
  CHECK(of(LayerKind::head, 2, true) == 2 * 64);
  CHECK(of(LayerKind::embedding, 2, true) == 32 * 64);
  CHECK(of(LayerKind::block, 2, false) == 0);
  CHECK(of(LayerKind::block, 1, false) == 0);
}

}  // namespace transformer_test
