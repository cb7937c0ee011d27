// Hybrids: a pattern whose layers are the halves of a transformer's costs what that transformer
// costs.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace layer_pattern_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

ModelSpec parsed(const std::string& yaml) { return read_model(parse_yaml(yaml, "model.yaml"), ""); }

std::string fault(const std::string& yaml) {
  return config_error([&] { parsed(yaml); });
}

const char* const attention =
    "hidden: 1024, heads: 16, kv_heads: 4, ffn_hidden: 4096, gated_mlp: true, activation: silu, "
    "vocab: 32000, tie_embeddings: false, positions: rotary, linear_bias: false, dropout: 0";
const char* const experts = ", experts: 8, top_k: 2, expert_ffn_hidden: 2048, shared_experts: 1";

Estimate estimate(const std::string& model, const std::string& plan) {
  const Scenario s = scenarios::read(
      "model: {" + model +
      "}\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 32, sequence: 1024, precision: bf16, stack: megatron-core-2025}\n"
      "plan: {" +
      plan + "}\n");
  return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
}

// The same model as whole layers and as twice as many halves, on the same stages.
void check_alike(const std::string& whole, const std::string& halves, const std::string& plan) {
  const Estimate a = estimate(whole, plan), b = estimate(halves, plan);
  // More layers leave a smaller part of the gradients' reduction after the last of them.
  const double near = a.plan.dp > 1 ? 0.02 : 1e-9;
  CHECK(b.iteration.value == doctest::Approx(a.iteration.value).epsilon(near));
  CHECK(b.peak.value == doctest::Approx(a.peak.value).epsilon(1e-9));
  CHECK(b.model_flops.value == doctest::Approx(a.model_flops.value).epsilon(1e-12));
  CHECK(b.parameters == a.parameters);
  CHECK(b.active_parameters == a.active_parameters);
  for (std::size_t i = 0; i < b.memory.size(); ++i)
    CHECK(b.memory[i].weights.value == doctest::Approx(a.memory[i].weights.value).epsilon(1e-12));
}

}  // namespace

TEST_CASE("attention and MLP as layers of their own cost what a block of both costs") {
  const std::string whole = std::string("kind: llama, layers: 4, ") + attention;
  const std::string halves = std::string("kind: hybrid, layer_pattern: '*-*-*-*-', ") + attention;
  for (const char* plan : {"tp: 8, pp: 1", "tp: 2, pp: 4, micro_batch: 2, sequence_parallel: true",
                           "tp: 4, pp: 2, recompute: selective", "tp: 1, pp: 2, zero: 1"}) {
    CAPTURE(plan);
    check_alike(whole, halves, plan);
  }
}

TEST_CASE("attention and experts as layers of their own cost what a block of both costs") {
  const std::string whole = std::string("kind: moe, layers: 4, ") + attention + experts;
  const std::string halves =
      std::string("kind: hybrid, layer_pattern: '*E*E*E*E', ") + attention + experts;
  for (const char* plan : {"tp: 1, pp: 1, ep: 8", "tp: 2, pp: 2, ep: 2"}) {
    CAPTURE(plan);
    check_alike(whole, halves, plan);
  }
}

TEST_CASE("a pattern of scans alone is a Mamba model") {
  const char* const scan =
      "hidden: 1024, vocab: 32000, linear_bias: false, dropout: 0, "
      "state_size: 128, ssm_groups: 4, tie_embeddings: true, ";
  const std::string mamba = std::string(scan) + "kind: mamba, layers: 4, heads: 32, head_dim: 64";
  const std::string hybrid = std::string(scan) +
                             "kind: hybrid, layer_pattern: MMMM, heads: 16, mamba_heads: 32, "
                             "mamba_head_dim: 64";
  check_alike(mamba, hybrid, "tp: 2, pp: 2");
}

TEST_CASE("stages hold the layers of their part of the pattern, the first of them recomputed") {
  const ModelSpec m =
      parsed(std::string("{kind: hybrid, layer_pattern: 'MM-*ME', ") + attention + experts + "}");
  REQUIRE(m.layers == 6);
  const LayerMix first = layer_mix(m, 0, 3, {Recomputation::full, 2});
  const auto place = [&](Mixer mixer, FeedForward feed_forward) {
    const std::vector<Block> blocks = m.blocks();
    return static_cast<std::size_t>(std::ranges::find(blocks, Block{mixer, feed_forward}) -
                                    blocks.begin());
  };
  const std::size_t scan = place(Mixer::scan, FeedForward::none),
                    mlp = place(Mixer::none, FeedForward::dense);
  CHECK(first.number[scan] == 2);
  CHECK(first.number[mlp] == 1);
  CHECK(first.again[scan] == 2);
  CHECK(first.again[mlp] == 0);
  const LayerMix last = layer_mix(m, 3, 3, {});
  CHECK(last.number[place(Mixer::attention, FeedForward::none)] == 1);
  CHECK(last.number[scan] == 1);
  CHECK(last.number[place(Mixer::none, FeedForward::experts)] == 1);
  CHECK(last.layers() == 3);
  CHECK(m.blocks().size() == 4);
  CHECK(parsed(std::string("{kind: hybrid, layer_pattern: '-*-', ") + attention + "}")
            .blocks()
            .size() == 2);
}

TEST_CASE("a wrong pattern is told") {
  const std::string rest = std::string(", ") + attention + "}";
  CHECK(contains(fault("{kind: hybrid, layer_pattern: 'MAM'" + rest), "at letter 2"));
  CHECK(contains(fault("{kind: hybrid, layers: 4, layer_pattern: 'M-*'" + rest), "3 letters"));
  CHECK(contains(fault("{kind: hybrid, layer_pattern: ''" + rest), "empty"));
  CHECK(contains(fault("{kind: hybrid" + rest), "layer_pattern"));
  CHECK(contains(fault("{kind: hybrid, layer_pattern: '*E'" + rest), "experts"));
  CHECK(contains(fault("{kind: llama, layer_pattern: '*-', layers: 2" + rest), "layer_pattern"));
}

}  // namespace layer_pattern_test
