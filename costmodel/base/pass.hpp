// The passes of an operator: forward, the gradient of its input, and, for an operator with weights,
// the gradient of its weights. The two gradients are separate passes because zero-bubble schedules
// run them at different times.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

enum class Pass { forward, input_gradient, weight_gradient };
inline constexpr std::array<std::string_view, 3> pass_names{"forward", "input gradient",
                                                            "weight gradient"};

}  // namespace costmodel
