// Activation recomputation.
#pragma once

#include <array>
#include <limits>
#include <string_view>

namespace costmodel {

enum class Recomputation { none, selective, full };
inline constexpr std::array<std::string_view, 3> recomputation_names{"none", "selective", "full"};

// What backward recomputes instead of keeping. selective: the attention core (Korthikanti et al.
// 2022, section 5). full: entire layers, from their saved input. `layers` > 0 limits it to the
// first layers of each (virtual) stage, Megatron's `--recompute-method block`; `half` to half of
// them.
struct Recompute {
  static constexpr int half = std::numeric_limits<int>::max();  // internal: no plan has it
  Recomputation granularity = Recomputation::none;
  int layers = 0;
  bool operator==(const Recompute&) const = default;
};

}  // namespace costmodel
