#include "planner/frameworks/torchtitan_flavors.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

const FrameworkWords& models() { return framework_words("torchtitan-models"); }

std::vector<TorchtitanFlavor> read_flavors() {
  std::vector<TorchtitanFlavor> all;
  for (const auto& row : models().rows) {
    SHARDPLAN_CHECK(row.size() == 9 || row.size() == 12);
    std::array<std::int64_t, 9> sizes{};
    for (std::size_t i = 3; i < row.size(); ++i)
      sizes[i - 3] = std::strtoll(std::string(row[i]).c_str(), nullptr, 10);
    all.push_back({row[0], row[1], row[2], sizes[0], sizes[1], sizes[2], sizes[3], sizes[4],
                   sizes[5], sizes[6], sizes[7], sizes[8]});
  }
  return all;
}

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

std::span<const TorchtitanFlavor> torchtitan_flavors() {
  static const std::vector<TorchtitanFlavor> all = read_flavors();
  return all;
}

namespace {

template <class Holds>
const TorchtitanFlavor* first_flavor(const Holds& holds) {
  const auto all = torchtitan_flavors();
  const auto found = std::ranges::find_if(all, holds);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

const TorchtitanFlavor* flavor_of(const ModelSpec& model) {
  if (!is_of_its_kind(model)) return nullptr;
  return first_flavor([&](const TorchtitanFlavor& flavor) { return has_sizes(model, flavor); });
}

const TorchtitanFlavor* flavor_named(std::string_view name, std::string_view flavor) {
  return first_flavor(
      [&](const TorchtitanFlavor& one) { return one.name == name && one.flavor == flavor; });
}

std::string_view shipped_settings(std::string_view config) {
  const std::string_view settings = models().read_as(config);
  return settings == config ? "" : settings;
}

}  // namespace planner
