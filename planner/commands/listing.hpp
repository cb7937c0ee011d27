// Lists the contents of configs/, one line per file, and the keys that a file may have.
#pragma once

#include <string>

#include "costmodel/config/search_path.hpp"
#include "planner/report/table.hpp"

namespace planner {

// kind: models, devices, clusters, stacks, scenarios or keys.
Table listing(const std::string& kind, const costmodel::ConfigPath& path);

}  // namespace planner
