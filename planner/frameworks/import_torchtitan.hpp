// A run of torchtitan as a scenario: from its TOML (0.2.2 and before), from a Python configuration,
// or from a launch script that brings one of them.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

bool holds_torchtitan(const std::string& text);

// What no setting says has torchtitan's default. Throws costmodel::ConfigError at the place of a
// value that is not one, and for what is neither TOML nor Python.
ImportedJob import_torchtitan(const std::string& text, const std::string& file);

}  // namespace planner
