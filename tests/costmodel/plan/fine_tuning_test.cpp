// What a frozen base takes, value by value.
#include "costmodel/plan/fine_tuning.hpp"

#include <doctest/doctest.h>

namespace fine_tuning_test {

using namespace costmodel;

TEST_CASE("QLoRA's double quantization: 4.127 bits a value instead of 4.5 (arXiv:2305.14314)") {
  FineTuning tuning{.method = FineTuningMethod::qlora, .base = BasePrecision::nf4};
  CHECK(8 * tuning.base_bytes(2) == doctest::Approx(4.127).epsilon(1e-4));
  CHECK(8 * tuning.base_bytes(2) - 4 == doctest::Approx(0.127).epsilon(2e-3));
  tuning.double_quantization = false;
  CHECK(8 * tuning.base_bytes(2) == 4.5);
  tuning.base = BasePrecision::fp8;
  CHECK(tuning.base_bytes(2) == 1);
  tuning.base = BasePrecision::bf16;
  CHECK(tuning.base_bytes(2) == 2);
}

TEST_CASE("only lora and qlora freeze the base") {
  CHECK_FALSE(FineTuning{}.adapts());
  CHECK_FALSE(FineTuning{.method = FineTuningMethod::full}.adapts());
  CHECK(FineTuning{.method = FineTuningMethod::lora}.adapts());
  CHECK(FineTuning{.targets = bit_of(AdapterTarget::down)}.has(AdapterTarget::down));
  CHECK_FALSE(FineTuning{.targets = attention_targets}.has(AdapterTarget::gate));
}

}  // namespace fine_tuning_test
