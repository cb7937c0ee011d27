// Rotary positions of a config.json.
#include "costmodel/model/hf_rope.hpp"

#include <doctest/doctest.h>

#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/hf_models.hpp"

namespace hf_rope_test {

using namespace costmodel;
using hf_models::read_hf;
using hf_models::tiny;

TEST_CASE("rotations are read where each version of transformers writes them") {
  CHECK(read_hf(tiny("{}")).rotary_base == 10'000);
  CHECK(read_hf(tiny("{rope_theta: 500000.0}")).rotary_base == 500'000);
  const ModelSpec five = read_hf(tiny(
      "{rope_parameters: {rope_theta: 1000000, rope_type: default}, partial_rotary_factor: 0.5}"));
  CHECK(five.rotary_base == 1e6);
  CHECK(five.rotary_percent == 0.5);
  CHECK(five.rope_scaling_factor == 0);
  const ModelSpec scaled = read_hf(tiny("{rope_scaling: {rope_type: llama3, factor: 8.0}}"));
  CHECK(scaled.rope_scaling_factor == 8);
  const ModelSpec yarn = read_hf(
      tiny("{rms_norm_eps: 1e-6, rope_scaling: {type: yarn, factor: 40, beta_fast: 32, beta_slow: "
           "1, mscale: 0.707, mscale_all_dim: 0.707, original_max_position_embeddings: 4096}}"));
  CHECK(yarn.norm_epsilon == 1e-6);
  CHECK(yarn.rope_scaling == RopeScaling::yarn);
  const ModelSpec again = read_model(to_value(yarn), "");
  CHECK((again.rope_scaling_factor == 40 && again.rope_original_positions == 4096));
  CHECK((again.rope_beta_fast == 32 && again.rope_beta_slow == 1));
  CHECK((again.rope_mscale == 0.707 && again.rope_mscale_all_dim == 0.707));
  CHECK(again.norm_epsilon == 1e-6);
  CHECK(read_model(to_value(scaled), "").rope_scaling_factor == 8);
}

}  // namespace hf_rope_test
