// The training configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/plan/error_band.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// The `training` map of a scenario, resolved.
struct TrainingSpec {
  std::int64_t global_batch = 0;      // B, sequences
  std::int64_t sequence = 0;          // s, tokens; with an encoder, the encoder's
  std::int64_t decoder_sequence = 0;  // tokens of the decoder; 0: a single stack
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::fp32;
  bool sgd = false;  // stochastic gradient descent with momentum instead of Adam
  StackSpec stack;
  Overlap overlap;
  std::vector<std::string> assumed;  // keys that the scenario omits
  ErrorBand error_band;              // for this stack and device, from published runs
  std::int64_t tokens() const { return sequence + decoder_sequence; }  // per sequence, both stacks
};

}  // namespace costmodel
