// Microbenchmarks as data: one measured value per entry, with its source. This is the format of the
// files in configs/microbench and of what `shardplan import nccl-tests` writes.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/operators/op.hpp"

namespace calibrate {

struct Product {  // batch products of [m, k] · [k, n]
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
  costmodel::Bytes message;  // bytes as in costmodel/cost/collective.hpp
  int ranks;
  int nodes;
};

struct Copy {              // within one device
  costmodel::Bytes moved;  // bytes read plus written
};

struct Measurement {
  std::string id;
  std::string device;  // as the source names it
  std::variant<Product, AttentionRun, CollectiveRun, Copy> what;
  costmodel::Seconds time;
  std::string title;     // title of the source
  std::string measured;  // the date, "" where the source has none
};

// An entry that is valid but that no formula predicts, and why.
struct Unused {
  std::string id;
  std::string reason;
};

struct Microbenchmarks {
  std::vector<Measurement> measurements;
  std::vector<Unused> unused;
  Microbenchmarks& operator+=(const Microbenchmarks& other);
};

// Reads the list of entries. Throws ConfigError on anything but a list, on an unknown key, and on a
// missing or impossible value.
Microbenchmarks read_microbenchmarks(const costmodel::Value& list);

}  // namespace calibrate
