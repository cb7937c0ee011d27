// A job as an operand of a command: a scenario, or a framework's own words.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"
#include "planner/commands/session.hpp"

namespace planner {

struct JobOperand {
  costmodel::Scenario scenario;
  costmodel::Value written;  // the map of the scenario, with --set and --cluster
};

// The job that `operand` describes. Notes and what was left out go to `told`. Throws ConfigError
// for the first key that a prediction needs and nobody says.
JobOperand read_job_operand(const Session& session, const std::string& operand,
                            std::vector<std::string>& told);

}  // namespace planner
