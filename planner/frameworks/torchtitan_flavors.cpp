#include "planner/frameworks/torchtitan_flavors.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace planner {

using namespace costmodel;

namespace {

constexpr std::array<TorchtitanFlavor, 11> flavors{
    {{"llama3", "8B", "llama-3.1-8b", 32, 4096, 32, 8, 14336, 128256},
     {"llama3", "70B", "llama-3.1-70b", 80, 8192, 64, 8, 28672, 128256},
     {"llama3", "405B", "llama-3.1-405b", 126, 16384, 128, 8, 53248, 128256},
     {"qwen3", "8B", "qwen3-8b", 36, 4096, 32, 8, 12288, 151936},
     {"qwen3", "14B", "qwen3-14b", 40, 5120, 40, 8, 17408, 151936},
     {"qwen3", "32B", "qwen3-32b", 64, 5120, 64, 8, 25600, 151936},
     {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, 2048, 32, 4, 6144, 151936, 128, 8, 768},
     {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, 4096, 64, 4, 12288, 151936, 128, 8, 1536},
     {"deepseek_v3", "16B", "deepseek-v2-lite", 27, 2048, 16, 16, 10944, 102400, 64, 6, 1408},
     {"deepseek_v3", "236B", "deepseek-v2", 60, 5120, 128, 128, 12288, 102400, 160, 6, 1536},
     {"deepseek_v3", "671B", "deepseek-v3", 61, 7168, 128, 128, 18432, 129280, 256, 8, 2048}}};

// torchtitan/models/*/train_configs of 2025-12; what stands there at torchtitan's default is left
// out.
constexpr auto shipped = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"llama3_8b",
     "model.name=llama3 model.flavor=8B training.local_batch_size=1 training.seq_len=8192 "
     "activation_checkpoint.mode=selective activation_checkpoint.selective_ac_option=op"},
    {"llama3_70b",
     "model.name=llama3 model.flavor=70B training.local_batch_size=8 training.seq_len=8192 "
     "parallelism.tensor_parallel_degree=8 activation_checkpoint.mode=full"},
    {"llama3_405b",
     "model.name=llama3 model.flavor=405B training.local_batch_size=2 training.seq_len=8192 "
     "parallelism.tensor_parallel_degree=8 parallelism.enable_async_tensor_parallel=true "
     "activation_checkpoint.mode=full compile.enable=true model.converters=float8 "
     "quantize.linear.float8.enable_fsdp_float8_all_gather=true"},
    {"llama4_17bx16e",
     "model.name=llama4 model.flavor=17bx16e training.local_batch_size=8 training.seq_len=8192 "
     "parallelism.tensor_parallel_degree=8 parallelism.expert_tensor_parallel_degree=8 "
     "activation_checkpoint.mode=full"},
    {"llama4_17bx128e",
     "model.name=llama4 model.flavor=17bx128e training.local_batch_size=1 training.seq_len=8192 "
     "parallelism.tensor_parallel_degree=8 parallelism.pipeline_parallel_degree=4 "
     "parallelism.expert_tensor_parallel_degree=8 activation_checkpoint.mode=full"},
    {"qwen3_0.6b",
     "model.name=qwen3 model.flavor=0.6B training.local_batch_size=4 training.seq_len=4096 "
     "activation_checkpoint.mode=selective activation_checkpoint.selective_ac_option=op"},
    {"qwen3_1.7b",
     "model.name=qwen3 model.flavor=1.7B training.local_batch_size=4 training.seq_len=4096 "
     "activation_checkpoint.mode=selective activation_checkpoint.selective_ac_option=op"},
    {"qwen3_32b",
     "model.name=qwen3 model.flavor=32B training.local_batch_size=2 training.seq_len=4096 "
     "activation_checkpoint.mode=full"},
    {"deepseek_v3_16b",
     "model.name=deepseek_v3 model.flavor=16B training.local_batch_size=4 training.seq_len=4096 "
     "parallelism.expert_parallel_degree=8 activation_checkpoint.mode=selective "
     "activation_checkpoint.selective_ac_option=op compile.enable=true"},
    {"deepseek_v3_671b",
     "model.name=deepseek_v3 model.flavor=671B training.local_batch_size=4 training.seq_len=4096 "
     "activation_checkpoint.mode=selective activation_checkpoint.selective_ac_option=op "
     "compile.enable=true"},
});

// What all of torchtitan's decoders have: RMSNorm, gated MLPs, rotary positions, no biases, an
// output projection of its own. (Its flavors with tied embeddings are not in the table.)
bool is_of_its_kind(const ModelSpec& m) {
  const bool decoder = !m.encoder_decoder() && m.layer_pattern.empty() && !m.recurrent() &&
                       m.plain_block() && m.sliding_window == 0;
  return decoder && m.normalization == Normalization::rmsnorm && m.gated_mlp &&
         m.positions == Positions::rotary && !m.linear_bias && !m.qkv_bias && !m.tie_embeddings &&
         !m.parallel_block && !m.embedding_norm && m.mtp_layers == 0;
}

bool has_sizes(const ModelSpec& m, const TorchtitanFlavor& f) {
  const bool latent = f.name == "deepseek_v3";
  const bool attention = m.heads == f.heads && m.latent_attention() == latent &&
                         (latent || m.kv_heads == f.kv_heads) && m.qk_norm == (f.name == "qwen3");
  return attention && m.layers == f.layers && m.hidden == f.hidden &&
         m.ffn_hidden == f.ffn_hidden && m.vocab == f.vocab && m.experts == f.experts &&
         m.top_k == f.top_k && (f.experts == 0 || m.expert_ffn_hidden == f.expert_ffn_hidden);
}

}  // namespace

std::span<const TorchtitanFlavor> torchtitan_flavors() { return flavors; }

const TorchtitanFlavor* flavor_of(const ModelSpec& model) {
  if (!is_of_its_kind(model)) return nullptr;
  const auto* found = std::ranges::find_if(
      flavors, [&](const TorchtitanFlavor& flavor) { return has_sizes(model, flavor); });
  return found == flavors.end() ? nullptr : found;
}

const TorchtitanFlavor* flavor_named(std::string_view name, std::string_view flavor) {
  const auto* found = std::ranges::find_if(flavors, [&](const TorchtitanFlavor& one) {
    return one.name == name && one.flavor == flavor;
  });
  return found == flavors.end() ? nullptr : found;
}

std::string_view shipped_settings(std::string_view config) {
  const auto* found =
      std::ranges::find(shipped, config, &std::pair<std::string_view, std::string_view>::first);
  return found == shipped.end() ? "" : found->second;
}

}  // namespace planner
