// JSON reports: an evaluated plan, a search, a list of rows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/table.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

std::string estimate_json(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

// `front`: see memory_front; without one the report has no key of that name.
std::string search_json(const Strategies& strategies, const std::vector<Step>& steps,
                        const costmodel::Scenario& scenario, std::optional<double> seconds,
                        const std::vector<costmodel::Estimate>& front = {});

// Counts of the search, without its duration.
nlohmann::ordered_json mesh_counts_json(const MeshSearch& found);

// The lower bound and the gap to it; null without a plan, or when nothing is proved.
nlohmann::ordered_json mesh_certificate_json(const MeshSearch& found);

// An array of objects, one per row, with the column titles as keys. Numeric cells become numbers.
std::string rows_json(const Table& table);

std::string failure_json(const SearchResult& result, const std::vector<std::string>& obstacles,
                         const std::vector<std::string>& remedies,
                         const costmodel::Scenario& scenario, std::optional<double> seconds);

// For a search that was stopped before it had a plan.
std::string unfinished_json(const Strategies& strategies, const costmodel::Scenario& scenario,
                            std::optional<double> seconds);

}  // namespace planner
