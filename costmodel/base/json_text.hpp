// JSON values as text: the one place that writes them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace costmodel {

// Valid JSON for any strings: what is not UTF-8 becomes U+FFFD, and invisible characters and those
// that turn the direction of writing stand as \u escapes. Indented by two spaces, with a line end.
std::string json_text(const nlohmann::ordered_json& json);

// The same on one line, without its end.
std::string json_line(const nlohmann::ordered_json& json);

}  // namespace costmodel
