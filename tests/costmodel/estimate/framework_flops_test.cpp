// The model FLOPs of a step against the formulas that frameworks log, written down here from their
// definitions: Megatron-LM's num_floating_point_operations (megatron/training/training.py, core
// 0.16), NeMo's nemo/utils/flops_formulas.py (2.3) and MaxText's
// calculate_tflops_training_per_device (MaxText/maxtext_utils.py, of 2025). All count three times
// the forward products. What differs from the count here is named at each: the causal half of
// attention, the router, the padded vocabulary.
#include <doctest/doctest.h>

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace framework_flops_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

struct Counted {
  ModelSpec m;
  double full, causal;  // of a token, in full and with half of attention
  double s = 0;
  double h() const { return static_cast<double>(m.hidden); }
  double l() const { return static_cast<double>(m.layers); }
  double vocab() const { return static_cast<double>(m.vocab); }
  double padded() const { return static_cast<double>(padded_vocab(m.vocab, 1)); }
  double queries() const { return static_cast<double>(m.query_size()); }
  double keys() const { return static_cast<double>(m.kv_size()); }
  double sparse() const { return static_cast<double>(m.moe_layers(0, m.layers)); }
  double routers() const { return 6 * sparse() * h() * static_cast<double>(m.experts); }
  double padding() const {
    return 6 * h() * (padded() - vocab()) * (1 + static_cast<double>(m.mtp_layers));
  }
};

Counted counted(const std::string& model, int sequence) {
  const Scenario s = scenarios::read(
      "model: " + model +
      "\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 8, sequence: " +
      std::to_string(sequence) + ", precision: bf16, stack: megatron-core-2026}\n");
  const Estimate e = Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
  const double tokens = 8.0 * sequence;
  return {s.model, e.model_flops.value / tokens, e.causal_model_flops.value / tokens,
          static_cast<double>(sequence)};
}

// Of the MLPs or the chosen and shared experts of all layers: columns by products of h.
double mlp_columns(const Counted& c) {
  const double products = c.m.gated_mlp ? 3 : 2;
  const double chosen = static_cast<double>(c.m.top_k * c.m.expert_ffn_hidden + c.m.shared_ffn());
  const double dense = static_cast<double>(c.m.ffn_hidden);
  return products * ((c.l() - c.sparse()) * dense + c.sparse() * chosen);
}

// Megatron-LM: Q, K, V, half of attention, output; MLP or experts; padded logits. No router.
double megatron(const Counted& c) {
  const double attention =
      c.h() * (c.queries() + 2 * c.keys()) + c.queries() * c.s + c.queries() * c.h();
  return 6 * (c.l() * attention + c.h() * mlp_columns(c) + c.h() * c.padded());
}

// The same with latent attention: each down-projection counts a norm of its rank.
double megatron_latent(const Counted& c) {
  const auto a = static_cast<double>(c.m.heads), q = static_cast<double>(c.m.q_lora_rank);
  const auto kv = static_cast<double>(c.m.kv_lora_rank);
  const auto nope = static_cast<double>(c.m.qk_head_dim), v = static_cast<double>(c.m.v_head_dim);
  const auto rope = static_cast<double>(c.m.qk_pos_emb_head_dim);
  const double attention = q * (c.h() + a * (nope + rope) + 1) + kv * (c.h() + a * (nope + v) + 1) +
                           c.h() * rope + a * v * c.h() + c.s * a * (nope + rope) / 2 +
                           c.s * a * v / 2;
  return 6 * (c.l() * attention + c.h() * mlp_columns(c) + c.h() * c.padded());
}

// NeMo: attention in full, no router, the vocabulary of the family as it is.
double nemo(const Counted& c) {
  const double attention = 2 * c.h() * c.h() + 2 * c.h() * c.keys() + 2 * c.s * c.h();
  return 6 * (c.l() * attention + c.h() * mlp_columns(c) + c.h() * c.vocab());
}

// MaxText: half of attention, the router, the vocabulary as it is.
double maxtext(const Counted& c) {
  const double attention =
      c.h() * (c.queries() + 2 * c.keys()) + c.queries() * c.s + c.queries() * c.h();
  return 6 * (c.l() * attention + c.h() * mlp_columns(c) + c.h() * c.vocab()) + c.routers();
}

const std::pair<const char*, int> models[] = {{"gpt3-175b", 2048},
                                              {"llama-3-8b", 8192},
                                              {"llama-3-70b", 8192},
                                              {"mixtral-8x7b", 4096},
                                              {"qwen3-30b-a3b", 4096}};

}  // namespace

TEST_CASE("Megatron-LM's count, but for its routers left out and its vocabulary padded") {
  for (const auto& [name, sequence] : models) {
    CAPTURE(name);
    const Counted c = counted(name, sequence);
    CHECK(relative_error(c.causal - c.routers(), megatron(c)) <= 1e-12);
  }
}

TEST_CASE("MaxText's count, but for the padded rows of the vocabulary") {
  for (const auto& [name, sequence] : models) {
    CAPTURE(name);
    const Counted c = counted(name, sequence);
    CHECK(relative_error(c.causal - c.padding(), maxtext(c)) <= 1e-12);
  }
}

// NeMo has no Qwen3 formula, and its GPT-3 formula is that of 24 h and 4 s.
TEST_CASE("NeMo's count: attention in full") {
  for (const auto& [name, sequence] : models) {
    if (std::string(name).starts_with("qwen3")) continue;
    CAPTURE(name);
    const Counted c = counted(name, sequence);
    CHECK(relative_error(c.full - c.routers() - c.padding(), nemo(c)) <= 1e-12);
  }
}

// Megatron-LM adds the norms of the latent vectors, 6 (q + kv) a layer, which are no products.
TEST_CASE("DeepSeek-V3: Megatron-LM's count, but for routers and the latent vectors' norms") {
  const Counted c = counted("deepseek-v3", 4096);
  const double norms = 6 * c.l() * static_cast<double>(c.m.q_lora_rank + c.m.kv_lora_rank);
  CHECK(relative_error(c.causal - c.routers() + norms, megatron_latent(c)) <= 1e-12);
}

}  // namespace framework_flops_test
