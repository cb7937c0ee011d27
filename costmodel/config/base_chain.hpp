// A configuration as its `base:` keys lead through files: the map at the end, and what is written
// over it. search_path.hpp merges the two; who translates the map at the end, which may be Hugging
// Face's, does so before anything is set over it.
#pragma once

#include <string>
#include <vector>

#include "costmodel/config/value.hpp"

namespace costmodel {

struct ConfigPath;

struct BaseChain {
  std::string name;         // the stem of the first file; "" for an inline map
  Value end;                // a map without `base`
  std::vector<Value> over;  // maps, each over the one before, the first over `end`
};

// Follows at most 64 files. Throws ConfigError for a ring, which it prints, and for a file that is
// not a map.
BaseChain follow_bases(const ConfigPath& path, const std::string& kind, const Value& value);

// The map at the end with what is written over it.
Value resolved(BaseChain chain);

// "cluster" for the folder "clusters".
std::string singular(const std::string& kind);

}  // namespace costmodel
