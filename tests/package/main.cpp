#include <cstdio>

#include "costmodel/units.hpp"
#include "costmodel/units_text.hpp"

int main() {
  const costmodel::Seconds time = costmodel::Bytes(6e9) / costmodel::BytesPerSecond(3e9);
  std::puts(costmodel::format_seconds(time).c_str());
  return time.value == 2 ? 0 : 1;
}
