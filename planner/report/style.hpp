// ANSI emphasis for a terminal; plain text when colour is off.
#pragma once

#include <string>

namespace planner {

struct Style {
  bool color = false;
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
