// `shardplan calibrate --from`: reads microbenchmark files, fits constants, returns a profile and a
// report.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace calibrate {

struct Request {
  std::vector<std::string> from;     // files of microbenchmarks
  std::vector<std::string> devices;  // as the sources name them; empty: the only one in the files
  std::vector<std::string> sources;  // keep only sources whose title contains one of these
  std::string base;                  // name or file of a device or a cluster
  costmodel::ConfigPath path;
};

struct Answer {
  std::string profile;  // YAML
  std::string report;
  bool fitted = false;  // false: no constant could be fitted
};

// Throws ConfigError on invalid input.
Answer calibrate(const Request& request);

}  // namespace calibrate
