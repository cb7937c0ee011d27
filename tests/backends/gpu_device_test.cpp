// A GPU against the CPU: every operator, and whole models. Where there is no GPU each says so.
#include "runtime/cuda/gpu_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "runtime/cuda/device_query.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/op_compare.hpp"
#include "tests/runtime/support/trained.hpp"

namespace gpu_device_test {

namespace {

// Null, with a word about it, where there is none.
std::unique_ptr<runtime::Device> first_gpu(runtime::Number number = runtime::Number::f32,
                                           bool tf32 = false, bool fp8 = false) {
  if (!runtime::cuda::query_devices().error.empty()) {
    MESSAGE("skipped: no device");
    return nullptr;
  }
  return runtime::cuda::make_gpu_device({.number = number, .tf32 = tf32, .fp8 = fp8});
}

// The largest relative difference of twenty steps' losses from the CPU's, in fp32.
double difference(const char* model, const char* plan, int ranks, bool flash,
                  runtime::Number number = runtime::Number::f32, bool fp8 = false) {
  auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, ranks);
  s.training.stack.kernels.attention =
      flash ? costmodel::AttentionKernel::flash2 : costmodel::AttentionKernel::unfused;
  const auto reference = training_test::trained(s, 20);
  const bool narrow = number != runtime::Number::f32;
  const auto precision = fp8                              ? costmodel::Precision::fp8
                         : number == runtime::Number::f16 ? costmodel::Precision::fp16
                                                          : costmodel::Precision::bf16;
  const auto own = training_test::trained(
      narrow ? training_test::in_16_bits(s, precision) : s, 20,
      [&] { return runtime::cuda::make_gpu_device({.number = number, .fp8 = fp8}); });
  if (!narrow) CHECK(own.measured.memory == reference.measured.memory);
  CHECK(own.measured.skipped == 0);
  return training_test::loss_difference(own.measured.loss, reference.measured.loss);
}

}  // namespace

TEST_CASE("the models trained here are found with or without a GPU") {
  for (const char* model : {training_test::gpt, training_test::llama})
    CHECK(training_test::scenario(model, "stack: shardplan-cuda", "{micro_batch: 4}", 1)
              .model.layers == 8);
}

TEST_CASE("without a GPU, a device cannot be made, and says why") {
  const auto report = runtime::cuda::query_devices();
  if (report.error.empty()) {
    CHECK_THROWS(runtime::cuda::make_gpu_device({.index = static_cast<int>(report.gpus.size())}));
    const auto gpu = runtime::cuda::make_gpu_device({});  // the error is not told again
    void* const data = gpu->memory().allocate(4);
    gpu->memory().clear(data, 4);
    CHECK_NOTHROW(gpu->memory().wait());
    gpu->memory().release(data);
    return;
  }
  CHECK_THROWS_WITH(runtime::cuda::make_gpu_device({}), report.error.c_str());
}

TEST_CASE("each operator does on a GPU what it does on the CPU") {
  const auto gpu = first_gpu();
  if (gpu == nullptr) return;
  op_test::compare_with_cpu(*gpu, 160 * rounding::unit<float>);
}

TEST_CASE("in bf16 each operator does it to eight bits, attention on tensor cores too") {
  const auto gpu = first_gpu(runtime::Number::bf16);
  if (gpu == nullptr) return;
  op_test::compare_with_cpu(*gpu, 5 * rounding::unit<runtime::Bf16>, runtime::Number::bf16);
}

TEST_CASE("in fp16 each operator does it to eleven bits, attention on tensor cores too") {
  const auto gpu = first_gpu(runtime::Number::f16);
  if (gpu == nullptr) return;
  op_test::compare_with_cpu(*gpu, 5 * rounding::unit<runtime::F16>, runtime::Number::f16);
}

TEST_CASE("in TF32 each operator does it to ten bits") {
  const auto gpu = first_gpu(runtime::Number::f32, true);
  if (gpu == nullptr) return;
  op_test::compare_with_cpu(*gpu, 8 * rounding::unit<runtime::F16>);  // eleven bits too
}

TEST_CASE("vectors in a GPU's memory are copied, summed and stepped as in the host's") {
  const auto gpu = first_gpu();
  if (gpu == nullptr) return;
  runtime::Memory& memory = gpu->memory();
  constexpr std::size_t n = 100003;
  std::vector<float> values(n), other(n), back(n);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = runtime::cpu::normal(1, 0, i);
    other[i] = runtime::cpu::normal(1, 1, i);
  }
  const auto place = [&](const std::vector<float>& from) {
    auto* const to = static_cast<float*>(memory.allocate(n * sizeof(float)));
    memory.write(to, n * sizeof(float), [&](std::span<std::byte> bytes) {
      std::ranges::copy(std::as_bytes(std::span(from)), bytes.begin());
    });
    return std::span<float>(to, n);
  };
  const auto a = place(values), b = place(other), m = place(other), v = place(other);
  memory.clear(m.data(), m.size_bytes());
  memory.copy(m, v);
  std::vector<float> host_m(n), host_v(n);
  for (const auto reduction : {runtime::Reduction::sum, runtime::Reduction::max}) {
    memory.reduce(reduction, b, a);
    runtime::host_memory().reduce(reduction, other, values);
  }
  const runtime::cpu::AdamW how{.lr = 1e-3, .weight_decay = 0.1};
  memory.adamw(a, b, m, v, how, 1, 0.5);
  runtime::host_memory().adamw(values, other, host_m, host_v, how, 1, 0.5);
  memory.read(a.data(), std::as_writable_bytes(std::span(back)));
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i)
    worst = std::max(worst, static_cast<double>(std::abs(back[i] - values[i])));
  CHECK(worst <= 1e-6);
  double host_total = 0, gpu_total = 0;
  runtime::host_memory().add_sum(other, &host_total);
  auto* const total = static_cast<double*>(memory.allocate(sizeof(double)));
  memory.clear(total, sizeof(double));
  memory.add_sum(b, total);
  memory.read(total, std::as_writable_bytes(std::span(&gpu_total, 1)));
  CHECK(gpu_total == doctest::Approx(host_total).epsilon(1e-9));
  memory.release(total);
  for (const auto& span : {a, b, m, v}) memory.release(span.data());
}

TEST_CASE("a GPU draws the tokens that the host draws") {
  const auto gpu = first_gpu();
  if (gpu == nullptr) return;
  for (const bool labels : {false, true}) {
    const runtime::cpu::TokenDraw draw{.seed = 3,
                                       .first_sample = 1000,
                                       .sequences = 5,
                                       .sequence = 1001,
                                       .vocab = 50257,
                                       .labels = labels};
    std::vector<std::int64_t> host(static_cast<std::size_t>(draw.count())), back(host.size());
    runtime::host_memory().draw_tokens(draw, host);
    runtime::Memory& memory = gpu->memory();
    const std::size_t bytes = host.size() * sizeof(std::int64_t);
    auto* const ids = static_cast<std::int64_t*>(memory.allocate(bytes));
    memory.draw_tokens(draw, {ids, host.size()});
    memory.read(ids, std::as_writable_bytes(std::span(back)));
    CHECK(back == host);
    memory.release(ids);
  }
}

TEST_CASE("models learn on a GPU what they learn on the CPU, over twenty steps") {
  if (first_gpu() == nullptr) return;
  for (const char* model : {training_test::gpt, training_test::llama}) {
    for (const bool flash : {false, true}) {
      CAPTURE(model);
      CAPTURE(flash);
      CHECK(difference(model, "{micro_batch: 4}", 1, flash) <= training_test::loss_bound);
      CHECK(difference(model, "{tp: 2, pp: 2, micro_batch: 2, schedule: 1f1b}", 4, flash) <=
            training_test::loss_bound);
    }
  }
}

TEST_CASE("in bf16 they do to 1e-3") {
  if (first_gpu() == nullptr) return;
  for (const char* model : {training_test::gpt, training_test::llama}) {
    CAPTURE(model);
    CHECK(difference(model, "{micro_batch: 4}", 1, true, runtime::Number::bf16) <= 1e-3);
  }
}

TEST_CASE("in fp16 they do to 1e-3, and no step is skipped") {
  if (first_gpu() == nullptr) return;
  for (const char* model : {training_test::gpt, training_test::llama}) {
    CAPTURE(model);
    CHECK(difference(model, "{micro_batch: 4}", 1, true, runtime::Number::f16) <= 1e-3);
  }
}

TEST_CASE("in fp8 a product is what the host makes of the same codes, and models learn to 1e-2") {
  const auto gpu = first_gpu(runtime::Number::bf16, false, true);
  if (gpu == nullptr) return;
  if (!runtime::fp8_missing(runtime::cuda::query_devices().gpus).empty()) {
    MESSAGE("skipped: no fp8 on this device");
    return;
  }
  const auto one = op_test::linear_case(64, 48, 96, true, false);
  KernelDeviceOnHost<runtime::Bf16> host(true);
  const op_test::Placed on_gpu(one, gpu->memory(), runtime::Number::bf16);
  const op_test::Placed on_host(one, host.memory(), runtime::Number::bf16);
  op_test::run_passes(*gpu, on_gpu.call());
  op_test::run_passes(host, on_host.call());
  for (std::size_t b = 0; b < one.buffers.size(); ++b)
    CHECK(op_test::relative_difference(on_gpu.bytes(b), on_host.bytes(b), 1e30F) <= 5e-3);
  for (const char* model : {training_test::gpt, training_test::llama}) {
    CAPTURE(model);
    CHECK(difference(model, "{micro_batch: 4}", 1, true, runtime::Number::bf16, true) <= 1e-2);
  }
}

}  // namespace gpu_device_test
