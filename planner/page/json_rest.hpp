// JSON of any shape as lists and tables, with titles and units from its keys: what is new in a
// report is on its page without a line of code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace planner {

// An object is a list of names and values, an array of flat objects a table, anything inside these
// is folded. Long arrays are cut, and say so.
std::string values_html(const nlohmann::ordered_json& value);

// The same of what the page does not show yet; a row that lacks something begins with its name.
std::string rest_html(const nlohmann::ordered_json& value);

// A value on one line: a figure in its key's unit, text, "yes", or a list of these.
std::string line_html(std::string_view key, const nlohmann::ordered_json& value);

// The title of a key that people read, as text: "checkpoint every" of checkpoint_every_s, "tokens
// per s" of tokens_per_s.
std::string title_of(std::string_view key);

// The unit of a key's number: "seconds", "bytes a second"; "" of a plain number.
std::string unit_name(std::string_view key);

// The number in its key's unit: seconds of a key that ends in _s, dollars of usd_per_hour.
std::string keyed_figure(std::string_view key, const nlohmann::ordered_json& number);

}  // namespace planner
