// Parts of a prediction as JSON. Measured values are written in the same format.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "costmodel/estimate/estimate.hpp"
#include "costmodel/estimate/hidden_time.hpp"

namespace costmodel {

nlohmann::ordered_json plan_json(const Estimate& estimate);
nlohmann::ordered_json time_json(const Estimate& estimate);
// Beside the breakdown, whose parts are what is exposed.
nlohmann::ordered_json hidden_json(const HiddenTime& hidden);
nlohmann::ordered_json throughput_json(const Estimate& estimate, const ClusterSpec& cluster);
nlohmann::ordered_json memory_json(const Estimate& estimate);
// Bytes that a device sends in one iteration: the device that sends most, and one of each pipeline
// rank.
nlohmann::ordered_json communication_json(const Traffic& busiest,
                                          const std::vector<Traffic>& by_rank);

// By pipeline rank: seconds of one micro-batch through all its chunks.
std::vector<double> by_rank(const std::vector<Seconds>& by_virtual_stage, const ParallelPlan& plan);

}  // namespace costmodel
