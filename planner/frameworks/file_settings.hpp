// The settings of a TOML or YAML file, as fields in the order of their places.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/frameworks/overrides_text.hpp"

namespace planner {

// "[training] seq_len = 8192" is the field training.seq_len. A list of lists has a value for each
// of them: its items, with blanks between. Throws as costmodel::parse_toml().
std::vector<SetField> read_toml(const std::string& text, const std::string& file);

// The same of YAML; a key without a value is as if it were not there. Throws as
// costmodel::parse_yaml().
std::vector<SetField> read_yaml(const std::string& text, const std::string& file);

// The settings of a TOML, YAML or JSON file that `file` names, if it lies in the folder of that one
// or below it, links followed; nothing for any other. Throws as read_toml() and read_yaml().
std::optional<std::vector<SetField>> read_named(const std::string& name, const std::string& file);

}  // namespace planner
