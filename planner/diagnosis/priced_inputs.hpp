// The numbers of a scenario's device, network, framework and training that its prices hang on, each
// with how far it may be from the truth.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace planner {

// How far, relatively, a number in a configuration may be from the truth: the standard deviation of
// its logarithm. configs/fit.yaml states some, as the width of the prior of a fitted constant.
struct StatedSpread {
  std::vector<std::string> files;  // "devices/a100-sxm4-80gb"
  std::string key;                 // "gemm.efficiency", "tiers.nvlink.efficiency"
  double low = 0, high = 0;        // bounds of the number
  double spread = 0;
};

struct PricedInput {
  std::string key;   // "cluster.tiers.infiniband.bandwidth_bytes_per_s"
  std::string name;  // for people: "bandwidth of infiniband"
  costmodel::Dimension unit = costmodel::Dimension::count;
  double value = 0;            // in base units
  double low = 0, high = 0;    // one standard deviation down and up, within what is possible
  double least = 0, most = 0;  // what is possible
  double spread = 0;
  std::string from;                                       // who states the spread
  std::function<void(costmodel::Scenario&, double)> set;  // the number, and what goes with it
};

// Those that are not zero or switched off: rates of products, attention and element-wise kernels,
// kernel and host times, each tier's bandwidth and latency, stragglers, experts, device memory, the
// slow-down of computation beside a collective (a constant of the cost model, under no key of a
// file). Not what the model and the batch are.
//
// The spread is what `stated` has for this number; else the widest that it has for the same key of
// another device, network or framework; else one of a few defaults (the source file has them, with
// their reasons), which `from` calls assumed.
std::vector<PricedInput> priced_inputs(const costmodel::Scenario& scenario,
                                       const std::vector<StatedSpread>& stated);

}  // namespace planner
