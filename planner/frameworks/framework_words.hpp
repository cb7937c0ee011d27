// Words of a program, from configs/frameworks/PROGRAM.yaml: data that a new release changes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/config/value.hpp"

namespace planner {

struct FrameworkWords {
  costmodel::Value source;  // which the others point into
  // What settings begin with that change neither the time nor the memory of an iteration.
  std::vector<std::string_view> harmless;
  // A name of the program's, and the one under which it is read.
  std::vector<std::pair<std::string_view, std::string_view>> words;
  std::vector<std::vector<std::string_view>> rows;  // the words of each

  std::string_view read_as(std::string_view name) const;  // itself without another
};

// Throws costmodel::ConfigError when the file is not there, or of another form.
const FrameworkWords& framework_words(const std::string& program);

}  // namespace planner
