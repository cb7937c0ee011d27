// Reads an engine of configs/engines, and what published measurements make of its constants.
#pragma once

#include <array>
#include <map>
#include <string>

#include "costmodel/config/key.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/serving/serving_spec.hpp"

namespace costmodel {

// The constants by name, in the order of a fit.
struct ConstantRow {
  std::string_view name;
  double& (*of)(EngineConstants&);
  double least, most;
  double spread;  // of the logarithm of the prior: how far a fit may go
  std::string_view help;
};
inline constexpr std::size_t constant_count = 10;
const std::array<ConstantRow, constant_count>& constant_rows();

// What is predicted and has an interval.
inline constexpr std::array<std::string_view, 4> interval_names{"output_tokens_per_s", "tpot_s",
                                                                "ttft_s", "e2e_s"};

// Factors on the constants of all engines ("shared"), of a family ("vllm") and of a device
// ("mi300x"): a constant is its prior times those that apply. And the intervals.
struct ServingFit {
  std::map<std::string, std::array<double, constant_count>> factors;
  // 5th and 95th percentile of measured / predicted, of each of those.
  std::array<std::array<double, 2>, 4> intervals{{{0.5, 2}, {0.5, 2}, {0.33, 3}, {0.5, 2}}};
  std::string basis = "interval: no serving_fit.yaml was found, so it is a guess";
};

EngineConstants fitted(const EngineConstants& prior, const ServingFit& fit,
                       const std::string& family, const std::string& device);

// configs/serving_fit.yaml of the first directory that has one; else no factors and wide intervals.
ServingFit find_serving_fit(const ConfigPath& path);

// Throws ConfigError for a key that an engine has not. `device`: whose keys under `devices` apply.
// `latent_attention_limits` has the keys of `limits` that differ where a model has latent attention
// (vLLM's V0 engine turns chunked prefill off for it), `small_device_limits` those of other devices
// than vLLM's large ones, which have 70 GiB and are no A100s (EngineArgs.get_batch_defaults).
EngineSpec read_engine(const Value& map, const std::string& name, const std::string& device);

// The keys of an engine, of configs/engines ("engine.host_step_s").
std::vector<KeyText> engine_keys();

// The keys of limits, which a scenario's `serving` has as well.
const Keys<ServingLimits>& limit_keys();

}  // namespace costmodel
