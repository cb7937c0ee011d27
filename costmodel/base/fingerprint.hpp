// An FNV-1a hash of text: finds inputs that changed, guards against nobody who wants to be
// undetected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace costmodel {

class Fingerprint {
 public:
  void add(std::string_view text);
  // 16 hexadecimal digits.
  std::string text() const;

 private:
  std::uint64_t hash_ = 14695981039346656037U;
};

std::string fingerprint(std::string_view text);

}  // namespace costmodel
