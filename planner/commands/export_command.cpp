#include "planner/commands/export_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/scenario/training_reader.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/export_folder.hpp"
#include "planner/commands/export_targets.hpp"
#include "planner/frameworks/engine_launch.hpp"
#include "planner/frameworks/json_engine_launch.hpp"
#include "planner/frameworks/launcher.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

const ExportTarget& target_of(const std::string& name) {
  const auto targets = export_targets();
  const auto found = std::ranges::find_if(
      targets, [&](const ExportTarget& target) { return target.name == name; });
  if (found != targets.end()) return *found;
  if (name == "vllm" || name == "sglang") {
    throw ConfigError({}, fmt::format("shardplan: --to {} is of serving", name),
                      "give a scenario with `workload: inference`");
  }
  const std::string given =
      name.empty() ? "export lacks --to" : fmt::format("cannot export to {}", quote(name));
  std::vector<std::string> known;
  for (const ExportTarget& target : targets) known.emplace_back(target.name);
  const std::string near = nearest_name(name, known);
  throw ConfigError({}, "shardplan: " + given,
                    (near.empty() ? "" : fmt::format("did you mean {}? ", quote(near))) +
                        fmt::format("allowed: --to {}", export_target_names));
}

void require_words_for_adapters(const Scenario& s, const ExportTarget& target) {
  const FineTuning& f = s.training.fine_tuning;
  const bool plain = f.base == BasePrecision::bf16, four = f.base == BasePrecision::nf4;
  const bool worded = (plain && target.adapters != AdapterWords::none) ||
                      (four && target.adapters == AdapterWords::nf4);
  if (!f.adapts() || worded) return;
  throw ConfigError(
      {s.file, 0, 0},
      plain ? fmt::format("the export to {} has no words for training.fine_tuning", target.name)
            : fmt::format("the export to {} has no words for a frozen base in {}", target.name,
                          base_precision_names[static_cast<std::size_t>(f.base)]),
      std::string(another_target) +
          ", or export it without: --set 'training.fine_tuning={method: full}', and add the "
          "adapters in the framework's own configuration");
}

// No target has words for towers.
void require_no_towers(const Scenario& s, const ExportTarget& target) {
  if (s.model.towers == nullptr) return;
  throw ConfigError({s.file, 0, 0},
                    fmt::format("the export to {} has no words for towers: a script would train "
                                "the language model alone",
                                target.name),
                    "export that: --set training.images=0, or audio_clips=0");
}

// The target's own launcher, then that of --launcher.
Launcher started_by(Exported& exported, const ExportTarget& target, const Scenario& s,
                    const ParallelPlan& plan, const Options& options) {
  const Site site = site_of(options.site);
  const Launcher given =
      options.launcher.empty() ? Launcher::torchrun : launcher_of(options.launcher);
  const Launcher starts = target.starter == Launcher::torchrun ? given : target.starter;
  refuse_if(starts == Launcher::torchrun && !options.site.empty(),
            "--site is of jobs of Slurm and Kubernetes",
            "add --launcher slurm or kubernetes, or leave it out");
  for (const Launcher launcher : {target.starter, given})
    exported.text = with_launcher(exported.text, launcher, s, plan, site);
  if (const std::string note = launcher_note(exported.text); !note.empty())
    exported.notes.push_back(note);
  return starts;
}

Exported exported_by(const ExportTarget& target, const Scenario& s, const ParallelPlan& plan,
                     const std::string& version) {
  require_words_for_adapters(s, target);
  require_no_towers(s, target);
  if (version.empty()) return target.exported(s, plan);
  if (target.exported_for != nullptr) return target.exported_for(s, plan, version);
  throw ConfigError({}, fmt::format("shardplan: the export to {} has one version", target.name),
                    "leave --for-version out");
}

// Why a target does not write a plan; empty: it does.
std::string refusal_of(const ExportTarget& target, const Scenario& s, const ParallelPlan& plan,
                       const std::string& version) {
  try {
    exported_by(target, s, plan, version);
  } catch (const ConfigError& error) {
    return error.parts().wrong;
  }
  return "";
}

// The plan, and where the search chooses its sizes, those that a target which has the model has
// words for: data parallel alone.
std::vector<ParallelPlan> asked_of_others(const Scenario& s, const ParallelPlan& plan) {
  std::vector<ParallelPlan> all{plan};
  if (!s.plan.is_auto("tp") || !s.plan.is_auto("zero")) return all;
  for (const int zero : {1, 2, 3})
    all.push_back({.dp = static_cast<int>(s.cluster.devices), .zero = zero});
  return all;
}

// The same refusal, whose remedy names the targets that write the plan in place of another one.
[[noreturn]] void refuse_with_targets(const ConfigError& error, const Scenario& s,
                                      const ParallelPlan& plan) {
  const ConfigError::Parts& parts = error.parts();
  const std::size_t at = parts.remedy.find(another_target);
  if (at == std::string::npos) throw error;
  std::vector<std::string_view> others;
  for (const ExportTarget& target : export_targets()) {
    const bool writes = std::ranges::any_of(asked_of_others(s, plan), [&](const auto& one) {
      return refusal_of(target, s, one, "").empty();
    });
    if (writes) others.push_back(target.name);
  }
  std::string remedy = parts.remedy;
  remedy.replace(at, std::string_view(another_target).size(),
                 others.empty() ? "choose a model or plan for which a target has words"
                                : fmt::format("export it --to {}", fmt::join(others, ", ")));
  throw ConfigError(parts.where, parts.wrong, remedy);
}

}  // namespace

CommandResult export_command(const Session& asked) {
  const ExportTarget& target = target_of(asked.options.to);
  refuse_if(!asked.options.save_dir.empty() && !asked.options.out.empty(),
            "--save-dir writes files of its own, --out one", "leave one of them out");
  Scenario s = load(asked);
  Options options = asked.options;
  const Session session{options, asked.style, asked.path};
  const bool free = std::ranges::any_of(
      s.training.assumed, [](const std::string& line) { return line.starts_with("stack "); });
  if (free && !target.stack.empty()) {
    options.assignments.push_back("training.stack=" + std::string(target.stack));
    s = load(session);
  }
  require_no_towers(s, target);
  const auto refusal = [&](const ParallelPlan& plan) {
    return refusal_of(target, s, plan, options.for_version);
  };
  const auto settled = settled_plan(s, threads_of(session.options), refusal);
  if (!settled || settled->nothing_fits)
    return without_plan(session, s, settled ? &*settled : nullptr);
  const auto& plan = settled->plan;
  Exported exported;
  try {
    exported = exported_by(target, s, plan, session.options.for_version);
  } catch (const ConfigError& error) {
    refuse_with_targets(error, s, plan);
  }
  const Launcher launcher = started_by(exported, target, s, plan, session.options);
  CommandResult result;
  result.warnings =
      plan_warnings(session.options, s, estimate_of(s.model, s.cluster, s.training, plan));
  if (free && !target.stack.empty()) {
    result.warnings.push_back(
        fmt::format("note: planned with the stack {}, the target's own "
                    "(none given; --framework NAME)",
                    target.stack));
  }
  for (const auto& notes : {note_lines(settled->notes), note_lines(exported.notes)})
    result.warnings.insert(result.warnings.end(), notes.begin(), notes.end());
  if (!session.options.save_dir.empty()) {
    exported.notes.insert(exported.notes.begin(), settled->notes.begin(), settled->notes.end());
    result.text = save_folder(session, s, plan, {target, launcher, std::move(exported)});
  } else {
    result.text = session.options.format == Format::json ? exported.json : exported.text;
  }
  return result;
}

std::string export_note(const Scenario& s, const ParallelPlan& plan) {
  std::string first;
  for (const ExportTarget& target : export_targets()) {
    const std::string_view stack = target.stack.empty() ? usual_stack : target.stack;
    if (stack != s.training.stack.name) continue;
    const std::string refusal = refusal_of(target, s, plan, "");
    if (refusal.empty()) return "";
    if (first.empty())
      first = fmt::format("export --to {} does not write this plan: {}", target.name, refusal);
  }
  return first;
}

CommandResult export_serving(const Session& session) {
  refuse_if(!session.options.launcher.empty(), "--launcher starts scripts of training",
            "leave it out: the script of an engine is started on each node by hand");
  refuse_if(!session.options.save_dir.empty() || !session.options.site.empty(),
            "--save-dir and --site are of scripts of training",
            "write the launch with --out launch.sh");
  ServingScenario written = load_serving(session);
  const auto best = settled_serving(written);
  const std::string& target = session.options.to;
  // What the search chose and the target can't serve is left; what is written so is refused.
  const std::string refused =
      best && !written.plan.disaggregation ? pools_refusal(*best, target) : "";
  if (!refused.empty()) written.plan.together = true;
  const auto s = refused.empty() ? best : settled_serving(written);
  if (!s) return without_serving_plan(session, written);
  EngineLaunch launch = engine_launch(*s, sizes_of(*s), target, session.options.for_version);
  if (!refused.empty()) {
    launch.notes.push_back(fmt::format(
        "the best plan has devices of their own for prompts, but {}: this is the best without "
        "(plan with --set plan.disaggregation=none shows it)",
        refused));
  }
  return {0, session.options.format == Format::json ? to_json(launch) : launch.text,
          note_lines(launch.notes)};
}

}  // namespace planner
