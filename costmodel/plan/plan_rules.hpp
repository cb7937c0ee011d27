// The rules of a plan. parallel_plan.cpp has those of tp, pp, dp, schedule and batch;
// plan_rules.cpp those of context and expert parallelism and of encoder-decoder models. Internal to
// costmodel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/stack_spec.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// One list of rules serves violations() and is_valid(): `words` selects whether messages are built.
class Rules {
 public:
  explicit Rules(bool words) : words_(words) {}

  // Returns `holds`, and records a violation when it is false.
  template <class Reason, class Remedy>
  bool require(bool holds, std::string_view key, Reason reason, Remedy remedy) {
    if (holds) return true;
    broken = true;
    if (words_) found.push_back({std::string(key), reason(), remedy()});
    return false;
  }
  bool stop() const { return broken && !words_; }

  bool broken = false;
  std::vector<Violation> found;

 private:
  bool words_;
};

// "1, 2, 4, 8": the divisors of n up to `most`.
std::string divisors_text(std::int64_t n, std::int64_t most = 64);

void check_context(const ParallelPlan& plan, const ModelSpec& model, const TrainingSpec& training,
                   Rules& rules);
void check_context_offered(const ParallelPlan& plan, const StackSpec& stack, Rules& rules);
void check_experts(const ParallelPlan& plan, const ModelSpec& model, Rules& rules);
void check_overlapped_exchange(const ParallelPlan& plan, Rules& rules);
// Hybrid sharding: what groups, shards and the optimizer ask of each other.
void check_hybrid(const ParallelPlan& plan, const ModelSpec& model, const TrainingSpec& training,
                  Rules& rules);
void check_zero_plus_plus(const ParallelPlan& plan, const ModelSpec& model,
                          const TrainingSpec& training, Rules& rules);
void check_hybrid_offered(const ParallelPlan& plan, const StackSpec& stack, Rules& rules);
void check_adapters(const ParallelPlan& plan, const TrainingSpec& training, Rules& rules);
void check_two_stacks(const ParallelPlan& plan, const ModelSpec& model,
                      const TrainingSpec& training, Rules& rules);

}  // namespace costmodel
