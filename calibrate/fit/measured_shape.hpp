// The shapes of a microbenchmark's kinds: what was multiplied, sent, copied or launched, and the
// time that its figures say.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "calibrate/fit/microbenchmark.hpp"
#include "costmodel/config/map_reader.hpp"

namespace calibrate {

// Why an entry is not priced; caught where the entry is read.
struct NotPriced {
  std::string reason;
};

// The fields of an entry other than its shape.
struct Figures {
  std::string op;
  int nodes = 0;  // 0: not stated
  std::string algorithm, interconnect;
  std::optional<double> time_us, tflops, bus_gb_s, copy_gb_s, exchange_gb_s;  // as measured
  std::optional<double> host_us, kernels;
  std::string timing;
  std::optional<double> derived_time_us;
  bool says(std::string_view words) const { return op.find(words) != std::string::npos; }
};

// Reads keys that nothing here takes.
void accept(costmodel::MapReader& reader, std::initializer_list<std::string_view> keys);

// The first of the keys whose number is not 0, as one rounded away is printed.
std::optional<double> first_of(costmodel::MapReader& reader,
                               std::initializer_list<std::string_view> keys);

// Each sets what was measured and its time. Throws NotPriced for what no formula predicts, and
// ConfigError for a missing or impossible size.
using ShapeReader = void (*)(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_product(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_attention(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_collective(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_copy(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_memory_kernel(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_quantisation(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_host(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_overlap(costmodel::MapReader& shape, const Figures& f, Measurement& m);
void read_layer(costmodel::MapReader& shape, const Figures& f, Measurement& m);

}  // namespace calibrate
