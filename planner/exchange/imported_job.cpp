#include "planner/exchange/imported_job.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"

namespace planner {

using namespace costmodel;

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

void set_key(ImportedJob& job, const std::string& assignment, const Mark& mark) {
  assign_path(job.scenario, assignment, mark);
  const std::string key = assignment.substr(0, assignment.find('='));
  std::erase_if(job.missing, [&](const MissingKey& missing) {
    return missing.key == key || missing.key.starts_with(key + ".");
  });
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
