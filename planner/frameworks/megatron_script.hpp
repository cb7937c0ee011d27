// Reads the arguments of a Megatron-LM launch script, or of a plain list of arguments.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/stack_spec.hpp"
#include "planner/frameworks/megatron_arguments.hpp"

namespace planner {

// Whether the text names the layers of a model, or its tensor parallel size, as Megatron-LM does.
bool holds_megatron_flags(const std::string& text);

// A note of an export whose plan was priced upon another stack than the program's own; and the
// stack of the note in a text, where it is one of configs/stacks, else `own`.
void note_stack(const costmodel::StackSpec& stack, std::string_view own,
                std::vector<std::string>& notes);
std::string noted_stack(const std::string& text, std::string_view own);

// The words behind the last Python program that is run with a model's sizes, else with any flags;
// in a list without a program, all of them. Throws costmodel::ConfigError when the script cannot be
// read.
MegatronArguments read_megatron_script(const std::string& text, const std::string& file);

}  // namespace planner
