#include "costmodel/serving/engine.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
EngineSpec engine_of(const std::string& text, const std::string& device = "h100-sxm5-80gb") {
  return read_engine(parse_yaml(text, "engine.yaml"), "mine", device);
}
}  // namespace

TEST_CASE("Every engine of the configurations is read and says where it comes from") {
  const ConfigPath path = config_path({});
  const auto names = config_names(path, "engines");
  CHECK(names.size() >= 10);
  for (const auto& name : names) {
    const ResolvedConfig written = resolve_config(path, "engines", scalar_value(name));
    CHECK_MESSAGE(!read_engine(written.value, name, "").family.empty(), name);
    CHECK_MESSAGE(written.value.find("source") != nullptr, name);
  }
}

TEST_CASE("An engine may have constants of its own on a device") {
  const std::string text = "{engine: vllm, kernel_s: 2 us, devices: {mi300x: {kernel_s: 9 us}}}";
  CHECK(engine_of(text).constants.kernel.value == doctest::Approx(2e-6));
  CHECK(engine_of(text, "mi300x").constants.kernel.value == doctest::Approx(9e-6));
  CHECK_THROWS_WITH_AS(engine_of("{kernels: 2 us}"), doctest::Contains("kernels"), ConfigError);
}

TEST_CASE("Models with latent attention may have limits of their own") {
  const std::string text =
      "{engine: vllm, limits: {max_num_seqs: 64}, latent_attention_limits: {chunked_prefill: "
      "false}}";
  const EngineSpec engine = engine_of(text);
  REQUIRE(engine.latent_limits);
  CHECK(engine.limits.chunked_prefill);
  CHECK_FALSE(engine.latent_limits->chunked_prefill);
  CHECK(engine.latent_limits->max_num_seqs == 64);
  CHECK_FALSE(engine_of("{engine: vllm}").latent_limits);
  CHECK_THROWS_WITH_AS(engine_of("{latent_attention_limits: {chunks: 3}}"),
                       doctest::Contains("chunks"), ConfigError);
}

TEST_CASE("vLLM's limits are lower on devices that are not large") {
  const auto seqs = [](const char* cluster) {
    return served::on("stack: vllm-0.11", cluster).serving.limits.max_num_seqs;
  };
  CHECK(seqs("dgx-h100") == 1024);
  CHECK(seqs("pcie-8x-rtx-4090") == 256);
  CHECK(seqs("mosaic-a100-sxm4-80gb") == 256);
}

TEST_CASE("A fit's factors multiply the priors that they name") {
  ServingFit fit;
  fit.factors["shared"].fill(1);
  fit.factors["shared"][0] = 2;
  fit.factors["vllm"].fill(1);
  fit.factors["vllm"][0] = 1.5;
  const EngineConstants prior;
  CHECK(fitted(prior, fit, "vllm", "any").kernel.value == doctest::Approx(prior.kernel.value * 3));
  CHECK(fitted(prior, fit, "sglang", "any").kernel.value ==
        doctest::Approx(prior.kernel.value * 2));
  CHECK(fitted(prior, fit, "sglang", "any").host_step == prior.host_step);
}

TEST_CASE("Each constant is got as it was set") {
  for (const auto& row : constant_rows()) {
    EngineConstants constants;
    row.of(constants) = 0.125;
    CHECK_MESSAGE(row.of(constants) == 0.125, row.name);
    CHECK(row.spread > 0);
  }
}
