// The kind of a kernel by its name, as libraries and compilers name theirs.
#pragma once

#include <optional>
#include <string_view>

#include "costmodel/base/kernel_kind.hpp"

namespace planner {

// Nothing for a kernel of a collective, and for one that no row knows.
std::optional<costmodel::KernelKind> kind_of_kernel(std::string_view name);

bool is_collective(std::string_view kernel);

}  // namespace planner
