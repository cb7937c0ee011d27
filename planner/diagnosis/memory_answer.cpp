#include "planner/diagnosis/memory_answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Tensor {
  const char* name;
  double elements;
  std::vector<double> bytes;  // an element, as frameworks keep it
};

// The large tensors of one device, by the sizes of the model and the plan.
std::vector<Tensor> tensors_of(const Scenario& s, const ParallelPlan& plan) {
  const auto number = [](auto n) { return static_cast<double>(n); };
  const double tp = number(plan.tp), cp = number(plan.cp);
  const double sequence = number(s.training.sequence) / cp;
  const double tokens = number(plan.micro_batch) * sequence;
  const double vocab = number(padded_vocab(s.model.vocab, plan.tp)) / tp;
  const double hidden = number(s.model.hidden), ffn = number(s.model.ffn_hidden) / tp;
  const double scores = number(plan.micro_batch) * number(s.model.heads) / tp * sequence *
                        number(s.training.sequence);
  return {{"the logits of a micro-batch", tokens * vocab, {4, 2}},
          {"the logits of a micro-batch over the full vocabulary", tokens * vocab * tp, {4, 2}},
          {"the attention scores of a layer", scores, {2, 4}},
          {"the gate and up projections of a layer", tokens * 2 * ffn, {2, 4}},
          {"a feed-forward activation of a layer", tokens * ffn, {2, 4}},
          {"the hidden states of a micro-batch", tokens * hidden, {2, 4}},
          {"the token table or its gradient", vocab * hidden, {2, 4}},
          {"a feed-forward matrix", hidden * ffn, {2, 4}},
          {"a feed-forward matrix, gathered", hidden * ffn * tp, {2, 4}}};
}

// What an allocation can be; the allocator rounds to 2 MiB.
std::string tensor_of(Bytes wanted, const Scenario& s, const ParallelPlan& plan) {
  constexpr double least = 16.0 * 1024 * 1024, rounding = 2.0 * 1024 * 1024;
  if (wanted.value < least || !plan.even()) return "";
  for (const Tensor& tensor : tensors_of(s, plan)) {
    for (const double bytes : tensor.bytes) {
      const double size = tensor.elements * bytes;
      if (std::abs(size - wanted.value) > std::max(rounding, 0.005 * size)) continue;
      return fmt::format("{} in {} bits", tensor.name, 8 * bytes);
    }
  }
  return "";
}

// The same scenario on devices with a share of their memory.
Scenario with_memory(const Scenario& s, double share) {
  Scenario smaller = s;
  smaller.cluster.device.memory = smaller.cluster.device.memory * share;
  for (auto& group : smaller.cluster.groups) group.device.memory = group.device.memory * share;
  return smaller;
}

// Changes of the plan before those of what is trained and on what: they are the smaller ones.
void smallest_first(std::vector<Remedy>& changes) {
  std::stable_partition(changes.begin(), changes.end(), [](const Remedy& change) {
    return std::ranges::all_of(change.settings,
                               [](const std::string& key) { return key.starts_with("plan."); });
  });
}

}  // namespace

MemoryAnswer answer_out_of_memory(const Scenario& s, const Estimate& e, const OutOfMemory& failed,
                                  const OtherStacks& stacks, const std::function<bool()>& stopped) {
  MemoryAnswer answer{.failed = failed, .predicted_fits = e.fits()};
  Evaluator evaluator(s.model, s.cluster, s.training);
  answer.place = evaluator.peak_place(e);
  answer.stage = static_cast<int>(e.fullest);
  const std::int64_t ranks_of_stage = e.plan.even() ? e.plan.devices() / e.plan.pp : 0;
  // In the usual order of ranks; another order says nothing of the stage.
  if (failed.rank >= 0 && ranks_of_stage > 0 && e.plan.rank_order == default_rank_order)
    answer.stage = std::min(e.plan.pp - 1, static_cast<int>(failed.rank / ranks_of_stage));
  answer.tensor = tensor_of(failed.wanted, s, e.plan);
  if (!e.fits()) {
    answer.changes = fitting_changes(e, s, stacks, stopped);
    smallest_first(answer.changes);
    return answer;
  }
  // The job held more than is predicted: the changes must fit with that error too.
  const Bytes held = costmodel::max(e.capacity, failed.in_use + failed.wanted);
  answer.low_by = held / e.peak;
  constexpr double below = 0.98;
  const Scenario smaller = with_memory(s, below / answer.low_by);
  Evaluator limited(smaller.model, smaller.cluster, smaller.training);
  answer.changes = fitting_changes(limited.estimate(e.plan), smaller, stacks, stopped);
  smallest_first(answer.changes);
  return answer;
}

}  // namespace planner
