#include "calibrate/fit/measured_shape.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"

namespace measured_shape_test {

using namespace calibrate;

namespace {

Microbenchmarks read(const std::string& body) {
  return read_microbenchmarks(costmodel::parse_yaml(
      "- {id: a, device: d, source: {title: t}, software: {any: '1'}, " + body + "}\n", "x.yaml"));
}

template <class What>
What the(const std::string& body) {
  const auto found = read(body);
  REQUIRE_MESSAGE(found.measurements.size() == 1, body);
  return std::get<What>(found.measurements[0].what);
}

double seconds(const std::string& body) { return read(body).measurements.at(0).time.value; }

std::string why_not(const std::string& body) {
  const auto found = read(body);
  REQUIRE_MESSAGE(found.unused.size() == 1, body);
  CHECK(found.unused[0].device == "d");
  return found.unused[0].reason;
}

}  // namespace

TEST_CASE("groups divide the rows or, for weight gradients, the inner size") {
  const auto product = [](const std::string& shape) {
    return the<Product>("kind: gemm, op: grouped, shape: {groups: 4, n: 30, " + shape +
                        "}, measured: {time_us: 1}");
  };
  for (const char* shape :
       {"m_per_group: 10, k: 20", "m_total: 40, k: 20", "expected_m_per_group: 10, k: 20",
        "m: 10, k: 20, stage: fwd", "m: 10, k_per_group: 20", "m: 10, k_total: 80"}) {
    CAPTURE(shape);
    const auto p = product(shape);
    CHECK(p.grouped);
    CHECK(p.batch == 4);
    CHECK(p.m == 10);
    CHECK(p.n == 30);
    CHECK(p.k == 20);
  }
  const auto weights = product("m: 10, k: 20, stage: bwd_grad_w");
  CHECK(weights.m == 20);
  CHECK(weights.k == 10);
  const auto inputs = product("m: 10, k: 20, stage: bwd_grad_act");
  CHECK(inputs.n == 20);
  CHECK(inputs.k == 30);
  CHECK(
      why_not("kind: gemm, op: x, shape: {groups: 4, m: 8, n: 3, k: 2}, measured: {time_us: 1}") ==
      "it does not say which of its sizes the groups divide");
}

TEST_CASE("casts count only where the operands are narrow and the op says them") {
  const auto casts = [](const std::string& op, const std::string& dtype) {
    return the<Product>("kind: gemm, op: " + op + ", shape: {m: 1, n: 1, k: 1, in_dtype: " + dtype +
                        "}, measured: {time_us: 1}")
        .casts;
  };
  CHECK(casts("'linear, quantisation included'", "mxfp8"));
  CHECK_FALSE(casts("'linear, quantisation included'", "bf16"));
  CHECK_FALSE(casts("GEMM only", "'fp8 rowwise'"));
}

TEST_CASE("latent attention's keys and values differ, and backward computes five products") {
  const std::string shape =
      "shape: {batch: 1, seq: 1000, heads: 1, qk_head_dim: 192, v_head_dim: 128, causal: false}, "
      "measured: {tflops: 1}";
  CHECK(the<AttentionRun>("kind: attention, op: cuDNN fwd, " + shape).op.value_dim() == 128);
  CHECK(seconds("kind: attention, op: cuDNN fwd, " + shape) ==
        doctest::Approx(2e6 * (192 + 128) * 1e-12));
  CHECK(seconds("kind: attention, op: cuDNN bwd, " + shape) ==
        doctest::Approx(2e6 * (3 * 192 + 2 * 128) * 1e-12));
}

TEST_CASE("a bandwidth of an exchange counts a token once a rank or, between nodes, once a node") {
  const std::string shape =
      "shape: {ranks: 16, tokens_per_rank: 1000, hidden: 1000, top_k: 2, dtype: bf16}, "
      "measured: {bottleneck_bw_gb_s: 1}";
  CHECK(seconds("kind: collective, op: moe_dispatch (DeepEP), " + shape) ==
        doctest::Approx(2e-3 * 16 * (1 - 15. / 16 * 15 / 16)));
  CHECK(seconds("kind: collective, op: moe_combine (DeepEP), system: {nodes: 2}, " + shape) ==
        doctest::Approx(2e-3 * 2 * (1 - 1. / 4)));
  const auto run = the<ExpertRun>(
      "kind: collective, op: moe_dispatch, system: {nodes: 8}, shape: {ranks: 64, tokens_per_rank: "
      "128, hidden: 1024, top_k: 8, top_groups: 4, dtype: fp8}, measured: {time_us: 9}");
  CHECK(run.message.value == doctest::Approx(128 * 1024 * 8 * (1 + 4. / 128)));
  CHECK(run.routing.groups == 8);
  CHECK(run.routing.groups_per_token == 4);
  CHECK(why_not("kind: collective, op: moe_dispatch (low latency), " + shape).find("few tokens") !=
        std::string::npos);
}

TEST_CASE("memory-bound kernels move what the model's operators move") {
  const auto norm = [](const std::string& op) {
    return the<MemoryKernel>("kind: memory, op: '" + op +
                             "', shape: {rows: 10, hidden: 100, dtype: bf16}, measured: {time_us: "
                             "1}");
  };
  CHECK(norm("rms_norm fwd (cudnn)").moved.value == 4000);
  CHECK(norm("layer_norm bwd (cudnn)").moved.value == 6000);
  CHECK(norm("layer_norm bwd (cudnn)").what == "norms backward (cudnn)");
  const auto cast = the<MemoryKernel>(
      "kind: quantize, op: quantisation both, shape: {tensor: 8x10x100, in_dtype: bf16, out_dtype: "
      "fp8 blockwise}, measured: {time_us: 1}");
  CHECK(cast.moved.value == 8000 * (2 + 1 + 1));
  CHECK(why_not("kind: memory, op: softmax, measured: {time_us: 1}").find("only norms") !=
        std::string::npos);
}

TEST_CASE("a host time is a launch where the model has it") {
  CHECK(the<Launch>("kind: host, op: 12 eager kernels, measured: {time_us: 60, kernels: 12}")
            .kernels == 12);
  CHECK(seconds("kind: host, op: host time of one Linear forward (torch), measured: {host_time_us: "
                "7}") == doctest::Approx(7e-6));
  CHECK(why_not("kind: host, op: cudaGraphLaunch, measured: {time_us: 4}") ==
        "no part of the model is this host time");
}

TEST_CASE("what has no formula is told apart from what is misspelt") {
  CHECK(why_not("kind: layer, op: layer, shape: {layers: 2}, measured: {time_us: 4}") ==
        "whole layers are priced by shardplan evaluate");
  CHECK(why_not("kind: attention, op: FA4 fwd (best), measured: {tflops: 4}") ==
        "its shape is not known");
  CHECK_THROWS_AS(read("kind: layer, op: layer, measured: {time_uss: 4}"), costmodel::ConfigError);
}

}  // namespace measured_shape_test
