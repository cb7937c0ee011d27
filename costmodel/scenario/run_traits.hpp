// What a run has in common with published ones: by these its interval is chosen.
#pragma once

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace costmodel {

struct ModelSpec;
struct Scenario;

// Features of plans (PlanFeature) are counted like the others, but make no interval wider.
enum class TraitGroup { stack, device, family, mechanism, plan };
inline constexpr std::array<std::string_view, 5> trait_group_names{"stacks", "devices", "families",
                                                                   "mechanisms", "plans"};

struct Trait {
  TraitGroup group = TraitGroup::stack;
  std::string name;
  auto operator<=>(const Trait&) const = default;
};

struct RunTraits {
  std::string stack, device;
  std::string family;    // of the model, see family_of()
  bool experts = false;  // the model is a mixture of experts
  // Of model and training, beyond plain dense 16-bit training; not of the plan, so that all plans
  // of a search, and the one written, have one interval.
  std::vector<std::string> mechanisms;
  double devices = 0;
  double parameters = 0;  // of the whole model
  std::string lineage;    // of the stack
  bool operator==(const RunTraits&) const = default;
};

// Models of one architecture by its features: "gpt", "bloom", "mpt", "nemotron", "llama-2",
// "llama-3", "gemma", "qwen", "deepseek", "mixtral", "gpt-experts", "t5", "mamba".
std::string family_of(const ModelSpec& model);

RunTraits traits_of(const Scenario& scenario);

std::vector<Trait> listed(const RunTraits& traits);

}  // namespace costmodel
