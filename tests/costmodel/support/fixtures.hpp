// Models, machines and training settings shared by the tests of costmodel/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>

#include "costmodel/base/error.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace fixtures {

inline double relative_error(double a, double b) {
  const double size = std::max(std::abs(a), std::abs(b));
  return size == 0 ? 0 : std::abs(a - b) / size;
}

// The lists that to_text() of a schedule prints; an action that does not read is left out.
inline costmodel::ActionsByRank actions_of(const std::string& text) {
  costmodel::ActionsByRank lists;
  std::istringstream lines(text);
  for (std::string line, word; std::getline(lines, line);) {
    lists.emplace_back();
    for (std::istringstream words(line); words >> word;)
      if (const auto action = costmodel::parse_action(word)) lists.back().push_back(*action);
  }
  return lists;
}

// The transformer of the published closed forms: multi-head attention, ffn 4h, learned positions,
// dropout, biases.
inline costmodel::ModelSpec gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                std::int64_t vocab, std::int64_t positions) {
  costmodel::ModelSpec model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = 4 * hidden;
  model.vocab = vocab;
  model.max_positions = positions;
  model.dropout = 0.1;
  return model;
}

// fp16 storage, attention in separate kernels: the framework the closed forms were written for.
inline costmodel::LayerContext layer_context(int tp, bool sequence_parallel, std::int64_t b,
                                             std::int64_t s) {
  costmodel::LayerContext context;
  context.tp = tp;
  context.sequence_parallel = sequence_parallel;
  context.micro_batch = b;
  context.sequence = s;
  context.attention = costmodel::AttentionKernel::unfused;
  return context;
}

inline costmodel::DeviceSpec device() {
  costmodel::DeviceSpec device;
  device.name = "test device";
  device.peak.fill(costmodel::FlopsPerSecond(312e12));
  device.vector_peak = costmodel::FlopsPerSecond(19.5e12);
  device.multiprocessors = 108;
  device.memory = costmodel::Bytes(80e9);
  device.memory_bandwidth = costmodel::BytesPerSecond(2e12);
  device.memory_half = costmodel::Bytes(2e6);
  device.gemm_half_k = 200;
  device.kernel_launch = costmodel::Seconds(5e-6);
  return device;
}

// Nodes of eight on one switch.
inline costmodel::ClusterSpec cluster(std::int64_t devices, std::int64_t per_node = 8) {
  using costmodel::BytesPerSecond;
  using costmodel::Seconds;
  costmodel::ClusterSpec cluster;
  cluster.name = "test cluster";
  cluster.device = device();
  cluster.devices = devices;
  cluster.devices_per_node = per_node;
  cluster.tiers.push_back({"inside", std::min(per_node, devices), BytesPerSecond(300e9),
                           Seconds(1.5e-6), Seconds(2e-5), 0.8});
  if (devices > per_node) {
    cluster.tiers.push_back(
        {"between", devices, BytesPerSecond(25e9), Seconds(5e-6), Seconds(4e-5), 0.9});
  }
  return cluster;
}

// fp16 with fp16 gradients; nothing overlaps; no memory outside the tensors.
inline costmodel::TrainingSpec training(std::int64_t global_batch, std::int64_t sequence) {
  costmodel::TrainingSpec training;
  training.global_batch = global_batch;
  training.sequence = sequence;
  training.precision = costmodel::Precision::fp16;
  training.gradient_precision = costmodel::Precision::fp16;
  training.stack.kernels.attention = costmodel::AttentionKernel::unfused;
  training.stack.kernels.causal_skip = false;
  training.stack.collectives.scatter_gather = false;
  return training;
}

// As the programs find them: $SHARDPLAN_CONFIG_PATH, beside the installed tests (scripts/gpu-kit),
// the source tree's.
inline costmodel::ConfigPath configs() { return costmodel::config_path({}); }

// Uniform numbers that are the same on every platform.
class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  double real(double from, double to) { return from + (to - from) * (engine_() / 4294967296.0); }
  int integer(int from, int to) {
    return from + static_cast<int>(engine_() % static_cast<std::uint32_t>(to - from + 1));
  }

 private:
  std::mt19937 engine_;
};

// what() of the ConfigError that `run` throws, "" when it throws none.
template <class Run>
std::string config_error(Run run) {
  try {
    run();
  } catch (const costmodel::ConfigError& fault) {
    return fault.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace fixtures
