// What a terminal shows: ANSI emphasis, plain text when colour is off; and how wide its lines are.
#pragma once

#include <string>

#include "costmodel/base/text_width.hpp"

namespace planner {

struct Style {
  bool color = false;
  std::size_t width = costmodel::unlimited_width;  // no line of a report has more columns
  std::string bold(const std::string& text) const {
    return color ? "\033[1m" + text + "\033[0m" : text;
  }
  std::string dim(const std::string& text) const {
    return color ? "\033[2m" + text + "\033[0m" : text;
  }
  std::string good(const std::string& text) const {
    return color ? "\033[32m" + text + "\033[0m" : text;
  }
  std::string bad(const std::string& text) const {
    return color ? "\033[31m" + text + "\033[0m" : text;
  }
};

}  // namespace planner
