// The passes in which an operator is executed: forward; then, in backward, the gradient of its
// input and, where it holds weights, the gradient of the weights (two passes, because zero-bubble
// schedules tell them apart).
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

enum class Pass { forward, input_gradient, weight_gradient };
inline constexpr std::array<std::string_view, 3> pass_names{"forward", "input gradient",
                                                            "weight gradient"};

}  // namespace costmodel
