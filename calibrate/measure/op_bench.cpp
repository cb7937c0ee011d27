#include "calibrate/measure/op_bench.hpp"

#include <algorithm>
#include <boost/align/aligned_allocator.hpp>
#include <random>
#include <span>
#include <vector>

#include "costmodel/base/error.hpp"
#include "runtime/devices/cpu_device.hpp"

namespace calibrate {

using namespace costmodel;
using runtime::OpCall;
using runtime::Tensor;

namespace {

// Rotating weights, 64 MB: in a model a matrix is used again only a micro-batch later.
constexpr std::size_t in_turn_floats = std::size_t{16} << 20;

// Aligned like the runtime's memory.
using AlignedFloats = std::vector<float, boost::alignment::aligned_allocator<float, 64>>;

// The time of a product does not depend on values, except zeros and denormals.
AlignedFloats random_floats(std::int64_t count) {
  constexpr std::size_t period = 65521;
  std::minstd_rand generator(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> uniform(-1, 1);
  AlignedFloats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i < period ? uniform(generator) : values[i - period];
  return values;
}

// The weights and gradients of all products, drawn once, because drawing them takes longer than a
// product.
std::span<float> weights(std::size_t count) {
  static AlignedFloats all;
  if (all.size() < count) all = random_floats(static_cast<std::int64_t>(count));
  return std::span(all).first(count);
}

Tensor view(AlignedFloats& values) { return {values.data(), values.size() * sizeof(float)}; }

// The sizes of an operator's tensors, in floats.
struct Sizes {
  std::vector<std::int64_t> inputs;
  std::int64_t output = 0;
  std::vector<std::int64_t> saved;
  std::int64_t matrix = 0, bias = 0;
};

Sizes sizes_of(const Op& op) {
  return std::visit(Visitor{
                        [](const Linear& o) -> Sizes {
                          return {{o.m * o.k}, o.m * o.n, {}, o.n * o.k, o.bias ? o.n : 0};
                        },
                        [](const FlashAttention& o) -> Sizes {
                          const std::int64_t rows = o.sequences * o.s,
                                             out = rows * o.heads * o.head_dim;
                          const std::int64_t qkv = rows * (o.heads + 2 * o.kv_heads) * o.head_dim;
                          return {{qkv}, out, {qkv, o.sequences * o.heads * o.s, out}, 0, 0};
                        },
                        [](const AttentionScores& o) -> Sizes {
                          return {{3 * o.batch * o.s * o.head_dim}, o.batch * o.s * o.s, {}, 0, 0};
                        },
                        [](const AttentionContext& o) -> Sizes {
                          const std::int64_t out = o.batch * o.s * o.head_dim;
                          return {{o.batch * o.s * o.s, 3 * out}, out, {}, 0, 0};
                        },
                        [](const auto&) -> Sizes {
                          SHARDPLAN_CHECK(!"an operator that is timed in whole layers");
                          return {};
                        },
                    },
                    op);
}

runtime::Place place_of(const Op& op) {
  runtime::Place place;
  const auto heads = [&](std::int64_t sequences, std::int64_t s, std::int64_t all, std::int64_t kv,
                         std::int64_t dim) {
    place.sequences = sequences;
    place.sequence = s;
    place.heads = place.all_heads = all;
    place.kv_heads = kv;
    place.head_dim = dim;
  };
  if (const auto* flash = std::get_if<FlashAttention>(&op))
    heads(flash->sequences, flash->s, flash->heads, flash->kv_heads, flash->head_dim);
  if (const auto* scores = std::get_if<AttentionScores>(&op))
    heads(1, scores->s, scores->batch, scores->batch, scores->head_dim);
  if (const auto* context = std::get_if<AttentionContext>(&op))
    heads(1, context->s, context->batch, context->batch, context->head_dim);
  return place;
}

// An operator with all its tensors.
class Bench {
 public:
  explicit Bench(const Op& op) : node_{Site::other, op, {}, -1, {}}, place_(place_of(op)) {
    const Sizes sizes = sizes_of(op);
    for (const auto size : sizes.inputs) {
      inputs_.push_back(random_floats(size));
      input_gradients_.push_back(random_floats(size));
    }
    for (const auto size : sizes.saved) saved_.push_back(random_floats(size));
    output_ = random_floats(sizes.output);
    output_gradient_ = random_floats(sizes.output);
    bias_ = random_floats(sizes.bias);
    bias_gradient_ = random_floats(sizes.bias);
    if (sizes.matrix == 0) return;
    matrix_ = static_cast<std::size_t>(sizes.matrix);
    turns_ = std::clamp<std::size_t>(in_turn_floats / matrix_, 1, 64);
    weights_ = weights(turns_ * matrix_);
  }

  void run(Pass pass) {
    OpCall call{.node = node_, .place = place_};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      call.inputs[i] = view(inputs_[i]);
      call.input_gradients[i] = view(input_gradients_[i]);
    }
    for (std::size_t i = 0; i < saved_.size(); ++i) call.saved[i] = view(saved_[i]);
    // A kept tensor that is also an input or output is the same tensor.
    if (saved_.size() == 3) {
      call.saved[0] = call.inputs[0];
      call.saved[2] = view(output_);
    }
    call.output = view(output_);
    call.output_gradient = view(output_gradient_);
    call.bias = std::span(bias_);
    if (!weights_.empty()) {
      const auto matrix = weights_.subspan(turn_++ % turns_ * matrix_, matrix_);
      if (pass == Pass::weight_gradient) {
        call.matrix_gradient = matrix;
        call.bias_gradient = std::span(bias_gradient_);
      } else {
        call.matrix = matrix;
      }
    }
    if (pass == Pass::forward) device_.forward(call);
    if (pass == Pass::input_gradient) device_.input_gradient(call);
    if (pass == Pass::weight_gradient) device_.weight_gradient(call);
  }

 private:
  Node node_;
  runtime::Place place_;
  runtime::CpuDevice device_;
  std::vector<AlignedFloats> inputs_, input_gradients_, saved_;
  AlignedFloats output_, output_gradient_, bias_, bias_gradient_;
  std::span<float> weights_;
  std::size_t matrix_ = 0, turns_ = 0, turn_ = 0;
};

}  // namespace

Timing time_op(const Op& op, Pass pass, const StopRule& rule) {
  Bench bench(op);
  bench.run(Pass::forward);  // what the backward needs from the forward
  return measure([&] { bench.run(pass); }, rule, thread_clock(), yardstick());
}

Timing time_bias(std::int64_t m, std::int64_t n, Pass pass, const StopRule& rule) {
  constexpr std::int64_t thin = 16;
  Timing with = time_op(Linear{m, n, thin, true, false}, pass, rule);
  const Timing without = time_op(Linear{m, n, thin, false, false}, pass, rule);
  const Seconds least_shown = with.median * 0.02;
  with.median = max(with.median - without.median, least_shown);
  with.least = max(with.least - without.least, least_shown);
  return with;
}

}  // namespace calibrate
