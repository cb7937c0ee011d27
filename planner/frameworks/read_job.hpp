// Reads a file that describes a training job, whoever's words it is in.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// Which format a file is in, by what it holds. Throws costmodel::ConfigError when it is none of
// them, and when it cannot be read.
JobFormat format_of(const std::string& file);

// Whether a file is YAML of a program whose jobs are not read, and which format_of() names.
bool is_of_other_program(const std::string& file);

// The job as a scenario. What the file cannot say is in `missing`; of Megatron-LM's arguments that
// is always cluster.base, which set_cluster() names. Of a Python file with several recipes `recipe`
// names one (exchange/python_recipe). Throws costmodel::ConfigError with the place.
ImportedJob read_job(const std::string& file, const std::string& recipe = "");

}  // namespace planner
