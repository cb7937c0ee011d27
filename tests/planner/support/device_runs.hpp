// A training run whose days the tests of device ladders ask for.
#pragma once

#include <string>

#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/few_plans.hpp"

namespace device_runs {

// On up to 64 devices, for 2 dollars an hour each. With sanitizers few plans are tried.
inline costmodel::Scenario priced() {
  return scenarios::read(
      "model: llama-3-8b\n"
      "cluster: {base: dgx-h100, devices: 64, price: {usd_per_device_hour: 2, date: 2026-11}}\n"
      "training: {global_batch: 256, sequence: 8192, tokens: 100B, stack: megatron-core-2025}\n" +
      few_plans::if_sanitized);
}

}  // namespace device_runs
