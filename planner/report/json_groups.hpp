// JSON of `groups`.
#pragma once

#include <string>

#include "planner/report/groups_report.hpp"

namespace planner {

// {"layout", "order", "ranks", "sizes": {"tp", ...}, "groups": [{"kind", "use", "network", "ranks":
// [[0, 1], ...]}, ...]}; network is null for groups of one and without a cluster.
std::string groups_json(const GroupsOf& of);

}  // namespace planner
