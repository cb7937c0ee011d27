// What the search over meshes found, and where ranks are placed, as JSON.
#pragma once

#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/placement.hpp"
#include "planner/search/mesh_search.hpp"

namespace planner {

std::string mesh_json(const MeshSearch& found, const costmodel::Scenario& scenario, double seconds);

// A list of maps, one a rank, with ep and etp where experts are dealt out or cut: JSON where `file`
// ends so, else YAML.
std::string placement_text(const std::vector<PlacedRank>& ranks, const std::string& file);

}  // namespace planner
