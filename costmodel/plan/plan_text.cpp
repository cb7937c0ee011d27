#include "costmodel/plan/plan_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace costmodel {

namespace {

std::vector<std::string> chosen(unsigned bits, std::span<const std::string_view> names) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < names.size(); ++i)
    if ((bits >> i & 1U) != 0) all.emplace_back(names[i]);
  return all;
}

}  // namespace

std::vector<std::string> module_names(unsigned modules) {
  return chosen(modules, recompute_module_names);
}

std::vector<std::string> offload_modules(unsigned modules) {
  return chosen(modules, offload_module_names);
}

std::string to_string(const Recompute& r) {
  std::string text(recomputation_names[static_cast<std::size_t>(r.granularity)]);
  if (r.modules != 0) text = fmt::format("{}", fmt::join(module_names(r.modules), " + "));
  if (r.layers > 0) text += fmt::format(" (first {} of a stage)", r.layers);
  return text;
}

std::string stage_layers_text(const std::vector<int>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    text += fmt::format("{}{}", i > 0 ? "+" : "", layers[i]);
    if (end - i > 1) text += fmt::format("x{}", end - i);
    i = end;
  }
  return text;
}

namespace {

// What differs from the plainest way of tokens to their experts: " (hybridep, overlapped)".
std::string recipe_text(const ExpertRecipe& recipe) {
  std::vector<std::string_view> parts;
  if (recipe.dispatcher != Dispatcher::alltoall)
    parts.push_back(dispatcher_names[static_cast<std::size_t>(recipe.dispatcher)]);
  if (recipe.overlap) parts.emplace_back("overlapped");
  if (recipe.shared_overlap) parts.emplace_back("under shared experts");
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

}  // namespace

std::string context_and_experts_text(const ParallelPlan& p, std::string_view between) {
  std::vector<std::string> parts;
  if (p.cp > 1) {
    parts.push_back(fmt::format("c {} ({})", p.cp,
                                context_exchange_names[static_cast<std::size_t>(p.cp_comm)]));
  }
  if (p.ep > 1) parts.push_back(fmt::format("e {}{}", p.ep, recipe_text(p.experts)));
  if (p.etp > 1) parts.push_back(fmt::format("etp {}", p.etp));
  return fmt::format("{}", fmt::join(parts, between));
}

namespace {

// "2 of 1 x 4, 1 x 8": equal neighbours together.
std::string runs_text(const std::vector<std::string>& stages) {
  std::vector<std::string> runs;
  for (auto from = stages.begin(); from != stages.end();) {
    const auto end =
        std::find_if(from, stages.end(), [&](const auto& other) { return other != *from; });
    runs.push_back(end - from > 1 ? fmt::format("{} of {}", end - from, *from) : *from);
    from = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

// Context and expert parallelism per stage, unless all stages have the same.
std::string unlike_stages_text(const ParallelPlan& p) {
  std::vector<std::string> sizes, more;
  for (std::size_t k = 0; k < p.stages.size(); ++k) {
    const ParallelPlan own = stage_plan(p, static_cast<int>(k));
    sizes.push_back(fmt::format("{} x {}", own.tp, own.dp));
    more.push_back(context_and_experts_text(own, " "));
  }
  const bool shared = std::equal(more.begin() + 1, more.end(), more.begin());
  for (std::size_t k = 0; k < sizes.size() && !shared; ++k)
    if (!more[k].empty()) sizes[k] += " " + more[k];
  std::string text = fmt::format("p {} · t x d {} · {} sequences a micro-batch", p.pp,
                                 runs_text(sizes), p.dp * p.micro_batch);
  if (shared && !more.front().empty())
    text += " · " + context_and_experts_text(stage_plan(p, 0), " · ");
  return text;
}

}  // namespace

std::string schedule_text(const ParallelPlan& plan) {
  return plan.listed != nullptr ? plan.listed->file : std::string(schedule_name(plan.schedule));
}

namespace {

// The sizes of all pipelines, or of all stages.
std::string sizes_text(const ParallelPlan& p) {
  if (!p.stages.empty()) return unlike_stages_text(p);
  std::string text = replicas_text(p);
  if (p.even()) text = fmt::format("t {} · p {} · d {}", p.tp, p.pp, p.dp);
  const std::string more = context_and_experts_text(p, " · ");
  return more.empty() ? text : text + " · " + more;
}

// What stages of their own recompute.
std::string recompute_text(const ParallelPlan& p) {
  std::vector<std::string> stages;
  for (std::size_t k = 0; k < p.stages.size(); ++k)
    stages.push_back(to_string(stage_plan(p, static_cast<int>(k)).recompute));
  const bool alike = std::equal(stages.begin() + 1, stages.end(), stages.begin());
  return alike ? stages.front() : runs_text(stages);
}

// Whether any stage has tensor parallelism.
// "hpZ 8, qwZ, qgZ"
std::string zero_plus_plus_text(const ZeroPlusPlus& own) {
  std::vector<std::string> parts;
  if (own.partition > 1) parts.push_back(fmt::format("hpZ {}", own.partition));
  if (own.weights) parts.emplace_back("qwZ");
  if (own.gradients) parts.emplace_back("qgZ");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string offload_text(const HostOffload& own) {
  std::vector<std::string> drives, host;
  const auto share = [&](const char* what, double part, bool on_drives) {
    if (part <= 0) return;
    (on_drives ? drives : host)
        .push_back(part < 1 ? fmt::format("{:g} % of {}", 100 * part, what) : what);
  };
  share("optimizer", own.optimizer, own.optimizer_on_drives());
  share("parameters", own.parameters, own.parameters_on_drives());
  if (own.activation_layers > 0)
    host.push_back(fmt::format("activations of {} layers", own.activation_layers));
  if (own.modules != 0) {
    host.push_back(
        fmt::format("activations of {}", fmt::join(offload_modules(own.modules), " + ")));
  }
  if (drives.empty()) return fmt::format("{}", fmt::join(host, ", "));
  return fmt::format("{} on NVMe{}{}", fmt::join(drives, ", "), host.empty() ? "" : ", ",
                     fmt::join(host, ", "));
}

namespace {

bool is_wide(const ParallelPlan& pipeline) {
  bool wide = false;
  for (int k = 0; k < pipeline.different_stages(); ++k) wide = wide || pipeline.stage(k).tp > 1;
  return wide;
}

}  // namespace

std::string to_string(const ParallelPlan& p) {
  std::string text = sizes_text(p);
  if (p.even()) text += fmt::format(" · b {}", p.micro_batch);
  if (p.vpp > 1) text += fmt::format(" · v {}", p.vpp);
  const std::vector<Pipeline> all = pipelines_of(p, 0);
  const auto of_any = [&all](auto has) {
    return std::ranges::any_of(all, [&](const Pipeline& one) { return has(one.plan); });
  };
  if (of_any([](const ParallelPlan& own) { return own.pp > 1; }))
    text += fmt::format(" · {}", schedule_text(p));
  if (p.choices.group > 0) text += fmt::format(" (groups of {})", p.choices.group);
  if (p.choices.in_flight > 0) text += fmt::format(" (at most {} in flight)", p.choices.in_flight);
  if (p.sequence_parallel && of_any(is_wide)) text += " · sequence parallel";
  if (p.even()) text += fmt::format(" · recompute {} · ZeRO {}", to_string(p.recompute), p.zero);
  if (const std::string more = zero_plus_plus_text(p.zero_plus_plus); !more.empty())
    text += fmt::format("++ ({})", more);
  if (p.dp_replicate > 1) {
    text += fmt::format(" in {} groups{}", p.dp_replicate,
                        p.shards_states_further() ? ", states over all" : "");
  }
  if (p.offload.any()) {
    text += " · " + offload_text(p.offload);
    const bool none = p.offload.optimizer_on_drives() && !p.offload.activations() &&
                      (p.offload.parameters == 0 || p.offload.parameters_on_drives());
    if (!none) text += " in host memory";
  }
  if (!p.stages.empty()) text += " · recompute " + recompute_text(p);
  if (!p.stage_layers.empty()) text += " · layers " + stage_layers_text(p.stage_layers);
  return text;
}

}  // namespace costmodel
