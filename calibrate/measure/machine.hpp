// The machine a measurement was made on, as its profile says.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calibrate {

struct Machine {
  std::string date;       // YYYY-MM-DD
  std::string processor;  // "unknown" where the system does not say
  int cores = 1;          // that this process may use
  std::string system;     // name and release of the operating system
  std::string compiler;
  std::string products;  // who multiplies matrices
  double memory_bytes = 0;
  std::vector<std::pair<std::string, std::string>> listed() const;
};

Machine this_machine();

// The processor's name in the text of /proc/cpuinfo; "unknown" where it has none.
std::string processor_in(const std::string& cpuinfo);

}  // namespace calibrate
