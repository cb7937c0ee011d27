#include "costmodel/base/letter_case.hpp"

#include <cctype>

namespace costmodel {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

}  // namespace costmodel
