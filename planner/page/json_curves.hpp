// A sweep as charts: a curve over one key, a heat map over two; "" for any other report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace planner {

// The keys of a sweep's points that are swept, in their order.
std::vector<std::string> swept_axes(const nlohmann::ordered_json& points);

// Over cluster.devices tokens per second and parallel efficiency, the knee drawn larger; over
// another key the iteration; over two keys the iteration as a heat map. Points without an answer
// are gaps.
std::string curves_section(const nlohmann::ordered_json& points);

// One picture as a file of its own: over cluster.devices, alone or with another key, tokens per
// second; else as above. `json`: what sweep prints. "" of more than two keys, or without an answer
// that fits.
std::string sweep_svg(const std::string& json);

}  // namespace planner
