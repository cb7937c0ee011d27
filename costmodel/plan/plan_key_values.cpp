#include "costmodel/plan/plan_key_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <system_error>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace costmodel {

namespace {

constexpr int most_stage_layers = 100'000;

// A list of words, as bits in the order of `names`.
unsigned bits_of(const Value& list, std::string_view key, std::span<const std::string_view> names) {
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, fmt::format("{} is not a list of modules", key),
                      fmt::format("write [{}, ...]; known: {}", names[1], fmt::join(names, ", ")));
  }
  unsigned bits = 0;
  for (const Value& item : list.items) {
    const auto at = std::ranges::find(names, item.text);
    if (at == names.end()) {
      throw ConfigError(item.mark, fmt::format("{}: {} is not known", key, quote(item.text)),
                        known_names(item.text, {names.begin(), names.end()}));
    }
    bits |= 1U << static_cast<unsigned>(at - names.begin());
  }
  return bits;
}

Recompute recomputed_modules(const Value& list) {
  Recompute recompute{Recomputation::selective, 0};
  recompute.modules = bits_of(list, "recompute.modules", recompute_module_names);
  // The attention core alone is what `selective` means.
  if (recompute.modules == bit_of(RecomputeModule::core_attn)) recompute.modules = 0;
  return recompute;
}

}  // namespace

Recompute read_recompute(const Value& value) {
  if (value.is_scalar()) {
    for (std::size_t i = 0; i < recomputation_names.size(); ++i) {
      if (recomputation_names[i] == value.text) return {static_cast<Recomputation>(i), 0};
    }
    throw ConfigError(
        value.mark, fmt::format("recompute: {} is not known", quote(value.text)),
        known_names(value.text, {recomputation_names.begin(), recomputation_names.end()}));
  }
  if (value.kind == Value::Kind::sequence) {
    throw ConfigError(value.mark, "recompute is a list",
                      "write none, selective or full; {granularity: full, layers: 4}; or "
                      "{modules: [core_attn, ...]}");
  }
  MapReader reader(value, "recompute", {"modules", "granularity", "layers"},
                   "granularity: full, layers: 4");
  if (const Value* modules = reader.optional("modules")) {
    const Recompute recompute = recomputed_modules(*modules);
    reader.finish();
    return recompute;
  }
  reader.required("granularity");
  Recompute recompute{
      static_cast<Recomputation>(*reader.one_of("granularity", recomputation_names)), 0};
  recompute.layers = static_cast<int>(reader.integer("layers", {0, 100'000}).value_or(0));
  reader.finish();
  return recompute;
}

Value recompute_value(const Recompute& r) {
  const std::string name(recomputation_names[static_cast<std::size_t>(r.granularity)]);
  if (r.layers == 0 && r.modules == 0) return scalar_value(name);
  Value map;
  if (r.modules != 0) {
    Value list;
    list.kind = Value::Kind::sequence;
    for (const auto& module : module_names(r.modules)) list.items.push_back(scalar_value(module));
    map.set("modules", list);
    return map;
  }
  map.set("granularity", scalar_value(name));
  map.set("layers", scalar_value(fmt::format("{}", r.layers)));
  return map;
}

std::optional<ContextExchange> read_exchange(MapReader& reader) {
  if (reader.text("cp_comm") == "none") return {};
  const auto at = reader.one_of("cp_comm", context_exchange_names);
  if (!at) return {};
  return static_cast<ContextExchange>(*at);
}

Value exchange_value(ContextExchange exchange) {
  return scalar_value(std::string(context_exchange_names[static_cast<std::size_t>(exchange)]));
}

namespace {

void read_schedule_file(const Value& value, PlanRequest& plan) {
  MapReader reader(value, "schedule");
  const Value& file = reader.required("file");
  const std::string path = file_from(file.mark, read_text(file, "file"));
  reader.finish();
  plan.listed = std::make_shared<const ListedSchedule>(
      parse_schedule_file(read_file(path, measurement_limits), path));
  plan.schedule = plan.listed->schedule.kind;
}

}  // namespace

void read_schedule(MapReader& reader, PlanRequest& plan) {
  const Value* schedule = reader.optional("schedule");
  if (schedule == nullptr) return;
  if (schedule->is_map()) return read_schedule_file(*schedule, plan);
  plan.schedule = static_cast<ScheduleKind>(*reader.one_of("schedule", schedule_names()));
}

Value schedule_value(const ParallelPlan& plan) {
  if (plan.listed == nullptr) return scalar_value(std::string(schedule_name(plan.schedule)));
  Value listed;
  listed.set("file", scalar_value(absolute_path(plan.listed->file)));
  return listed;
}

namespace {

// "12x3" is three stages of 12 layers. Nothing where it is neither that nor a number.
std::vector<int> layers_of_run(std::string_view run) {
  const auto number = [](std::string_view text) {
    int n = -1;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), n);
    return fault == std::errc() && end == text.data() + text.size() ? n : -1;
  };
  const std::size_t times = run.find('x');
  const int layers = number(run.substr(0, times)),
            stages = times == std::string_view::npos ? 1 : number(run.substr(times + 1));
  if (layers < 0 || layers > most_stage_layers || stages < 1 || stages > most_stage_layers)
    return {};
  return std::vector<int>(static_cast<std::size_t>(stages), layers);
}

}  // namespace

void read_stage_layers(const Value& value, PlanRequest& plan) {
  if (value.kind == Value::Kind::sequence) {
    for (const auto& item : value.items) {
      plan.stage_layers.push_back(
          static_cast<int>(read_integer(item, "stage_layers", {0, most_stage_layers})));
    }
    return;
  }
  for (std::size_t from = 0; from <= value.text.size();) {
    const std::size_t end = std::min(value.text.find('+', from), value.text.size());
    const auto run = layers_of_run(std::string_view(value.text).substr(from, end - from));
    if (run.empty() || !value.is_scalar() ||
        plan.stage_layers.size() + run.size() > most_stage_layers)
      throw ConfigError(value.mark, "stage_layers is not a list", "write [12, 12, ...], or 12x2+6");
    plan.stage_layers.insert(plan.stage_layers.end(), run.begin(), run.end());
    from = end + 1;
  }
}

Value stage_layers_value(const ParallelPlan& plan) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const int layers : plan.stage_layers)
    list.items.push_back(scalar_value(fmt::format("{}", layers)));
  return list;
}

namespace {

// The key that holds a list, and what its items and one of them are in messages.
struct ListName {
  const char *key, *items, *item;
};

template <class Spec>
std::vector<Spec> read_maps(const Value& list, ListName name, const Keys<Spec>& rows,
                            const char* example) {
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, fmt::format("{} is not a list of {}", name.key, name.items),
                      fmt::format("write [{}, ...]", example));
  }
  std::vector<Spec> all;
  for (const Value& item : list.items) {
    Spec& spec = all.emplace_back();
    spec.mark = item.mark;
    read_map(item, name.item, rows, spec);
  }
  return all;
}

const Keys<HostOffload>& activation_rows() {
  using O = HostOffload;
  static const auto keys = key::rows<O>(
      key::whole<O>("layers", &O::activation_layers, {0, most_stage_layers},
                    "layers whose activations wait in host memory for their backward"),
      key::special<O>(
          "modules", [] { return "a list of " + words_text(offload_module_names); },
          "what these parts of every layer save for backward",
          [](MapReader& reader, O& offload) {
            const Value* list = reader.optional("modules");
            if (list != nullptr)
              offload.modules = bits_of(*list, "activations.modules", offload_module_names);
          }));
  return keys;
}

const Keys<HostOffload>& offload_rows() {
  using O = HostOffload;
  static const auto keys = key::rows<O>(
      key::number<O>("optimizer", &O::optimizer, 0, 1, "share of the optimizer's states"),
      key::number<O>("parameters", &O::parameters, 0, 1, "share of the parameters"),
      key::map<O>("activations", std::identity{}, activation_rows()),
      key::word<O>("to", &O::to, offload_to_names, "where they are kept"),
      key::word<O>("parameters_to", &O::parameters_to, offload_to_names,
                   "where the parameters are; absent: as to"));
  return keys;
}

}  // namespace

// A word in place of the map: optimizer, or parameters, which go with the optimizer's states.
Key<PlanRequest> offload_key() {
  return key::or_word<PlanRequest>(
      key::map<PlanRequest>("offload", &PlanRequest::offload, offload_rows()),
      "none, optimizer, parameters",
      [](MapReader& reader, std::string_view name, PlanRequest& plan) {
        const Value* value = reader.optional(name);
        if (value == nullptr || !value->is_scalar()) return false;
        const std::string& word = value->text;
        if (word == "none" || word == "false") return true;
        if (word != "optimizer" && word != "parameters") {
          throw ConfigError(
              value->mark,
              fmt::format("offload: {} is nothing that can be kept in host memory", quote(word)),
              "write none, auto, optimizer, parameters, or a map of shares: "
              "{optimizer: 0.5}");
        }
        plan.offload.optimizer = 1;
        if (word == "parameters") plan.offload.parameters = 1;
        return true;
      });
}

Value offload_value(const HostOffload& offload) {
  if (!offload.any()) return scalar_value("none");
  Value map;
  const auto put = [&map](const char* key, double share) {
    if (share > 0) map.set(key, scalar_value(fmt::format("{}", share)));
  };
  put("optimizer", offload.optimizer);
  put("parameters", offload.parameters);
  const auto put_place = [&map](const char* key, OffloadTo to) {
    map.set(key, scalar_value(std::string(offload_to_names[static_cast<std::size_t>(to)])));
  };
  if (offload.states() && offload.to != OffloadTo::host) put_place("to", offload.to);
  if (offload.parameters > 0 && offload.parameters_to.value_or(offload.to) != offload.to)
    put_place("parameters_to", *offload.parameters_to);
  if (offload.activation_layers > 0) {
    Value layers;
    layers.set("layers", scalar_value(fmt::format("{}", offload.activation_layers)));
    map.set("activations", layers);
  }
  if (offload.modules != 0) {
    Value modules, list;
    list.kind = Value::Kind::sequence;
    for (const auto& module : offload_modules(offload.modules))
      list.items.push_back(scalar_value(module));
    modules.set("modules", list);
    map.set("activations", modules);
  }
  return map;
}

const Keys<StageRequest>& stage_rows() {
  using S = StageRequest;
  static const auto keys = key::rows<S>(
      size_key<S>("tp", &S::tp, "tensor parallel size"),
      size_key<S>("dp", &S::dp, "data parallel size"),
      size_key<S>("cp", &S::cp, "context parallel size"), exchange_key<S>(),
      size_key<S>("ep", &S::ep, "expert parallel size"),
      size_key<S>("etp", &S::etp, "tensor parallel size inside experts"),
      key::whole<S>("layers", &S::layers, {0, most_stage_layers}, "layers of the stage"),
      zero_key<S>(), recompute_key<S>(),
      key::text<S>("group", &S::group, "the group of devices that the stage is on"));
  return keys;
}

void read_stages(const Value& value, PlanRequest& plan) {
  plan.stages =
      read_maps(value, {"stages", "stages", "stage"}, stage_rows(), "{tp: 4, dp: 2, layers: 12}");
  std::size_t counted = 0;
  for (const StageRequest& stage : plan.stages) counted += stage.layers ? 1 : 0;
  if (counted == 0) return;
  if (!plan.stage_layers.empty()) {
    throw ConfigError(value.mark, "stages say their layers, and so does stage_layers",
                      "leave one of them out");
  }
  if (counted < plan.stages.size()) {
    throw ConfigError(value.mark, "some stages say their layers, others do not",
                      "give layers in all stages, or stage_layers alone");
  }
  for (const StageRequest& stage : plan.stages) plan.stage_layers.push_back(*stage.layers);
}

namespace {

// Omits values equal to the plan's.
void put_context_and_experts(const StagePlan& stage, const ParallelPlan& p, Value& map) {
  const auto put = [&map](const char* key, int size, int of_plan) {
    if (size != of_plan) map.set(key, scalar_value(fmt::format("{}", size)));
  };
  put("cp", stage.cp, p.cp);
  if (stage.cp > 1 && stage.cp_comm != p.cp_comm) map.set("cp_comm", exchange_value(stage.cp_comm));
  put("ep", stage.ep, p.ep);
  put("etp", stage.etp, p.etp);
}

}  // namespace

Value stages_value(const ParallelPlan& p) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (std::size_t k = 0; k < p.stages.size(); ++k) {
    const StagePlan& stage = p.stages[k];
    Value map;
    map.set("tp", scalar_value(fmt::format("{}", stage.tp)));
    map.set("dp", scalar_value(fmt::format("{}", stage.dp)));
    put_context_and_experts(stage, p, map);
    if (!p.stage_layers.empty())
      map.set("layers", scalar_value(fmt::format("{}", p.stage_layers[k])));
    map.set("recompute", recompute_value(stage.recompute));
    map.set("zero", scalar_value(fmt::format("{}", stage.zero)));
    if (!stage.group.empty()) map.set("group", scalar_value(stage.group));
    list.items.push_back(map);
  }
  return list;
}

const Keys<ReplicaRequest>& replica_rows() {
  using R = ReplicaRequest;
  static const auto keys = key::rows<R>(
      key::required(key::text<R>("group", &R::group, "the group of devices")),
      size_key<R>("tp", &R::tp, "tensor parallel size"),
      size_key<R>("pp", &R::pp, "pipeline parallel size"),
      size_key<R>("dp", &R::dp, "replicas in the group"),
      size_key<R>("micro_batch", &R::micro_batch, "sequences of a micro-batch"),
      key::required(size_key<R>("micro_batches", &R::micro_batches, "of each replica")),
      zero_key<R>(), recompute_key<R>());
  return keys;
}

void read_replicas(const Value& value, PlanRequest& plan) {
  plan.replicas =
      read_maps(value, {"replicas", "groups of replicas", "group of replicas"}, replica_rows(),
                "{group: NAME, tp: 2, dp: 4, micro_batch: 1, micro_batches: 8}");
  for (const char* other : {"stages", "stage_layers"}) {
    if (plan.is_written(other)) {
      throw ConfigError(plan.mark_of(other), fmt::format("{} beside replicas", other),
                        "leave one of them out: the stages of replicas are even");
    }
  }
}

Value replicas_value(const ParallelPlan& p) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const ReplicaGroup& group : p.replica_groups) {
    Value map;
    const auto put = [&map](const std::string& key, const auto& value) {
      map.set(key, scalar_value(fmt::format("{}", value)));
    };
    put("group", group.group);
    put("tp", group.tp);
    put("pp", group.pp);
    put("dp", group.dp);
    put("micro_batch", group.micro_batch);
    put("micro_batches", group.micro_batches);
    map.set("recompute", recompute_value(group.recompute));
    put("zero", group.zero);
    list.items.push_back(map);
  }
  return list;
}

}  // namespace costmodel
