// Translates a Hugging Face config.json into the keys of a model map, by the family that its
// model_type names (hf_families.hpp).
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

// True for a Hugging Face configuration: the map has `model_type` or `architectures` and no `kind`.
bool is_hf_config(const Value& map);

// The same model with Shardplan's keys; each value keeps its place in the source. Throws
// ConfigError for an unknown model_type and for missing or out-of-range keys.
Value from_hf_config(const Value& file);

// The same, and in `omitted` a sentence for each field that is not understood and for each choice
// that no key describes. `partial`: an unknown model_type is no fault; its fields are read as those
// of a llama, or of a mixture of experts where one of them is a number of experts.
Value from_hf_config(const Value& file, std::vector<std::string>& omitted, bool partial = false);

// The same with what a user writes over the file. A key of a model does what it does over any other
// base; another name takes the place of the file's field. Throws ConfigError for a name that is
// neither a key of a model nor a field that the file's family reads; `name` is the model's. What
// the second one would list is added to `omitted`, where that is given.
Value from_hf_config(const Value& file, const Value& over, const std::string& name,
                     std::vector<std::string>* omitted = nullptr);

}  // namespace costmodel
