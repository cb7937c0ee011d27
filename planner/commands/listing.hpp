// Lists the contents of configs/, one line per file.
#pragma once

#include <string>

#include "costmodel/config/search_path.hpp"
#include "planner/report/table.hpp"

namespace planner {

// kind: models, devices, clusters, stacks or scenarios.
Table listing(const std::string& kind, const costmodel::ConfigPath& path);

}  // namespace planner
