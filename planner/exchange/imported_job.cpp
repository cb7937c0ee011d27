#include "planner/exchange/imported_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

ImportedJob job_of(JobFormat format) {
  ImportedJob job;
  job.format = format;
  for (const char* part : {"model", "cluster", "training", "plan"}) job.scenario.set(part, {});
  return job;
}

void put_key(ImportedJob& job, const char* part, const std::string& key, const std::string& text) {
  job.scenario.find(part)->set(key, scalar_value(text));
}

void miss_key(ImportedJob& job, const char* part, const std::string& key, std::string remedy) {
  put_key(job, part, key, std::string(to_be_replaced));
  job.missing.push_back({fmt::format("{}.{}", part, key), std::move(remedy)});
}

void assume_sequence(ImportedJob& job) {
  const auto at = std::ranges::find(job.missing, "training.sequence", &MissingKey::key);
  if (at == job.missing.end()) return;
  at->otherwise = "2048";
  at->because = "for no setting limits the samples' length";
}

void miss_cluster(ImportedJob& job) {
  miss_key(job, "cluster", "base",
           "which devices they are, the file does not say: add --cluster NAME (see `shardplan list "
           "clusters`)");
}

void set_cluster(ImportedJob& job, const std::string& name) {
  Value cluster;
  cluster.set("base", scalar_value(name));
  if (const Value* written = job.scenario.find("cluster");
      written != nullptr && written->is_map()) {
    if (const Value* devices = written->find("devices")) cluster.set("devices", *devices);
  }
  job.scenario.set("cluster", std::move(cluster));
  std::erase_if(job.missing, [](const MissingKey& key) { return key.key == "cluster.base"; });
}

namespace {

// A size of the plan; 1 where it has none.
std::int64_t plan_size(const ImportedJob& job, const char* key) {
  const Value* plan = job.scenario.find("plan");
  const Value* written = plan == nullptr || !plan->is_map() ? nullptr : plan->find(key);
  const double size = written == nullptr ? 1 : parse_count(written->text).value_or(1);
  constexpr double most = 1'000'000;
  return size >= 1 && size <= most ? static_cast<std::int64_t>(size) : 1;
}

constexpr std::int64_t most_assumed = 1'000'000;  // devices; products of them stay exact

// A count in a part of the scenario; 0 where it has none.
std::int64_t stated(const ImportedJob& job, const char* part, const char* key) {
  const Value* map = job.scenario.find(part);
  const Value* written = map == nullptr || !map->is_map() ? nullptr : map->find(key);
  const double size = written == nullptr ? 0 : parse_count(written->text).value_or(0);
  return size >= 1 && size <= 1e12 ? static_cast<std::int64_t>(size) : 0;
}

// Of the replicas those that the batch divides.
std::int64_t replicas_of_batch(const ImportedJob& job, std::int64_t replicas) {
  const std::int64_t batch = stated(job, "training", "global_batch");
  const std::int64_t micro = plan_size(job, "micro_batch");
  if (batch == 0) return replicas;
  for (std::int64_t fewer = replicas; fewer >= 1; --fewer)
    if (replicas % fewer == 0 && batch % (fewer * micro) == 0) return fewer;
  return replicas;
}

// Sizes of the plan in devices: what one replica takes, and what the experts' groups do too.
struct Needed {
  std::int64_t model, all;
};

Needed needed_by(const ImportedJob& job) {
  const std::int64_t model = plan_size(job, "tp") * plan_size(job, "pp") * plan_size(job, "cp");
  const std::int64_t experts = plan_size(job, "ep") * plan_size(job, "etp") * plan_size(job, "pp");
  return {model, std::lcm(model, experts)};
}

void put_devices(ImportedJob& job, std::int64_t devices, const std::string& why) {
  std::erase_if(job.missing, [](const MissingKey& key) { return key.key == "cluster.devices"; });
  job.scenario.find("cluster")->set("devices", scalar_value(fmt::format("{}", devices)));
  job.notes.push_back(fmt::format(
      "{} devices are assumed, {}: --set cluster.devices=N for another number", devices, why));
}

// Those that the file starts are not enough for its plan, or do not divide into it.
bool starts_other_devices(const ImportedJob& job) {
  return job.started > 0 && stated(job, "cluster", "devices") == job.started &&
         job.started % needed_by(job).all != 0;
}

void assume_devices(ImportedJob& job, std::int64_t per_node) {
  const Needed needed = needed_by(job);
  const std::int64_t full = std::lcm(needed.all, per_node), nodes = job.nodes * per_node;
  if (full > most_assumed || nodes > most_assumed) return;
  if (job.started > 0) {
    return put_devices(
        job, full,
        fmt::format("for the plan does not divide the {} that the script starts", job.started));
  }
  if (nodes > 0 && nodes % needed.all == 0)
    return put_devices(job, nodes, fmt::format("as {} full nodes have them", job.nodes));
  const std::int64_t fewer = replicas_of_batch(job, full / needed.all) * needed.all;
  put_devices(job, fewer,
              fewer == full ? "the fewest full nodes that the plan divides"
                            : "as many of the fewest full nodes as the batch divides");
}

// The batch where the file has none.
void assume_batch(ImportedJob& job) {
  const std::int64_t devices = stated(job, "cluster", "devices"), model = needed_by(job).model;
  const auto batch = std::ranges::find(job.missing, "training.global_batch", &MissingKey::key);
  if (batch == job.missing.end() || devices == 0 || devices > most_assumed) return;
  const std::int64_t each = std::min(job.accumulation, most_assumed);
  const std::int64_t sequences = plan_size(job, "micro_batch") * each * (devices / model);
  job.missing.erase(batch);
  job.scenario.find("training")->set("global_batch", scalar_value(fmt::format("{}", sequences)));
  job.notes.push_back(job.accumulation == 1
                          ? fmt::format("the batch is {}, a micro-batch a replica", sequences)
                          : fmt::format("the batch is {}, {} micro-batches a replica", sequences,
                                        job.accumulation));
}

}  // namespace

void assume_missing(ImportedJob& job, std::int64_t per_node) {
  const auto missing = std::ranges::find(job.missing, "cluster.devices", &MissingKey::key);
  if (per_node >= 1 && (missing != job.missing.end() || starts_other_devices(job)))
    assume_devices(job, per_node);
  assume_batch(job);
  std::erase_if(job.missing, [&](const MissingKey& key) {
    if (key.otherwise.empty()) return false;
    const std::size_t dot = key.key.find('.');
    put_key(job, key.key.substr(0, dot).c_str(), key.key.substr(dot + 1), key.otherwise);
    job.notes.push_back(fmt::format("{} {} is assumed, {}: --set {}=N for another one", key.key,
                                    key.otherwise, key.because, key.key));
    return true;
  });
}

void set_key(ImportedJob& job, const std::string& assignment, const Mark& mark) {
  assign_path(job.scenario, assignment, mark);
  const std::string key = assignment.substr(0, assignment.find('='));
  const auto have = [&job](const std::string& written) {
    std::erase_if(job.missing, [&](const MissingKey& missing) {
      return missing.key == written || missing.key.starts_with(written + ".");
    });
  };
  have(key);
  // One of three keys states how many requests come.
  if (key != "serving.concurrency" && key != "serving.requests") return;
  Value& serving = *job.scenario.find("serving");
  const Value* rate = serving.find("arrival_rate");
  if (rate == nullptr || rate->text != to_be_replaced) return;
  serving.erase("arrival_rate");
  have("serving.arrival_rate");
}

std::string to_yaml(const ImportedJob& job) {
  std::string text;
  const auto comment = [&text](const std::string& kind, const std::string& line) {
    text += fmt::format("# {}: {}\n", kind, printable(line));
  };
  for (const auto& key : job.missing) comment("Missing", key.key + ": " + key.remedy);
  for (const auto& note : job.notes) comment("Note", note);
  for (const auto& word : job.left_out) comment("Left out", word);
  return text + costmodel::to_yaml(job.scenario);
}

}  // namespace planner
