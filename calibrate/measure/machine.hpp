// The machine that measurements were made on, as recorded in the profile.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace calibrate {

struct Machine {
  std::string date;       // YYYY-MM-DD
  std::string processor;  // "unknown" when the system does not report it
  int cores = 1;          // available to this process
  std::string system;     // name and release of the operating system
  std::string compiler;
  std::string products;  // the library of matrix products
  double memory_bytes = 0;
  std::vector<std::pair<std::string, std::string>> listed() const;
};

Machine this_machine();

// The processor's name from the text of /proc/cpuinfo; "unknown" when missing.
std::string processor_in(const std::string& cpuinfo);

}  // namespace calibrate
