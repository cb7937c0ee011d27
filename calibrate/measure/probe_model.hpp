// Small models of the two families that the runtime executes (gpt, llama), to be measured on one
// rank.
#pragma once

#include <cstdint>
#include <string>

#include "costmodel/base/precision.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {
class Evaluator;
}  // namespace costmodel

namespace calibrate {

struct SmallModel {
  bool llama = false;  // else gpt
  std::int64_t hidden = 256, heads = 4, kv_heads = 4, ffn = 1024, layers = 2, vocab = 1024;
  std::int64_t sequence = 128, micro_batch = 1;
  double dropout = 0;        // gpt only
  bool flash = true;         // else separate scores, softmax and context
  std::string name() const;  // "gpt h 256 s 128 b 1"
};

// The evaluator with this project's own stack, on a machine with one such device; in fp32, or in
// bf16 with fp32 gradients and master weights.
costmodel::Evaluator evaluator_of(const SmallModel& model, const costmodel::DeviceSpec& device,
                                  costmodel::Precision precision = costmodel::Precision::fp32);
costmodel::ParallelPlan plan_of(const SmallModel& model);

}  // namespace calibrate
