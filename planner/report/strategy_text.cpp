#include "planner/report/strategy_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/search/unasked_keys.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string told(const char* name, const Estimate& e) {
  return fmt::format("{}: {} by {}.", name, format_seconds(e.iteration), to_string(e.plan));
}

std::string compared(const Estimate& even, const Estimate& best) {
  const double gain = 100 * (1 - best.iteration / even.iteration);
  return fmt::format("Stages of any layout are {:.2f} % faster; against them even stages have {}.",
                     gain, difference(best, even));
}

// Compares stages of different sizes with the best plan of equal sizes.
std::string own_sizes(const MeshSearch& meshes, const std::vector<Estimate>& alike) {
  if (meshes.plans.empty()) {
    const bool bounded = std::isfinite(meshes.lower_bound.value) && meshes.interrupted.empty();
    const std::string proved =
        bounded ? "; proved: none takes less than " + format_seconds(meshes.lower_bound) : "";
    return fmt::format("Stages with sizes and recomputation of their own: {}{}.", meshes.reason,
                       proved);
  }
  const Estimate& own = meshes.plans.front();
  std::string text = fmt::format("Stages with sizes and recomputation of their own: {} by {}",
                                 format_seconds(own.iteration), to_string(own.plan));
  double gain = 0;
  if (!alike.empty()) {
    gain = 100 * (1 - own.iteration / alike.front().iteration);
    constexpr double shown = 0.005;  // per cent
    if (std::abs(gain) < shown) gain = 0;
    text += gain == 0
                ? ", as fast"
                : fmt::format(", {:.2f} % {}", std::abs(gain), gain > 0 ? "faster" : "slower");
  }
  if (meshes.interrupted.empty()) {
    text += fmt::format("; proved: none takes less than {}{}", format_seconds(meshes.lower_bound),
                        meshes.expired ? ", as time ran out" : "");
  }
  return text + ".";
}

std::string interruption(const std::string& cause, std::uint64_t looked_at, bool any) {
  if (!any) return cause + " before a plan was found";
  return fmt::format("{}: best of {} configurations looked at so far; nothing is proved", cause,
                     format_integer(static_cast<long long>(looked_at)));
}

}  // namespace

std::string left_out(const Strategies& all, const Scenario& s) {
  const bool pipelines = s.plan.pp.value_or(2) > 1 && s.cluster.devices > 1 && s.model.layers > 1;
  if (!pipelines || !s.plan.stage_layers.empty()) return "";
  const StackSpec& stack = s.training.stack;
  if (!all.layouts) {
    const std::string words = stack.offers.any_layers() && !stack.defaults.layout_by_cost
                                  ? std::string()
                                  : fmt::format(", for which {} has no words", stack.name);
    return fmt::format(
        "Left out: stages of other numbers of layers than even ones{}; `plan --strategy layouts` "
        "tries them.",
        words);
  }
  std::string what;
  if (!all.meshes) {
    what = "stages with sizes and recomputation of their own";
    if (!stack.offers.stage_sizes) what += fmt::format(", for which {} has no words,", stack.name);
    what += " and ";
  }
  if (all.meshes && (all.sharding || all.two_stacks)) return "";
  if (s.plan.dp_replicate.value_or(1) > 1 || s.plan.zero_plus_plus.any()) {
    return fmt::format(
        "Left out: {}other shardings inside a stage: they have neither groups of "
        "shards nor ZeRO++.",
        what);
  }
  return fmt::format(
      "Left out: {}other shardings inside a stage; `plan --strategy both` tries them.", what);
}

std::string proved_but(const Strategies& all) {
  return all.layouts && all.layouts->improved > 0
             ? "; of uneven layouts of several chunks a rank those tried count, without a proof"
             : "";
}

std::string unasked_gain(const UnaskedKey& unasked, const Strategies& all, const Scenario& s) {
  if (!unasked.plan) return "";
  const Estimate &e = *unasked.plan, &chosen = all.found.plans.front();
  std::string host, none_had;
  if (e.host.value > 0) host = fmt::format(" and {} of host memory a node", format_bytes(e.host));
  const PlanFeatures lacking =
      features_of(e.plan) & s.training.error_band.unmeasured & ~features_of(chosen.plan);
  if (lacking != 0)
    none_had = fmt::format("; no published run had {}", fmt::join(names_of(lacking), ", or "));
  return fmt::format("With {} a plan takes {}{}, {} less: {}; --set plan.{}=auto{}.", unasked.what,
                     format_seconds(e.iteration), host,
                     signed_percent(e.iteration / chosen.iteration).substr(1), to_string(e.plan),
                     unasked.key, none_had);
}

std::string unasked_keys_sentence(const Strategies& all, const Scenario& s) {
  std::vector<std::string> none, unknown;
  for (const UnaskedRow& row : unasked_keys(s)) {
    const auto known = std::ranges::find(all.unasked, row.key, &UnaskedKey::key);
    const bool looked = known != all.unasked.end();
    if (looked && known->plan) continue;
    (looked ? none : unknown).push_back(fmt::format("{} (--set plan.{}=auto)", row.what, row.key));
  }
  std::string text;
  if (!none.empty()) {
    text = fmt::format("No even plan with {} is {:g} % faster.", fmt::join(none, ", or with "),
                       100 * (worth_a_key - 1));
  }
  if (!unknown.empty()) {
    text += fmt::format("{}Searched only where it is asked for: {}.", text.empty() ? "" : " ",
                        fmt::join(unknown, "; "));
  }
  return text;
}

std::string margin_sentence(const Scenario& s) {
  if (s.search.memory_margin <= 0) return "";
  return fmt::format(
      "Plans leave {:.3g} % of device memory free ({}): what is predicted may be so much too "
      "little.",
      100 * s.search.memory_margin, margin_key(s.search));
}

namespace {

// What `to` has that `from` has not. Replicas and pipelines through all groups share no key.
std::string taken_instead(const ParallelPlan& from, const ParallelPlan& to) {
  if (from.pipelines() == to.pipelines())
    return fmt::format("{}", fmt::join(plan_changes(from, to), ", "));
  return to.pipelines() > 1 ? "replicas in each group" : "one pipeline through all groups";
}

}  // namespace

std::string fastest_sentence(const Estimate& chosen, const std::optional<Estimate>& fastest,
                             const Scenario& s) {
  if (!fastest) return "";
  return fmt::format(
      "The last {:.2g} % would take {}: {}. Of the plans found within {:g} % of the fastest this "
      "is "
      "the simplest (search.simpler_within).",
      100 * (chosen.iteration / fastest->iteration - 1), taken_instead(chosen.plan, fastest->plan),
      format_seconds(fastest->iteration), 100 * s.search.simpler_within);
}

std::string measured_sentence(const Strategies& all, const Scenario& s) {
  if (all.unmeasured == 0) return "";
  const char* models = s.model.experts > 0 ? "mixture of experts" : "dense model";
  std::string text =
      fmt::format("Of the published runs of a {} that errors are known by, none had {}. ", models,
                  fmt::join(names_of(all.unmeasured), ", or "));
  if (!all.measured) return text + "No plan without it fits and keeps what the scenario fixes.";
  const Estimate& measured = *all.measured;
  const double ratio = measured.iteration / all.found.plans.front().iteration;
  return text + fmt::format("The best plan whose every feature some run had takes {}, {} {}: {}.",
                            format_seconds(measured.iteration), signed_percent(ratio).substr(1),
                            ratio < 1 ? "less" : "more", to_string(measured.plan));
}

namespace {

// Whether the stack lists the layers of stages by Megatron Core's flag or field.
bool has_megatron_layouts(const StackSpec& stack) {
  return stack.offers.stage_lists && stack.framework.find("Megatron") != std::string::npos;
}

// What searching layouts has found, beside even stages.
void add_layouts(const Strategies& all, const StackSpec& stack, std::vector<std::string>& lines) {
  const LayoutSearch& l = *all.layouts;
  const Estimate* even = all.even.empty() ? nullptr : &all.even.front();
  const Estimate* best = l.plans.empty() ? nullptr : &l.plans.front();
  if (even != nullptr && best != nullptr && best->plan == even->plan) {
    lines.emplace_back("No other layout found is faster than even stages by 0.1 % or more.");
  } else {
    if (even != nullptr) lines.push_back(told("Even stages", *even));
    if (best != nullptr) lines.push_back(told("Stages of any layout", *best));
    if (even != nullptr && best != nullptr) lines.push_back(compared(*even, *best));
    if (best != nullptr && has_uneven_stages(best->plan) && !all.two_stacks &&
        has_megatron_layouts(stack)) {
      lines.push_back(fmt::format("In Megatron-LM's words: --pipeline-model-parallel-layout {}",
                                  pipeline_layout(best->plan, all.mtp_layers)));
    }
  }
  lines.push_back(fmt::format(
      "{} families of pipelines bounded, {} opened; in {} plans of 1F1B the layers were cut to the "
      "least bound of all layouts; {} layouts improved by simulation.",
      format_integer(static_cast<long long>(l.families)),
      format_integer(static_cast<long long>(l.opened)),
      format_integer(static_cast<long long>(l.sliced)),
      format_integer(static_cast<long long>(l.improved))));
  lines.push_back(
      "There all stages share one tensor, data, context and expert parallel size; schedules with "
      "split backward keep even stages. Of interleaved chunks the most even "
      "layouts were tried, and what moving layers makes of them: about others nothing is proved.");
}

}  // namespace

std::vector<std::string> strategy_sentences(const Strategies& all, const StackSpec& stack) {
  std::vector<std::string> lines;
  if (!all.layouts) return lines;
  const LayoutSearch& l = *all.layouts;
  if (l.families > 0) add_layouts(all, stack, lines);
  if (all.two_stacks && all.meshes) {
    lines.push_back(
        "Inside a stage the plan's own sharding stays: other strategies for the operators of an "
        "encoder-decoder model are not searched.");
  }
  if (all.meshes) lines.push_back(own_sizes(*all.meshes, l.plans));
  if (l.expired && all.interrupted.empty()) {
    lines.push_back(l.spent ? "The usual effort was spent: these are the best plans so far; "
                              "--time-limit SECONDS goes on."
                            : "Time ran out: these are the best plans so far.");
  }
  return lines;
}

std::string interruption(const Strategies& all) {
  std::uint64_t looked_at = all.found.statistics.evaluated;
  if (all.layouts) looked_at += all.layouts->sliced;
  if (all.meshes) looked_at += all.meshes->simulated;
  return interruption(all.interrupted, looked_at, !all.found.plans.empty());
}

std::string interruption(const MeshSearch& found) {
  return interruption(found.interrupted, found.simulated, !found.plans.empty());
}

std::string unfinished(const Strategies& all) {
  if (!all.interrupted.empty()) return interruption(all);
  return "time ran out before a plan was found: none with even stages, and not all other layouts "
         "were looked at";
}

}  // namespace planner
