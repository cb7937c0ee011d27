#include "costmodel/scenario/scenario_parts.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"

namespace costmodel {

void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario) {
  const Value& model = reader.required("model");
  ResolvedConfig resolved_model = resolve_config(path, "models", model);
  if (is_hf_config(resolved_model.value))
    resolved_model.value = from_hf_config(resolved_model.value);
  scenario.model = read_model(resolved_model.value, resolved_model.name);
  scenario.model_text = resolved_model.name.empty() ? "a model of its own" : resolved_model.name;
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
