// Trains small models on threads, with a chosen device per rank.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/estimate/evaluator.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "runtime/ranks/thread_transport.hpp"
#include "runtime/run/supported.hpp"
#include "runtime/training/training_run.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/runtime/support/rounding.hpp"
#include "tests/sanitized.hpp"

namespace training_test {

// Of a model on kernels that run on the host: on one rank, and cut over several.
inline constexpr int steps_alone = sanitized ? 3 : 20, steps_cut = sanitized ? 2 : 3;

inline constexpr const char* gpt =
    "{kind: gpt, layers: 8, hidden: 32, heads: 4, vocab: 480, max_positions: 32, dropout: 0.1}";
inline constexpr const char* llama =
    "{kind: llama, layers: 8, hidden: 32, heads: 8, kv_heads: 4, ffn_hidden: 96, vocab: 480, "
    "tie_embeddings: false}";

inline costmodel::Scenario scenario(const std::string& model, const std::string& training,
                                    const std::string& plan, int devices) {
  return scenarios::read(
      fmt::format("model: {}\ncluster: {{base: laptop-cpu, devices: {}, devices_per_node: {}}}\n"
                  "training: {{global_batch: 16, sequence: 16, precision: fp32, {}}}\nplan: {}\n",
                  model, devices, devices, training, plan));
}

// The scenario in 16 bits, with fp32 gradients and the optimizer's fp32 weights.
inline costmodel::Scenario in_16_bits(costmodel::Scenario s, costmodel::Precision precision) {
  s.training.precision = precision;
  s.training.gradient_precision = costmodel::Precision::fp32;
  s.training.stack.memory.master_weights = true;
  return s;
}

inline costmodel::Scenario in_bf16(costmodel::Scenario s) {
  return in_16_bits(std::move(s), costmodel::Precision::bf16);
}

struct Outcome {
  costmodel::Estimate predicted;
  runtime::RunSummary measured;
};

using MakeDevice = std::function<std::unique_ptr<runtime::Device>()>;

// The scenario's plan, each rank on a device of its own.
inline Outcome trained(const costmodel::Scenario& s, int iterations,
                       const MakeDevice& make_device = std::make_unique<runtime::CpuDevice>) {
  const costmodel::ParallelPlan plan = costmodel::resolve_plan(s);
  REQUIRE(runtime::unsupported(s.model, s.training, plan).empty());
  costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  Outcome outcome;
  outcome.predicted = evaluator.estimate(plan);
  runtime::run_ranks(static_cast<int>(plan.devices()), {}, [&](runtime::Transport& transport) {
    const auto device = make_device();
    const auto own =
        runtime::train(evaluator, plan, transport, *device, {.iterations = iterations});
    const auto all = runtime::gather_measurements(transport, own);
    if (transport.rank() == 0)
      outcome.measured =
          runtime::summarise(all, plan, s.training.global_batch * s.training.sequence);
  });
  return outcome;
}

// How far apart, relative to them, the losses of one training computed in two ways may be in fp32
// over twenty steps: what roundings make of a sum over the vocabulary of 480, the longest there is.
// Steps add little to that: Adam's are as long whatever the size of a gradient, so that an error of
// gradients is one of what was gained, which is a twentieth of the loss.
inline const double loss_bound = rounding::gamma(480, rounding::unit<float>);

// The largest relative difference of losses.
inline double loss_difference(const std::vector<double>& own,
                              const std::vector<double>& reference) {
  REQUIRE(own.size() == reference.size());
  double worst = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double difference = std::abs(own[i] / reference[i] - 1);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

}  // namespace training_test
