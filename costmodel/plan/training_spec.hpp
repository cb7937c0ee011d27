// The training configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/base/precision.hpp"
#include "costmodel/model/tower.hpp"
#include "costmodel/plan/error_band.hpp"
#include "costmodel/plan/expert_load.hpp"
#include "costmodel/plan/fine_tuning.hpp"
#include "costmodel/plan/optimizer.hpp"
#include "costmodel/plan/packing.hpp"
#include "costmodel/plan/peak_errors.hpp"
#include "costmodel/plan/stack_spec.hpp"

namespace costmodel {

// The `training` map of a scenario, resolved.
struct TrainingSpec {
  std::int64_t global_batch = 0;      // B, sequences
  std::int64_t sequence = 0;          // s, tokens; with an encoder, the encoder's
  std::int64_t decoder_sequence = 0;  // tokens of the decoder; 0: a single stack
  Precision precision = Precision::bf16;
  Precision gradient_precision = Precision::fp32;
  Optimizer optimizer = Optimizer::adam;
  Precision moment_precision = Precision::fp32;  // of the optimizer's moments: fp32 or a 16-bit one
  bool narrow_attention = false;                 // attention's products in fp8
  Precision gather_precision = Precision::bf16;  // in which sharded weights are gathered and kept
  double capacity_factor = 0;       // rows of an expert relative to the mean, padded or dropped; 0:
                                    // dropless, as many as are routed to it. With an expert_load
                                    // they are dropped beyond it, and not padded to it
  double expert_buffer_factor = 0;  // static buffers of this many times the mean rows; 0: none
  bool paged_stash = false;         // ... from which kept rows are copied to a pool
  double expert_imbalance = 1;      // rows of the fullest rank relative to the mean
  ExpertLoad expert_load;           // ... or by real routing
  bool fused_grouped_mlp = false;   // both products of the experts and what lies between are one
                                    // kernel each
  FineTuning fine_tuning;
  TowerUse towers;        // what a sequence has for the model's towers
  Packing packing;        // samples in a sequence
  double run_tokens = 0;  // of the whole training run; 0: not said
  StackSpec stack;
  Overlap overlap;
  std::vector<std::string> assumed;  // keys that the scenario omits
  ErrorBand error_band;              // for this stack and device, from published runs
  PeakErrors peak_errors;            // for this stack, from published peaks
  std::int64_t tokens() const { return sequence + decoder_sequence; }  // per sequence, both stacks
};

}  // namespace costmodel
