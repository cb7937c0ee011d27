// The JSON reports: one evaluated plan, a search, a list of rows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/table.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

std::string estimate_json(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

std::string search_json(const Strategies& strategies, const std::vector<Step>& steps,
                        const costmodel::Scenario& scenario, double seconds);

// Counts, without the seconds that it took.
nlohmann::ordered_json mesh_counts_json(const MeshSearch& found);

// The bound on the best plan and the gap to it; null where there is no plan.
nlohmann::ordered_json mesh_certificate_json(const MeshSearch& found);

// An array of objects, one a row, keys from the column titles; cells that are numbers become
// numbers.
std::string rows_json(const Table& table);

std::string failure_json(const SearchResult& result, const std::vector<std::string>& obstacles,
                         const std::vector<std::string>& remedies,
                         const costmodel::Scenario& scenario, double seconds);

// Of a search over layouts that was cut short before it had a plan.
std::string unfinished_json(const SearchResult& result, const costmodel::Scenario& scenario,
                            double seconds);

}  // namespace planner
