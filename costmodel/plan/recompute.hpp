// Activation recomputation.
#pragma once

#include <array>
#include <limits>
#include <string_view>

namespace costmodel {

enum class Recomputation { none, selective, full };
inline constexpr std::array<std::string_view, 3> recomputation_names{"none", "selective", "full"};

// The parts of a layer that selective recomputation names (Megatron-LM,
// core/transformer/transformer_config.py, recompute_modules). moe_act, layernorm and mla_up_proj
// discard their output, which backward computes again; the others keep their inputs alone.
enum class RecomputeModule { core_attn, mla_up_proj, moe_act, layernorm, mlp, moe, shared_experts };
inline constexpr std::array<std::string_view, 7> recompute_module_names{
    "core_attn", "mla_up_proj", "moe_act", "layernorm", "mlp", "moe", "shared_experts"};
constexpr unsigned bit_of(RecomputeModule module) { return 1U << static_cast<unsigned>(module); }

// What backward recomputes instead of keeping. selective: the attention core (Korthikanti et al.
// 2022, section 5), or the named modules. full: entire layers, from their saved input. `layers` > 0
// limits it to the first layers of each (virtual) stage, Megatron's `--recompute-method block`;
// `half` to half of them.
struct Recompute {
  static constexpr int half = std::numeric_limits<int>::max();  // internal: no plan has it
  Recomputation granularity = Recomputation::none;
  int layers = 0;
  unsigned modules = 0;  // bits of RecomputeModule, when selective; 0: core_attn alone
  bool operator==(const Recompute&) const = default;
};

}  // namespace costmodel
