#include "costmodel/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "costmodel/scenario/residuals.hpp"

namespace costmodel {

bool PlanRequest::is_auto(std::string_view key) const {
  return std::find(automatic.begin(), automatic.end(), key) != automatic.end();
}

bool PlanRequest::is_written(std::string_view key) const {
  return std::any_of(written.begin(), written.end(),
                     [key](const Value::Entry& entry) { return entry.key == key; });
}

std::string_view PlanRequest::lists() const {
  if (!stages.empty()) return "stages";
  return replicas.empty() ? "" : "replicas";
}

Mark PlanRequest::mark_of(std::string_view key) const {
  for (const auto& entry : written) {
    if (entry.key == key) return entry.value.mark;
  }
  return mark;
}

namespace {

// The precisions of attention, of gathered weights and of the optimizer's moments, and how many
// rows experts compute.
void read_expert_training(MapReader& reader, TrainingSpec& t) {
  const auto precision = [&](std::string_view key, Precision usual) {
    const auto at = reader.one_of(key, precision_names);
    return at ? static_cast<Precision>(*at) : usual;
  };
  t.moment_precision = precision("moment_precision", Precision::fp32);
  t.narrow_attention = is_narrow(precision("attention_precision", Precision::bf16));
  t.gather_precision = precision("parameter_gather_precision", Precision::bf16);
  constexpr double most = 1000;
  const auto factor = [&](std::string_view key, double least, double usual) {
    if (reader.text(key) == "none") return usual;
    return reader.number(key, Dimension::count, least, most).value_or(usual);
  };
  t.capacity_factor = factor("capacity_factor", 0.01, 0);
  t.expert_buffer_factor = factor("expert_buffer_factor", 1, 0);
  t.expert_imbalance = factor("expert_imbalance", 1, 1);
  t.paged_stash = reader.boolean("paged_stash").value_or(false);
  t.fused_grouped_mlp = reader.boolean("fused_grouped_mlp").value_or(false);
}

void read_training(const Value& map, const ConfigPath& path, Scenario& scenario) {
  MapReader reader(map, "training");
  TrainingSpec& t = scenario.training;
  reader.required("global_batch");
  reader.required("sequence");
  t.global_batch = *reader.integer("global_batch", {1, 1'000'000'000});
  t.sequence = *reader.integer("sequence", {1, 100'000'000});
  if (scenario.model.encoder_decoder()) {
    const auto own = reader.integer("decoder_sequence", {1, 100'000'000});
    t.decoder_sequence = own.value_or(t.sequence);
    if (!own)
      t.assumed.push_back(fmt::format("decoder_sequence {} (as sequence; none given)", t.sequence));
  } else if (reader.optional("decoder_sequence") != nullptr) {
    throw ConfigError(reader.mark_of("decoder_sequence"),
                      "decoder_sequence is of a model with an encoder and a decoder",
                      "leave it out, or choose a model of kind t5");
  }
  if (const auto p = reader.one_of("precision", precision_names)) {
    t.precision = static_cast<Precision>(*p);
  } else {
    t.assumed.push_back("precision bf16 (none given)");
  }
  static constexpr std::array<std::string_view, 2> optimizers{"adam", "sgd"};
  t.sgd = reader.one_of("optimizer", optimizers).value_or(0) == 1;
  Value default_stack = scalar_value("megatron-core-2026", map.mark);
  const Value* stack = reader.optional("stack");
  const ResolvedConfig resolved =
      resolve_config(path, "stacks", stack != nullptr ? *stack : default_stack);
  t.stack = read_stack(resolved.value, resolved.name);
  if (stack == nullptr) t.assumed.push_back("stack megatron-core-2026 (none given)");
  t.gradient_precision = t.stack.memory.gradient_precision;
  if (t.precision == Precision::bf16 && t.stack.memory.bf16_optimizer) {
    t.gradient_precision = Precision::fp32;
    t.stack.defaults.zero = std::max(t.stack.defaults.zero, 1);
  }
  if (t.precision == Precision::fp32) t.gradient_precision = Precision::fp32;
  if (const auto p = reader.one_of("gradient_precision", precision_names))
    t.gradient_precision = static_cast<Precision>(*p);
  read_expert_training(reader, t);
  const Value* overlap = reader.optional("overlap");
  t.overlap = overlap != nullptr ? read_overlap(*overlap, t.stack.overlap) : t.stack.overlap;
  reader.finish();
  require_precision(scenario.cluster, t.precision, reader.mark_of("precision"));
}

// Reads a list, or a single value as a list of one.
std::vector<Value> listed(const Value& value, std::string_view key) {
  if (value.is_scalar()) return {value};
  if (value.is_map())
    throw ConfigError(value.mark, fmt::format("{} is a map", key), "write a value or a list [...]");
  return value.items;
}

template <class Enum>
std::vector<Enum> read_enum_list(const Value* value, std::string_view key,
                                 std::span<const std::string_view> names) {
  std::vector<Enum> list;
  if (value == nullptr) return list;
  for (const auto& item : listed(*value, key)) {
    const auto at = std::find(names.begin(), names.end(), item.text);
    if (at == names.end()) {
      throw ConfigError(item.mark, fmt::format("{}: {} is not known", key, quote(item.text)),
                        known_names(item.text, {names.begin(), names.end()}));
    }
    list.push_back(static_cast<Enum>(at - names.begin()));
  }
  return list;
}

SearchLimits read_search(const Value& map) {
  MapReader reader(map, "search");
  SearchLimits limits;
  limits.max_tp = static_cast<int>(reader.integer("max_tp", any_size).value_or(0));
  limits.max_pp = static_cast<int>(reader.integer("max_pp", any_size).value_or(0));
  limits.max_cp = static_cast<int>(reader.integer("max_cp", any_size).value_or(0));
  limits.max_ep = static_cast<int>(reader.integer("max_ep", any_size).value_or(0));
  limits.max_vpp = static_cast<int>(reader.integer("max_vpp", any_size).value_or(0));
  limits.max_micro_batch = reader.integer("max_micro_batch", any_size).value_or(0);
  limits.top = static_cast<int>(reader.integer("top", {1, 1000}).value_or(limits.top));
  limits.memory_margin = reader.number("memory_margin", Dimension::count, 0, 0.9).value_or(0);
  if (const Value* zero = reader.optional("zero")) {
    for (const auto& item : listed(*zero, "zero"))
      limits.zero.push_back(static_cast<int>(read_integer(item, "zero", {0, 3})));
  }
  limits.recompute =
      read_enum_list<Recomputation>(reader.optional("recompute"), "recompute", recomputation_names);
  limits.schedules =
      read_enum_list<ScheduleKind>(reader.optional("schedules"), "schedules", schedule_names());
  reader.finish();
  return limits;
}

void read_parts(MapReader& reader, const ConfigPath& path, Scenario& scenario) {
  const Value& model = reader.required("model");
  ResolvedConfig resolved_model = resolve_config(path, "models", model);
  if (is_hf_config(resolved_model.value))
    resolved_model.value = from_hf_config(resolved_model.value);
  scenario.model = read_model(resolved_model.value, resolved_model.name);
  scenario.model_text = resolved_model.name.empty() ? "a model of its own" : resolved_model.name;
  const ResolvedConfig cluster = resolve_config(path, "clusters", reader.required("cluster"));
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
}

// A learned position table without a length is as long as the longest sequence of either stack.
void settle_positions(const Value& training, const TrainingSpec& t, ModelSpec& model) {
  if (model.positions != Positions::learned) return;
  if (model.max_positions == 0) model.max_positions = std::max(t.sequence, t.decoder_sequence);
  const bool decoder = t.decoder_sequence > model.max_positions;
  if (t.sequence <= model.max_positions && !decoder) return;
  const std::string key = t.sequence > model.max_positions ? "sequence" : "decoder_sequence";
  const std::int64_t longest = std::max(t.sequence, t.decoder_sequence);
  throw ConfigError(training.find(key)->mark,
                    fmt::format("{} {} exceeds the model's {} learned positions", key,
                                key == "sequence" ? t.sequence : longest, model.max_positions),
                    fmt::format("shorten training.{}, or override model max_positions", key));
}

}  // namespace

void require_precision(const ClusterSpec& cluster, Precision precision, const Mark& mark,
                       const std::string& otherwise) {
  for (const ClusterSpec& group : groups_of(cluster)) {
    const DeviceSpec& device = group.device;
    if (device.peak_of(precision).value > 0) continue;
    std::string has;
    for (std::size_t i = 0; i < precision_count; ++i) {
      if (device.peak[i].value > 0)
        has += fmt::format("{}{}", has.empty() ? "" : ", ", precision_names[i]);
    }
    throw ConfigError(
        mark, fmt::format("device {} has no {} rate", shortened(device.name), to_string(precision)),
        fmt::format("set training.precision to one of {}{}", has, otherwise));
  }
}

Scenario read_scenario(const Value& root, const std::string& name, const ConfigPath& path) {
  MapReader reader(root, "scenario");
  Scenario scenario;
  scenario.name = name;
  scenario.file = root.mark.file;
  read_parts(reader, path, scenario);
  read_training(reader.required("training"), path, scenario);
  ModelSpec& model = scenario.model;
  settle_positions(*root.find("training"), scenario.training, model);
  const Value* plan = reader.optional("plan");
  Value empty;
  empty.mark = root.mark;
  scenario.plan = read_plan(plan != nullptr ? *plan : empty);
  scenario.training.error_band = find_band(path, traits_of(scenario));
  if (const Value* search = reader.optional("search")) scenario.search = read_search(*search);
  for (const auto* key : {"name", "title", "notes", "source"}) reader.optional(key);
  reader.finish();
  return scenario;
}

std::string scenario_file(const std::string& operand, const ConfigPath& path) {
  std::error_code fault;
  if (operand.find('/') != std::string::npos || std::filesystem::exists(operand, fault))
    return operand;
  const std::filesystem::path asked(operand);  // names have dots of their own: llama-3.2-1b-...
  const bool is_file = asked.extension() == ".yaml" || asked.extension() == ".yml";
  const std::string name = is_file ? asked.stem().string() : operand;
  const auto names = config_names(path, "scenarios");
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    throw ConfigError(
        {}, fmt::format("there is no file {}, and no scenario of that name", quote(operand)),
        known_names(name, names));
  }
  return find_config(path, "scenarios", name, {operand, 0, 0});
}

Scenario load_scenario(const std::string& file, const ConfigPath& path,
                       const std::vector<std::string>& assignments) {
  const std::string name = std::filesystem::path(file).stem().string();
  const Value& written = loaded(path, file);
  if (assignments.empty()) return read_scenario(written, name, path);
  Value root = written;
  for (const auto& assignment : assignments)
    assign_path(root, assignment, mark_of_argument("--set", assignment));
  return read_scenario(root, name, path);
}

namespace {

// The layers of each stage where none are written: the framework's own layout, if it has one for
// layers that do not divide. Chunks of a rank are laid out only if the last one gets a rest, as in
// Megatron-Bridge's recipes (DeepSeek-V3's 61 layers on 4 ranks x 2).
std::vector<int> layout_of(const PlanRequest& r, const Scenario& scenario) {
  const StackSpec& stack = scenario.training.stack;
  const ModelSpec& model = scenario.model;
  ParallelPlan sizes;
  sizes.pp = r.pp.value_or(1);
  sizes.vpp = r.vpp.value_or(1);
  const bool open = r.is_auto("pp") || r.is_auto("vpp") || !r.replicas.empty() ||
                    (r.schedule && row_of(*r.schedule).folded);
  if (!r.stage_layers.empty() || open || !stack.defaults.rest_on_last_stage ||
      model.encoder_decoder() || uneven_split(sizes, model) != UnevenSplit::balanced)
    return r.stage_layers;
  const std::int64_t stages = std::int64_t{sizes.pp} * sizes.vpp;
  return sizes.vpp == 1 || leaves_rest(model.layers, stages) ? rest_on_last(model.layers, stages)
                                                             : r.stage_layers;
}

}  // namespace

bool stages_alike(const Scenario& scenario) {
  return scenario.plan.lists().empty() && scenario.cluster.groups.empty();
}

PlanRequest with_defaults(const Scenario& scenario) {
  PlanRequest r = scenario.plan;
  const StackSpec& stack = scenario.training.stack;
  const ParallelPlan usual;
  const auto settle = [&r](std::string_view key, auto& field, const auto& value) {
    if (!field && !r.is_auto(key)) field = value;
  };
  if (r.listed != nullptr) {  // a file says how many ranks and chunks it is for
    settle("pp", r.pp, r.listed->schedule.ranks);
    settle("vpp", r.vpp, r.listed->schedule.chunks);
  }
  settle("tp", r.tp, usual.tp);
  settle("pp", r.pp, std::max(usual.pp, static_cast<int>(r.stages.size())));
  settle("cp", r.cp, usual.cp);
  settle("cp_comm", r.cp_comm, usual.cp_comm);
  const bool alike = stages_alike(scenario);
  if (alike) r.stage_layers = layout_of(r, scenario);
  if (alike && stack.defaults.interleaved && !r.vpp && !r.schedule && r.pp.value_or(1) > 1 &&
      !r.is_auto("vpp") && r.stage_layers.empty())
    r.automatic.emplace_back("vpp");
  settle("ep", r.ep, usual.ep);
  settle("etp", r.etp, usual.etp);
  // A schedule of a fixed number of chunks has them; interleaved says how many itself.
  const bool chunks = r.schedule && takes_chunks(*r.schedule, 2) && !takes_chunks(*r.schedule, 3);
  settle("vpp", r.vpp, chunks ? 2 : usual.vpp);
  settle("zero", r.zero, stack.defaults.zero);
  settle("micro_batch", r.micro_batch, usual.micro_batch);
  settle("sequence_parallel", r.sequence_parallel,
         stack.defaults.sequence_parallel && (r.tp.value_or(2) > 1 || !r.lists().empty()));
  settle("recompute", r.recompute, usual.recompute);
  if (r.vpp) settle("schedule", r.schedule, usual_schedule(*r.vpp));
  return r;
}

ExpertRecipe expert_recipe(const Scenario& scenario) {
  if (scenario.model.experts == 0) return {};
  const PlanRequest& r = scenario.plan;
  ExpertRecipe recipe = scenario.training.stack.defaults.experts;
  recipe.dispatcher = r.dispatcher.value_or(recipe.dispatcher);
  recipe.multiprocessors = r.dispatcher_multiprocessors.value_or(recipe.multiprocessors);
  recipe.overlap = r.expert_overlap.value_or(recipe.overlap);
  recipe.delayed_weight_gradient =
      r.delayed_weight_gradient.value_or(recipe.delayed_weight_gradient) && recipe.overlap;
  recipe.shared_overlap = r.shared_expert_overlap.value_or(recipe.shared_overlap);
  return recipe;
}

ParallelPlan resolve_plan(const Scenario& scenario) {
  const PlanRequest r = with_defaults(scenario);
  ParallelPlan plan;
  plan.tp = r.tp.value_or(plan.tp);
  plan.pp = r.pp.value_or(plan.pp);
  plan.cp = r.cp.value_or(plan.cp);
  plan.cp_comm = r.cp_comm.value_or(plan.cp_comm);
  plan.ep = r.ep.value_or(plan.ep);
  plan.etp = r.etp.value_or(plan.etp);
  plan.experts = expert_recipe(scenario);
  if (plan.cp == 1) plan.cp_comm = ContextExchange::p2p;
  const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
  const std::int64_t rest = scenario.cluster.devices / model_parallel;
  plan.dp = r.dp.value_or(static_cast<int>(std::max<std::int64_t>(1, rest)));
  plan.vpp = r.vpp.value_or(plan.vpp);
  plan.micro_batch = r.micro_batch.value_or(plan.micro_batch);
  // Megatron switches it off without tensor parallelism.
  plan.sequence_parallel =
      r.sequence_parallel.value_or(false) && (plan.tp > 1 || !r.lists().empty());
  plan.schedule = r.schedule.value_or(usual_schedule(plan.vpp));
  plan.listed = r.listed;
  plan.recompute = r.recompute.value_or(plan.recompute);
  plan.zero = r.zero.value_or(plan.zero);
  plan.stage_layers = r.stage_layers;
  const bool by_cost =
      scenario.training.stack.defaults.layout_by_cost && plan.pp > 1 && plan.vpp == 1;
  if (by_cost && r.stage_layers.empty() && r.lists().empty())
    plan.stage_layers = layers_by_cost(scenario.model, plan.pp);
  plan.rank_order = r.rank_order;
  settle_stages(r, plan);
  settle_replicas(r, scenario.cluster, plan);
  require_valid(plan, scenario);
  return plan;
}

namespace {

void refuse_first(const std::vector<Violation>& broken, const Scenario& scenario) {
  if (broken.empty()) return;
  Mark mark = scenario.plan.mark_of(broken.front().key);
  if (mark.file.empty()) mark.file = scenario.file;
  throw ConfigError(mark, broken.front().reason, broken.front().remedy);
}

}  // namespace

void require_valid(const ParallelPlan& plan, const Scenario& scenario) {
  refuse_first(violations(plan, scenario.model, scenario.cluster, scenario.training), scenario);
}

void require_offered(const Scenario& scenario) {
  const PlanRequest& r = scenario.plan;
  ParallelPlan asked;  // what is left open, no stack is without
  asked.cp = r.cp.value_or(asked.cp);
  asked.zero = r.zero.value_or(asked.zero);
  asked.schedule = r.schedule.value_or(asked.schedule);
  asked.recompute = r.recompute.value_or(asked.recompute);
  // With tp 1 it is switched off.
  asked.sequence_parallel = r.sequence_parallel.value_or(false) && r.tp != 1;
  refuse_first(not_offered(asked, scenario.training.stack), scenario);
}

}  // namespace costmodel
