// A sweep as charts: a curve over one key, a heat map over two; "" for any other report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

// The keys of a sweep's points that are swept, in their order.
std::vector<std::string> swept_axes(const nlohmann::ordered_json& points);

// Over cluster.devices tokens per second and parallel efficiency, the knee drawn larger; over
// another key the iteration; over two keys the iteration as a heat map. Points without an answer
// are gaps. Of serving: output tokens per second and the time of a token over one key or two, and
// over two that time as a heat map too.
std::string curves_section(const nlohmann::ordered_json& points);

// One picture as a file of its own: over cluster.devices, alone or with another key, tokens per
// second; else as above. `json`: what sweep prints. "" of more than two keys, or without an answer
// that fits.
std::string sweep_svg(const std::string& json);

// Whether the results begin with that key of a point: before it stands what is swept, and dp.
bool is_result(std::string_view key);

// Whether a point is of a sweep of serving, and the key of its time: an iteration's, or a token's.
bool is_served(const nlohmann::ordered_json& point);
const char* time_key(const nlohmann::ordered_json& point);

}  // namespace planner
