#include "runtime/cpu/view.hpp"

#include <stdexcept>
#include <string>

namespace runtime::cpu {

void expect_size(std::size_t elements, std::int64_t expected, const char* tensor) {
  if (static_cast<std::int64_t>(elements) == expected) return;
  throw std::invalid_argument(std::string(tensor) + " has " + std::to_string(elements) +
                              " elements, not " + std::to_string(expected));
}

}  // namespace runtime::cpu
