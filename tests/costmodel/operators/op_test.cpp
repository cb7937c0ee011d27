// What one pass of each operator does: FLOPs, bytes and kernels, counted by hand.
#include "costmodel/operators/op.hpp"

#include <doctest/doctest.h>

#include <string>

namespace op_test {

using namespace costmodel;

namespace {

struct Expected {
  Op op;
  Pass pass;
  double model, executed, moved;
  int kernels;
};

}  // namespace

TEST_CASE("FLOPs, bytes and kernels of every operator, two bytes an element") {
  using enum Pass;
  const double n = 10.0 * 20;              // elements of the element-wise ones
  const double one = 2.0 * 6 * 8 * 8 * 4;  // a product of attention: batch 6, s 8, head size 4
  const double scores = 6.0 * 8 * 8, heads = 6.0 * 8 * 4;
  const Linear linear{10, 20, 30, true, false};
  const double product = 2.0 * 10 * 20 * 30, operands = 2 * (10.0 * 20 + 20 * 30 + 10 * 30);
  const AttentionScores qk{6, 8, 4};
  const AttentionContext pv{6, 8, 4};
  const FlashAttention flash{2, 8, 3, 1, 4, true};  // 6 query heads, 2 key/value heads in all
  const double kv = 2 * 2.0 * 8 * 4;
  const Softmax fused{10, 20, true}, apart{10, 20, false}, triangular{10, 20, true, true};
  const BiasDropoutAdd whole{10, 20, true, true, true}, parts{10, 20, true, true, false},
      bare{10, 20, false, false, false};
  const Expected table[] = {
      {linear, forward, product, product, operands, 1},
      {linear, input_gradient, product, product, operands, 1},
      {linear, weight_gradient, product, product, operands + 2 * n,
       2},  // and the bias' column sums
      {qk, forward, one, one, 2 * (scores + 2 * heads), 1},
      {qk, input_gradient, 2 * one, 2 * one, 4 * (scores + 2 * heads), 2},
      {pv, forward, one, one, 2 * (scores + 2 * heads), 1},
      {pv, input_gradient, 2 * one, 2 * one, 4 * (scores + 2 * heads), 2},
      // Causal: half of 2 products forward, of 5 backward; published conventions count 2 and 4 in
      // full.
      {flash, forward, 2 * one, one, 2 * (2 * heads + kv), 1},
      {flash, input_gradient, 4 * one, 2.5 * one, 2 * (4 * heads + 2 * kv), 2},
      {fused, forward, 0, 0, n * 4, 1},
      {fused, input_gradient, 0, 0, n * 6, 1},
      {apart, forward, 0, 0, n * 36, 5},
      {apart, input_gradient, 0, 0, n * 40, 5},
      {triangular, forward, 0, 0, n * 3, 1},
      {triangular, input_gradient, 0, 0, n * 4, 1},
      {Dropout{10, 20}, forward, 0, 0, n * 5, 1},
      {Dropout{10, 20}, input_gradient, 0, 0, n * 5, 1},
      {Norm{10, 20, Normalization::layernorm}, forward, 0, 0, n * 4, 1},
      {Norm{10, 20, Normalization::layernorm}, input_gradient, 0, 0, n * 6, 2},
      {Activation{10, 20, false, true}, forward, 0, 0, n * 4, 1},
      {Activation{10, 20, true, true}, forward, 0, 0, n * 6, 1},
      {Activation{10, 20, true, true}, input_gradient, 0, 0, n * 10, 1},
      {Activation{10, 20, false, false}, forward, 0, 0, n * 8, 2},
      {whole, forward, 0, 0, n * 7, 1},  // x, residual, result, mask
      {parts, forward, 0, 0, n * (6 + 4 + 5), 3},
      {bare, forward, 0, 0, n * 6, 1},
      {whole, input_gradient, 0, 0, n * (4 + 1 + 6), 2},  // masked gradient; sum of two gradients
      {bare, input_gradient, 0, 0, n * 6, 1},
      {Rotary{10, 20}, forward, 0, 0, n * 4, 1},
      {Embedding{10, 20, 99}, forward, 0, 0, n * 4, 1},
      {Embedding{10, 20, 99}, input_gradient, 0, 0, n * 6, 2},
      {PositionEmbedding{10, 20, 99}, forward, 0, 0, n * 6, 2},
      {PositionEmbedding{10, 20, 99}, input_gradient, 0, 0, n * 4, 1},
      {CrossEntropy{10, 20, LossKernel::flash}, forward, 0, 0, n * 4, 2},
      {CrossEntropy{10, 20, LossKernel::flash}, input_gradient, 0, 0, n * 4, 1},
      {CrossEntropy{10, 20, LossKernel::unfused}, forward, 0, 0, n * (2 + 36), 7},
      {CrossEntropy{10, 20, LossKernel::unfused}, input_gradient, 0, 0, n * (2 + 12), 3},
      // Cast and maximum 2 + 4, exponential and sum 4 + 4, division 4 + 4; a copy 4 + 4, and its
      // product with the gradient read once and written in 4 and in 2 bytes.
      {CrossEntropy{10, 20, LossKernel::native}, forward, 0, 0, n * (6 + 8 + 8), 6},
      {CrossEntropy{10, 20, LossKernel::native}, input_gradient, 0, 0, n * (8 + 10), 3},
      // Read twice, the gradient written once; read and written once.
      {CrossEntropy{10, 20, LossKernel::te}, forward, 0, 0, n * 6, 2},
      {CrossEntropy{10, 20, LossKernel::te}, input_gradient, 0, 0, n * 4, 1},
      {Collective{CollectiveKind::all_reduce, CollectiveKind::none, Axis::tensor, Bytes(8)},
       forward, 0, 0, 0, 0},
  };
  for (const Expected& e : table) {
    CAPTURE(std::string(name_of(e.op)));
    CAPTURE(static_cast<int>(e.pass));
    const Work work = work_of(e.op, e.pass, 2);
    CHECK(work.model.value == e.model);
    CHECK(work.executed.value == e.executed);
    CHECK(work.moved.value == e.moved);
    CHECK(work.kernels == e.kernels);
  }
}

TEST_CASE("parameters of operators") {
  CHECK(weights_of(Linear{10, 20, 30, true, false}) == 620);
  CHECK(weights_of(Linear{10, 20, 30, false, false}) == 600);
  CHECK(weights_of(Norm{10, 20, Normalization::layernorm}) == 40);
  CHECK(weights_of(Norm{10, 20, Normalization::rmsnorm}) == 20);
  CHECK(weights_of(Norm{10, 20, Normalization::rmsnorm, 2}) == 40);
  CHECK(weights_of(Embedding{10, 20, 99}) == 1980);
  CHECK(weights_of(PositionEmbedding{10, 20, 99}) == 1980);
  CHECK(weights_of(Dropout{10, 20}) == 0);
  CHECK(has_pass(Linear{}, Pass::weight_gradient));
  CHECK_FALSE(has_pass(Norm{}, Pass::weight_gradient));
  CHECK(has_pass(Norm{}, Pass::input_gradient));
}

}  // namespace op_test
