#include "planner/commands/export_folder.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "planner/diagnosis/reason.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/report_tables.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Names {
  std::string script, smoke, starts;
};

Names names_for(Launcher launcher) {
  switch (launcher) {
    case Launcher::slurm: return {"launch.sh", "smoke_test.sh", "sbatch"};
    case Launcher::kubernetes: return {"job.yaml", "smoke_test.yaml", "kubectl apply -f"};
    case Launcher::torchrun: break;
  }
  return {"launch.sh", "smoke_test.sh", "bash"};
}

std::string files_section(const Names& names, bool smoke) {
  std::string text = fmt::format("## Files\n\n- `{}`: starts the training\n", names.script);
  if (smoke) text += fmt::format("- `{}`: the same for ten iterations\n", names.smoke);
  return text +
         "- `scenario.yaml`: model, cluster, training and plan, for `shardplan evaluate`\n"
         "- `settings.json`: what the script gives to the framework, as data\n\n";
}

std::string start_section(const Names& names, bool smoke, std::int64_t nodes, Launcher launcher) {
  const std::string where = launcher == Launcher::torchrun && nodes > 1
                                ? fmt::format(" on each of the {} nodes", nodes)
                                : "";
  std::string text = "## Start\n\n";
  if (smoke) {
    text += fmt::format("1. `{} {}`{}: ten iterations\n", names.starts, names.smoke, where);
  } else {
    text += "1. Let your program run ten iterations: the script hands its arguments on\n";
  }
  return text +
         "2. `shardplan explain-job scenario.yaml LOG`: its log against the prediction below\n" +
         fmt::format("3. `{} {}`{}\n\n", names.starts, names.script, where);
}

std::string notes_section(const std::vector<std::string>& notes) {
  if (notes.empty()) return "";
  std::string text = "## What the framework does otherwise, and what is yours to fill in\n\n";
  for (const auto& note : notes) text += fmt::format("- {}\n", note);
  return text + "\n";
}

std::string readme(const Scenario& s, const ParallelPlan& plan, const FolderOfExport& folder,
                   bool smoke) {
  const ReportStyle style{Markup::markdown, {}};
  const Names names = names_for(folder.launcher);
  Evaluator evaluator(s.model, s.cluster, s.training);
  const Estimate estimate = estimate_of(s.model, s.cluster, s.training, plan);
  const std::int64_t each = std::min(s.cluster.devices_per_node, plan.devices());
  std::string text = fmt::format("# {} for {}\n\n", job_name(s), folder.target.name);
  text += start_section(names, smoke, plan.devices() / each, folder.launcher);
  text += files_section(names, smoke) + notes_section(folder.exported.notes);
  text += "## What was chosen\n\n" + heading(s, style) + plan_report(estimate, s, style);
  text += "\n## Why\n\n";
  for (const auto& reason : reasons(estimate)) text += fmt::format("- {}\n", reason);
  const auto steps = one_step_away(estimate, s, evaluator);
  if (steps.empty()) return text;
  return text + "\nPlans one step away:\n\n" + section_table(step_table(steps, estimate), style);
}

}  // namespace

std::string smoke_test(const ExportTarget& target, const std::string& script) {
  const std::size_t at = target.steps.empty() ? std::string::npos : script.rfind(target.steps);
  if (at == std::string::npos) return "";
  std::string text = script;
  return text.replace(at, target.steps.size(), target.ten_steps);
}

std::string save_folder(const Session& session, const Scenario& scenario, const ParallelPlan& plan,
                        const FolderOfExport& folder) {
  const std::string& place = session.options.save_dir;
  const Names names = names_for(folder.launcher);
  const std::string smoke = smoke_test(folder.target, folder.exported.text);
  make_folder(place);
  std::string written;
  for (const auto& [name, text] :
       {std::pair{names.script, folder.exported.text}, std::pair{names.smoke, smoke},
        std::pair{std::string("scenario.yaml"), scenario_yaml(session, scenario, plan)},
        std::pair{std::string("settings.json"), folder.exported.json},
        std::pair{std::string("README.md"), readme(scenario, plan, folder, !smoke.empty())}}) {
    if (text.empty()) continue;
    const std::string file = joined_path(place, name);
    write_file(file, text);
    written += file + "\n";
  }
  return written;
}

}  // namespace planner
