// Which operators are computed with a product, how cuBLASLt is asked for that, and that it makes no
// difference but to the rounding between them.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/cuda/epilogue.hpp"
#include "runtime/training/layer_program.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/op_compare.hpp"
#include "tests/runtime/support/trained.hpp"

namespace epilogues_test {

namespace cpu_epilogues_test {

using costmodel::LayerKind;
using runtime::Bf16;
using runtime::F16;
using runtime::LayerProgram;
using runtime::Number;
using runtime::kernels::can_end;
using runtime::kernels::Ending;
using runtime::kernels::Epilogue;

namespace {

LayerProgram program_of(const char* model, const std::string& plan, int devices,
                        LayerKind kind = LayerKind::block) {
  const auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, devices);
  const costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  return runtime::layer_program(evaluator.op_list(kind, costmodel::resolve_plan(s)),
                                costmodel::Recomputed::nothing);
}

std::string names(const LayerProgram& program, const std::vector<bool>& chosen) {
  std::string all;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) all += (all.empty() ? "" : ", ") + std::string(program.list.nodes[i].name());
  return all;
}

constexpr const char* residual_products = "attention projection, MLP down";

}  // namespace

TEST_CASE("a GELU is computed with the products on both sides, in no other layer") {
  const LayerProgram gpt = program_of(training_test::gpt, "{micro_batch: 4}", 1);
  CHECK(names(gpt, gpt.before_gelu) == "MLP up");
  CHECK(names(gpt, gpt.behind_gelu) == "MLP down");
  const LayerProgram cut =
      program_of(training_test::gpt, "{tp: 2, sequence_parallel: true, micro_batch: 4}", 2);
  CHECK(names(cut, cut.before_gelu) == "MLP up");
  CHECK(names(cut, cut.behind_gelu) == "MLP down");
  const LayerProgram llama = program_of(training_test::llama, "{micro_batch: 4}", 1);
  CHECK(names(llama, llama.before_gelu) == "");
  CHECK(names(llama, llama.behind_gelu) == "");
  const LayerProgram head = program_of(training_test::gpt, "{micro_batch: 4}", 1, LayerKind::head);
  CHECK(names(head, head.before_gelu) == "");
}

TEST_CASE("a residual's bias has its gradient from the product, unless that sees other tokens") {
  const char* plans[] = {"{micro_batch: 4}", "{tp: 2, micro_batch: 4}",
                         "{tp: 2, sequence_parallel: true, micro_batch: 4}"};
  for (const std::string plan : plans) {
    CAPTURE(plan);
    const bool cut = plan.find("tp") != plan.npos, shared = plan.find("seq") != plan.npos;
    const LayerProgram own = program_of(training_test::gpt, plan, cut ? 2 : 1);
    CHECK(names(own, own.sums_bias) == (shared ? "" : residual_products));
  }
}

TEST_CASE("a product's ending is asked for where it keeps the bounds, and as cuBLASLt wants it") {
  alignas(16) Bf16 before[16];
  const Ending<Bf16> gelu{.kind = Epilogue::gelu, .before = before};
  CHECK(can_end(gelu, Number::bf16, Number::bf16, {.m = 3, .n = 8, .k = 5}));
  CHECK_FALSE(can_end(gelu, Number::bf16, Number::bf16, {.m = 3, .n = 12, .k = 5}));
  CHECK_FALSE(can_end(gelu, Number::bf16, Number::bf16, {.m = 3, .n = 8, .k = 5, .beta = 1}));
  CHECK_FALSE(can_end(gelu, Number::bf16, Number::bf16, {.m = 3, .n = 8, .k = 5, .ldc = 16}));
  CHECK_FALSE(can_end(gelu, Number::bf16, Number::f32, {.m = 3, .n = 8, .k = 5}));
  CHECK_FALSE(can_end(gelu, Number::f32, Number::f32, {.m = 3, .n = 8, .k = 5}));
  const Ending<Bf16> askew{.kind = Epilogue::gelu_gradient, .before = before + 4};
  CHECK_FALSE(can_end(askew, Number::bf16, Number::bf16, {.m = 3, .n = 8, .k = 5}));
  const Ending<Bf16> sums{.kind = Epilogue::bias_gradient};
  CHECK(can_end(sums, Number::bf16, Number::f32, {.m = 3, .n = 7, .k = 5, .beta = 1}));
  CHECK_FALSE(can_end(sums, Number::bf16, Number::bf16, {.m = 3, .n = 7, .k = 5}));
  // cublasLtEpilogue_t: GELU_AUX, GELU_AUX_BIAS, DGELU, BGRADA.
  using runtime::cuda::epilogue_of;
  CHECK(epilogue_of(Epilogue::gelu, false) == 160);
  CHECK(epilogue_of(Epilogue::gelu, true) == 164);
  CHECK(epilogue_of(Epilogue::gelu_gradient, false) == 192);
  CHECK(epilogue_of(Epilogue::bias_gradient, false) == 256);
}

namespace {

// A product before a GELU and one behind it, [m, k] · [k, n] and [m, n] · [n, k].
struct Pair {
  op_test::OpCase before, gelu, behind;
  Pair(std::int64_t m, std::int64_t n, std::int64_t k)
      : before(op_test::linear_case(m, n, k, true, false)),
        gelu(op_test::activation_case(m, n, false)),
        behind(op_test::linear_case(m, k, n, false, false)) {}
};

template <class T>
struct Fused {
  op_test::Placed before, gelu, behind;
  Fused(const Pair& pair, runtime::Device& device)
      : before(pair.before, device.memory(), runtime::number_of<T>),
        gelu(pair.gelu, device.memory(), runtime::number_of<T>),
        behind(pair.behind, device.memory(), runtime::number_of<T>) {
    const runtime::OpCall product = before.call();
    runtime::OpCall activation = gelu.call();
    activation.inputs[0] = product.output;
    device.forward_fused(product, activation);
    device.input_gradient_fused(behind.call(), activation);
  }
  std::vector<std::byte> input() const { return before.bytes(1); }     // of the GELU
  std::vector<std::byte> result() const { return gelu.bytes(1); }      // of the GELU
  std::vector<std::byte> gradient() const { return behind.bytes(3); }  // of the GELU's input
};

template <class T>
void compare_fused(std::int64_t m, std::int64_t n, std::int64_t k, double tolerance, int ended) {
  CAPTURE(n);
  Pair pair(m, n, k);
  KernelDeviceOnHost<T> device, in_turn;
  in_turn.has_endings = false;
  const Fused<T> fused(pair, device), apart(pair, in_turn);
  CHECK(device.products_ended(Epilogue::gelu) == ended);
  CHECK(device.products_ended(Epilogue::gelu_gradient) == ended);
  CHECK(in_turn.products_ended(Epilogue::gelu) == 0);
  CHECK(fused.input() == apart.input());
  for (auto part : {&Fused<T>::result, &Fused<T>::gradient}) {
    const double own = op_test::relative_difference((fused.*part)(), (apart.*part)(), 1e30F);
    CHECK(own <= tolerance);
    CHECK((own > 0) == (ended > 0));  // rounded once less, or the same
  }
}

}  // namespace

TEST_CASE("a GELU with its product is the GELU behind the product, but for one rounding") {
  // Of the product, before a GELU as steep as 1.13, and of both results.
  constexpr double roundings = 1.13 + 2;
  compare_fused<Bf16>(33, 64, 48, roundings * rounding::unit<Bf16>, 1);
  compare_fused<F16>(33, 64, 48, roundings * rounding::unit<F16>, 1);
  compare_fused<Bf16>(5, 37, 9, 0, 0);  // rows of 37 are no rows of 8
}

namespace {

class CountingDevice : public KernelDeviceOnHost<Bf16> {
 public:
  CountingDevice(std::array<std::atomic<int>, 5>& counts, bool endings) : counts_(counts) {
    has_endings = endings;
  }
  ~CountingDevice() override {
    for (std::size_t i = 0; i < counts_.size(); ++i)
      counts_[i] += products_ended(static_cast<Epilogue>(i));
  }

 private:
  std::array<std::atomic<int>, 5>& counts_;
};

}  // namespace

TEST_CASE("a model fuses what it can in each pass, and holds what the cost model says") {
  const FarMemory::Unwatched open;
  struct Plan {
    const char* text;
    int ranks, forwards;  // a micro-batch
  };
  // Of 8 layers and 4 micro-batches over all ranks of a tensor group.
  const Plan plans[] = {{"{micro_batch: 4}", 1, 1},
                        {"{micro_batch: 4, recompute: full}", 1, 2},
                        {"{micro_batch: 4, recompute: selective}", 1, 1},
                        {"{tp: 2, sequence_parallel: true, micro_batch: 4}", 2, 1},
                        {"{pp: 2, micro_batch: 4, schedule: 1f1b, recompute: full}", 2, 2}};
  constexpr int steps = 2;
  for (const Plan& plan : plans) {
    CAPTURE(plan.text);
    const auto s = training_test::in_bf16(
        training_test::scenario(training_test::gpt, "stack: shardplan-cpu", plan.text, plan.ranks));
    std::array<std::atomic<int>, 5> counts{}, none{};
    const auto own = training_test::trained(
        s, steps, [&] { return std::make_unique<CountingDevice>(counts, true); });
    const auto apart = training_test::trained(
        s, steps, [&] { return std::make_unique<CountingDevice>(none, false); });
    const bool tensor = std::string(plan.text).find("tp") != std::string::npos;
    const int passes = steps * 8 * 4 * (tensor ? 2 : 1);
    CHECK(counts[static_cast<std::size_t>(Epilogue::gelu)] == passes * plan.forwards);
    CHECK(counts[static_cast<std::size_t>(Epilogue::gelu_gradient)] == passes);
    // Of query, key and value, and of MLP up; of both residuals' where tokens are not shared.
    CHECK(counts[static_cast<std::size_t>(Epilogue::bias_gradient)] == passes * (tensor ? 2 : 4));
    CHECK(none[static_cast<std::size_t>(Epilogue::gelu)] == 0);
    // Roundings of 256 tokens are independent: a sixteenth of one, and a few tensors have them.
    CHECK(training_test::loss_difference(own.measured.loss, apart.measured.loss) <=
          rounding::unit<Bf16> / 64);
    for (std::size_t p = 0; p < own.measured.memory.size(); ++p) {
      CHECK(own.measured.memory[p] == apart.measured.memory[p]);
      CHECK(own.measured.memory[p][3] == own.predicted.memory[p].activations.value);
    }
  }
}

}  // namespace cpu_epilogues_test

}  // namespace epilogues_test
