#include "planner/diagnosis/training_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/precision.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/diagnosis/expert_remedy.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Experts split over more ranks, or fewer, than the search has tried: each size that fits.
void expert_sizes(const Scenario& s, Attempts& attempts) {
  const std::vector<int> untried = untried_expert_sizes(s);
  if (!untried.empty()) attempts.tried.emplace_back("other tensor parallel sizes inside experts");
  for (const int etp : untried) {
    Scenario changed = s;
    changed.plan.etp = etp;
    const std::string set = fmt::format("plan.etp={}", etp);
    try_change(changed, set, {set}, attempts);
  }
}

// The modules, as few as it takes, whose recomputation is quickest. Without a fixed recomputation
// the search has tried that of entire layers, which keep less.
void recomputed_modules(const Scenario& s, Attempts& attempts) {
  if (!s.plan.recompute || s.plan.recompute->granularity == Recomputation::full) return;
  attempts.tried.emplace_back("recomputing one or two modules");
  constexpr unsigned all = 1U << recompute_module_names.size();
  for (const int count : {1, 2}) {
    Quickest quickest;
    for (unsigned modules = 1; modules < all; ++modules) {
      if (std::popcount(modules) != count) continue;
      Scenario changed = s;
      changed.plan.recompute = Recompute{Recomputation::selective, 0, modules};
      const std::string set =
          fmt::format("plan.recompute={{modules: [{}]}}", fmt::join(module_names(modules), ", "));
      quickest.offer(best_plan_of(changed, attempts), set, {set}, changed);
    }
    if (!quickest.best) continue;
    return quickest.record_in(attempts);
  }
}

void smaller_states(const Scenario& s, Attempts& attempts) {
  if (storage_bytes(s.training.moment_precision) <= 2 ||
      !has_moment_precision(s.training.optimizer))
    return;
  attempts.tried.emplace_back("moments in bf16");
  Scenario changed = s;
  changed.training.moment_precision = Precision::bf16;
  const std::string set = "training.moment_precision=bf16";
  try_change(changed, "moments of two bytes: " + set, {set}, attempts);
}

// Optimizers that keep less, the nearest to Adam first. What a stack's own program has not, its
// export says.
void leaner_optimizer(const Scenario& s, Attempts& attempts) {
  using costmodel::Optimizer;
  if (s.training.optimizer != Optimizer::adam) return;
  const std::pair<Optimizer, const char*> leaner[] = {
      {Optimizer::adam8bit, "moments of one byte, by blocks (bitsandbytes)"},
      {Optimizer::muon, "one moment of matrices instead of two"},
      {Optimizer::adafactor, "sums of rows and columns instead of moments"},
      {Optimizer::sgd, "one moment instead of two"}};
  for (const auto& [optimizer, what] : leaner) {
    if (s.plan.zero.value_or(0) > most_zero(optimizer)) continue;
    attempts.tried.emplace_back(to_string(optimizer));
    Scenario changed = s;
    changed.training.optimizer = optimizer;
    const std::string set = fmt::format("training.optimizer={}", to_string(optimizer));
    try_change(changed, fmt::format("{}: {}", what, set), {set}, attempts);
  }
}

// Adapters beside a frozen base in place of all weights: first with the base in 16 bits, then in 4;
// by a stack that has them where the scenario's own has not. A scenario that does not say what it
// trains may be a fine-tuning.
void adapters_alone(const Scenario& s, Attempts& attempts) {
  const OtherStacks& stacks = attempts.stacks;
  using costmodel::FineTuningMethod, costmodel::BasePrecision;
  const FineTuning& own = s.training.fine_tuning;
  if (own.base == BasePrecision::nf4 || !stacks.adapted) return;
  const char* const unless =
      own.method == FineTuningMethod::pretraining ? "if it is a fine-tuning, " : "";
  const std::string had = s.training.stack.name, usual = "peft";
  const auto tried = [&](const std::string& method, const char* base) {
    attempts.tried.push_back(method);
    for (const std::string& stack : {had, usual}) {
      try {
        Scenario changed = stacks.adapted(method, stack);
        if (s.search.memory_margin == 0) changed.search.memory_margin = 0;
        require_offered(changed);
        const std::string other = stack == had ? "" : "training.stack=" + stack;
        const std::string what = fmt::format(
            "{}adapters beside a frozen base of {} bits: training.fine_tuning.method={}{}", unless,
            base, method, other.empty() ? "" : " and " + other);
        Settings settings{"training.fine_tuning.method=" + method};
        if (!other.empty()) settings.push_back(other);
        if (try_change(changed, what, std::move(settings), attempts)) return;
      } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
        // The stack, the model or what is fixed has no adapters.
      }
    }
  };
  if (!own.adapts()) tried("lora", "16");
  tried("qlora", "4");
}

// The stack whose best plan is the quickest of those that fit.
void other_stack(const Scenario& s, Attempts& attempts) {
  const OtherStacks& stacks = attempts.stacks;
  if (stacks.names.empty()) return;
  attempts.tried.emplace_back("other stacks");
  Quickest quickest;
  for (const std::string& name : stacks.names) {
    if (name == s.training.stack.name) continue;
    try {
      const Scenario changed = stacks.with(name);
      if (changed.training.stack.framework == "shardplan")
        continue;  // measures, and trains nobody's model
      require_offered(changed);
      const std::string set = "training.stack=" + name;
      quickest.offer(best_plan_of(changed, attempts), "another stack: " + set, {set}, changed);
    } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
      // This stack has no words for what is fixed.
    }
  }
  quickest.record_in(attempts);
}

// A loss that keeps the logits in 16 bits.
void narrow_loss(const Scenario& s, Attempts& attempts) {
  LossKernel own = s.training.stack.kernels.loss;
  if (keeps_narrow(own)) return;
  attempts.tried.emplace_back("a loss that keeps 16-bit logits");
  Scenario changed = s;
  changed.training.stack.kernels.loss = LossKernel::flash;
  try_change(changed, "a loss that keeps 16-bit logits: training.loss=flash",
             {"training.loss=flash"}, attempts);
}

// Adapters on attention alone.
void fewer_adapters(const Scenario& s, Attempts& attempts) {
  const FineTuning& own = s.training.fine_tuning;
  if (!own.adapts() || (own.targets & ~attention_targets) == 0) return;
  attempts.tried.emplace_back("adapters on attention alone");
  Scenario changed = s;
  changed.training.fine_tuning.targets = attention_targets;
  try_change(changed, "fewer trained parameters: training.fine_tuning.targets=attention",
             {"training.fine_tuning.targets=attention"}, attempts);
}

// The optimizer's states in host memory, and the parameters with them.
void states_on_the_host(const Scenario& s, Attempts& attempts) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  attempts.tried.emplace_back("states in host memory");
  for (const auto& [word, what, parameters] :
       {std::tuple{"optimizer", "optimizer states in host memory", 0.0},
        {"parameters", "parameters and optimizer states in host memory", 1.0}}) {
    Scenario changed = s;
    changed.plan.offload = {.optimizer = 1, .parameters = parameters};
    const std::string set = fmt::format("plan.offload={}", word);
    try_change(changed, fmt::format("{}: {}", what, set), {set}, attempts);
  }
}

// The same by a stack that has them, where the scenario's own has not.
void states_on_the_host_of(const Scenario& s, Attempts& attempts) {
  const OtherStacks& stacks = attempts.stacks;
  const std::string usual = "peft";
  if (s.plan.offload.any() || s.plan.is_auto("offload") || s.training.stack.name == usual ||
      attempts.own != nullptr || std::ranges::find(stacks.names, usual) == stacks.names.end())
    return;
  const auto offloads = [](const Remedy& remedy) { return remedy.best.plan.offload.states(); };
  if (std::ranges::any_of(attempts.remedies, offloads)) return;
  try {
    Scenario changed = stacks.with(usual);
    if (s.search.memory_margin == 0) changed.search.memory_margin = 0;
    changed.plan.offload = {.optimizer = 1, .parameters = 1};
    require_offered(changed);
    try_change(changed,
               "parameters and optimizer states in host memory, by DeepSpeed or FSDP: "
               "plan.offload=parameters and training.stack=" +
                   usual,
               {"training.stack=" + usual, "plan.offload=parameters"}, attempts);
  } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
    // This stack has no words for what is fixed.
  }
}

// Both on its NVMe drives, where the cluster has some: for hosts that are too small.
void states_on_drives(const Scenario& s, Attempts& attempts) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  if (!s.training.stack.offers.drive_offload || s.cluster.drives.size.value <= 0) return;
  attempts.tried.emplace_back("states on NVMe drives");
  Scenario changed = s;
  changed.plan.offload = {.optimizer = 1, .parameters = 1, .to = OffloadTo::nvme};
  const std::string set = "plan.offload={optimizer: 1, parameters: 1, to: nvme}";
  try_change(changed, "parameters and optimizer states on NVMe drives: " + set, {set}, attempts);
}

// What attention, and the experts' first products, save for backward, in host memory.
void activations_on_the_host(const Scenario& s, Attempts& attempts) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  if (!s.training.stack.offers.module_offload) return;
  attempts.tried.emplace_back("activations of modules in host memory");
  Scenario changed = s;
  unsigned modules = bit_of(OffloadModule::core_attn) | bit_of(OffloadModule::attn_proj);
  if (s.model.experts > 0) modules |= bit_of(OffloadModule::expert_fc1);
  changed.plan.offload.modules = modules;
  const std::string set = fmt::format("plan.offload={{activations: {{modules: [{}]}}}}",
                                      fmt::join(offload_modules(modules), ", "));
  try_change(changed, "activations of modules in host memory: " + set, {set}, attempts);
}

}  // namespace

void change_training(const Scenario& s, Attempts& attempts) {
  expert_sizes(s, attempts);
  recomputed_modules(s, attempts);
  narrow_loss(s, attempts);
  smaller_states(s, attempts);
  states_on_the_host(s, attempts);
  states_on_the_host_of(s, attempts);
  states_on_drives(s, attempts);
  activations_on_the_host(s, attempts);
  adapters_alone(s, attempts);
  fewer_adapters(s, attempts);
  if (attempts.own == nullptr) other_stack(s, attempts);
  leaner_optimizer(s, attempts);
}

}  // namespace planner
