// An imported job as JSON: {"format", "scenario", "missing": {KEY: REMEDY}, "left_out", "notes"}.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

std::string to_json(const ImportedJob& job);

}  // namespace planner
