#include "costmodel/model/hf_checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace costmodel {

namespace {

// Of eight bits or four, by a word for numbers with an exponent or without.
std::string_view format_of_bits(std::string_view bits, bool floating) {
  if (bits == "8") return floating ? "fp8" : "int8";
  if (bits == "4") return floating ? "nvfp4" : "int4";
  return "";
}

// compressed-tensors has it of groups of modules, of which the first counts.
std::string_view stored_format(const Value& stored) {
  const auto word = [](const Value& map, const char* key) -> std::string_view {
    const Value* value = map.find(key);
    return value == nullptr ? std::string_view() : std::string_view(value->text);
  };
  const std::string_view method = word(stored, "quant_method"), algo = word(stored, "quant_algo");
  if (method == "fp8" || method == "fbgemm_fp8" || algo == "FP8") return "fp8";
  if (method == "mxfp4" || method == "nvfp4") return method;
  if (algo.starts_with("NVFP4")) return "nvfp4";
  if (method == "bitsandbytes") return word(stored, "load_in_8bit") == "true" ? "int8" : "int4";
  if (method == "awq" || method == "gptq") {
    const std::string_view bits = word(stored, "bits");
    return format_of_bits(bits.empty() ? word(stored, "w_bit") : bits, false);
  }
  const Value* groups = stored.find("config_groups");
  if (groups == nullptr || !groups->is_map() || groups->entries.empty()) return "";
  const Value& first = groups->entries.front().value;
  const Value* weights = first.is_map() ? first.find("weights") : nullptr;
  if (weights == nullptr || !weights->is_map()) return "";
  return format_of_bits(word(*weights, "num_bits"), word(*weights, "type") == "float");
}

using Patterns = std::vector<std::string>;

// Each alternative of the first brackets by itself, until there are none.
void add_alternatives(const std::string& text, Patterns& patterns) {
  constexpr std::size_t most = 64;  // of one entry; a hostile file could ask for any number
  if (patterns.size() >= most) return;
  const std::size_t open = text.find('('), close = text.find(')', open);
  if (open == std::string::npos || close == std::string::npos) return patterns.push_back(text);
  std::size_t from = open + 1;
  while (from <= close) {
    const std::size_t end = std::min(text.find('|', from), close);
    add_alternatives(text.substr(0, open) + text.substr(from, end - from) + text.substr(close + 1),
                     patterns);
    from = end + 1;
  }
}

// An entry as names with * for any characters; none of what is empty or longer than any module's.
Patterns patterns_of(const std::string& entry) {
  constexpr std::size_t longest = 1000;
  Patterns patterns;
  if (entry.empty() || entry.size() > longest) return patterns;
  const bool expression = entry.starts_with("re:");
  if (!expression) return {entry};
  std::string plain;
  for (std::size_t i = 3; i < entry.size(); ++i) {
    const bool any = entry.compare(i, 2, ".*") == 0;
    if (any || entry[i] == '\\') ++i;
    if (any) {
      plain += '*';
    } else if (i < entry.size() && entry[i] != '^' && entry[i] != '$') {
      plain += entry[i];
    }
  }
  add_alternatives(plain, patterns);
  return patterns;
}

// Whether a part of the name is the pattern's.
bool names_part(std::string_view pattern, std::string_view name) {
  while (true) {
    const std::size_t star = std::min(pattern.find('*'), pattern.size());
    const std::size_t found = name.find(pattern.substr(0, star));
    if (found == name.npos) return false;
    if (star == pattern.size()) return true;
    name.remove_prefix(found + star);
    pattern.remove_prefix(star + 1);
  }
}

Patterns kept_patterns(const Value& stored) {
  Patterns all;
  for (const char* const key :
       {"modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules"}) {
    const Value* const list = stored.find(key);
    if (list == nullptr) continue;
    for (const Value& entry : list->items)
      for (std::string& pattern : patterns_of(entry.text)) all.push_back(std::move(pattern));
  }
  return all;
}

}  // namespace

StoredWeights stored_weights(const Value& text, std::int64_t layers, bool experts) {
  StoredWeights weights{stored_format(text)};
  const Patterns kept = kept_patterns(text);
  constexpr std::size_t most = 4'000'000;  // comparisons; Llama 3.1 405B's file has 64,000
  if (kept.empty() || kept.size() > most / static_cast<std::size_t>(layers + 1)) return weights;
  const auto keeps = [&](std::int64_t layer, std::string_view module) {
    const std::string name = fmt::format("model.layers.{}.{}", layer, module);
    return std::ranges::any_of(kept,
                               [&](const auto& pattern) { return names_part(pattern, name); });
  };
  std::int64_t attention = 0, dense = 0, first = 0, last = 0;
  const char* const feed_forward = experts ? "mlp.experts.0.down_proj" : "mlp.down_proj";
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    attention += keeps(layer, "self_attn.o_proj") ? 1 : 0;
    dense += keeps(layer, "mlp.down_proj") && keeps(layer, "mlp.shared_experts.down_proj") ? 1 : 0;
    const bool all = keeps(layer, feed_forward);
    first += first == layer && all ? 1 : 0;
    last = all ? last + 1 : 0;
  }
  weights.attention = layers > 0 && attention == layers;
  weights.dense = experts && weights.attention && dense == layers && first < layers;
  weights.layers = first < layers ? std::min(first, last) : 0;
  return weights;
}

}  // namespace costmodel
