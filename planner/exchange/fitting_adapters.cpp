#include "planner/exchange/fitting_adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "costmodel/plan/trained_parameters.hpp"

namespace planner {

using namespace costmodel;

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Of Hugging Face's families (GPT-NeoX, Phi-3 and GLM have names of their own), and of
// Megatron-Bridge (peft/lora.py, canonical_lora.py).
constexpr auto projections =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"q_proj", "q"},
                                                                  {"k_proj", "k"},
                                                                  {"v_proj", "v"},
                                                                  {"o_proj", "o"},
                                                                  {"gate_proj", "gate"},
                                                                  {"up_proj", "up"},
                                                                  {"down_proj", "down"},
                                                                  {"query_key_value", "q k v"},
                                                                  {"qkv_proj", "q k v"},
                                                                  {"gate_up_proj", "gate up"},
                                                                  {"dense", "o"},
                                                                  {"dense_h_to_4h", "up"},
                                                                  {"dense_4h_to_h", "down"},
                                                                  {"linear_qkv", "q k v"},
                                                                  {"linear_q", "q"},
                                                                  {"linear_k", "k"},
                                                                  {"linear_v", "v"},
                                                                  {"linear_proj", "o"},
                                                                  {"linear_fc1", "gate up"},
                                                                  {"linear_fc1_gate", "gate"},
                                                                  {"linear_fc1_up", "up"},
                                                                  {"linear_fc2", "down"}});

template <class Map>
Map* find_map(Map* map, const char* key) {
  Map* value = map == nullptr || !map->is_map() ? nullptr : map->find(key);
  return value != nullptr && value->is_map() ? value : nullptr;
}

template <class Map>
Map* tuning_of(Map& scenario) {
  return find_map(find_map(&scenario, "training"), "fine_tuning");
}

std::vector<std::string> names_in(const Value& list) {
  std::vector<std::string> names;
  for (const Value& item : list.items) names.push_back(item.text);
  return names;
}

// The job's stack; an empty one where it names none.
StackSpec stack_of(const ImportedJob& job) {
  const Value* training = find_map(&job.scenario, "training");
  const Value* written = training == nullptr ? nullptr : training->find("stack");
  if (written == nullptr) return {};
  const ResolvedConfig stack = resolve_config(config_path({}), "stacks", *written);
  return read_stack(stack.value, stack.name);
}

// Stacks with 4 bits (bitsandbytes) are PEFT's.
std::string_view without_experts(const StackSpec& stack) {
  return stack.offers.nf4 || !stack.offers.adapters
             ? "transformers 5 keeps experts as parameters, which PEFT's target_modules passes over"
             : "the stack has no model of them";
}

// What every one of the model's linear layers means, without those that have no adapters here.
void leave_out_products(ImportedJob& job, const ModelSpec& model, const StackSpec& stack) {
  if (model.experts > 0 && !stack.offers.expert_adapters)
    job.left_out.push_back(fmt::format("adapters of experts: {}", without_experts(stack)));
  if (model.latent_attention())
    job.left_out.emplace_back("adapters of latent attention but its output's: no model");
  if (model.recurrent())
    job.left_out.emplace_back("adapters of layers that keep a state: no model");
}

}  // namespace

std::vector<std::string> projections_in(const std::string& pattern) {
  constexpr std::string_view ending = "_proj";
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    const bool plain = !name.empty() && std::ranges::all_of(name, is_letter);
    if (plain && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (std::size_t at = 0; (at = pattern.find(ending, at)) != std::string::npos; ++at) {
    std::size_t begin = at;
    if (at > 0 && pattern[at - 1] == ')') {
      begin = pattern.rfind('(', at);
      if (begin == std::string::npos) continue;
      std::string one;
      for (std::size_t i = begin + 1; i < at; ++i) {
        if (is_letter(pattern[i])) {
          one += pattern[i];
        } else if (!one.empty()) {
          add(std::exchange(one, {}) + std::string(ending));
        }
      }
      continue;
    }
    while (begin > 0 && is_letter(pattern[begin - 1])) --begin;
    if (begin < at) add(pattern.substr(begin, at + ending.size() - begin));
  }
  return names;
}

bool add_projection(std::string_view module, Value& targets) {
  const auto* row =
      std::ranges::find(projections, module, [](const auto& pair) { return pair.first; });
  if (row == projections.end()) return false;
  for (std::string_view rest = row->second; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    targets.items.push_back(scalar_value(std::string(rest.substr(0, end))));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return true;
}

bool has_targets(const ImportedJob& job) {
  const Value* tuning = tuning_of(job.scenario);
  return tuning != nullptr && tuning->find("targets") != nullptr;
}

void fit_adapters(ImportedJob& job, const ModelSpec& model) {
  Value* tuning = tuning_of(job.scenario);
  Value* targets = tuning == nullptr ? nullptr : tuning->find("targets");
  if (targets == nullptr) return;
  const unsigned modelled = adapter_targets(model);
  const StackSpec stack = stack_of(job);
  const bool skips = model.experts > 0 && !stack.offers.expert_adapters;
  const std::vector<std::string> ours =
      names_of_targets(skips ? modelled & attention_targets : modelled);
  const bool all = targets->text == "all-linear";
  std::vector<std::string> kept, dropped;
  for (const std::string& name : all ? ours : names_in(*targets)) {
    const bool fits = std::ranges::find(ours, name) != ours.end();
    (fits ? kept : dropped).push_back(name);
  }
  const bool partial = skips || model.latent_attention() || model.recurrent();
  if (all && !partial) return;
  if (all) leave_out_products(job, model, stack);
  if (!dropped.empty()) {
    job.left_out.push_back(
        fmt::format("adapters of {}: the model has no such layer, or no model of "
                    "its adapters",
                    fmt::join(dropped, ", ")));
  }
  if (kept.empty()) {
    kept = ours;
    job.left_out.emplace_back("no adapter of the file's has a model: priced as those of attention");
  }
  Value list;
  list.kind = Value::Kind::sequence;
  for (const std::string& name : kept) list.items.push_back(scalar_value(name));
  tuning->set("targets", std::move(list));
}

}  // namespace planner
