// The axes of parallelism.
#pragma once

#include <array>
#include <string_view>

namespace costmodel {

// expert and expert_tensor are axes of the second grid, on which experts are distributed (see
// expert_mesh).
enum class Axis { tensor, data, pipeline, context, expert, expert_tensor };
inline constexpr std::array<std::string_view, 6> axis_names{"tp", "dp", "pp", "cp", "ep", "etp"};

}  // namespace costmodel
