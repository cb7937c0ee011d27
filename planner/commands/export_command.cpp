#include "planner/commands/export_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "planner/commands/export_targets.hpp"
#include "planner/commands/plan_warnings.hpp"
#include "planner/commands/serving_commands.hpp"
#include "planner/frameworks/launcher.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::Evaluator;
using costmodel::Scenario;

namespace {

const ExportTarget& target_of(const std::string& name) {
  const auto targets = export_targets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const ExportTarget& target) { return target.name == name; });
  if (found != targets.end()) return *found;
  const std::string given = name.empty()
                                ? "export lacks --to"
                                : fmt::format("cannot export to {}", costmodel::quote(name));
  throw ConfigError({}, "shardplan: " + given,
                    fmt::format("allowed: --to {}", export_target_names));
}

// No export writes a frozen base and adapters.
void require_pretraining(const Scenario& s, const ExportTarget& target) {
  if (!s.training.fine_tuning.adapts()) return;
  throw ConfigError(
      {s.file, 0, 0},
      fmt::format("the export to {} has no words for training.fine_tuning", target.name),
      "export it without: --set 'training.fine_tuning={method: full}', and add the "
      "adapters in the framework's own configuration");
}

}  // namespace

CommandResult export_command(const Session& session) {
  if (is_serving(session)) return export_serving(session);
  const ExportTarget& target = target_of(session.options.to);
  Scenario s = load(session);
  require_pretraining(s, target);
  const auto settled = settled_plan(s);
  if (!settled || settled->nothing_fits) return without_plan(session, s);
  const auto& plan = settled->plan;
  Exported exported = target.exported(s, plan);
  const std::string& name = session.options.launcher;
  const Launcher launcher = name.empty() ? Launcher::torchrun : launcher_of(name);
  exported.text = with_launcher(exported.text, launcher, s, plan);
  if (!launcher_note(launcher).empty()) exported.notes.emplace_back(launcher_note(launcher));
  Evaluator evaluator = evaluator_of(s);
  CommandResult result;
  result.warnings = plan_warnings(session.options, s, evaluator.estimate(plan));
  for (const auto& notes : {note_lines(settled->notes), note_lines(exported.notes)})
    result.warnings.insert(result.warnings.end(), notes.begin(), notes.end());
  result.text = session.options.format == Format::json ? exported.json : exported.text;
  return result;
}

}  // namespace planner
