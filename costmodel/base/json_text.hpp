// JSON values as text: the one place that writes and reads them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace costmodel {

// Valid JSON for any strings: what is not UTF-8 becomes U+FFFD, and invisible characters and those
// that turn the direction of writing stand as \u escapes. Indented by two spaces, with a line end.
std::string json_text(const nlohmann::ordered_json& json);

// The same on one line, without its end.
std::string json_line(const nlohmann::ordered_json& json);

// Of the JSON that commands print; the rule by which it changes is in docs/schema.md.
inline constexpr int format_version = 1;

// An answer with `format_version` and `program` first: in an object, and in every row of an array.
// The other bytes stay.
std::string versioned_json(std::string_view json);

// A user's JSON. Throws ConfigError at the place of what is not JSON, of a number beyond a double
// (1e999) and of values that nest deeper than 64 levels; the program's own readers and writers of
// trees go down level by level.
nlohmann::ordered_json parse_json(const std::string& text, const std::string& file);

// A number, true or false as JSON has them; any other text as a string.
nlohmann::ordered_json json_scalar(const std::string& text);

// JSON that this process wrote. Throws InternalError where it is none.
nlohmann::ordered_json own_json(const std::string& text);

}  // namespace costmodel
