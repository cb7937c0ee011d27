// JSON of `collective`.
#pragma once

#include <string>
#include <vector>

#include "planner/report/collective_report.hpp"

namespace planner {

// {"cluster", "ranks", "stride", "rows": [{"primitive", "bytes", "time_s", "algbw_bytes_per_s",
// "busbw_bytes_per_s", "bus_factor", "sent_bytes", "algorithm", "measured", "fixed_s", "tiers":
// [{"tier", "carried_bytes", "rate_bytes_per_s", "hops", "latency_s"}]}], "ways": [{"name",
// "time_s"}]}; ways only of one all-reduce.
std::string collective_json(const std::vector<CollectivePrice>& prices,
                            const CollectiveGroup& group);

}  // namespace planner
