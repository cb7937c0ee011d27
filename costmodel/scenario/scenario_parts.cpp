#include "costmodel/scenario/scenario_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/base_chain.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"

namespace costmodel {

namespace {

// A base of another width keeps heads and MLP of its own unless they are written as well; no model
// of that name has them.
void question_base(const BaseChain& chain, ModelSpec& model) {
  const auto over = [&](const char* key) {
    return std::ranges::any_of(chain.over, [&](const Value& v) { return v.find(key) != nullptr; });
  };
  const Value* base = chain.over.empty() ? nullptr : chain.end.find("hidden");
  if (base == nullptr || !over("hidden") || base->text == std::to_string(model.hidden)) return;
  std::string kept;
  for (const char* key : {"heads", "ffn_hidden", "expert_ffn_hidden"}) {
    if (const Value* own = chain.end.find(key); own != nullptr && !over(key))
      kept += fmt::format("{}{} {}", kept.empty() ? "" : ", ", key, own->text);
  }
  if (kept.empty()) return;
  model.questioned = fmt::format(
      "{} with hidden {} is no published model: {} are those of hidden {}; `shardplan import hf` "
      "reads the config.json of one",
      model.title, model.hidden, kept, base->text);
  model.title += ", changed";
}

}  // namespace

Value scenario_tree(const std::string& file, const ConfigPath& path,
                    const std::vector<std::string>& assignments) {
  Value root = loaded(path, file);
  for (const auto& assignment : assignments)
    assign_path(root, assignment, mark_of_argument("--set", assignment));
  return root;
}

WorkloadKind workload_kind(const Value& root) {
  const Value* workload = root.find("workload");
  if (workload == nullptr || workload->kind == Value::Kind::null) return WorkloadKind::training;
  if (workload->text == "inference") return WorkloadKind::inference;
  if (workload->text == "training") return WorkloadKind::training;
  throw ConfigError(workload->mark, fmt::format("workload {} is not known", quote(workload->text)),
                    "write workload: inference, or leave it out for training");
}

ModelSpec find_model(const Value& written, const ConfigPath& path) {
  const BaseChain chain = follow_bases(path, "models", written);
  // A file may leave its model_type to who writes over it.
  const bool named_over =
      chain.end.find("kind") == nullptr && std::ranges::any_of(chain.over, is_hf_config);
  if (!is_hf_config(chain.end) && !named_over) {
    ModelSpec model = read_model(resolved(chain), chain.name);
    question_base(chain, model);
    return model;
  }
  Value over;
  for (const Value& each : chain.over) over = merged(over, each);
  std::string name = chain.name;
  if (name == "config") {  // as every model's file is called on the Hub
    const std::string folder = stem_of(folder_of(chain.end.mark.file));
    if (!folder.empty() && folder != ".") name = folder;
  }
  std::vector<std::string> omitted;
  ModelSpec model = read_model(from_hf_config(chain.end, over, name, &omitted), name);
  for (const std::string& sentence : omitted)
    if (std::ranges::count(*path.left_out, sentence) == 0) path.left_out->push_back(sentence);
  constexpr std::size_t most = 5;
  for (std::size_t i = 0; i < std::min(most, omitted.size()); ++i)
    model.questioned += (i == 0 ? "" : "; ") + shortened(printable(omitted[i]), 160);
  if (omitted.size() > most) {
    model.questioned +=
        fmt::format("; and {} more: `shardplan import hf` names them", omitted.size() - most);
  }
  return model;
}

void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario) {
  scenario.model = find_model(reader.required("model"), path);
  const std::string& name = scenario.model.name;
  scenario.model_text = name.empty() ? "a model of its own" : name;
  const Value& written = reader.required("cluster");
  const ResolvedConfig cluster = resolve_config(path, "clusters", written);
  scenario.cluster_text = cluster.name.empty() ? "a cluster of its own" : cluster.name;
  if (cluster.value.find("groups") != nullptr) {
    scenario.cluster = read_grouped_cluster(cluster.value, cluster.name, path);
    return;
  }
  Value device_key =
      cluster.value.find("device") != nullptr ? *cluster.value.find("device") : Value{};
  if (device_key.kind == Value::Kind::null) {
    for (const auto& entry : cluster.value.entries) {
      if (entry.key == "devices" || !is_misspelling(entry.key, "device")) continue;
      throw ConfigError(entry.key_mark, fmt::format("cluster has no key {}", quote(entry.key)),
                        "did you mean 'device'?");
    }
    throw ConfigError(cluster.value.mark, "cluster lacks the key 'device'",
                      "add device: NAME (see `shardplan list devices`)");
  }
  const ResolvedConfig device = resolve_config(path, "devices", device_key);
  scenario.cluster =
      read_cluster(cluster.value, cluster.name, read_device(device.value, device.name));
  require_devices(cluster, scenario.cluster, written.mark, "cluster: ");
}

}  // namespace costmodel
