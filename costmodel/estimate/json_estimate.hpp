// Parts of a prediction as JSON. What is measured is written in the same shapes.
#pragma once

#include <nlohmann/json.hpp>

#include "costmodel/estimate/evaluator.hpp"

namespace costmodel {

nlohmann::ordered_json plan_json(const Estimate& estimate);
nlohmann::ordered_json time_json(const Estimate& estimate);
nlohmann::ordered_json memory_json(const Estimate& estimate);
nlohmann::ordered_json communication_json(const Traffic& traffic);

// One micro-batch through all chunks of each pipeline rank, in seconds.
std::vector<double> by_rank(const std::vector<Seconds>& by_virtual_stage, const ParallelPlan& plan);

}  // namespace costmodel
