// `shardplan calibrate --from`: reads microbenchmark files, fits constants, returns a profile and a
// report.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace calibrate {

struct Request {
  std::vector<std::string> from;     // files of microbenchmarks
  std::vector<std::string> devices;  // as the sources name them; empty: those that the base names,
                                     // or the only one in the files
  std::vector<std::string> sources;  // keep only sources whose title contains one of these
  std::string base;     // name or file of a device or a cluster; empty: compare all shipped devices
  std::string stack;    // whose exchanges and groups of experts are compared; empty: ideal ones
  bool writes = false;  // a profile, which needs a base
  costmodel::ConfigPath path;
};

struct Answer {
  std::string profile;  // YAML; empty without a base
  std::string report;
  bool fitted = false;  // false: no constant could be fitted
};

// Throws ConfigError on invalid input.
Answer calibrate(const Request& request);

}  // namespace calibrate
