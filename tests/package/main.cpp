#include <cstdio>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/base/units.hpp"

int main() {
  const costmodel::Seconds time = costmodel::Bytes(6e9) / costmodel::BytesPerSecond(3e9);
  std::puts(costmodel::format_seconds(time).c_str());
  return time.value == 2 ? 0 : 1;
}
