// A device that computes with the kernels of this folder on any executor: a GPU (runtime/cuda) or,
// in tests, the host. Include kernel_device.hpp to use it.
//
// An Executor runs, in the order of the calls:
//   elements(count, kernel)        kernel(i) for each i below count
//   rows(count, width, kernel)     kernel(team, row) for each row, of about `width` columns
//   columns(rows, cols, kernel)    kernel.add(col, sum of kernel.term(row, col)) for each column
//   product(gemm, batch, a, b, ending, c)   like cpu::gemm_batched, of T into T or float, with an
//                                  epilogue (product.hpp); false when its library has no algorithm
//                                  for that, and then nothing has been computed
//   fp8_product(gemm, a, b, ending, c)   the same for two Codes, one matrix each, with epilogue
//                                  none or bias; of gemm's transpositions only transpose_b is set
//   doing(name)                    what the next operations are for, to be named by errors
//   tiles(x, y, kernel)            kernel(cta, i, j, room) for each i below x and j below y, with
//                                  Kernel::room of Kernel::Element in shared memory (flash.hpp)
//   rotary(s, head_dim)            {cosine, sine} of cpu::RotaryTable, where kernels can read them
//   scratch(floats)                memory that lasts until the next scratch() after this call's
//   work memory()
#pragma once

#include <stdexcept>
#include <string>

#include "runtime/backend/op_call.hpp"
#include "runtime/cpu/norm.hpp"
#include "runtime/kernels/attention_products.hpp"
#include "runtime/kernels/columns.hpp"
#include "runtime/kernels/dropout.hpp"
#include "runtime/kernels/elementwise.hpp"
#include "runtime/kernels/fp8.hpp"
#include "runtime/kernels/product.hpp"
#include "runtime/kernels/rows.hpp"

namespace runtime::kernels {

// The first element of a vector, or of a tensor as T; throws std::invalid_argument when the number
// of elements differs.
template <class T>
T* checked(std::span<T> values, Index elements, const char* name) {
  if (static_cast<Index>(values.size()) == elements) return values.data();
  throw std::invalid_argument(std::string(name) + " has " + std::to_string(values.size()) +
                              " elements, not " + std::to_string(elements));
}

// Weights and activations are T: float, Bf16 or F16. Row statistics and weight gradients are float,
// and logits may be. With fp8 (T = Bf16), products of fitting shapes read weights and activations
// in E4M3 and gradients in E5M2, except the logits' product.
template <class Executor, class T = float>
class KernelDevice : public Device {
 public:
  // `executor` outlives this.
  explicit KernelDevice(Executor& executor, bool fp8 = false) : run_(executor), fp8_(fp8) {}

  Memory& memory() override { return run_.memory(); }
  void forward(const OpCall& call) override {
    run_.doing(call.node.name());
    std::visit([&](const auto& op) { forward(call, op); }, call.node.op);
  }
  void input_gradient(const OpCall& call) override {
    run_.doing(call.node.name());
    std::visit([&](const auto& op) { gradient(call, op); }, call.node.op);
  }
  void weight_gradient(const OpCall& call) override;
  bool fuses_activations() const override { return number_of<T> != Number::f32 && !fp8_; }
  void forward_fused(const OpCall& linear, const OpCall& activation) override;
  void input_gradient_fused(const OpCall& linear, const OpCall& activation) override;
  void logits_maximum(const OpCall& call) override;
  void logits_exponentials(const OpCall& call) override;
  void logits_loss(const OpCall& call) override;

 private:
  using Attend = costmodel::FlashAttention;

  void forward(const OpCall& call, const costmodel::Linear& op);
  void forward(const OpCall& call, const costmodel::AttentionScores& op);
  void forward(const OpCall& call, const costmodel::AttentionContext& op);
  void forward(const OpCall& call, const costmodel::Softmax& op);
  void forward(const OpCall& call, const costmodel::FlashAttention& op);
  void forward(const OpCall& call, const costmodel::Dropout& op);
  void forward(const OpCall& call, const costmodel::Norm& op);
  void forward(const OpCall& call, const costmodel::Activation& op);
  void forward(const OpCall& call, const costmodel::BiasDropoutAdd& op);
  void forward(const OpCall& call, const costmodel::Rotary& op);
  void forward(const OpCall& call, const costmodel::Embedding& op);
  void forward(const OpCall& call, const costmodel::PositionEmbedding& op);
  template <class Op>
  void forward(const OpCall& call, const Op&) {
    refuse(call);
  }
  void gradient(const OpCall& call, const costmodel::Linear& op);
  void gradient(const OpCall& call, const costmodel::AttentionScores& op);
  void gradient(const OpCall& call, const costmodel::AttentionContext& op);
  void gradient(const OpCall& call, const costmodel::Softmax& op);
  void gradient(const OpCall& call, const costmodel::FlashAttention& op);
  void gradient(const OpCall& call, const costmodel::Dropout& op);
  void gradient(const OpCall& call, const costmodel::Norm& op);
  void gradient(const OpCall& call, const costmodel::Activation& op);
  void gradient(const OpCall& call, const costmodel::BiasDropoutAdd& op);
  void gradient(const OpCall& call, const costmodel::Rotary& op);
  void gradient(const OpCall& call, const costmodel::Embedding& op);
  void gradient(const OpCall& call, const costmodel::PositionEmbedding& op);
  void gradient(const OpCall& call, const costmodel::CrossEntropy& op);
  template <class Op>
  void gradient(const OpCall& call, const Op&) {
    refuse(call);
  }

  [[noreturn]] static void refuse(const OpCall& call) {
    throw std::invalid_argument("the device does not take " + std::string(call.node.name()));
  }
  static T* checked(const Tensor& tensor, Index elements, const char* name) {
    return kernels::checked(tensor.as<T>(), elements, name);
  }
  static const T* checked(const Vector& vector, Index elements, const char* name) {
    return kernels::checked(vector.as<T>(), elements, name);
  }
  template <class Value>
  static Value* checked(std::span<Value> values, Index elements, const char* name) {
    return kernels::checked(values, elements, name);
  }
  // Calls visit(first element) as T or, when the tensor's size says so, as float.
  template <class Visit>
  static void in_its_format(const Tensor& tensor, Index elements, const char* name, Visit visit) {
    if (tensor.bytes == static_cast<std::size_t>(elements) * sizeof(float))
      visit(tensor.floats().data());
    else
      visit(checked(tensor, elements, name));
  }
  T* scratch(Index elements) {
    const Index in_a_float = sizeof(float) / sizeof(T);
    return reinterpret_cast<T*>(run_.scratch((elements + in_a_float - 1) / in_a_float));
  }
  // False when the epilogue is not available; nothing has been computed then.
  template <class Result>
  bool product(const cpu::Gemm& gemm, const T* a, const T* b, const Ending<T>& ending, Result* c) {
    return can_end(ending, number_of<T>, number_of<Result>, gemm) &&
           run_.product(gemm, cpu::Batch{1, 0, 0, 0}, a, b, ending, c);
  }
  // Without an epilogue; a slow kernel of our own where the library has no algorithm.
  template <class Result>
  void product(const BatchedProduct& p, const T* a, const T* b, Result* c) {
    if (run_.product(p.gemm, p.batch, a, b, Ending<T>{}, c)) return;
    const PlainProduct<T, Result> kernel(p.gemm, p.batch, a, b, c);
    run_.elements(kernel.elements(), kernel);
  }
  template <class Result>
  void product(const cpu::Gemm& gemm, const T* a, const T* b, Result* c) {
    product(BatchedProduct{gemm, cpu::Batch{1, 0, 0, 0}}, a, b, c);
  }
  // An operand of an fp8 product, used as stored or transposed (`turned`).
  struct Operand {
    const T* values;
    Index rows, cols;
    bool turned = false;
    Index count() const { return rows * cols; }
    Index outer() const { return turned ? cols : rows; }
    Index inner() const { return turned ? rows : cols; }
  };
  // c[a.outer, b.outer] = a · bᵀ + beta · c, cast to A and B; false when fp8 does not support the
  // shapes or the epilogue.
  template <class A, class B, class Result>
  bool fp8_product(const OpCall& call, const Operand& a, const Operand& b, const Ending<T>& ending,
                   double beta, Result* c);
  template <class Format>
  Codes<Format> cast(const Operand& from, float* codes, float* scale, float* largest);
  void weight_and_bias_gradient(const cpu::Gemm& gemm, const T* x, const T* dy, float* dw,
                                float* dbias);
  const T* result_gradient(const OpCall& call, Index elements);
  template <int D>
  void forward_in_tiles(const OpCall& call, const cpu::HeadLayout& layout);
  template <int D>
  void gradient_in_tiles(const OpCall& call, const cpu::HeadLayout& layout);
  void turn(const OpCall& call, const costmodel::Rotary& op, float direction, const Tensor& from,
            const Tensor& to);
  void qk_norm_gradient(const OpCall& call, const costmodel::Norm& op);
  // Accumulate the gradients of q and k from the scores' gradient, and of v from the probabilities.
  void add_score_gradients(const HeadBatch& h, const T* dscores, Index score_step, const T* qkv,
                           T* dqkv);
  void add_value_gradient(const HeadBatch& h, const T* probabilities, Index score_step,
                          const T* dcontext, T* dqkv);

  Executor& run_;
  const bool fp8_;
};

}  // namespace runtime::kernels
