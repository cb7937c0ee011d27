// Constants shared by the solvers and searches.
#pragma once

#include <cstddef>
#include <limits>

namespace planner {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double rounding = 1e-12;     // relative, for sums taken in another order
inline constexpr double equal_share = 1e-12;  // relative; costs this close are equal

// Converts an index.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace planner
