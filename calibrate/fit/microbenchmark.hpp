// Microbenchmarks as data: one measured figure an entry, each with its source. The files in
// configs/microbench and what `shardplan import nccl-tests` writes have this shape.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/operators/op.hpp"

namespace calibrate {

struct Product {  // batch x [m, k] · [k, n]
  double batch, m, n, k;
  costmodel::Precision precision;
};

struct AttentionRun {
  enum class Passes { forward, backward, both };
  costmodel::FlashAttention op;
  costmodel::Precision precision;
  Passes passes;
};

struct CollectiveRun {
  costmodel::CollectiveKind kind;
  costmodel::Bytes message;  // as in collective.hpp
  int ranks;
  int nodes;
};

struct Copy {              // inside one device
  costmodel::Bytes moved;  // read and written
};

struct Measurement {
  std::string id;
  std::string device;  // as the source names it
  std::variant<Product, AttentionRun, CollectiveRun, Copy> what;
  costmodel::Seconds time;
  std::string title;     // of the source
  std::string measured;  // the date, "" where the source has none
};

// An entry that is read but not priced, and why.
struct Unused {
  std::string id;
  std::string reason;
};

struct Microbenchmarks {
  std::vector<Measurement> measurements;
  std::vector<Unused> unused;
  Microbenchmarks& operator+=(const Microbenchmarks& other);
};

// Reads the list of entries. Throws ConfigError: not a list, an unknown key, a missing or
// impossible value.
Microbenchmarks read_microbenchmarks(const costmodel::Value& list);

}  // namespace calibrate
