#include "planner/exchange/hub_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

// What a name on a hub begins with, and whose sizes it has: by the config.json of both on Hugging
// Face, or by the card of the one that was trained from the other. The longest length may differ.
// Without sizes: it is no model that is shipped, though its name begins like one.
using NamePair = std::pair<std::string_view, std::string_view>;
constexpr auto same_sizes = std::to_array<NamePair>({
    {"Qwen2.5-0.5B", "Qwen2-0.5B"},
    {"Qwen2.5-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-7B", "Qwen2-7B"},
    {"Qwen2.5-Math-7B", "Qwen2-7B"},
    {"Qwen2.5-Math-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-Math-72B", "Qwen2.5-72B"},
    {"Qwen2.5-Coder-0.5B", "Qwen2-0.5B"},
    {"Qwen2.5-Coder-1.5B", "Qwen2-1.5B"},
    {"Qwen2.5-Coder-3B", "Qwen2.5-3B"},
    {"Qwen2.5-Coder-7B", "Qwen2-7B"},
    {"Qwen2.5-Coder-14B", "Qwen2.5-14B"},
    {"Qwen2.5-Coder-32B", "Qwen2.5-32B"},
    {"QwQ-32B", "Qwen2.5-32B"},
    {"Qwen-7B", "Qwen1.5-7B"},
    {"Qwen3.6-27B", "Qwen3.5-27B"},
    {"Qwen3.6-35B-A3B", "Qwen3.5-35B-A3B"},
    {"Qwen3.8-27B", "Qwen3.5-27B"},
    {"AI21-Jamba-1.5-Large", "Jamba-1.5-Large"},
    {"AI21-Jamba-Large-1.5", "Jamba-1.5-Large"},
    {"Mistral-Nemo-Base", "Mistral-NeMo-12B"},
    {"Mistral-Nemo-Instruct", "Mistral-NeMo-12B"},
    {"RedPajama-INCITE-Base-3B", "RedPajama-INCITE-3B"},
    {"RedPajama-INCITE-Chat-3B", "RedPajama-INCITE-3B"},
    {"RedPajama-INCITE-Instruct-3B", "RedPajama-INCITE-3B"},
    {"Qwen3-Coder-30B-A3B", "Qwen3-30B-A3B"},
    {"Qwen3-Reranker-0.6B", "Qwen3-0.6B"},
    {"Qwen3-Reranker-4B", "Qwen3-4B"},
    {"Qwen3-Reranker-8B", "Qwen3-8B"},
    {"Qwen3-VL-Reranker", "Qwen3-VL"},
    {"Qwen3-VL-Embedding", "Qwen3-VL"},
    {"Plano-Orchestrator-4B", "Qwen3-4B"},
    {"llama4-17bx16e", "Llama-4-Scout"},  // as torchtitan calls them
    {"llama4-17bx128e", "Llama-4-Maverick"},
    {"Qwen3-Embedding-0.6B", "Qwen3-0.6B"},
    {"Qwen3-Embedding-4B", "Qwen3-4B"},
    {"Qwen3-Embedding-8B", "Qwen3-8B"},
    {"DeepSeek-R1-Distill-Qwen-1.5B", "Qwen2-1.5B"},
    {"DeepSeek-R1-Distill-Qwen-7B", "Qwen2-7B"},
    {"DeepSeek-R1-Distill-Qwen-14B", "Qwen2.5-14B"},
    {"DeepSeek-R1-Distill-Qwen-32B", "Qwen2.5-32B"},
    {"DeepSeek-R1-Distill-Llama-8B", "Llama-3.1-8B"},
    {"DeepSeek-R1-Distill-Llama-70B", "Llama-3.3-70B"},
    {"DeepSeek-R1-0528-Qwen3-8B", "Qwen3-8B"},
    {"DeepSeek-R1-Distill", ""},
    {"DeepSeek-R1", "DeepSeek-V3"},
    {"DeepSeek-V3.1", "DeepSeek-V3"},
    {"DeepSeek-V2.5", "DeepSeek-V2"},
    {"DeepSeek-V2-Chat", "DeepSeek-V2"},
    {"DeepSeek-Coder-V2-Lite", "DeepSeek-V2-Lite"},
    {"DeepSeek-Coder-V2", "DeepSeek-V2"},
    {"DeepCoder-14B", "Qwen2.5-14B"},
    {"cogito-v1-preview-llama-3B", "Llama-3.2-3B"},
    {"cogito-v1-preview-llama-8B", "Llama-3.1-8B"},
    {"cogito-v1-preview-llama-70B", "Llama-3.3-70B"},
    {"cogito-v1-preview-qwen-14B", "Qwen2.5-14B"},
    {"cogito-v1-preview-qwen-32B", "Qwen2.5-32B"},
    {"gpt-oss-safeguard-20b", "gpt-oss-20b"},
    {"gpt-oss-safeguard-120b", "gpt-oss-120b"},
    {"Phi-3.5-mini", "Phi-3-mini"},
    {"Phi-4-multimodal", ""},
    {"Phi-4-mini-flash", ""},
    {"GLM-4.6V-Flash", "GLM-4.1V-9B"},
    {"GLM-Z1-9B-0414", "GLM-4-9B-0414"},
    {"GLM-Z1-32B-0414", "GLM-4-32B-0414"},
    {"glm4-9B", "GLM-4-9B-0414"},  // as slime calls them
    {"glm4-32B", "GLM-4-32B-0414"},
    {"glm4.7-30B-A3B", "GLM-4.7-Flash"},
    {"moonlight", "Moonlight-16B-A3B"},
    {"TinyLlama_v1.1", "TinyLlama-1.1B"},
    {"codegemma-2b", "gemma-2b"},
    {"codegemma-7b", "gemma-7b"},
    {"gemma-1.1-2b", "gemma-2b"},
    {"gemma-1.1-7b", "gemma-7b"},
    {"Mistral-Small-3.2-24B", "Mistral-Small-3.1-24B"},
    {"Magistral-Small-2509", "Mistral-Small-3.1-24B"},
    {"Magistral-Small-2506", "Mistral-Small-24B"},
    {"Magistral-Small-2507", "Mistral-Small-24B"},
    {"Devstral-Small-2505", "Mistral-Small-24B"},
    {"Devstral-Small-2507", "Mistral-Small-24B"},
    {"OLMo-2-1124-7B", "OLMo-2-7B"},
    {"OLMo-2-1124-13B", "OLMo-2-13B"},
    {"OLMo-3-1025-7B", "OLMo-3-7B"},
    {"MiniMax-M2.1", "MiniMax-M2"},
    {"MiniMax-M2.5", "MiniMax-M2"},
    {"vicuna-7b-v1.5", "Llama-2-7b"},
    {"vicuna-13b-v1.5", "Llama-2-13b"},
});

// Models with images or sound, by the config.json of both: the language model alone is known
// here.
constexpr auto language_models = std::to_array<NamePair>({
    {"Qwen2.5-Omni-3B", "Qwen2.5-3B"},
    {"Qwen2.5-Omni-7B", "Qwen2-7B"},
    {"Qwen3-Omni-30B-A3B", "Qwen3-30B-A3B"},
    {"Qwen2-Audio-7B", "Qwen1.5-7B"},
    {"InternVL3-2B", "Qwen2-1.5B"},
    {"InternVL3-8B", "Qwen2-7B"},
    {"InternVL3_5-30B-A3B", "Qwen3-30B-A3B"},
    {"InternVL3_5-GPT-OSS-20B", "gpt-oss-20b"},
    {"Ovis2.5-2B", "Qwen3-1.7B"},
    {"Ovis2.5-9B", "Qwen3-8B"},
    {"Keye-VL-1_5-8B", "Qwen3-8B"},
    {"Keye-VL-8B", "Qwen3-8B"},
    {"MiniCPM-V-2_6", "Qwen2-7B"},
    {"MiniCPM-o-2_6", "Qwen2-7B"},
    {"MiniCPM-V-4_5", "Qwen3-8B"},
    {"Kimi-VL-A3B", "Moonlight-16B-A3B"},
    {"GLM-4.5V", "GLM-4.5-Air"},
    {"GLM-4.6V", "GLM-4.5-Air"},
    {"jina-reranker-m0", "Qwen2-VL-2B"},
    {"SmolVLM2-2.2B", "SmolLM2-1.7B"},
});

char small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Of "..._256gpu_...".
std::string devices_in(const std::string& recipe) {
  const std::size_t end = recipe.find("gpu_");
  if (end == std::string::npos || end == 0) return "";
  const std::size_t before = recipe.find_last_not_of("0123456789", end - 1);
  const std::size_t from = before == std::string::npos ? 0 : before + 1;
  constexpr std::size_t digits = 6;
  return end - from <= digits ? recipe.substr(from, end - from) : "";
}

// Where the model's name, which stands in `name` from `at` on, ends there; npos: it does not stand
// there. Signs between letters are no matter: "llama31_405b" is llama-3.1-405b. No number goes on:
// neither qwen2_720b nor Qwen2.5 begin with Qwen2's.
std::size_t end_of_model(std::string_view name, std::size_t at, std::string_view model) {
  for (const char letter : model) {
    if (!is_word(letter)) continue;
    while (at < name.size() && !is_word(name[at])) ++at;
    if (at == name.size() || small(name[at]) != small(letter)) return std::string::npos;
    ++at;
  }
  const bool digit = at < name.size() && is_digit(name[at]);
  const bool version = at + 1 < name.size() && name[at] == '.' && is_digit(name[at + 1]);
  return digit || version ? std::string::npos : at;
}

// A name with the size of the model: "qwen3-8b", not "gpt2".
bool has_size(std::string_view model) {
  for (std::size_t at = 1; at < model.size(); ++at) {
    const bool unit = small(model[at]) == 'b' || small(model[at]) == 'm';
    const bool ends = at + 1 == model.size() || !is_word(model[at + 1]);
    if (unit && ends && is_digit(model[at - 1])) return true;
  }
  return false;
}

struct FoundModel {
  std::string model;
  bool begins = true;  // the name begins with it
};

// The model of ours that the name begins with, the longest: qwen2-72b, not qwen2-7b; else the
// longest that it has further on.
FoundModel model_in(std::string_view name, const std::vector<std::string>& models) {
  FoundModel best;
  std::size_t length = 0;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (at > 0 && (is_word(name[at - 1]) || !is_word(name[at]))) continue;
    for (const std::string& model : models) {
      if (at > 0 && !has_size(model)) continue;
      const std::size_t end = end_of_model(name, at, model);
      if (end == std::string::npos || end - at <= length) continue;
      best = {model, at == 0};
      length = end - at;
    }
    if (at == 0 && length > 0) break;
  }
  return best;
}

}  // namespace

void name_model(ImportedJob& job, std::string name) {
  while (name.ends_with('/')) name.pop_back();
  name.erase(0, name.rfind('/') + 1);
  // Meta's own name of Llama 3 begins with it.
  if (name.starts_with("Meta-")) name.erase(0, std::string_view("Meta-").size());
  const auto begins = [&name](std::string_view other) {
    const bool same = std::ranges::equal(std::string_view(name).substr(0, other.size()), other,
                                         [](char a, char b) { return small(a) == small(b); });
    return same && (name.size() == other.size() || !is_digit(name[other.size()]));
  };
  for (const auto& [other, ours] : same_sizes) {
    if (!begins(other)) continue;
    if (ours.empty()) return;
    job.notes.push_back(fmt::format("{} has the sizes of {}", other, ours));
    name.replace(0, other.size(), ours);
    break;
  }
  for (const auto& [other, ours] : language_models) {
    if (!begins(other)) continue;
    job.left_out.push_back(fmt::format("the towers of {}: it is priced as {}", other, ours));
    name.replace(0, other.size(), ours);
    break;
  }
  if (!name.empty()) job.recipes.push_back(std::move(name));
}

void set_model_of_recipe(ImportedJob& job, const std::vector<std::string>& models) {
  for (const std::string& recipe : job.recipes) {
    const auto devices = std::ranges::find(job.missing, "cluster.devices", &MissingKey::key);
    if (const std::string count = devices_in(recipe);
        devices != job.missing.end() && !count.empty()) {
      job.scenario.find("cluster")->set("devices", scalar_value(count));
      job.missing.erase(devices);
    }
    const auto base = std::ranges::find(job.missing, "model.base", &MissingKey::key);
    const FoundModel found = model_in(recipe, models);
    if (base == job.missing.end() || found.model.empty()) continue;
    job.scenario.set("model", scalar_value(found.model));
    job.missing.erase(base);
    job.notes.push_back(
        found.begins
            ? fmt::format("the model is {}, as the recipe {} is called", found.model,
                          shortened(recipe))
            : fmt::format("the model is taken as {}, which the name {} has in it: --set model=NAME "
                          "for another one",
                          found.model, shortened(recipe)));
  }
}

}  // namespace planner
