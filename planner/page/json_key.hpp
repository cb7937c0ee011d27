// What a key of a report's JSON says of its value: the title that people read, and the unit.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace planner {

// Text: "checkpoint every" of checkpoint_every_s, "tokens per s" of tokens_per_s.
std::string title_of(std::string_view key);

// The number in its key's unit: seconds of a key that ends in _s, dollars of usd_per_hour.
std::string keyed_figure(std::string_view key, const nlohmann::ordered_json& number);

}  // namespace planner
