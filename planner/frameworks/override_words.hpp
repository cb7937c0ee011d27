// Flags of Megatron-LM beside the fields of the configurations that are made of the same classes:
// Megatron-Bridge's ConfigContainer and the recipes of NeMo 2.x. One table serves export and
// import; what several fields say together is in export_overrides and import_overrides.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace planner {

// How the flag's value stands in a field.
enum class OverrideForm : std::uint8_t {
  value,         // as it is
  on,            // the flag alone is `true`
  off,           // the flag alone is `false`
  torch,         // bf16 is torch.bfloat16
  list,          // "a b" is [a,b]
  import_on,     // `true` is the flag, which the export writes as another field
  import_value,  // a value that the export writes itself
  together       // of several fields: export_overrides and import_overrides
};

struct OverrideWord {
  std::string_view flag;    // "--num-layers"
  std::string_view bridge;  // "model.num_layers"; empty: Megatron-Bridge has none
  std::string_view nemo;    // "model.config.num_layers"; empty: NeMo 2.x has none
  OverrideForm form = OverrideForm::value;
  // Written when the flag is absent too, since a recipe may say otherwise; of `on` and `off`.
  bool always = false;
};

std::span<const OverrideWord> override_words();

// Whether a field changes neither time nor memory of an iteration: data, logs, checkpoints,
// learning rates, seeds.
bool is_harmless_override(std::string_view field);

}  // namespace planner
