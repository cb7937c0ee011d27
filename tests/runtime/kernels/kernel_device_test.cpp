// The kernels of the GPU, run on the host over memory that the host may not touch: whole models
// learn what they learn on the CPU, so that neither arithmetic nor engine needs a GPU to be tested.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/op_compare.hpp"
#include "tests/runtime/support/trained.hpp"
#include "tests/sanitized.hpp"

namespace kernel_device_test {

using training_test::loss_bound;
using training_test::loss_difference;
using training_test::trained;

namespace {

// As training_test's, half as deep: a layer more runs no other kernel, and four are cut into
// stages.
constexpr const char* gpt =
    "{kind: gpt, layers: 4, hidden: 32, heads: 4, vocab: 480, max_positions: 32, dropout: 0.1}";
constexpr const char* llama =
    "{kind: llama, layers: 4, hidden: 32, heads: 8, kv_heads: 4, ffn_hidden: 96, vocab: 480, "
    "tie_embeddings: false}";

// With norms of queries and keys, and an MLP without gates.
constexpr const char* with_qk_norm =
    "{kind: gpt, layers: 2, hidden: 32, heads: 4, vocab: 480, max_positions: 32, qk_norm: true}";
constexpr const char* with_qk_rms_norm =
    "{kind: llama, layers: 2, hidden: 32, heads: 4, kv_heads: 2, ffn_hidden: 96, vocab: 500, "
    "qk_norm: true}";

costmodel::Scenario scenario_of(const std::string& model, const std::string& plan, int devices,
                                bool flash) {
  auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, devices);
  s.training.stack.kernels.attention =
      flash ? costmodel::AttentionKernel::flash2 : costmodel::AttentionKernel::unfused;
  return s;
}

// Of a format's unit roundoff, how far losses in it may be from those in fp32: roundings of the 256
// tokens and of many tensors are independent, and make a sixteenth; four times that.
constexpr double narrow_share = 0.25;

// The largest relative difference of the losses of so many steps.
double difference(int count, const std::string& model, const std::string& plan, int devices,
                  bool flash) {
  const auto s = scenario_of(model, plan, devices, flash);
  const auto own = trained(s, count, std::make_unique<HostKernelDevice>);
  const auto reference = trained(s, count);
  CHECK(own.measured.memory == reference.measured.memory);
  CHECK(own.measured.loss.size() == static_cast<std::size_t>(count));
  return loss_difference(own.measured.loss, reference.measured.loss);
}

// Whether the host could read it; the kernel is asked, which only refuses.
bool readable(const void* data) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const bool could = write(ends[1], data, 1) == 1;
  if (!could) CHECK(errno == EFAULT);
  for (const int end : ends) close(end);
  return could;
}

}  // namespace

TEST_CASE("far memory is closed but to its own operations") {
  FarMemory memory;
  auto* const values = static_cast<float*>(memory.allocate(4 * sizeof(float)));
  CHECK_FALSE(readable(values));
  memory.clear(values, 4 * sizeof(float));
  const std::vector<float> more{1, 2, 3, 4};
  memory.write(values, sizeof(float), [&](auto to) {
    std::ranges::copy(std::as_bytes(std::span(more).first(1)), to.begin());
  });
  CHECK_FALSE(readable(values));
  auto* const total = static_cast<double*>(memory.allocate(sizeof(double)));
  memory.clear(total, sizeof(double));
  memory.add_sum({values, 4}, total);
  memory.add_sum({values, 4}, total);
  CHECK_FALSE(readable(total));
  const FarMemory::Open open(memory);
  CHECK(readable(values));
  CHECK(values[0] == 1);
  CHECK(*total == 2);
}

TEST_CASE("each operator's kernels do what the CPU does, in shapes that are hard on them") {
  HostKernelDevice device;
  op_test::compare_with_cpu(device, 32 * rounding::unit<float>);
}

TEST_CASE("where the library has no algorithm for a product they do it by themselves") {
  HostKernelDevice device;
  device.has_products = false;
  op_test::compare_with_cpu(device, 32 * rounding::unit<float>);
  for (const auto kind : {runtime::kernels::Epilogue::none, runtime::kernels::Epilogue::bias})
    CHECK(device.products_ended(kind) == 0);
  if (sanitized) return;
  KernelDeviceOnHost<runtime::Bf16> narrow;
  narrow.has_products = false;
  op_test::compare_with_cpu(narrow, 5 * rounding::unit<runtime::Bf16>, runtime::Number::bf16);
}

TEST_CASE("in bf16 they do it to its eight bits") {
  KernelDeviceOnHost<runtime::Bf16> device;
  op_test::compare_with_cpu(device, 5 * rounding::unit<runtime::Bf16>, runtime::Number::bf16);
}

TEST_CASE("in fp16 they do it to its eleven bits") {
  KernelDeviceOnHost<runtime::F16> device;
  op_test::compare_with_cpu(device, 5 * rounding::unit<runtime::F16>, runtime::Number::f16);
}

TEST_CASE("operators' cases are picked by name or by number") {
  const auto cases = op_test::all_cases();
  const auto picked = [&](const char* word) { return op_test::picked_cases(cases, word); };
  CHECK(picked(nullptr).size() == cases.size());
  CHECK(picked("2") == std::vector<std::size_t>{2});
  const auto products = picked("product");
  CHECK(products.size() > 1);
  for (const std::size_t i : products) CHECK(cases[i].name == "product");
  CHECK(picked("no such operator").empty());
  CHECK(picked("").empty());
}

TEST_CASE("a case that is not there fails" * doctest::should_fail()) {
  HostKernelDevice device;
  setenv("SHARDPLAN_OP_CASE", "no such operator", 1);
  const std::shared_ptr<void> after(nullptr, [](void*) { unsetenv("SHARDPLAN_OP_CASE"); });
  op_test::compare_with_cpu(device, 1);
}

TEST_CASE("a model learns by the GPU's kernels what it learns on the CPU") {
  const FarMemory::Unwatched open;
  for (const char* model : {gpt, llama, with_qk_norm, with_qk_rms_norm}) {
    for (const bool flash : {false, true}) {
      if (sanitized && flash != (model == llama)) continue;
      CAPTURE(model);
      CAPTURE(flash);
      const bool plain = model == gpt || model == llama;
      CHECK(difference(plain ? training_test::steps_alone : training_test::steps_cut, model,
                       "{micro_batch: 4}", 1, flash) <= loss_bound);
    }
  }
}

TEST_CASE("so it does when it is cut over ranks, and the engine touches no tensor by itself") {
  const char* plans[] = {
      "{tp: 2, micro_batch: 2}",
      "{tp: 2, sequence_parallel: true, pp: 2, micro_batch: 2, schedule: 1f1b}",
      "{pp: 2, vpp: 2, schedule: interleaved, micro_batch: 2, recompute: full}",
      "{dp: 2, zero: 1, micro_batch: 2, recompute: selective}",
      "{dp: 2, zero: 2, micro_batch: 2}",
      "{dp: 2, zero: 3, micro_batch: 2}",
  };
  for (const std::string plan : plans) {
    // What these do the other plans, or those of bf16, do too.
    if (sanitized && (plan == plans[0] || plan == plans[3] || plan == plans[4])) continue;
    CAPTURE(plan);
    const int ranks = plan.find("tp: 2") != plan.npos && plan.find("pp: 2") != plan.npos ? 4 : 2;
    CHECK(difference(training_test::steps_cut, llama, plan, ranks,
                     plan.find("zero") == plan.npos) <= loss_bound);
    if (plan.find("sequence") != plan.npos)
      CHECK(difference(training_test::steps_cut, gpt, plan, ranks, false) <= loss_bound);
  }
}

TEST_CASE("in bf16 a model learns nearly the same, and holds and sends what the cost model says") {
  const char* plans[] = {
      "{micro_batch: 4}",
      "{tp: 2, sequence_parallel: true, pp: 2, micro_batch: 2, schedule: 1f1b}",
      "{dp: 2, zero: 1, micro_batch: 2}",
      "{dp: 2, zero: 3, micro_batch: 2, recompute: full}",
  };
  for (const std::string plan : plans) {
    for (const char* model : {gpt, llama}) {
      if (model == gpt && plan.find("zero: 3") != plan.npos) continue;  // its table is tied
      if (sanitized && model == gpt && plan != plans[1]) continue;
      CAPTURE(plan);
      CAPTURE(model);
      const bool alone = plan == plans[0];
      const FarMemory::Unwatched open(plan != plans[1]);
      const auto s = scenario_of(model, plan,
                                 alone                          ? 1
                                 : plan.find("pp") == plan.npos ? 2
                                                                : 4,
                                 model == llama);
      const int count = alone ? training_test::steps_alone : training_test::steps_cut;
      const auto own = trained(training_test::in_bf16(s), count,
                               std::make_unique<KernelDeviceOnHost<runtime::Bf16>>);
      CHECK(loss_difference(own.measured.loss, trained(s, count).measured.loss) <=
            narrow_share * rounding::unit<runtime::Bf16>);
      for (std::size_t p = 0; p < own.measured.memory.size(); ++p) {
        const auto& held = own.measured.memory[p];
        const auto& predicted = own.predicted.memory[p];
        CHECK(held[0] == predicted.weights.value);
        CHECK(held[1] == predicted.gradients.value);
        CHECK(held[2] == predicted.optimizer.value);
        CHECK(held[3] == predicted.activations.value);
        const auto& sent = own.measured.traffic[p];
        const auto& said = own.predicted.rank_traffic[p];
        CHECK(sent.all_reduce.value == said.all_reduce.value);
        CHECK(sent.all_gather.value == said.all_gather.value);
        CHECK(sent.reduce_scatter.value == said.reduce_scatter.value);
        CHECK(sent.send.value == said.send.value);
      }
    }
  }
}

TEST_CASE("in fp16 a model learns nearly the same, its loss scaled, however it is cut") {
  const char* plans[] = {
      "{micro_batch: 4}",
      "{tp: 2, sequence_parallel: true, pp: 2, micro_batch: 2, schedule: 1f1b}",
      "{dp: 2, zero: 1, micro_batch: 2}",
  };
  for (const std::string plan : plans) {
    for (const char* model : {gpt, llama}) {
      if (sanitized && (model == gpt) != (plan == plans[1])) continue;
      CAPTURE(plan);
      CAPTURE(model);
      const bool alone = plan == plans[0];
      const FarMemory::Unwatched open(plan != plans[1]);
      const int ranks = alone ? 1 : plan.find("pp") == plan.npos ? 2 : 4;
      const auto s = scenario_of(model, plan, ranks, model == llama);
      const int count = alone ? training_test::steps_alone : training_test::steps_cut;
      const auto own = trained(training_test::in_16_bits(s, costmodel::Precision::fp16), count,
                               std::make_unique<KernelDeviceOnHost<runtime::F16>>);
      CHECK(loss_difference(own.measured.loss, trained(s, count).measured.loss) <=
            narrow_share * rounding::unit<runtime::F16>);
      CHECK(own.measured.loss_scale == 65536);
      CHECK(own.measured.skipped == 0);
      for (std::size_t p = 0; p < own.measured.memory.size(); ++p) {
        CHECK(own.measured.memory[p][0] == own.predicted.memory[p].weights.value);
        CHECK(own.measured.memory[p][2] == own.predicted.memory[p].optimizer.value);
        CHECK(own.measured.memory[p][3] == own.predicted.memory[p].activations.value);
        CHECK(own.measured.traffic[p].send.value == own.predicted.rank_traffic[p].send.value);
      }
    }
  }
}

namespace {

constexpr const char* small_gpt =
    "{kind: gpt, layers: 2, hidden: 32, heads: 4, vocab: 480, max_positions: 32}";

// What every rank saw, by rank, of iterations that begin with the number `first`.
std::vector<runtime::RankMeasurement> ranks_in_fp16(const costmodel::Scenario& s,
                                                    const runtime::TrainingOptions& options) {
  const auto wanted = training_test::in_16_bits(s, costmodel::Precision::fp16);
  const auto plan = costmodel::resolve_plan(wanted);
  costmodel::Evaluator evaluator(wanted.model, wanted.cluster, wanted.training);
  std::vector<runtime::RankMeasurement> all;
  runtime::run_ranks(static_cast<int>(plan.devices()), {}, [&](runtime::Transport& transport) {
    KernelDeviceOnHost<runtime::F16> device;
    auto own = runtime::train(evaluator, plan, transport, device, options);
    auto gathered = runtime::gather_measurements(transport, own);
    if (transport.rank() == 0) all = std::move(gathered);
  });
  return all;
}

std::vector<double> losses_of(const costmodel::Scenario& s,
                              const std::vector<runtime::RankMeasurement>& ranks) {
  return runtime::summarise(ranks, costmodel::resolve_plan(s),
                            s.training.global_batch * s.training.sequence)
      .loss;
}

std::vector<double> losses_in_fp16(const costmodel::Scenario& s,
                                   const runtime::TrainingOptions& options) {
  return losses_of(s, ranks_in_fp16(s, options));
}

}  // namespace

// Adam hides a wrong scale of all gradients but for a large epsilon.
TEST_CASE("in fp16 steps whose gradients overflow are skipped on all ranks, and change nothing") {
  const FarMemory::Unwatched open;
  constexpr double first = 0x1p40;
  constexpr int iterations = 24, taken = 3;
  runtime::ExecutorOptions executor;
  executor.optimizer.eps = 1e-2;
  executor.loss_scale = {.first = first, .most = first};
  for (const auto& [plan, ranks] : {std::pair("{tp: 2, pp: 2, micro_batch: 4, schedule: 1f1b}", 4),
                                    std::pair("{dp: 2, zero: 1, micro_batch: 4}", 2)}) {
    CAPTURE(plan);
    const auto s = scenario_of(small_gpt, plan, ranks, false);
    const auto all = ranks_in_fp16(s, {.iterations = iterations, .executor = executor});
    const auto skipped = static_cast<int>(all.front().skipped);
    REQUIRE(skipped > 0);
    REQUIRE(skipped + taken <= iterations);
    for (const auto& rank : all) {
      CHECK(rank.skipped == skipped);
      CHECK(rank.loss_scale == std::ldexp(first, -skipped));
    }

    const auto losses = losses_of(s, all);
    auto unmoved = executor;
    unmoved.optimizer.lr = 0;
    unmoved.loss_scale = {};
    const auto of_the_first_weights =
        losses_in_fp16(s, {.iterations = skipped + 1, .executor = unmoved});
    for (std::size_t i = 0; i < of_the_first_weights.size(); ++i)
      CHECK(losses[i] == of_the_first_weights[i]);

    auto unskipped = executor;
    unskipped.loss_scale = {};
    const auto after =
        losses_in_fp16(s, {.iterations = taken, .first = skipped, .executor = unskipped});
    for (int i = 0; i < taken; ++i) {
      const double own = losses[static_cast<std::size_t>(skipped + i)];
      CHECK(std::abs(own / after[static_cast<std::size_t>(i)] - 1) <= 1e-5);
    }
  }
}

TEST_CASE("in fp16 the optimizer sees gradients without the loss's scale") {
  runtime::TrainingOptions options{.iterations = training_test::steps_cut};
  options.executor.optimizer.eps = 1e-2;
  const auto s = scenario_of(small_gpt, "{micro_batch: 4}", 1, false);
  const auto plan = costmodel::resolve_plan(s);
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  std::vector<double> wide;
  runtime::run_ranks(1, {}, [&](runtime::Transport& transport) {
    runtime::CpuDevice device;
    const auto own = runtime::train(evaluator, plan, transport, device, options);
    wide = runtime::summarise({own}, plan, s.training.global_batch * s.training.sequence).loss;
  });
  const auto narrow = losses_in_fp16(s, options);
  REQUIRE(narrow.size() == wide.size());
  CHECK(loss_difference(narrow, wide) <= narrow_share * rounding::unit<runtime::F16>);
}

TEST_CASE(
    "bf16 keeps what has eight bits, rounds halves to even, and stays infinite or no number") {
  using runtime::Bf16;
  for (const float exact : {0.0F, -1.0F, 1.5F, 255.0F, 3.0e38F * 0.0F, -0.0078125F})
    CHECK(static_cast<float>(Bf16(exact)) == exact);
  CHECK(static_cast<float>(Bf16(257.0F)) == 256.0F);  // halfway: to the even one
  CHECK(static_cast<float>(Bf16(259.0F)) == 260.0F);
  CHECK(static_cast<float>(Bf16(257.1F)) == 258.0F);
  CHECK(std::isinf(static_cast<float>(Bf16(INFINITY))));
  CHECK(std::isinf(static_cast<float>(Bf16(3.4028235e38F))));
  CHECK(std::isnan(static_cast<float>(Bf16(NAN))));
}

TEST_CASE("fp16 is the processor's, number by number") {
  using runtime::F16;
  CHECK(std::isnan(static_cast<float>(F16(NAN))));
  CHECK(F16(65519.0F).bits() == 0x7bffU);
  CHECK(std::isinf(static_cast<float>(F16(65520.0F))));
  CHECK(static_cast<float>(F16(-0x1p-25F)) == 0.0F);       // halfway to the smallest: to even
  CHECK(static_cast<float>(F16(0x1.8p-24F)) == 0x1p-23F);  // halfway between the first two
#if defined(__FLT16_MANT_DIG__)
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const auto own = std::bit_cast<F16>(static_cast<std::uint16_t>(bits));
    const float value = own;
    if (std::isnan(value)) continue;
    REQUIRE(value == static_cast<float>(std::bit_cast<_Float16>(own)));
    REQUIRE(F16(value).bits() == bits);
  }
  for (std::uint64_t i = 0; i < 1'000'000; ++i) {  // of all sizes
    const float value = std::ldexp(runtime::cpu::normal(1, 0, i), static_cast<int>(i % 48) - 30);
    REQUIRE(F16(value).bits() == std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)));
  }
#endif
}

}  // namespace kernel_device_test
