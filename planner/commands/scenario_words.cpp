#include "planner/commands/scenario_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/everyday_name.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/scenario/model_operand.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "planner/exchange/fitting_adapters.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/frameworks/read_job.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::int64_t most_devices = 1'000'000;

[[noreturn]] void bad_gpus(const std::string& text, const std::string& wrong) {
  throw ConfigError(mark_of_argument("--gpus", text), wrong,
                    "write how many of which, as 64xh100 or 2xrtx-4090");
}

// A count, with a comma before every three digits or without; 0 for none.
std::int64_t count_of(const std::string& text) {
  std::string digits = text;
  std::erase(digits, ',');
  const bool whole = !digits.empty() && digits.size() <= 7 &&
                     std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  const std::int64_t count = whole ? std::stoll(digits) : 0;
  return text == digits || text == format_integer(count) ? count : 0;
}

// The device that `word` names, or a part of the name of one alone; "" for none.
std::string device_called(const ConfigPath& path, const std::string& word) {
  std::vector<std::string> found;
  for (const std::string& name : config_names(path, "devices")) {
    if (name == lower_case(word)) return name;
    if (word.size() > 1 && name.find(lower_case(word)) != std::string::npos) found.push_back(name);
  }
  return found.size() == 1 ? found.front() : "";
}

// The one configuration that `word` names. `flag`: where it was said.
std::string the_one(const ConfigPath& path, const std::string& kind, const std::string& word,
                    const std::string& flag) {
  if (word.find('/') != std::string::npos || word.ends_with(".yaml")) return word;
  const auto found = configs_called(path, kind, word);
  if (found.size() == 1) return found.front();
  const Mark mark = mark_of_argument("--" + flag, word);
  if (found.size() > 1) {
    throw ConfigError(mark, fmt::format("{} may be several {}", quote(word), kind),
                      fmt::format("name one of {}", fmt::join(found, ", ")));
  }
  if (kind == "clusters" && !device_called(path, word).empty()) {
    throw ConfigError(mark, fmt::format("no cluster of device {} is described", quote(word)),
                      "describe its links: cluster: {device: " + device_called(path, word) +
                          ", devices: N, tiers: [{name: pcie, devices: N, bandwidth_bytes_per_s: "
                          "25 GB/s, latency_s: 10 us}]} (docs/own-cluster.md)");
  }
  std::vector<std::string> engines = config_names(path, "engines");
  std::erase_if(engines, [&](const std::string& one) { return !one.starts_with(word); });
  if (kind == "stacks" && !word.empty() && !engines.empty()) {
    throw ConfigError(
        mark, fmt::format("{} serves, and trains nothing", quote(word)),
        fmt::format("add --set workload=inference --set serving.stack=NAME, one of {}",
                    fmt::join(engines, ", ")));
  }
  std::vector<std::string> known = everyday_names(path, kind);
  const auto names = config_names(path, kind);
  if (flag != "gpus") known.insert(known.end(), names.begin(), names.end());
  const std::string& what = flag == "gpus"     ? "devices are"
                            : kind == "stacks" ? "framework is"
                                               : "cluster is";
  throw ConfigError(mark, fmt::format("no {} called {}", what, quote(word)),
                    costmodel::known_names(lower_case(word), known));
}

// The device of a cluster's file, "" where it has none of its own.
std::string device_of(const ConfigPath& path, const std::string& cluster) {
  const auto resolved = resolve_config(path, "clusters", scalar_value(cluster));
  const Value* device = resolved.value.find("device");
  return device != nullptr ? device->text : "";
}

// The cluster that the words name, "" for none.
std::string cluster_of(const Options& options, const Gpus& gpus, const ConfigPath& path) {
  std::string by_name =
      options.cluster.empty() ? "" : the_one(path, "clusters", options.cluster, "cluster");
  if (gpus.device.empty()) return by_name;
  std::string by_device = the_one(path, "clusters", gpus.device, "gpus");
  if (by_name.empty()) return by_device;
  if (device_of(path, by_name) == device_of(path, by_device)) return by_name;
  throw ConfigError(
      mark_of_argument("--gpus", options.gpus),
      fmt::format("cluster {} has devices {}", quote(by_name), quote(device_of(path, by_name))),
      "leave one of --gpus and --cluster out, or give --gpus the number alone");
}

// Whether a file is a job in a framework's own words.
bool is_framework_job(const std::string& file, const ConfigPath& path) {
  try {
    const Value& root = loaded(path, file);
    const auto has = [&](const char* key) { return root.is_map() && root.find(key) != nullptr; };
    const bool scenario =
        has("model") && (has("cluster") || has("training") || has("plan") || has("workload"));
    const bool trainer = has("base_model");  // and a model_type, as a model has one
    if (scenario || (is_model(root) && !trainer)) return false;
  } catch (const ConfigError&) {                             // no YAML, as scripts are none
    if (path_exists(file) && !is_regular_file(file)) throw;  // a pipe is read once
  }
  // A script of no format that is known is one still: its reader lists those that are.
  const bool script = file.ends_with(".sh") || file.ends_with(".py") || file.ends_with(".toml");
  try {
    return is_regular_file(file) && format_of(file) != JobFormat::scenario;
  } catch (const ConfigError&) {
    return script || is_of_other_program(file);
  }
}

// Its devices follow from its plan, whose sizes need no words.
bool is_framework_job(const Options& options, const ConfigPath& path) {
  return !options.operands.empty() &&
         is_framework_job(operand_file(options.operands.front(), path), path);
}

// A kind of cluster, as dgx-h100, is one of so many devices only with their number.
void require_number(const std::string& cluster, const ConfigPath& path) {
  const Value found = resolve_config(path, "clusters", scalar_value(cluster)).value;
  if (says_devices(found) || found.find("groups") != nullptr) return;
  throw ConfigError(mark_of_argument("--cluster", cluster),
                    "is a kind of cluster, not one of so many devices", "add --gpus 64");
}

void add_cluster(const Options& options, const ConfigPath& path, std::vector<std::string>& all) {
  const Gpus gpus = options.gpus.empty() ? Gpus{} : read_gpus(options.gpus);
  // One device that no cluster is of has no links that would have to be described.
  const bool alone = gpus.devices == 1 && options.cluster.empty() && !gpus.device.empty() &&
                     configs_called(path, "clusters", gpus.device).empty();
  if (const std::string device = alone ? device_called(path, gpus.device) : ""; !device.empty()) {
    all.push_back(fmt::format("cluster={{device: {}, devices: 1}}", device));
    return;
  }
  const std::string name = cluster_of(options, gpus, path);
  if (name.empty()) {
    if (gpus.devices > 0) all.push_back(fmt::format("cluster.devices={}", gpus.devices));
    return;
  }
  if (gpus.devices == 0 && is_framework_job(options, path)) return;
  if (gpus.devices == 0) require_number(name, path);
  all.push_back(gpus.devices > 0
                    ? fmt::format("cluster={{base: {}, devices: {}}}", name, gpus.devices)
                    : "cluster=" + name);
  if (!options.cluster.empty()) return;
  all.push_back(fmt::format("assumed.cluster=[\"{} (for {}; --cluster NAME)\"]", name,
                            shortened(gpus.device)));
}

// Adds lines to what is assumed.
void note_assumed(Value& root, const std::vector<std::string>& added) {
  Value lines, assumed;
  lines.kind = Value::Kind::sequence;
  for (const auto& line : added) lines.items.push_back(scalar_value(line));
  assumed.set("training", std::move(lines));
  root.set("assumed", std::move(assumed));
}

// Which adapters there may be follows from the model's layers.
void fit_job_to_model(const ConfigPath& path, ImportedJob& job) {
  const Value* model = job.scenario.find("model");
  if (has_targets(job) && model != nullptr && model->is_scalar())
    fit_adapters(job, find_model(*model, path));
}

}  // namespace

Gpus read_gpus(const std::string& text) {
  Gpus gpus;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {  // Slurm's
    gpus = {count_of(text.substr(colon + 1)), text.substr(0, colon)};
    if (gpus.devices == 0) bad_gpus(text, "is not DEVICE:N");
    return gpus;
  }
  const std::size_t digits = std::min(text.find_first_not_of("0123456789,"), text.size());
  std::string_view rest = std::string_view(text).substr(digits);
  if (digits > 0 && rest.starts_with('.')) bad_gpus(text, "is no integer number of devices");
  const auto skip = [&](std::string_view any) {
    if (!rest.empty() && any.find(rest.front()) != any.npos) rest.remove_prefix(1);
  };
  skip(" ");
  skip("xX*");
  skip(" ");
  gpus = {count_of(text.substr(0, digits)), std::string(rest)};
  if (digits == 0) bad_gpus(text, "does not say how many");
  if (gpus.devices < 1 || gpus.devices > most_devices)
    bad_gpus(text, fmt::format("is not 1 to {} devices", most_devices));
  return gpus;
}

std::vector<std::string> word_assignments(const Options& options, const ConfigPath& path) {
  std::vector<std::string> all;
  add_cluster(options, path, all);
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) all.push_back(fmt::format("{}={}", key, value));
  };
  add("training.global_batch", options.batch);
  add("training.sequence", options.sequence);
  add("training.precision", lower_case(options.precision));
  if (!options.framework.empty())
    add("training.stack", the_one(path, "stacks", options.framework, "framework"));
  return all;
}

Value scenario_of_model(const std::string& model, const std::vector<std::string>& assignments,
                        const ConfigPath& path) {
  Value root;
  root.kind = Value::Kind::map;
  root.mark = {model, 0, 0};
  const std::string file = operand_file(model, path);
  const std::string stem = stem_of(file);
  const auto names = config_names(path, "models");
  const bool named = file != model && std::ranges::count(names, stem) > 0;
  root.set("model", scalar_value(named ? stem : file));
  if (named && stem != model)
    note_assumed(root, {fmt::format("model {} (for {})", stem, quote(model))});
  for (const auto& assignment : assignments)
    assign_path(root, assignment, mark_of_argument("--set", assignment));
  const Value* cluster = root.find("cluster");
  const auto says = [&](const char* key) { return cluster->find(key) != nullptr; };
  if (cluster == nullptr ||
      (cluster->is_map() && !says("base") && !says("device") && !says("groups"))) {
    const Value* count =
        cluster == nullptr || !cluster->is_map() ? nullptr : cluster->find("devices");
    const bool counted = count != nullptr && count->is_scalar();
    throw ConfigError(
        {},
        counted ? fmt::format("{} is a model, and the kind of its {} devices is not named",
                              quote(model), printable(count->text))
                : fmt::format("{} is a model, and no devices are named", quote(model)),
        fmt::format("add --gpus {}xh100, or --cluster NAME; `shardplan list clusters` has all",
                    counted ? printable(count->text) : "8"));
  }
  const Value* workload = root.find("workload");
  const bool served = workload != nullptr && workload->is_scalar() && workload->text == "inference";
  if (served || root.find("serving") != nullptr) {
    if (root.find("serving") == nullptr) {
      throw ConfigError({}, fmt::format("{} is to be served, and no load is named", quote(model)),
                        "add --set serving.stack=vllm-0.17 --set serving.input_tokens=1024 --set "
                        "serving.output_tokens=256 --set serving.concurrency=32");
    }
    root.set("workload", scalar_value("inference"));
    return root;
  }
  assume_training(root, path);
  if (root.find("plan") == nullptr) root.set("plan", scalar_value("auto"));
  return root;
}

void complete_job(const Options& options, const ConfigPath& path, ImportedJob& job,
                  const std::vector<LoggedSetting>& logged) {
  set_model_of_recipe(job, config_names(path, "models"));
  if (!options.cluster.empty()) {
    find_config(path, "clusters", options.cluster, mark_of_argument("--cluster", options.cluster));
    set_cluster(job, options.cluster);
  }
  for (const LoggedSetting& one : logged) {
    if (std::ranges::find(job.missing, one.key, &MissingKey::key) == job.missing.end()) continue;
    const std::string assignment = one.key + "=" + one.value;
    set_key(job, assignment, mark_of_argument("the log", assignment));
    job.notes.push_back(fmt::format("{} {} is the log's", one.key, one.value));
  }
  for (const auto& assignment : options.assignments)
    set_key(job, assignment, mark_of_argument("--set", assignment));
  fit_job_to_model(path, job);
  // By --cluster, --gpus or --set: an importer knows no cluster.
  const Value* part = job.scenario.find("cluster");
  const Value* base = part == nullptr || !part->is_map() ? nullptr : part->find("base");
  if (base == nullptr || std::ranges::count(job.missing, "cluster.base", &MissingKey::key) > 0)
    return;
  const Value cluster = resolve_config(path, "clusters", *base).value;
  const Value* node = cluster.find("devices_per_node");
  const double devices = node == nullptr ? 0 : parse_count(node->text).value_or(0);
  assume_missing(job, static_cast<std::int64_t>(devices));
}

void require_complete(const ImportedJob& job, const std::string& file) {
  if (job.missing.empty()) return;
  const MissingKey& key = job.missing.front();
  throw ConfigError({file, 0, 0}, "does not say " + key.key, key.remedy);
}

std::vector<std::string> notes_of(const ImportedJob& job) {
  std::vector<std::string> lines = job.notes;
  for (const auto& word : job.left_out) lines.push_back("left out: " + word);
  return lines;
}

namespace {

// A framework's job as a scenario; what was taken for granted or left out is what it assumes.
Value scenario_of_job(const std::string& file, const Options& options, const ConfigPath& path) {
  ImportedJob job = read_job(file, options.recipe);
  complete_job(options, path, job);
  require_complete(job, file);
  if (const auto notes = notes_of(job); !notes.empty()) note_assumed(job.scenario, notes);
  return std::move(job.scenario);
}

}  // namespace

std::string scenario_operand(const std::string& operand, const Options& options,
                             const ConfigPath& path) {
  std::string file = operand_file(operand, path);
  // As document_name(): no file has this name.
  std::string key = "//" + joined_path(folder_of(file), stem_of(file)) + ".yaml";
  if (path.loaded->contains(key)) return key;
  if (is_framework_job(file, path)) {
    path.loaded->emplace(key, scenario_of_job(file, options, path));
    return key;
  }
  if (!is_model(loaded(path, file))) return file;
  Value root = scenario_of_model(operand, options.assignments, path);
  if (options.command == "plan") root.erase("plan");  // it searches what is not written
  path.loaded->emplace(key, std::move(root));
  return key;
}

}  // namespace planner
