#include "runtime/training/loss_scale.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/backend/cuda_library.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/run/run_command.hpp"

namespace loss_scale_test {

using costmodel::Precision;
using runtime::LossScale;

TEST_CASE("an overflow halves the loss scale, and many steps without one double it") {
  LossScale scale({.first = 8, .least = 2, .most = 16, .doubled_after = 3});
  for (const bool overflowed : {true, true, true}) scale.note(overflowed);
  CHECK(scale.value() == 2);  // the least
  CHECK(scale.skipped() == 3);
  CHECK(scale.steps() == 0);
  for (const bool overflowed : {false, false, true, false, false}) scale.note(overflowed);
  CHECK(scale.value() == 2);  // never three in a row
  scale.note(false);
  CHECK(scale.value() == 4);
  for (int i = 0; i < 9; ++i) scale.note(false);
  CHECK(scale.value() == 16);  // the most
  CHECK(scale.steps() == 14);
  CHECK(scale.skipped() == 4);
}

TEST_CASE("a loss scale begins at 2^16 and is held for two thousand steps") {
  LossScale scale;
  for (int i = 0; i < 1999; ++i) scale.note(false);
  CHECK(scale.value() == 65536);
  scale.note(false);
  CHECK(scale.value() == 131072);
}

TEST_CASE("what is said of the loss scale") {
  CHECK(runtime::scaling_note(0, 0) == "");
  CHECK(runtime::scaling_note(65536, 0) == "the loss is scaled by 65536");
  CHECK(runtime::scaling_note(32768, 1) ==
        "the loss is scaled by 32768 at last; steps skipped because gradients overflowed fp16: 1");
}

TEST_CASE("gradients are finite where every one is, and large ones are") {
  constexpr float most = std::numeric_limits<float>::max();
  std::vector<float> first(70, most), second{1, -most};
  const auto finite = [&] {
    const std::vector<runtime::AdamTensor> tensors{{.grads = first}, {}, {.grads = second}};
    return runtime::host_memory().finite(tensors);
  };
  CHECK(finite());
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    second[1] = bad;
    CHECK_FALSE(finite());
  }
  second[1] = 0;
  first[69] = INFINITY;
  CHECK_FALSE(finite());
}

TEST_CASE("GPUs compute in fp32, bf16, fp16 or fp8, CPUs in fp32") {
  const runtime::Backend &gpus = runtime::backend_named("cuda"),
                         &cpus = runtime::backend_named("threads");
  CHECK(gpus.computed_in(Precision::fp16) == Precision::fp16);
  CHECK(gpus.computed_in(Precision::fp32) == Precision::fp32);
  CHECK(gpus.computed_in(Precision::fp8) == Precision::fp8);
  for (const Precision p : {Precision::bf16, Precision::mxfp8, Precision::nvfp4})
    CHECK(gpus.computed_in(p) == Precision::bf16);
  for (const Precision p : {Precision::fp16, Precision::bf16, Precision::fp8})
    CHECK(cpus.computed_in(p) == Precision::fp32);
  CHECK(runtime::format_of(Precision::fp16) == runtime::Number::f16);
  CHECK(runtime::format_of(Precision::fp8) == runtime::Number::bf16);
  CHECK(runtime::format_of(Precision::fp32) == runtime::Number::f32);
}

TEST_CASE("a training is changed to what is computed, and a sentence says so") {
  const runtime::Backend &gpus = runtime::backend_named("cuda"),
                         &cpus = runtime::backend_named("threads");
  costmodel::TrainingSpec said;
  said.precision = Precision::fp8;
  said.gradient_precision = Precision::fp32;
  said.stack.memory.master_weights = said.stack.memory.narrow_saved_inputs = true;
  costmodel::TrainingSpec t = said;
  CHECK(runtime::compute_as_can_be(gpus, t) ==
        "computed in fp8 with fp32 gradients and optimizer weights and bf16 inputs kept for "
        "backward, and predicted so; the scenario says otherwise");
  CHECK_FALSE(t.stack.memory.narrow_saved_inputs);
  CHECK(t.precision == Precision::fp8);
  CHECK(runtime::compute_as_can_be(gpus, t) == "");
  CHECK(runtime::compute_as_can_be(cpus, t) ==
        "computed in fp32, and predicted so; the scenario says otherwise");
  CHECK(t.precision == Precision::fp32);
  CHECK(runtime::compute_as_can_be(cpus, t) == "");
}

TEST_CASE("GPUs older than Ada have no fp8, and it is said which") {
  CHECK(runtime::fp8_missing({{.name = "H100", .compute_major = 9, .compute_minor = 0},
                              {.name = "L40", .compute_major = 8, .compute_minor = 9}}) == "");
  CHECK(runtime::fp8_missing({{.name = "H100", .compute_major = 9, .compute_minor = 0},
                              {.name = "A100", .compute_major = 8, .compute_minor = 0}}) ==
        "A100 has no matrix products in fp8; take an H100 or newer, or set "
        "training.precision=bf16");
}

}  // namespace loss_scale_test
