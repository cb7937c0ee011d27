// How the global batch is trained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/plan/error_band.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// How the global batch is trained: what a scenario's `training` says.
struct TrainingSpec {
  std::int64_t global_batch = 0;      // B, sequences
  std::int64_t sequence = 0;          // s, tokens; of a model with an encoder, that one's
  std::int64_t decoder_sequence = 0;  // tokens of its decoder; 0: there is one stack
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::fp32;
  bool sgd = false;  // stochastic gradient descent with momentum instead of Adam
  StackSpec stack;
  Overlap overlap;
  std::vector<std::string> assumed;  // what the scenario left out
  ErrorBand error_band;              // of the stack on the cluster's device, from published runs
  std::int64_t tokens() const { return sequence + decoder_sequence; }  // of a sequence, all stacks
};

}  // namespace costmodel
