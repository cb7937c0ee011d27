#include "planner/diagnosis/remedies.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/precision.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/diagnosis/expert_remedy.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/strategy.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string largest_part(const StageMemory& s) {
  std::pair<const char*, Bytes> largest{"weights", s.weights};
  for (const auto& part :
       {std::pair{"gradients", s.gradients}, std::pair{"optimizer states", s.optimizer},
        std::pair{"activations", s.activations}, std::pair{"buffers", s.buffers}}) {
    if (part.second > largest.second) largest = part;
  }
  return fmt::format("{} {}", largest.first, format_bytes(largest.second));
}

std::string shortage(const ParallelPlan& plan, Evaluator& evaluator) {
  const auto& cost = evaluator.cost(plan);
  return fmt::format("{}: stage {} needs {} of {} ({})", to_string(plan), cost.fullest,
                     format_bytes(cost.peak), format_bytes(evaluator.cluster().device.memory),
                     largest_part(cost.ranks[cost.fullest].memory));
}

// Fixed sizes replace the usual ones; a fixed dp leaves the rest to tp and pp.
void settle_sizes(const Scenario& s, int tp, int pp, ParallelPlan& plan) {
  plan.cp = s.plan.cp.value_or(1);
  plan.tp = s.plan.tp.value_or(tp);
  plan.pp = s.plan.pp.value_or(pp);
  if (!s.plan.dp) {
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    plan.dp = static_cast<int>(std::max<std::int64_t>(1, s.cluster.devices / model_parallel));
    return;
  }
  plan.dp = *s.plan.dp;
  const std::int64_t rest =
      std::max<std::int64_t>(1, s.cluster.devices / (std::int64_t{plan.dp} * plan.cp));
  if (!s.plan.tp)
    plan.tp = static_cast<int>(std::gcd(std::int64_t{tp}, s.plan.pp ? rest / *s.plan.pp : rest));
  if (!s.plan.pp) plan.pp = static_cast<int>(std::max<std::int64_t>(1, rest / plan.tp));
}

// The plans people try first: one node wide, then with pipeline, with and without recomputation.
std::vector<ParallelPlan> popular(const Scenario& s) {
  std::vector<ParallelPlan> plans;
  const int node = static_cast<int>(std::min(s.cluster.devices_per_node, s.cluster.devices));
  for (const auto& [tp, pp, zero] :
       {std::tuple{1, 1, s.training.stack.offers.max_zero}, std::tuple{node, 1, 1},
        std::tuple{node, 4, 1}, std::tuple{node, 8, 1}}) {
    ParallelPlan plan;
    settle_sizes(s, tp, pp, plan);
    if (plan.cp > 1) plan.cp_comm = s.plan.cp_comm.value_or(plan.cp_comm);
    plan.sequence_parallel = s.plan.sequence_parallel.value_or(s.model.experts > 0 && plan.tp > 1);
    if (s.plan.tp == 1) plan.sequence_parallel = false;
    plan.ep = s.plan.ep.value_or(plan.ep);
    plan.etp = s.plan.etp.value_or(plan.etp);
    const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
    const bool chosen_by_user = s.plan.tp || s.plan.pp || s.plan.cp || s.plan.dp;
    if (s.cluster.devices % model_parallel != 0 && !chosen_by_user) continue;
    const int usual_zero =
        plan.replicas() > 1 ? std::min(zero, s.training.stack.offers.max_zero) : 0;
    plan.zero = s.plan.zero.value_or(usual_zero);
    plan.micro_batch = s.plan.micro_batch.value_or(plan.micro_batch);
    plan.recompute = s.plan.recompute.value_or(Recompute{Recomputation::full, 0});
    plans.push_back(plan);
  }
  return plans;
}

// A diagnosis under way: of searches, or of one plan that is kept.
struct Attempts : Diagnosis {
  const std::function<bool()>& stopped;
  const OtherStacks& stacks;
  const PlanRequest& asked;
  const ParallelPlan* own = nullptr;
};

// The part of the space that needs least: entire layers recomputed, a sequence a micro-batch, a
// stage a device. Where nothing fits in it, nothing does (but for what is offloaded), and it is a
// small part.
Scenario leanest_part(Scenario s) {
  s.search.recompute = {Recomputation::full};
  s.search.max_micro_batch = 1;
  s.search.max_vpp = 1;
  return s;
}

// The plan that is kept in a changed scenario, if it fits there; what the change fixes of it and
// the number of replicas are the scenario's.
std::optional<Estimate> kept_plan(const Scenario& changed, const ParallelPlan& own) {
  ParallelPlan plan = own;
  plan.etp = changed.plan.etp.value_or(plan.etp);
  plan.recompute = changed.plan.recompute.value_or(plan.recompute);
  if (changed.plan.offload.any()) plan.offload = changed.plan.offload;
  const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
  if (changed.cluster.devices % model_parallel != 0) return {};
  plan.dp = static_cast<int>(changed.cluster.devices / model_parallel);
  if (!is_valid(plan, changed.model, changed.cluster, changed.training)) return {};
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  if (!evaluator.cost(plan).within(memory_limit(changed))) return {};
  return evaluator.estimate(plan);
}

// The plan that `plan` names in a changed scenario, or one that takes longer: its search for
// layouts ends after a hundredth of a second, since tens of scenarios are tried. Nothing where
// nothing fits.
std::optional<Estimate> best_of(const Scenario& changed, const Attempts& diagnosis) {
  if (diagnosis.stopped && diagnosis.stopped()) return {};
  if (diagnosis.own != nullptr) return kept_plan(changed, *diagnosis.own);
  Evaluator evaluator(changed.model, changed.cluster, changed.training);
  if (search(leanest_part(changed), evaluator, diagnosis.stopped).plans.empty()) return {};
  const Reach reach = usual_reach(changed);
  return chosen_plan(
      changed,
      {.reach = reach == Reach::meshes ? Reach::even : reach, .effort = usual_effort / 1024},
      diagnosis.stopped);
}

using Settings = std::vector<std::string>;

// A batch that was assumed follows from devices and sequence: it is set where they change.
void keep_batch(Settings& settings, const TrainingSpec& training) {
  const auto any = [](const auto& list, const char* start) {
    return std::ranges::any_of(list, [&](const auto& text) { return text.starts_with(start); });
  };
  if (any(training.assumed, "global_batch ") &&
      (any(settings, "cluster.devices=") || any(settings, "training.sequence=")))
    settings.push_back(fmt::format("training.global_batch={}", training.global_batch));
}

void record(const std::string& what, Settings settings, const Scenario& changed, Estimate best,
            Attempts& diagnosis) {
  keep_batch(settings, changed.training);
  if (diagnosis.own != nullptr) {
    for (std::string& setting : plan_assignments(diagnosis.asked, *diagnosis.own, best.plan))
      settings.push_back(std::move(setting));
  }
  const auto tokens =
      static_cast<double>(changed.training.global_batch * changed.training.tokens());
  const Seconds time = best.iteration * (static_cast<double>(changed.cluster.devices) / tokens);
  const double probability =
      fits_probability(best.peak, best.capacity, changed.training.peak_errors);
  diagnosis.remedies.push_back(
      {what, std::move(settings), std::move(best), probability, time, diagnosis.stacks.command});
}

// Records a changed scenario as a remedy if something fits in it; returns whether it does.
bool try_change(const Scenario& changed, const std::string& what, Settings settings,
                Attempts& diagnosis) {
  auto best = best_of(changed, diagnosis);
  const bool fits = best.has_value();
  if (fits) record(what, std::move(settings), changed, *std::move(best), diagnosis);
  return fits;
}

// The quickest plan found so far, and what was changed for it.
struct Quickest {
  std::optional<Estimate> best;
  std::string what;
  Settings settings;
  std::optional<Scenario> scenario;
  void offer(std::optional<Estimate> plan, const std::string& name, const Settings& set,
             const Scenario& changed) {
    if (!plan || (best && best->iteration <= plan->iteration)) return;
    best = std::move(plan);
    what = name;
    settings = set;
    scenario = changed;
  }
  void record_in(Attempts& diagnosis) const {
    if (best) record(what, settings, *scenario, *best, diagnosis);
  }
};

void no_margin(const Scenario& s, Attempts& diagnosis) {
  if (s.search.memory_margin == 0) return;
  Scenario changed = s;
  changed.search.memory_margin = 0;
  const std::string all =
      s.search.memory_confidence ? "search.memory_confidence=0" : "search.memory_margin=0";
  try_change(changed, "all of the memory: " + all, {all}, diagnosis);
}

void free_keys(const Scenario& s, Attempts& diagnosis) {
  const auto freed = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    try_change(changed, fmt::format("free plan.{}", key), {fmt::format("plan.{}=auto", key)},
               diagnosis);
  };
  // The product of the sizes is the number of devices: when all are fixed, two must change.
  const auto freed_size = [&](const char* key, auto request) {
    if (!(s.plan.*request)) return;
    Scenario changed = s;
    (changed.plan.*request).reset();
    const std::string set = fmt::format("plan.{}=auto", key);
    if (try_change(changed, fmt::format("free plan.{}", key), {set}, diagnosis) || !s.plan.dp)
      return;
    changed.plan.dp.reset();
    try_change(changed, fmt::format("free plan.{} and plan.dp", key), {set, "plan.dp=auto"},
               diagnosis);
  };
  freed("recompute", &PlanRequest::recompute);
  freed("micro_batch", &PlanRequest::micro_batch);
  freed("zero", &PlanRequest::zero);
  freed("sequence_parallel", &PlanRequest::sequence_parallel);
  freed_size("pp", &PlanRequest::pp);
  freed_size("cp", &PlanRequest::cp);
  freed("ep", &PlanRequest::ep);
  freed_size("tp", &PlanRequest::tp);
  freed("dp", &PlanRequest::dp);
}

// Experts split over more ranks, or fewer, than the search has tried: each size that fits.
void expert_sizes(const Scenario& s, Attempts& diagnosis) {
  const std::vector<int> untried = untried_expert_sizes(s);
  if (!untried.empty()) diagnosis.tried.emplace_back("other tensor parallel sizes inside experts");
  for (const int etp : untried) {
    Scenario changed = s;
    changed.plan.etp = etp;
    const std::string set = fmt::format("plan.etp={}", etp);
    const bool own = diagnosis.own != nullptr;  // which adds the setting itself, as of all its keys
    try_change(changed, set, own ? Settings{} : Settings{set}, diagnosis);
  }
}

// The modules, as few as it takes, whose recomputation is quickest. Without a fixed recomputation
// the search has tried that of entire layers, which keep less.
void recomputed_modules(const Scenario& s, Attempts& diagnosis) {
  if (!s.plan.recompute || s.plan.recompute->granularity == Recomputation::full) return;
  diagnosis.tried.emplace_back("recomputing one or two modules");
  constexpr unsigned all = 1U << recompute_module_names.size();
  for (const int count : {1, 2}) {
    Quickest quickest;
    for (unsigned modules = 1; modules < all; ++modules) {
      if (std::popcount(modules) != count) continue;
      Scenario changed = s;
      changed.plan.recompute = Recompute{Recomputation::selective, 0, modules};
      const std::string set =
          fmt::format("plan.recompute={{modules: [{}]}}", fmt::join(module_names(modules), ", "));
      const bool own = diagnosis.own != nullptr;
      quickest.offer(best_of(changed, diagnosis), set, own ? Settings{} : Settings{set}, changed);
    }
    if (!quickest.best) continue;
    return quickest.record_in(diagnosis);
  }
}

void smaller_states(const Scenario& s, Attempts& diagnosis) {
  if (storage_bytes(s.training.moment_precision) <= 2 ||
      !has_moment_precision(s.training.optimizer))
    return;
  diagnosis.tried.emplace_back("moments in bf16");
  Scenario changed = s;
  changed.training.moment_precision = Precision::bf16;
  const std::string set = "training.moment_precision=bf16";
  try_change(changed, "moments of two bytes: " + set, {set}, diagnosis);
}

// Optimizers that keep less, the nearest to Adam first. What a stack's own program has not, its
// export says.
void leaner_optimizer(const Scenario& s, Attempts& diagnosis) {
  using costmodel::Optimizer;
  if (s.training.optimizer != Optimizer::adam) return;
  const std::pair<Optimizer, const char*> leaner[] = {
      {Optimizer::adam8bit, "moments of one byte, by blocks (bitsandbytes)"},
      {Optimizer::muon, "one moment of matrices instead of two"},
      {Optimizer::adafactor, "sums of rows and columns instead of moments"},
      {Optimizer::sgd, "one moment instead of two"}};
  for (const auto& [optimizer, what] : leaner) {
    if (s.plan.zero.value_or(0) > most_zero(optimizer)) continue;
    diagnosis.tried.emplace_back(to_string(optimizer));
    Scenario changed = s;
    changed.training.optimizer = optimizer;
    const std::string set = fmt::format("training.optimizer={}", to_string(optimizer));
    try_change(changed, fmt::format("{}: {}", what, set), {set}, diagnosis);
  }
}

// Adapters beside a frozen base in place of all weights: first with the base in 16 bits, then in 4;
// by a stack that has them where the scenario's own has not. A scenario that does not say what it
// trains may be a fine-tuning.
void adapters_alone(const Scenario& s, const OtherStacks& stacks, Attempts& diagnosis) {
  using costmodel::FineTuningMethod, costmodel::BasePrecision;
  const FineTuning& own = s.training.fine_tuning;
  if (own.base == BasePrecision::nf4 || !stacks.adapted) return;
  const char* const unless =
      own.method == FineTuningMethod::pretraining ? "if it is a fine-tuning, " : "";
  const std::string had = s.training.stack.name, usual = "peft";
  const auto tried = [&](const std::string& method, const char* base) {
    diagnosis.tried.push_back(method);
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
        if (try_change(changed, what, std::move(settings), diagnosis)) return;
      } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
        // The stack, the model or what is fixed has no adapters.
      }
    }
  };
  if (!own.adapts()) tried("lora", "16");
  tried("qlora", "4");
}

// The stack whose best plan is the quickest of those that fit.
void other_stack(const Scenario& s, const OtherStacks& stacks, Attempts& diagnosis) {
  if (stacks.names.empty()) return;
  diagnosis.tried.emplace_back("other stacks");
  Quickest quickest;
  for (const std::string& name : stacks.names) {
    if (name == s.training.stack.name) continue;
    try {
      const Scenario changed = stacks.with(name);
      require_offered(changed);
      const std::string set = "training.stack=" + name;
      quickest.offer(best_of(changed, diagnosis), "another stack: " + set, {set}, changed);
    } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
      // This stack has no words for what is fixed.
    }
  }
  quickest.record_in(diagnosis);
}

std::string devices_remedy(const Scenario& s, std::int64_t devices) {
  const std::int64_t described =
      s.cluster.known_tiers.empty() ? devices : s.cluster.known_tiers.back().devices;
  const std::string beyond =
      devices > described
          ? fmt::format(" (more than the {} whose links are described)", format_integer(described))
          : "";
  return fmt::format("{} devices instead of {}{}", format_integer(devices),
                     format_integer(s.cluster.devices), beyond);
}

// Records so many devices as a remedy if something fits, also where plan.dp has to be freed.
bool try_devices(const Scenario& s, std::int64_t devices, Attempts& diagnosis) {
  Scenario changed = s;
  changed.cluster = resized(s.cluster, devices);
  const std::string what = devices_remedy(s, devices);
  const std::string set = fmt::format("cluster.devices={}", devices);
  if (try_change(changed, what, {set}, diagnosis)) return true;
  if (!s.plan.dp || diagnosis.own != nullptr) return false;
  changed.plan.dp.reset();
  return try_change(changed, what + " and plan.dp freed", {set, "plan.dp=auto"}, diagnosis);
}

// The fewest devices with which a plan exists: doubled until one does, and then whole nodes, or
// parts of the first, between the last two.
void more_devices(const Scenario& s, Attempts& diagnosis) {
  constexpr std::int64_t most = 64, largest = 1'000'000;
  const std::int64_t node = s.cluster.devices_per_node;
  for (std::int64_t factor = 2; factor <= most && s.cluster.devices * factor <= largest;
       factor *= 2) {
    const std::int64_t enough = s.cluster.devices * factor, few = enough / 2;
    if (!try_devices(s, enough, diagnosis)) continue;
    const Remedy doubled = std::move(diagnosis.remedies.back());
    diagnosis.remedies.pop_back();
    constexpr std::int64_t most_tried = 64;
    const std::int64_t step = few < node ? 1 : node * ((few / node + most_tried - 1) / most_tried);
    for (std::int64_t n = (few / step + 1) * step; n < enough; n += step) {
      if (n > node && n % node != 0) continue;
      if (try_devices(s, n, diagnosis)) return;
    }
    diagnosis.remedies.push_back(doubled);
    return;
  }
  diagnosis.tried.push_back(fmt::format("up to {} times the devices", most));
}

// Half of an even number; of an odd one the power of two below, 0 of 1.
std::int64_t half(std::int64_t n) {
  return n % 2 == 0 ? n / 2 : static_cast<std::int64_t>(std::bit_floor(std::uint64_t(n - 1)));
}

// The largest number of devices, about halved in each step, that the rules allow for this batch; in
// multiples of the product of the fixed sizes.
void fewer_devices(const Scenario& s, Attempts& diagnosis) {
  ParallelPlan fixed;
  fixed.tp = s.plan.tp.value_or(1);
  fixed.pp = s.plan.pp.value_or(1);
  fixed.cp = s.plan.cp.value_or(1);
  fixed.dp = s.plan.dp.value_or(1);
  const std::int64_t unit = fixed.devices();
  std::int64_t units = s.cluster.devices / unit;
  if (units * unit == s.cluster.devices) units = half(units);
  for (; units > 0; units = half(units)) {
    const std::int64_t n = units * unit;
    Scenario changed = s;
    changed.cluster = resized(s.cluster, n);
    const std::string set = fmt::format("cluster.devices={}", n);
    if (try_change(changed, "fewer devices: " + set, {set}, diagnosis)) return;
  }
  diagnosis.tried.emplace_back("fewer devices");
}

// The batch nearest to the requested one that some number of devices divides.
void nearest_batch(const Scenario& s, Attempts& diagnosis) {
  const std::int64_t model_parallel =
      std::int64_t{s.plan.tp.value_or(1)} * s.plan.pp.value_or(1) * s.plan.cp.value_or(1);
  const std::int64_t micro_batch = s.plan.micro_batch.value_or(1);
  const std::int64_t replicas = std::max<std::int64_t>(1, s.cluster.devices / model_parallel);
  const std::int64_t wanted = s.training.global_batch;
  for (const std::int64_t dp : divisors(s.plan.dp ? *s.plan.dp : replicas)) {
    if (s.plan.dp && dp != *s.plan.dp) continue;
    const std::int64_t share = dp * micro_batch;
    const std::int64_t nearest = std::max(share, (wanted + share / 2) / share * share);
    if (nearest == wanted) continue;
    Scenario changed = s;
    changed.training.global_batch = nearest;
    const std::string set = fmt::format("training.global_batch={}", nearest);
    if (try_change(changed, "another batch: " + set, {set}, diagnosis)) return;
  }
  diagnosis.tried.emplace_back("another batch");
}

// Half of it, or as many halves as it takes, down to a 64th.
void half_sequence(const Scenario& s, Attempts& diagnosis) {
  const Packing& samples = s.training.packing;
  constexpr std::int64_t most = 64;
  for (std::int64_t share = 2; share <= most; share *= 2) {
    const std::int64_t length = s.training.sequence / share;
    if (length < 1 || samples.lengths.mean > static_cast<double>(length)) return;
    if (share == 2) diagnosis.tried.emplace_back("half the sequence");
    Scenario changed = s;
    changed.training.sequence = length;
    if (samples.any())
      changed.training.packing = packing_of(samples.lengths, length, samples.packed);
    if (try_change(changed, fmt::format("sequence {} instead of {}", length, s.training.sequence),
                   {fmt::format("training.sequence={}", length)}, diagnosis))
      return;
  }
}

// A loss that keeps the logits in 16 bits.
void narrow_loss(const Scenario& s, Attempts& diagnosis) {
  LossKernel own = s.training.stack.kernels.loss;
  if (keeps_narrow(own)) return;
  diagnosis.tried.emplace_back("a loss that keeps 16-bit logits");
  Scenario changed = s;
  changed.training.stack.kernels.loss = LossKernel::flash;
  try_change(changed, "a loss that keeps 16-bit logits: training.loss=flash",
             {"training.loss=flash"}, diagnosis);
}

// Adapters on attention alone.
void fewer_adapters(const Scenario& s, Attempts& diagnosis) {
  const FineTuning& own = s.training.fine_tuning;
  if (!own.adapts() || (own.targets & ~attention_targets) == 0) return;
  diagnosis.tried.emplace_back("adapters on attention alone");
  Scenario changed = s;
  changed.training.fine_tuning.targets = attention_targets;
  try_change(changed, "fewer trained parameters: training.fine_tuning.targets=attention",
             {"training.fine_tuning.targets=attention"}, diagnosis);
}

// The optimizer's states in host memory, and the parameters with them.
void states_on_the_host(const Scenario& s, Attempts& diagnosis) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  diagnosis.tried.emplace_back("states in host memory");
  for (const auto& [word, what, parameters] :
       {std::tuple{"optimizer", "optimizer states in host memory", 0.0},
        {"parameters", "parameters and optimizer states in host memory", 1.0}}) {
    Scenario changed = s;
    changed.plan.offload = {.optimizer = 1, .parameters = parameters};
    const std::string set = fmt::format("plan.offload={}", word);
    try_change(changed, fmt::format("{}: {}", what, set),
               diagnosis.own != nullptr ? Settings{} : Settings{set}, diagnosis);
  }
}

// The same by a stack that has them, where the scenario's own has not.
void states_on_the_host_of(const Scenario& s, const OtherStacks& stacks, Attempts& diagnosis) {
  const std::string usual = "peft";
  if (s.plan.offload.any() || s.plan.is_auto("offload") || s.training.stack.name == usual ||
      diagnosis.own != nullptr || std::ranges::find(stacks.names, usual) == stacks.names.end())
    return;
  const auto offloads = [](const Remedy& remedy) { return remedy.best.plan.offload.states(); };
  if (std::ranges::any_of(diagnosis.remedies, offloads)) return;
  try {
    Scenario changed = stacks.with(usual);
    if (s.search.memory_margin == 0) changed.search.memory_margin = 0;
    changed.plan.offload = {.optimizer = 1, .parameters = 1};
    require_offered(changed);
    try_change(changed,
               "parameters and optimizer states in host memory, by DeepSpeed or FSDP: "
               "plan.offload=parameters and training.stack=" +
                   usual,
               {"training.stack=" + usual, "plan.offload=parameters"}, diagnosis);
  } catch (const ConfigError&) {  // NOLINT(bugprone-empty-catch)
    // This stack has no words for what is fixed.
  }
}

// Both on its NVMe drives, where the cluster has some: for hosts that are too small.
void states_on_drives(const Scenario& s, Attempts& diagnosis) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  if (!s.training.stack.offers.drive_offload || s.cluster.drives.size.value <= 0) return;
  diagnosis.tried.emplace_back("states on NVMe drives");
  Scenario changed = s;
  changed.plan.offload = {.optimizer = 1, .parameters = 1, .to = OffloadTo::nvme};
  const std::string set = "plan.offload={optimizer: 1, parameters: 1, to: nvme}";
  try_change(changed, "parameters and optimizer states on NVMe drives: " + set,
             diagnosis.own != nullptr ? Settings{} : Settings{set}, diagnosis);
}

// What attention, and the experts' first products, save for backward, in host memory.
void activations_on_the_host(const Scenario& s, Attempts& diagnosis) {
  if (s.plan.offload.any() || s.plan.is_auto("offload")) return;
  if (!s.training.stack.offers.module_offload) return;
  diagnosis.tried.emplace_back("activations of modules in host memory");
  Scenario changed = s;
  unsigned modules = bit_of(OffloadModule::core_attn) | bit_of(OffloadModule::attn_proj);
  if (s.model.experts > 0) modules |= bit_of(OffloadModule::expert_fc1);
  changed.plan.offload.modules = modules;
  const std::string set = fmt::format("plan.offload={{activations: {{modules: [{}]}}}}",
                                      fmt::join(offload_modules(modules), ", "));
  try_change(changed, "activations of modules in host memory: " + set,
             diagnosis.own != nullptr ? Settings{} : Settings{set}, diagnosis);
}

// Of what comes to the same, as a module recomputed by its own name, the first stays.
void cheapest_first(std::vector<Remedy>& remedies) {
  std::ranges::stable_sort(remedies, {}, &Remedy::device_time);
  const auto of_plan = [](const Remedy& r) {
    return std::ranges::all_of(r.settings, [](const auto& s) { return s.starts_with("plan."); });
  };
  const auto same = [&](const Remedy& a, const Remedy& b) {
    return of_plan(a) && of_plan(b) && a.device_time == b.device_time && a.best.peak == b.best.peak;
  };
  remedies.erase(std::unique(remedies.begin(), remedies.end(), same), remedies.end());
}

// What is trained and how, with fewer bytes of it.
void change_training(const Scenario& s, const OtherStacks& stacks, Attempts& diagnosis) {
  expert_sizes(s, diagnosis);
  recomputed_modules(s, diagnosis);
  narrow_loss(s, diagnosis);
  smaller_states(s, diagnosis);
  states_on_the_host(s, diagnosis);
  states_on_the_host_of(s, stacks, diagnosis);
  states_on_drives(s, diagnosis);
  activations_on_the_host(s, diagnosis);
  adapters_alone(s, stacks, diagnosis);
  fewer_adapters(s, diagnosis);
  if (diagnosis.own == nullptr) other_stack(s, stacks, diagnosis);
  leaner_optimizer(s, diagnosis);
}

// The keys of the plan, each moved to the nearest value that fits.
void nearest_sizes(const Estimate& estimate, const Scenario& s, Attempts& diagnosis) {
  if (!estimate.plan.even()) return;
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const Step& step : one_step_away(estimate, s, evaluator, StepLength::fitting)) {
    record(fmt::format("{} {}", step.knob, step.change), {}, s, evaluator.estimate(step.plan),
           diagnosis);
  }
}

// Changes of what is trained, of the devices, of the sequence.
void change_scenario(const Scenario& s, Attempts& attempts) {
  change_training(s, attempts.stacks, attempts);
  more_devices(s, attempts);
  half_sequence(s, attempts);
}

// With the plan as it is, but for one key.
void add_single_changes(const Estimate& estimate, Scenario s, Attempts& attempts) {
  attempts.own = &estimate.plan;
  s.plan.etp = estimate.plan.etp;
  s.plan.recompute = estimate.plan.recompute;
  nearest_sizes(estimate, s, attempts);
  change_scenario(s, attempts);
  attempts.own = nullptr;
}

// The best plan of the scenario, or where none fits, of the scenario changed.
void add_other_plans(const Estimate& estimate, Scenario s, Attempts& attempts) {
  s.plan = {};
  try_change(s, "the best plan", {}, attempts);
  if (attempts.remedies.empty()) change_scenario(s, attempts);
  for (Remedy& remedy : attempts.remedies) {
    for (std::string& setting : plan_assignments(attempts.asked, estimate.plan, remedy.best.plan))
      remedy.settings.push_back(std::move(setting));
  }
}

}  // namespace

std::string Remedy::sentence() const {
  std::string text = fmt::format("{}: {} fits in {} (chance {}) and takes {}", what,
                                 to_string(best.plan), format_bytes(best.peak),
                                 chance_text(probability), format_seconds(best.iteration));
  if (command.empty()) return text;
  text += "; " + command;
  for (const std::string& setting : settings) {
    const bool plain = setting.find_first_of(" {[") == std::string::npos;
    text += plain ? " --set " + setting : fmt::format(" --set '{}'", setting);
  }
  return text;
}

std::vector<std::string> sentences_of(const std::vector<Remedy>& remedies) {
  std::vector<std::string> lines;
  for (const Remedy& remedy : remedies) lines.push_back(remedy.sentence());
  return lines;
}

std::vector<Remedy> fitting_changes(const Estimate& estimate, const Scenario& scenario,
                                    const OtherStacks& stacks,
                                    const std::function<bool()>& stopped) {
  const ParallelPlan& plan = estimate.plan;
  const bool one_size =
      plan.stages.empty() && plan.replica_groups.empty() && estimate.meshes.empty();
  if (estimate.fits() || !one_size) return {};
  Attempts attempts{{}, stopped, stacks, scenario.plan};
  Scenario s = scenario;
  for (const double margin : {scenario.search.memory_margin, 0.0}) {  // tightly, if not otherwise
    s.search.memory_margin = margin;
    add_single_changes(estimate, s, attempts);
    if (attempts.remedies.empty()) add_other_plans(estimate, s, attempts);
    if (!attempts.remedies.empty()) break;
  }
  cheapest_first(attempts.remedies);
  return std::move(attempts.remedies);
}

Diagnosis diagnose(const Scenario& s, const SearchResult& failed, const OtherStacks& stacks,
                   const std::function<bool()>& stopped) {
  Attempts diagnosis{{}, stopped, stacks, s.plan};
  Evaluator evaluator(s.model, s.cluster, s.training);
  for (const ParallelPlan& plan : popular(s)) {
    const auto broken = violations(plan, s.model, s.cluster, s.training);
    if (broken.empty() && evaluator.cost(plan).peak <= memory_limit(s))
      continue;  // fits: other keys rule it out
    const std::string line = broken.empty()
                                 ? shortage(plan, evaluator)
                                 : fmt::format("{}: {}", to_string(plan), broken.front().reason);
    if (std::ranges::find(diagnosis.obstacles, line) == diagnosis.obstacles.end())
      diagnosis.obstacles.push_back(line);
  }
  if (failed.leanest) {
    const std::string line = shortage(*failed.leanest, evaluator);
    std::erase(diagnosis.obstacles, line);
    diagnosis.obstacles.push_back("the leanest of all, " + line);
  }
  const bool memory_lacks = failed.statistics.configurations > 0;
  if (memory_lacks) no_margin(s, diagnosis);
  diagnosis.tried.emplace_back("freeing a fixed key");
  free_keys(s, diagnosis);
  if (memory_lacks) change_training(s, stacks, diagnosis);
  more_devices(s, diagnosis);
  if (!memory_lacks) {
    fewer_devices(s, diagnosis);
    nearest_batch(s, diagnosis);
  }
  half_sequence(s, diagnosis);
  cheapest_first(diagnosis.remedies);
  if (stopped && stopped()) diagnosis.tried = {"not all, for it was interrupted"};
  return diagnosis;
}

}  // namespace planner
