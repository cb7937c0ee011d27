#include "planner/commands/session.hpp"

#include <thread>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/diagnosis/remedies.hpp"
#include "planner/page/json_page.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/mesh_report.hpp"

namespace planner {

using namespace costmodel;

std::string file_of(const Session& session) {
  return scenario_operand(session.options.operands.front(), session.options, session.path);
}

Scenario load(const Session& session) {
  const Options& options = session.options;
  Scenario scenario = load_scenario(file_of(session), session.path, options.assignments);
  require_outputs(options);
  return scenario;
}

void require_outputs(const Options& options) {
  for (const auto& file :
       {options.out, options.placement, options.page, options.trace, options.write_schedule})
    if (!file.empty()) require_writable(file);
}

int threads_of(const Options& options) {
  return options.threads > 0 ? options.threads
                             : static_cast<int>(std::thread::hardware_concurrency());
}

Evaluator evaluator_of(const Scenario& s) { return Evaluator(s.model, s.cluster, s.training); }

ClusterSpec cluster_named(const Session& session, const std::string& name, std::int64_t devices) {
  const auto resolved = resolve_config(session.path, "clusters", scalar_value(name));
  const Value* device = resolved.value.find("device");
  if (device == nullptr) {
    throw ConfigError(mark_of_argument("--cluster", name), "has not one kind of devices",
                      "name a cluster that has; `shardplan list clusters` shows them");
  }
  const auto kind = resolve_config(session.path, "devices", *device);
  ClusterSpec cluster =
      read_cluster(resolved.value, resolved.name, read_device(kind.value, kind.name));
  return devices > 0 ? resized(cluster, devices) : cluster;
}

std::string scenario_yaml(const Session& session, const ParallelPlan& plan) {
  Value root = loaded(session.path, file_of(session));
  for (const auto& assignment : session.options.assignments)
    assign_path(root, assignment, mark_of_argument("--set", assignment));
  root.set("plan", to_value(plan));
  root.erase("assumed");
  return to_yaml(root);
}

std::string printed(const Table& table, Format format, std::size_t width) {
  if (format == Format::json) return rows_json(table);
  if (format == Format::csv) return to_csv(table);
  return format == Format::md ? to_markdown(table) : to_text(table, 0, width);
}

bool wants_page(const Options& options) {
  return options.format == Format::html || !options.page.empty();
}

namespace {

// For a page, which has no room for very long ones: they are left out.
Timeline drawn_timeline(const Scenario& s, const ParallelPlan& plan) {
  constexpr std::int64_t most_actions = std::int64_t{1} << 19;
  const std::int64_t forwards = plan.micro_batches(s.training.global_batch) * plan.virtual_stages();
  return 2 * forwards > most_actions ? Timeline{} : evaluator_of(s).timeline(plan);
}

}  // namespace

std::string page_of(const Session& session, const Scenario& s,
                    const std::function<std::string()>& json, const ParallelPlan* plan) {
  if (!wants_page(session.options)) return "";
  return plan == nullptr ? page_html(json(), s) : page_html(json(), s, drawn_timeline(s, *plan));
}

bool is_for_people(const Options& options) {
  const bool prose = options.format == Format::text || options.format == Format::md ||
                     options.format == Format::html;
  return prose && options.command != "export";
}

CommandResult mesh_result(const Session& session, const Scenario& s, const MeshSearch& found,
                          std::optional<double> seconds, const std::string& remark) {
  const bool any = !found.plans.empty();
  const Format format = session.options.format;
  const auto json = [&] { return mesh_json(found, s, seconds); };
  const auto report = [&] { return mesh_report(found, s, seconds, session.style, remark); };
  CommandResult result{any ? 0 : no_answer, {}, {}};
  result.page = page_of(session, s, json, any ? &found.plans.front().plan : nullptr);
  if (format == Format::json) {
    result.text = json();
  } else if (!any && !is_for_people(session.options)) {
    result.failure = report();
  } else if (format == Format::yaml) {
    result.text = scenario_yaml(session, found.plans.front().plan);
  } else if (format == Format::csv) {
    result.text = to_csv(mesh_rows(found));
  } else {
    result.text = report();
  }
  return result;
}

CommandResult unanswered(const Session& session, std::string report) {
  if (is_for_people(session.options)) return {no_answer, std::move(report), {}};
  return {no_answer, {}, {}, std::move(report)};
}

CommandResult no_plan(const Session& session, const Scenario& s, const SearchResult& found,
                      std::optional<double> seconds, const std::function<bool()>& stopped) {
  const OtherStacks stacks{config_names(session.path, "stacks"),
                           [&session](const std::string& name) {
                             auto assignments = session.options.assignments;
                             assignments.push_back("training.stack=" + name);
                             return load_scenario(file_of(session), session.path, assignments);
                           },
                           [&session](const std::string& method, const std::string& stack) {
                             auto assignments = session.options.assignments;
                             assignments.push_back("training.fine_tuning.method=" + method);
                             assignments.push_back("training.stack=" + stack);
                             return load_scenario(file_of(session), session.path, assignments);
                           },
                           "shardplan plan " + scenario_text(session.options)};
  const Diagnosis diagnosis = diagnose(s, found, stacks, stopped);
  const auto json = [&] {
    return failure_json(found, diagnosis.obstacles, diagnosis.remedies, s, seconds);
  };
  CommandResult result =
      session.options.format == Format::json
          ? CommandResult{no_answer, json(), {}}
          : unanswered(session, failure_report(found, diagnosis, s, session.style));
  result.page = page_of(session, s, json);
  return result;
}

CommandResult without_plan(const Session& session, const Scenario& s) {
  if (!stages_alike(s)) {
    const Strategies all = run_strategies(s, Reach::meshes, threads_of(session.options), {});
    return mesh_result(session, s, *all.meshes, std::nullopt);
  }
  Evaluator evaluator = evaluator_of(s);
  return no_plan(session, s, search(s, evaluator), std::nullopt);
}

void write_placement(const Session& session, const Scenario& s, const ParallelPlan& plan) {
  const std::string& file = session.options.placement;
  if (!file.empty()) write_file(file, placement_text(placement(plan, s.cluster), file));
}

}  // namespace planner
