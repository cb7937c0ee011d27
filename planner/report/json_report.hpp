// JSON reports: an evaluated plan, a search, a list of rows, and what `groups`, `collective`,
// `compare`, `simulate --compare` and `plan --deadline` answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/report/collective_report.hpp"
#include "planner/report/comparison.hpp"
#include "planner/report/groups_report.hpp"
#include "planner/report/schedule_comparison.hpp"
#include "planner/report/table.hpp"
#include "planner/search/device_ladder.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

std::string estimate_json(const costmodel::Estimate& estimate, const costmodel::Scenario& scenario);

// `front`: see memory_front; without one the report has no key of that name.
std::string search_json(const Strategies& strategies, const std::vector<Step>& steps,
                        const costmodel::Scenario& scenario, std::optional<double> seconds,
                        const std::vector<costmodel::Estimate>& front = {});

// The fastest plan, where `chosen` is a simpler one; null where it is not.
nlohmann::ordered_json fastest_json(const costmodel::Estimate& chosen,
                                    const std::optional<costmodel::Estimate>& fastest,
                                    const costmodel::Scenario& scenario);

// Counts of the search, without its duration.
nlohmann::ordered_json mesh_counts_json(const MeshSearch& found);

// The lower bound and the gap to it; null without a plan, or when nothing is proved.
nlohmann::ordered_json mesh_certificate_json(const MeshSearch& found);

// An array of objects, one per row, with the column titles as keys. Numeric cells become numbers.
std::string rows_json(const Table& table);

// "obstacles" and "remedies" in sentences, and "fitting_changes" as below.
std::string failure_json(const SearchResult& result, const Diagnosis& diagnosis,
                         const costmodel::Scenario& scenario, std::optional<double> seconds);

// For a search that was stopped before it had a plan.
std::string unfinished_json(const Strategies& strategies, const costmodel::Scenario& scenario,
                            std::optional<double> seconds);

// Of `groups`: {"layout", "order", "ranks", "sizes": {"tp", ...}, "groups": [{"kind", "use",
// "network", "ranks":
// [[0, 1], ...]}, ...]}; network is null for groups of one and without a cluster.
std::string groups_json(const GroupsOf& of);

// Of `simulate --compare`: {"schedules": [...]}: figures in seconds and bytes, or why there is no
// such plan.
std::string schedules_json(const std::vector<ComparedSchedule>& schedules);

// The JSON that `plan` prints of the number of devices chosen, with the key "devices": the limits,
// the numbers tried and the one chosen (null: none).
std::string with_ladder(const std::string& plan_json, const DeviceLadder& ladder,
                        const RunLimits& limits, const costmodel::Scenario& scenario);

// The same where no number of devices keeps the limits: "scenario", an empty list "plans", and
// "devices".
std::string ladder_json(const DeviceLadder& ladder, const RunLimits& limits,
                        const costmodel::Scenario& scenario);

// Of `compare`: {"scenarios": evaluations, each with its "name", "differs": inputs with their
// values by column, "against_first": one entry a scenario after the first}.
std::string comparison_json(const std::vector<Compared>& columns);

// Of `collective`: {"cluster", "ranks", "stride", "rows": [{"primitive", "bytes", "time_s",
// "algbw_bytes_per_s", "busbw_bytes_per_s", "bus_factor", "sent_bytes", "algorithm", "measured",
// "fixed_s", "tiers":
// [{"tier", "carried_bytes", "rate_bytes_per_s", "hops", "latency_s"}]}], "ways": [{"name",
// "time_s"}]}; ways only of one all-reduce.
std::string collective_json(const std::vector<CollectivePrice>& prices,
                            const CollectiveGroup& group);

}  // namespace planner
