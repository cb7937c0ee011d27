// In what the weights of a checkpoint are kept, as its name or an engine's word for it has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace planner {

struct NamedFormat {
  std::string weights;  // of serving.weights; "" where none of ours is of that width
  std::string word;     // by which it is known: "awq"
};

// By the name of a checkpoint ("Qwen2-7B-Instruct-AWQ"); nothing for a name without such a word.
std::optional<NamedFormat> format_in_name(std::string_view name);

// By a word of --quantization, and the checkpoint's name where the word leaves it to that; a word
// that is not known is read as a name.
std::optional<NamedFormat> format_of_quantization(std::string_view word, std::string_view name);

}  // namespace planner
