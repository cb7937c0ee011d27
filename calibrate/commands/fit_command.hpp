// `shardplan calibrate`: measurement files in, a fitted profile and its report out.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/search_path.hpp"

namespace calibrate {

struct Request {
  std::vector<std::string> from;     // files of microbenchmarks
  std::vector<std::string> devices;  // as the sources name them; empty: the only one there is
  std::vector<std::string> sources;  // only measurements whose source's title holds one of these
  std::string base;                  // a device's or a cluster's name or file
  costmodel::ConfigPath path;
};

struct Answer {
  std::string profile;  // YAML
  std::string report;
  bool fitted = false;  // false: no constant could be fitted
};

// Throws ConfigError for bad input.
Answer calibrate(const Request& request);

}  // namespace calibrate
