// A run of Megatron-LM as a scenario: model, training and plan from its arguments (core 0.20; the
// defaults of megatron/training/arguments.py and core/transformer/transformer_config.py where an
// argument is not given).
#pragma once

#include "planner/exchange/imported_job.hpp"
#include "planner/frameworks/megatron_arguments.hpp"

namespace planner {

// Which devices they are, no argument says: cluster.base is missing. Throws costmodel::ConfigError
// at the place of a value that is not one, and of a choice that no key says (layers with experts in
// no regular order).
ImportedJob import_megatron(const MegatronArguments& arguments);

}  // namespace planner
