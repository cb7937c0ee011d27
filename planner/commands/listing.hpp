// Lists the contents of configs/, one line per file, and the keys that a file may have.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"
#include "planner/report/table.hpp"

namespace planner {

struct Listing {
  Table table;
  std::vector<std::string> warnings;
};

// kind: models, devices, clusters, stacks, engines, scenarios or keys. Only rows in which each of
// `words` occurs in some column, in upper or lower case. A warning names each file that cannot be
// read. Throws ConfigError for another kind, and with the nearest name where no row is left.
Listing listing(const std::string& kind, const std::vector<std::string>& words,
                const costmodel::ConfigPath& path);

}  // namespace planner
