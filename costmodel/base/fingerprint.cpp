#include "costmodel/base/fingerprint.hpp"

#include <fmt/format.h>

namespace costmodel {

void Fingerprint::add(std::string_view text) {
  for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211U;
}

std::string Fingerprint::text() const { return fmt::format("{:016x}", hash_); }

std::string fingerprint(std::string_view text) {
  Fingerprint print;
  print.add(text);
  return print.text();
}

}  // namespace costmodel
