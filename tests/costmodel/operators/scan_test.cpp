// Mamba-2 layers (Dao and Gu 2024, arXiv:2405.21060) against hand counts.
#include <doctest/doctest.h>

#include "costmodel/cost/device_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace scan_test {

using namespace costmodel;

namespace {

constexpr std::int64_t s = 2048, b = 2, h = 1024, a = 32, p = 64, n = 128, g = 4;
constexpr double T = 1.0 * s * b, inner = 1.0 * a * p, channels = inner + 2.0 * g * n;

ModelSpec model(std::int64_t layers = 1) {
  ModelSpec m = fixtures::gpt(layers, h, a, 51200, s);
  m.kind = ModelKind::mamba;
  m.normalization = Normalization::rmsnorm;
  m.positions = Positions::none;
  m.max_positions = 0;
  m.linear_bias = m.qkv_bias = false;
  m.dropout = 0;
  m.ffn_hidden = 0;
  m.head_dim = p, m.state_size = n, m.ssm_groups = g, m.conv_kernel = 4;
  return m;
}

OpList block(int tp, bool sequence_parallel = false) {
  return build_layer(model().blocks().front(), model(),
                     fixtures::layer_context(tp, sequence_parallel, b, s));
}

}  // namespace

TEST_CASE("parameters of a scan layer, whole and cut") {
  const double in = h * (inner + channels + a), out = inner * h;
  const double small = channels * 5 + 3.0 * a + inner;
  CHECK(weights_of(block(1)) == in + out + small + h);
  CHECK(weights_of(block(4)) == (in + out + small) / 4 + h);
  CHECK(parameters_per_layer(model()) == weights_of(block(1)));
}

TEST_CASE("model FLOPs by Megatron-LM's convention: projections, and 7 a channel and state") {
  TrainingSpec training = fixtures::training(16, s);
  const Evaluator evaluator(model(8), fixtures::cluster(1), training);
  const double tokens = 16.0 * s;
  const double layer =
      2 * tokens * h * (inner + channels + a) + 7 * tokens * inner * n + 2 * tokens * inner * h;
  const double logits = 2 * tokens * h * 51200;
  CHECK(evaluator.model_flops().value == 3 * (8 * layer + logits));
}

TEST_CASE("the chunked scan grows with the sequence, not with its square") {
  const Scan one{1, 4096, a, p, n, g}, two{1, 8192, a, p, n, g};
  for (const auto pass : {Pass::forward, Pass::input_gradient}) {
    CHECK(work_of(two, pass, 2).executed.value == 2 * work_of(one, pass, 2).executed.value);
    CHECK(work_of(two, pass, 2).moved.value == 2 * work_of(one, pass, 2).moved.value);
  }
  // Section 6.3: inside chunks 2·T·Q·(N per group + P per head), between them 4·T·N·P per head.
  const double tokens = 4096;
  CHECK(work_of(one, Pass::forward, 2).executed.value ==
        2 * tokens * 256 * (n * g + p * a) + 4 * tokens * n * p * a);
  const DeviceSpec device = fixtures::device();
  CHECK(device_time(two, Pass::forward, device, Precision::bf16) <
        2.2 * device_time(one, Pass::forward, device, Precision::bf16));
  CHECK(device_time(one, Pass::input_gradient, device, Precision::bf16) >
        2 * device_time(one, Pass::forward, device, Precision::bf16));
  CHECK(Scan{1, 100, a, p, n, g}.chunk_tokens() == 100);
}

TEST_CASE("what a scan layer keeps: its input twice, the projection, the scan's result, its norm") {
  const auto kept = [](int tp) {
    return footprint(block(tp), Recomputed::nothing).kept_activations.value;
  };
  const double cut = inner + channels + a + inner + inner;
  CHECK(kept(1) == 2 * T * (2 * h + cut));
  CHECK(kept(4) == 2 * T * (2 * h + cut / 4));
  CHECK(footprint(block(1), Recomputed::everything).kept_activations.value == 2 * T * h);
}

TEST_CASE("groups divide over tensor ranks; context parallelism has no scan here") {
  const ClusterSpec cluster = fixtures::cluster(8);
  TrainingSpec training = fixtures::training(64, s);
  training.stack.kernels.attention = AttentionKernel::flash;
  training.stack.offers.context_parallel = true;
  ParallelPlan plan;
  plan.tp = 4, plan.dp = 2;
  CHECK(violations(plan, model(), cluster, training).empty());
  plan.tp = 8, plan.dp = 1;
  CHECK(violations(plan, model(), cluster, training).front().key == "tp");
  plan.tp = 1, plan.dp = 4, plan.cp = 2;
  CHECK(violations(plan, model(), cluster, training).front().key == "cp");
}

}  // namespace scan_test
