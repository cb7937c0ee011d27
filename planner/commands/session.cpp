#include "planner/commands/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/output_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_estimate.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/commands/scenario_words.hpp"
#include "planner/frameworks/read_job.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/serving_page.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/json_report.hpp"
#include "planner/report/json_serving.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/serving_report.hpp"

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

namespace {

// A file of loads under a name that holds wherever the scenario is written to.
void name_histogram(Value& scenario) {
  Value* training = scenario.find("training");
  Value* load = training != nullptr ? training->find("expert_load") : nullptr;
  Value* file = load != nullptr ? load->find("histogram") : nullptr;
  if (file != nullptr) file->text = absolute_path(file_from(file->mark, file->text));
}

}  // namespace

std::string scenario_yaml(const Session& session, const Scenario& s, const ParallelPlan& plan) {
  Value root = scenario_tree(file_of(session), session.path, session.options.assignments);
  root.set("plan", plan_map(plan, s));
  name_histogram(root);
  root.erase("assumed");
  return to_yaml(root);
}

std::string printed(const Table& table, Format format, std::size_t width) {
  if (format == Format::json) return rows_json(table);
  if (format == Format::csv) return to_csv(table);
  return format == Format::md ? to_markdown(table) : to_text(table, 0, width);
}

bool wants_page(const Options& options) {
  return options.format == Format::html || !options.page.empty() ||
         (options.caller != nullptr && options.caller->page);
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
  if (plan == nullptr) return page_html(json(), s);
  return page_html(json(), s, {drawn_timeline(s, *plan), evaluator_of(s).memory_trace(*plan)});
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
    result.text = scenario_yaml(session, s, found.plans.front().plan);
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

namespace {

std::string changed_command(Options options, const std::vector<std::string>& settings) {
  const auto key = [](const std::string& setting) { return setting.substr(0, setting.find('=')); };
  const auto changed = [&](const std::string& own) {
    return std::ranges::any_of(settings, [&](const auto& s) { return key(s) == key(own); });
  };
  auto& all = options.assignments;
  const auto typed = all.begin() + static_cast<std::ptrdiff_t>(options.derived);
  all.erase(std::remove_if(typed, all.end(), changed), all.end());
  all.insert(all.end(), settings.begin(), settings.end());
  return "shardplan " + options.command + " " + scenario_text(options) +
         (options.to.empty() ? "" : " --to " + options.to);
}

}  // namespace

OtherStacks other_stacks(const Session& session) {
  const auto read = [&session](const std::vector<std::string>& more) {
    auto assignments = session.options.assignments;
    assignments.insert(assignments.end(), more.begin(), more.end());
    return load_scenario(file_of(session), session.path, assignments);
  };
  return {config_names(session.path, "stacks"),
          [read](const std::string& name) { return read({"training.stack=" + name}); },
          [read](const std::string& method, const std::string& stack) {
            return read({"training.fine_tuning.method=" + method, "training.stack=" + stack});
          },
          [&session](const std::vector<std::string>& settings) {
            return changed_command(session.options, settings);
          }};
}

CommandResult no_plan(const Session& session, const Scenario& s, const SearchResult& found,
                      std::optional<double> seconds, const std::function<bool()>& stopped) {
  const OtherStacks stacks = other_stacks(session);
  const Diagnosis diagnosis = diagnose(s, found, stacks, stopped);
  const auto json = [&] { return failure_json(found, diagnosis, s, seconds); };
  CommandResult result =
      session.options.format == Format::json
          ? CommandResult{no_answer, json(), {}}
          : unanswered(session, failure_report(found, diagnosis, s, session.style));
  result.page = page_of(session, s, json);
  return result;
}

namespace {

// Of a plan some of whose keys are written auto: no choice of these fits, where others would.
CommandResult no_choice(const Session& session, const Scenario& s, const SettledPlan& leanest) {
  const Estimate estimate = estimate_of(s.model, s.cluster, s.training, leanest.plan);
  std::string report = heading(s, session.style) + "\n";
  for (const std::string& note : leanest.notes) report += note + "\n";
  report += fmt::format("{}: {} of {}\n", to_string(leanest.plan), format_bytes(estimate.peak),
                        format_bytes(estimate.capacity));
  const auto changes = fitting_changes(estimate, s, other_stacks(session));
  return unanswered(session, report + fitting_report(changes, session.style));
}

}  // namespace

CommandResult without_plan(const Session& session, const Scenario& s, const SettledPlan* leanest) {
  if (!stages_alike(s)) {
    const Strategies all = run_strategies(s, Reach::meshes, threads_of(session.options), {});
    return mesh_result(session, s, *all.meshes, std::nullopt);
  }
  Evaluator evaluator = evaluator_of(s);
  const SearchResult found = search(s, evaluator);
  if (leanest != nullptr && !found.plans.empty()) return no_choice(session, s, *leanest);
  return no_plan(session, s, found, std::nullopt);
}

void write_placement(const Session& session, const Scenario& s, const ParallelPlan& plan) {
  const std::string& file = session.options.placement;
  if (!file.empty()) write_file(file, placement_text(placement(plan, s.cluster), file));
}

// What adds a part to a report of training has nothing to say of serving.
void refuse_training_flags(const Options& options) {
  const std::pair<bool, const char*> flags[]{
      {options.front, "--front"},
      {options.memory, "--memory"},
      {options.all, "--all"},
      {options.sensitivity, "--sensitivity"},
      {options.upgrades, "--upgrades"},
      {options.limits.any(), "--deadline and --budget"},
      {!options.strategy.empty(), "--strategy"},
      {!options.placement.empty(), "--placement"},
  };
  for (const auto& [asked, flag] : flags) {
    refuse_if(
        asked, fmt::format("{} goes with training, not with serving", flag),
        options.front ? "leave it out; plan's report of serving has a front" : "leave it out");
  }
}

ServingScenario load_serving(const Session& session) {
  refuse_training_flags(session.options);
  ServingScenario s =
      costmodel::load_serving(file_of(session), session.path, session.options.assignments);
  require_outputs(session.options);
  return s;
}

void set_served(Value& root, const ServingScenario& chosen) {
  const auto number = [](std::int64_t n) { return scalar_value(std::to_string(n)); };
  const auto sizes_value = [&](const ServingSizes& sizes) {
    Value map;
    map.set("tp", number(sizes.tp));
    map.set("pp", number(sizes.pp));
    map.set("ep", number(sizes.ep));
    map.set("dp", number(sizes.dp));
    return map;
  };
  Value plan;
  if (chosen.plan.disaggregation) {
    Value pools;
    pools.set("prefill", sizes_value(chosen.plan.disaggregation->prefill));
    pools.set("decode", sizes_value(chosen.plan.disaggregation->decode));
    plan.set("disaggregation", pools);
  } else {
    plan = sizes_value(sizes_of(chosen));
  }
  root.set("plan", plan);
  Value& serving = *root.find("serving");
  serving.set("weights", scalar_value(std::string(to_string(chosen.serving.weights))));
  if (chosen.serving.length_open) serving.set("max_model_len", scalar_value("auto"));
  serving.set("max_num_seqs", number(chosen.serving.limits.max_num_seqs));
  serving.set("max_num_batched_tokens", number(chosen.serving.limits.max_num_batched_tokens));
  root.erase("assumed");
}

std::string serving_yaml(const Session& session, const ServingScenario& chosen) {
  Value root = scenario_tree(file_of(session), session.path, session.options.assignments);
  set_served(root, chosen);
  return to_yaml(root);
}

CommandResult without_serving_plan(const Session& session, const ServingScenario& s) {
  const auto fit = find_serving_fit(session.path);
  const ServingSearch found = search_serving(s, 1);
  CommandResult result =
      session.options.format == Format::json
          ? CommandResult{no_answer, serving_search_json(s, found, fit), {}}
          : unanswered(session, serving_search_report(s, found, fit, session.style));
  if (wants_page(session.options)) result.page = serving_search_page(s, found, fit);
  return result;
}

std::vector<std::string> memory_warnings(const Estimate& estimate) {
  if (estimate.fits()) return {};
  return {"warning: the plan does not fit in memory: " + overflow_text(estimate)};
}

std::vector<std::string> plan_warnings(const Options& options, const Scenario& scenario,
                                       const Estimate& estimate) {
  std::vector<std::string> lines = memory_warnings(estimate);
  if (scenario.plan.written.empty()) {
    const std::string to = options.to.empty() ? "" : " --to " + shell_word(options.to);
    lines.push_back(fmt::format(
        "note: the scenario has no plan: this is the default one. For the best: shardplan plan {} "
        "--format yaml --out best.yaml, then shardplan {} best.yaml{}",
        scenario_text(options), options.command, to));
  }
  return lines;
}

std::vector<std::string> note_lines(const std::vector<std::string>& notes) {
  std::vector<std::string> lines;
  for (const auto& note : notes) lines.push_back("note: " + note);
  return lines;
}

JobOperand read_job_operand(const Session& session, const std::string& operand,
                            std::vector<std::string>& told,
                            const std::vector<LoggedSetting>& logged) {
  const Options& options = session.options;
  const std::string file = scenario_file(operand, session.path);
  if (format_of(file) == JobFormat::scenario && options.cluster.empty()) {
    Value written = loaded(session.path, file);
    for (const auto& assignment : options.assignments)
      assign_path(written, assignment, mark_of_argument("--set", assignment));
    return {load_scenario(file, session.path, options.assignments), std::move(written)};
  }
  ImportedJob job = read_job(file, options.recipe);
  complete_job(options, session.path, job, logged);
  require_complete(job, file);
  for (std::string& line : note_lines(notes_of(job))) told.push_back(std::move(line));
  return {read_scenario(job.scenario, stem_of(file), session.path), job.scenario};
}

}  // namespace planner
