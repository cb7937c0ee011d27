#include "costmodel/serving/serving_spec.hpp"

#include <doctest/doctest.h>

using namespace costmodel;

TEST_CASE("Weights of fewer bits take fewer bytes, scales included") {
  CHECK(bytes_of(WeightFormat::bf16) == 2);
  CHECK(bytes_of(WeightFormat::fp8) == 1);
  CHECK(bytes_of(WeightFormat::int4) == doctest::Approx(0.53125));
  CHECK(bytes_of(WeightFormat::nvfp4) == doctest::Approx(0.5625));
  CHECK(bytes_of(CacheFormat::fp16) == 2);
  CHECK(bytes_of(CacheFormat::int8) == 1);
  CHECK(to_string(WeightFormat::nvfp4) == "nvfp4");
}

TEST_CASE("Sizes of a replica count its devices; experts are spread where ep exceeds tp") {
  CHECK(ServingSizes{4, 2, 1, 3}.devices() == 24);
  CHECK(ServingSizes{1, 1, 16, 16}.spreads_experts());
  CHECK_FALSE(ServingSizes{8, 1, 8, 2}.spreads_experts());
}
