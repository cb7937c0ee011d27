#include "planner/commands/listing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/synonyms.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/model/model_keys.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "costmodel/plan/stack_spec.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "costmodel/scenario/search_reader.hpp"
#include "costmodel/scenario/training_reader.hpp"
#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_keys.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Row = std::vector<std::string>;

Row model_row(const std::string& name, const ConfigPath& path) {
  const auto m = find_model(scalar_value(name), path);
  return {name,
          m.title,
          format_count(parameter_count(m)),
          fmt::format("{}", m.layers),
          fmt::format("{}", m.hidden),
          fmt::format("{}", m.heads),
          fmt::format("{}", m.kv_heads),
          fmt::format("{}", m.ffn_hidden),
          fmt::format("{}", m.vocab),
          m.experts > 0 ? fmt::format("{} of {}", m.top_k, m.experts) : ""};
}

Row device_row(const std::string& name, const ConfigPath& path) {
  const auto d = read_device(resolve_config(path, "devices", scalar_value(name)).value, name);
  const auto rate = [&](Precision p) {
    return d.peak_of(p).value > 0 ? format_rate(d.peak_of(p)) : std::string("-");
  };
  const auto half = std::max(d.peak_of(Precision::fp16), d.peak_of(Precision::bf16));
  return {name,
          d.title,
          half.value > 0 ? format_rate(half) : "-",
          rate(Precision::fp8),
          format_bytes(d.memory),
          format_bandwidth(d.memory_bandwidth)};
}

// Empty for what is the base of clusters alone, and has no devices.
Row cluster_row(const std::string& name, const ConfigPath& path) {
  const auto resolved = resolve_config(path, "clusters", scalar_value(name));
  const Value* device_key = resolved.value.find("device");
  const bool grouped = resolved.value.find("groups") != nullptr;
  if (device_key == nullptr && !grouped) return {};
  const auto c = grouped ? read_grouped_cluster(resolved.value, name, path) : [&] {
    const auto device = resolve_config(path, "devices", *device_key);
    return read_cluster(resolved.value, name, read_device(device.value, device.name));
  }();
  std::string tiers;
  for (const auto& tier : c.tiers) {
    tiers += fmt::format("{}{} {}", tiers.empty() ? "" : ", ", tier.name,
                         format_bandwidth(tier.bandwidth));
  }
  const bool counted = grouped || says_devices(resolved.value);
  return {name,
          c.title,
          device_names(c),
          counted ? format_integer(c.devices) : "any",
          fmt::format("{}", c.devices_per_node),
          tiers};
}

Row stack_row(const std::string& name, const ConfigPath& path) {
  const auto s = read_stack(resolve_config(path, "stacks", scalar_value(name)).value, name);
  std::string overlaps;
  const auto add = [&](bool on, const char* what) {
    if (on) overlaps += fmt::format("{}{}", overlaps.empty() ? "" : ", ", what);
  };
  add(s.overlap.overlap_grad_reduce, "gradient reduce");
  add(s.overlap.overlap_param_gather, "parameter gather");
  add(s.overlap.tp_comm_overlap || s.overlap.async_tp, "tensor parallel");
  add(s.overlap.pp_overlap, "pipeline");
  return {name,
          s.title,
          std::string(attention_kernel_names[static_cast<std::size_t>(s.kernels.attention)]),
          std::string(to_string(s.memory.gradient_precision)),
          fmt::format("{}", s.offers.max_zero),
          overlaps.empty() ? "none" : overlaps};
}

Row engine_row(const std::string& name, const ConfigPath& path) {
  const auto e = read_engine(resolve_config(path, "engines", scalar_value(name)).value, name, "");
  return {name,
          e.title,
          format_integer(e.limits.max_num_seqs),
          format_integer(e.limits.max_num_batched_tokens),
          e.limits.chunked_prefill ? "yes" : "no",
          e.host_overlap ? "yes" : "no"};
}

Row scenario_row(const std::string& name, const ConfigPath& path) {
  return {name, find_config(path, "scenarios", name, {})};
}

// A list of configurations: its columns, and the row of a name.
struct Listed {
  std::string kind;
  std::vector<Column> columns;
  Row (*row)(const std::string& name, const ConfigPath& path);
};

const std::vector<Listed>& lists() {
  static const std::vector<Listed> all{
      {"models",
       {left("model"), left("title"), "parameters", "layers", "hidden", "heads", "kv_heads",
        "ffn_hidden", "vocab", left("experts")},
       model_row},
      {"devices",
       {left("device"), left("title"), "fp16/bf16", "fp8", "memory", "bandwidth"},
       device_row},
      {"clusters",
       {left("cluster"), left("title"), left("device"), "devices", "per node",
        left("network, per device and direction")},
       cluster_row},
      {"stacks",
       {left("stack"), left("title"), left("attention"), left("gradients"), "ZeRO up to",
        left("overlaps")},
       stack_row},
      {"engines",
       {left("engine"), left("title"), "requests", "tokens a step", left("chunked prefill"),
        left("host beside device")},
       engine_row},
      {"scenarios", {left("scenario"), left("file")}, scenario_row}};
  return all;
}

// The configurations that can be read; of the others a warning.
Table listed(const Listed& list, const ConfigPath& path, std::vector<std::string>& warnings) {
  Table table{list.columns, {}};
  for (const auto& name : config_names(path, list.kind)) {
    try {
      Row row = list.row(name, path);
      if (!row.empty()) table.rows.push_back(std::move(row));
    } catch (const ConfigError& fault) {
      warnings.push_back(fmt::format("warning: left out: {}", fault.what()));
    }
  }
  for (const auto& file : unreadable_configs(path, list.kind))
    warnings.push_back(fmt::format("warning: left out: {} leads to no file", quote(file)));
  return table;
}

// The keys of a scenario, and of what it names.
Table keys() {
  Table t{{left("key"), left("meaning", 0), left("values")}};
  for (const auto described :
       {model_keys, cluster_keys, grouped_cluster_keys, training_keys, plan_keys, search_keys,
        serving_keys, device_keys, stack_keys, engine_keys}) {
    for (const KeyText& key : described()) t.rows.push_back({key.name, key.help, key.allowed});
  }
  return t;
}

bool occurs(const std::string& word, const std::vector<std::string>& row) {
  return std::ranges::any_of(row, [&](const std::string& cell) {
    return lower_case(cell).find(word) != std::string::npos;
  });
}

// Leaves the rows that hold all of the words.
void keep(Table& table, const std::string& kind, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const auto& row : table.rows) names.push_back(row.front());
  for (const std::string& word : words) {
    const std::string lower = lower_case(word);
    std::erase_if(table.rows, [&](const auto& row) { return !occurs(lower, row); });
    if (!table.rows.empty()) continue;
    std::string near = nearest_name(lower, names);
    if (near.empty()) near = meant_key(lower);
    throw ConfigError({}, fmt::format("shardplan: list {} has nothing with {}", kind, quote(word)),
                      (near.empty() ? "" : fmt::format("did you mean {}? ", quote(near))) +
                          fmt::format("`shardplan list {}` has all", kind));
  }
}

}  // namespace

Listing listing(const std::string& kind, const std::vector<std::string>& words,
                const ConfigPath& path) {
  const auto at = std::ranges::find(lists(), kind, &Listed::kind);
  if (kind != "keys" && at == lists().end()) {
    std::vector<std::string> known;
    for (const Listed& list : lists()) known.push_back(list.kind);
    known.insert(known.end(), {"keys", "schema"});
    throw ConfigError({}, fmt::format("shardplan: there is no list of {}", quote(kind)),
                      costmodel::known_names(kind, known));
  }
  Listing found;
  found.table = kind == "keys" ? keys() : listed(*at, path, found.warnings);
  keep(found.table, kind, words);
  return found;
}

}  // namespace planner
