#include "costmodel/scenario/run_traits.hpp"

#include <utility>

#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

namespace {

using Mechanisms = std::vector<std::pair<const char*, bool>>;

Mechanisms of_model(const ModelSpec& m) {
  const bool convolves =
      m.attention_pattern.find(row_of(Mixer::short_conv).letter) != std::string::npos;
  const bool linear = m.recurrent() && m.state_size == 0 && !convolves;
  return {{"latent attention", m.latent_attention()},
          {"multi-token prediction", m.mtp_layers > 0},
          {"two stacks", m.encoder_decoder()},
          {"state-space layers", m.state_size > 0},
          {"linear attention", linear},
          {"short convolutions", convolves},
          {"sparse attention", m.index_heads > 0},
          {"attention in chunks", m.attention_chunk > 0},
          {"towers", m.towers != nullptr}};
}

Mechanisms of_training(const TrainingSpec& t) {
  const Overlap& o = t.overlap;
  return {{"fp8 attention", t.narrow_attention},
          {"an expert capacity", t.capacity_factor > 0},
          {"unequal loads of experts", t.expert_load.given()},
          {"static expert buffers", t.expert_buffer_factor > 0},
          {"fused expert products", t.fused_grouped_mlp},
          {"CUDA graphs", o.cuda_graph || o.graphs_parts()},
          {"asynchronous tensor parallelism", o.async_tp},
          {"stochastic gradient descent", is_sgd(t.optimizer)},
          {"8-bit Adam", t.optimizer == Optimizer::adam8bit},
          {"Adafactor", t.optimizer == Optimizer::adafactor},
          {"Muon", t.optimizer == Optimizer::muon},
          {"adapters", t.fine_tuning.adapts()},
          {"a base of 4 bits", t.fine_tuning.base == BasePrecision::nf4}};
}

}  // namespace

std::string family_of(const ModelSpec& m) {
  constexpr std::int64_t llama_3_vocabulary = 128'000;  // Llama 2 and before: 32,000
  if (m.encoder_decoder()) return "t5";
  if (m.state_size > 0) return "mamba";
  if (m.latent_attention()) return "deepseek";
  const bool gemma = m.layernorm_1p || m.windows_differ();  // to 3, and 4
  if (m.gated_mlp && gemma && m.activation == ActivationFunction::gelu) return "gemma";
  if (m.gated_mlp && (m.qk_norm || m.qkv_bias)) return "qwen";
  if (m.experts > 0) return m.gated_mlp ? "mixtral" : "gpt-experts";
  if (m.gated_mlp) return m.vocab >= llama_3_vocabulary ? "llama-3" : "llama-2";
  if (m.activation == ActivationFunction::squared_relu) return "nemotron";
  if (m.positions == Positions::alibi) return m.embedding_norm ? "bloom" : "mpt";
  return "gpt";
}

RunTraits traits_of(const Scenario& s) {
  RunTraits traits;
  traits.stack = s.training.stack.name;
  traits.lineage = s.training.stack.lineage;
  traits.device = device_names(s.cluster);
  traits.family = family_of(s.model);
  traits.experts = s.model.experts > 0;
  traits.devices = static_cast<double>(s.cluster.devices);
  traits.parameters = parameter_count(s.model);
  for (const auto& mechanisms : {of_model(s.model), of_training(s.training)}) {
    for (const auto& [name, has] : mechanisms)
      if (has) traits.mechanisms.emplace_back(name);
  }
  if (is_narrow(s.training.precision))
    traits.mechanisms.emplace_back(to_string(s.training.precision));
  return traits;
}

std::vector<Trait> listed(const RunTraits& traits) {
  std::vector<Trait> list{{TraitGroup::stack, traits.stack},
                          {TraitGroup::device, traits.device},
                          {TraitGroup::family, traits.family}};
  for (const auto& mechanism : traits.mechanisms)
    list.push_back({TraitGroup::mechanism, mechanism});
  return list;
}

}  // namespace costmodel
