#include "planner/commands/listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/everyday_name.hpp"
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

Table models(const ConfigPath& path) {
  Table t{{{"model", false},
           {"title", false},
           {"parameters"},
           {"layers"},
           {"hidden"},
           {"heads"},
           {"kv_heads"},
           {"ffn_hidden"},
           {"vocab"},
           {"experts", false}},
          {}};
  for (const auto& name : config_names(path, "models")) {
    const auto m = find_model(scalar_value(name), path);
    t.rows.push_back({name, m.title, format_count(parameter_count(m)), fmt::format("{}", m.layers),
                      fmt::format("{}", m.hidden), fmt::format("{}", m.heads),
                      fmt::format("{}", m.kv_heads), fmt::format("{}", m.ffn_hidden),
                      fmt::format("{}", m.vocab),
                      m.experts > 0 ? fmt::format("{} of {}", m.top_k, m.experts) : ""});
  }
  return t;
}

Table devices(const ConfigPath& path) {
  Table t{{{"device", false}, {"title", false}, {"fp16/bf16"}, {"fp8"}, {"memory"}, {"bandwidth"}},
          {}};
  for (const auto& name : config_names(path, "devices")) {
    const auto d = read_device(resolve_config(path, "devices", scalar_value(name)).value, name);
    const auto rate = [&](Precision p) {
      return d.peak_of(p).value > 0 ? format_rate(d.peak_of(p)) : std::string("-");
    };
    const auto half = std::max(d.peak_of(Precision::fp16), d.peak_of(Precision::bf16));
    t.rows.push_back({name, d.title, half.value > 0 ? format_rate(half) : "-", rate(Precision::fp8),
                      format_bytes(d.memory), format_bandwidth(d.memory_bandwidth)});
  }
  return t;
}

Table clusters(const ConfigPath& path) {
  Table t{{{"cluster", false},
           {"title", false},
           {"device", false},
           {"devices"},
           {"per node"},
           {"network, per device and direction", false}},
          {}};
  for (const auto& name : config_names(path, "clusters")) {
    const auto resolved = resolve_config(path, "clusters", scalar_value(name));
    const Value* device_key = resolved.value.find("device");
    const bool grouped = resolved.value.find("groups") != nullptr;
    if (device_key == nullptr && !grouped) continue;
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
    t.rows.push_back({name, c.title, device_names(c), counted ? format_integer(c.devices) : "any",
                      fmt::format("{}", c.devices_per_node), tiers});
  }
  return t;
}

Table stacks(const ConfigPath& path) {
  Table t{{{"stack", false},
           {"title", false},
           {"attention", false},
           {"gradients", false},
           {"ZeRO up to"},
           {"overlaps", false}},
          {}};
  for (const auto& name : config_names(path, "stacks")) {
    const auto s = read_stack(resolve_config(path, "stacks", scalar_value(name)).value, name);
    std::string overlaps;
    const auto add = [&](bool on, const char* what) {
      if (on) overlaps += fmt::format("{}{}", overlaps.empty() ? "" : ", ", what);
    };
    add(s.overlap.overlap_grad_reduce, "gradient reduce");
    add(s.overlap.overlap_param_gather, "parameter gather");
    add(s.overlap.tp_comm_overlap || s.overlap.async_tp, "tensor parallel");
    add(s.overlap.pp_overlap, "pipeline");
    t.rows.push_back(
        {name, s.title,
         std::string(attention_kernel_names[static_cast<std::size_t>(s.kernels.attention)]),
         std::string(to_string(s.memory.gradient_precision)), fmt::format("{}", s.offers.max_zero),
         overlaps.empty() ? "none" : overlaps});
  }
  return t;
}

Table engines(const ConfigPath& path) {
  Table t{{{"engine", false},
           {"title", false},
           {"requests"},
           {"tokens a step"},
           {"chunked prefill", false},
           {"host beside device", false}},
          {}};
  for (const auto& name : config_names(path, "engines")) {
    const auto e = read_engine(resolve_config(path, "engines", scalar_value(name)).value, name, "");
    t.rows.push_back({name, e.title, format_integer(e.limits.max_num_seqs),
                      format_integer(e.limits.max_num_batched_tokens),
                      e.limits.chunked_prefill ? "yes" : "no", e.host_overlap ? "yes" : "no"});
  }
  return t;
}

Table scenarios(const ConfigPath& path) {
  Table t{{{"scenario", false}, {"file", false}}, {}};
  for (const auto& name : config_names(path, "scenarios"))
    t.rows.push_back({name, find_config(path, "scenarios", name, {})});
  return t;
}

// The keys of a scenario, and of what it names.
Table keys(const ConfigPath&) {
  Table t{{{"key", false}, {"meaning", false, 0}, {"values", false}}, {}};
  for (const auto described :
       {model_keys, cluster_keys, grouped_cluster_keys, training_keys, plan_keys, search_keys,
        serving_keys, device_keys, stack_keys, engine_keys}) {
    for (const KeyText& key : described()) t.rows.push_back({key.name, key.help, key.allowed});
  }
  return t;
}

struct Listed {
  std::string_view kind;
  Table (*make)(const ConfigPath& path);
};
constexpr std::array lists{Listed{"models", models},     Listed{"devices", devices},
                           Listed{"clusters", clusters}, Listed{"stacks", stacks},
                           Listed{"engines", engines},   Listed{"scenarios", scenarios},
                           Listed{"keys", keys}};

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

Table listing(const std::string& kind, const std::vector<std::string>& words,
              const ConfigPath& path) {
  const auto* const at = std::ranges::find(lists, kind, &Listed::kind);
  if (at != lists.end()) {
    Table table = at->make(path);
    keep(table, kind, words);
    return table;
  }
  std::vector<std::string> known;
  for (const Listed& list : lists) known.emplace_back(list.kind);
  throw ConfigError({}, fmt::format("shardplan: there is no list of {}", quote(kind)),
                    costmodel::known_names(kind, known));
}

}  // namespace planner
