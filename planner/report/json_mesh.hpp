// The result of the search over meshes, and the placement of ranks, as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "costmodel/scenario/scenario.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/search/mesh_search.hpp"

namespace planner {

std::string mesh_json(const MeshSearch& found, const costmodel::Scenario& scenario,
                      std::optional<double> seconds);

// A list of maps, one per rank, with ep and etp if experts are distributed or sharded. JSON if
// `file` ends in .json, else YAML.
std::string placement_text(const std::vector<PlacedRank>& ranks, const std::string& file);

}  // namespace planner
