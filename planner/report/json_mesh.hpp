// What the search over meshes did, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "planner/search/mesh_search.hpp"

namespace planner {

// Counts, without the seconds that it took.
nlohmann::ordered_json mesh_counts_json(const MeshSearch& found);

// The bound on the best plan and the gap to it; null where there is no plan.
nlohmann::ordered_json mesh_certificate_json(const MeshSearch& found);

}  // namespace planner
