// `plan --strategy`: even stages (grid), stages of any layout (alpa), or both held side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "planner/search/grid_search.hpp"
#include "planner/search/layout_search.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/sharding/stage_sharding.hpp"

namespace planner {

struct Strategies {
  SearchResult found;                     // what is reported: the best of what was searched
  std::vector<costmodel::Estimate> even;  // the grid's plans, best first
  std::optional<LayoutSearch> layouts;    // of alpa and both
  std::optional<StageSharding> sharding;  // likewise: of the best plan's critical stage
  std::optional<MeshSearch> meshes;       // likewise: stages with sizes of their own, told beside
  bool two_stacks = false;                // of an encoder-decoder model: no `sharding`
};

// Above that, stages with sizes of their own are searched only when asked for by themselves.
inline constexpr std::int64_t most_mesh_devices = 4096;

// The grid search, and with `layouts` the search over layouts that starts from it, on the best
// plan's mesh the one over shardings, and the one over stages with sizes of their own.
Strategies run_strategies(const costmodel::Scenario& scenario, bool layouts, int threads,
                          const std::function<bool()>& expired);

}  // namespace planner
