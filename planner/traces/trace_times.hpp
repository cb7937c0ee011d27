// A trace in seconds of one iteration: by kind of kernel, by operator, and what the device waited
// for.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "costmodel/base/kernel_kind.hpp"
#include "costmodel/base/units.hpp"
#include "planner/traces/attribution.hpp"
#include "planner/traces/trace.hpp"

namespace planner {

struct PartTime {
  TracedPart part{};
  bool backward = false;
  costmodel::Seconds time;
  double kernels = 0;
};

// Kernels that no operator of the model is known for.
struct LeftOver {
  std::string kernel, launcher;
  costmodel::Seconds time;
};

struct TraceTimes {
  int iterations = 0;
  int left_out = 0;  // iterations that are not like the others: warm-up, kernels that were lost
  std::array<costmodel::Seconds, costmodel::kernel_kind_count> kinds{};
  std::array<double, costmodel::kernel_kind_count> numbers{};  // of kernels, by kind
  costmodel::Seconds in_fp32, in_16_bits, in_8_bits;  // products, by their inputs' recorded type
  costmodel::Seconds other_rows;        // of dense layers' products: Attribution::other_rows
  costmodel::Seconds kernels;           // of all, added up; collectives too
  costmodel::Seconds communication;     // kernels of collectives
  costmodel::Seconds exposed;           // of these, while no other kernel ran
  costmodel::Seconds no_kind;           // kernels of no known name
  costmodel::Seconds compiled;          // kernels that torch.compile made
  costmodel::Seconds busy;              // while any kernel ran
  costmodel::Seconds longest_gap;       // in which none did, between the first and the last
  costmodel::Seconds wall, least_wall;  // an iteration as recorded, in the mean and at least
  double launches = 0, host_records = 0;
  std::vector<PartTime> parts;      // longest first
  std::vector<LeftOver> left_over;  // longest first
  costmodel::Seconds attributed() const;
};

// Means over the trace's iterations, but for those whose kernels are a tenth fewer than the most or
// take a quarter longer than the shortest. `trace`: nested, with its iterations.
TraceTimes times_of(const Trace& trace, const Attributor& attributor);

}  // namespace planner
