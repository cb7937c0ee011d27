#include "planner/traces/operator_sizes.hpp"

#include <charconv>

namespace planner {

OperatorSizes sizes_of(std::string_view text) {
  OperatorSizes all;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int depth = 0; at < end;) {
    std::int64_t number = 0;
    const auto read = std::from_chars(at, end, number);
    if (read.ec == std::errc() && !all.empty()) {
      all.back().push_back(number);
      at = read.ptr;
      continue;
    }
    if (*at == '[' && ++depth > 1) all.emplace_back();
    if (*at == ']') --depth;
    ++at;
  }
  return all;
}

}  // namespace planner
