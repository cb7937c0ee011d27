// Translates Nemotron-H's config.json, a hybrid of Mamba-2, attention, MLP and expert layers
// (transformers, NemotronHConfig). Internal to costmodel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

// `type` is the value of model_type, or the first of `architectures`.
bool is_nemotron_h_type(std::string_view type);

// The same model with Shardplan's keys. Throws ConfigError.
Value from_nemotron_h_config(const Value& map, std::vector<std::string>& told);

}  // namespace costmodel
