// What people call configurations: "h100" and "RTX 4090" for clusters, "megatron" for a stack,
// "meta-llama/Llama-3.1-8B" or "70b" for models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace costmodel {

// The clusters or stacks (`kind`: "clusters", "stacks") that `word` names: the file of that name,
// else those that have it under `names`. Upper case, blanks, dashes and makers' names make no
// difference.
std::vector<std::string> configs_called(const ConfigPath& path, const std::string& kind,
                                        std::string_view word);

// The words of all `names` of a kind, for messages: the first of each file, then the others.
std::vector<std::string> everyday_names(const ConfigPath& path, const std::string& kind);

// The models of this name: exactly, else but for the owner of a repository, upper case, punctuation
// and endings such as "-hf" and "-Instruct"; else that whose sizes a checkpoint of this name has
// (checkpoints.hpp).
std::vector<std::string> models_named(const ConfigPath& path, std::string_view word);

// Those, or else the models of which `word` names a part: the family or the size.
std::vector<std::string> models_called(const ConfigPath& path, std::string_view word);

}  // namespace costmodel
