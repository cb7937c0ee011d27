// The sections of one evaluated plan, each from its JSON; "" where the JSON lacks what it shows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace planner {

// "17.14 s an iteration (90 % interval 14.82 s to 25.05 s), ..."
std::string verdict_html(const nlohmann::ordered_json& evaluation);

// The largest figures.
std::string tiles_html(const nlohmann::ordered_json& evaluation);

// The parts of its iteration side by side; `full`: the seconds of the whole width.
std::string time_bar(const nlohmann::ordered_json& evaluation, double full);
// Hatched: its communication that is hidden; "" where there is none.
std::string hidden_bar(const nlohmann::ordered_json& evaluation, double full);
// The parts of an iteration in the order of costmodel::breakdown_parts.
struct ShownPart {
  const char* key;
  std::string_view colour, name;
};
std::span<const ShownPart> shown_times();
// What the colours of such bars mean.
std::string time_legend();

std::string plan_section(const nlohmann::ordered_json& evaluation);
// Days, dollars and energy of a run of so many tokens; failures and checkpoints.
std::string run_section(const nlohmann::ordered_json& evaluation);
std::string time_section(const nlohmann::ordered_json& evaluation);
std::string memory_section(const nlohmann::ordered_json& evaluation);
std::string traffic_section(const nlohmann::ordered_json& evaluation);

}  // namespace planner
