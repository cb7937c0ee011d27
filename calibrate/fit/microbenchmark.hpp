// Microbenchmarks as data: one measured value per entry, with its source. This is the format of the
// files in configs/microbench and of what `shardplan import nccl-tests` writes.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/base/units.hpp"
#include "costmodel/config/value.hpp"
#include "costmodel/cost/expert_exchange.hpp"
#include "costmodel/operators/op.hpp"

namespace calibrate {

struct Product {  // batch products of [m, k] · [k, n]
  double batch, m, n, k;
  costmodel::Precision precision;
  bool grouped = false;  // by one kernel for `batch` experts
  bool casts = false;    // with the kernels that make its operands narrow
  bool trained = false;  // with both gradients, of an expert's layer
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
  int nodes;  // 0: not stated
};

// Dispatch or combine of routed tokens by kernels that send a token once to each rank.
struct ExpertRun {
  costmodel::Bytes message;  // as in costmodel/cost/expert_exchange.hpp
  costmodel::ExpertRouting routing;
  int ranks;
  int nodes;          // 0: not stated
  double routed = 0;  // as in costmodel/cost/expert_exchange.hpp
};

struct Copy {              // within one device
  costmodel::Bytes moved;  // bytes read plus written
};

struct MemoryKernel {
  std::string what;  // "norms (cudnn)"
  costmodel::Bytes moved;
  int kernels;
};

struct Launch {  // host time of an eager operator of one kernel
  double kernels;
};

struct Measurement {
  std::string id;
  std::string device;  // as the source names it
  std::variant<Product, AttentionRun, CollectiveRun, ExpertRun, Copy, MemoryKernel, Launch> what;
  costmodel::Seconds time;
  std::string title;     // title of the source
  std::string measured;  // the date, "" where the source has none
};

// An entry that is valid but that no formula predicts, and why.
struct Unused {
  std::string id;
  std::string reason;
  std::string device = {};  // as in Measurement
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
