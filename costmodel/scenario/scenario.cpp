#include "costmodel/scenario/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/override.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/stage_plan.hpp"
#include "costmodel/scenario/plan_reader.hpp"
#include "costmodel/scenario/residuals.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "costmodel/scenario/search_reader.hpp"
#include "costmodel/scenario/training_reader.hpp"

namespace costmodel {

namespace {

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

// A tower that nothing is given to is left out.
void settle_towers(const TrainingSpec& training, ModelSpec& model) {
  Towers used;
  for (const TowerSpec& tower : towers_of(model))
    if (training.towers.number_of(tower) > 0) used.all.push_back(tower);
  if (used.all.size() == towers_of(model).size()) return;
  model.towers = used.all.empty() ? nullptr : std::make_shared<const Towers>(std::move(used));
}

// Runs of another stack say nothing of this one.
void refuse_other_runs(ClusterSpec& cluster, const std::string& stack) {
  if (cluster.measured.runs == 0 || cluster.measured.stack == stack) return;
  cluster.assumed.push_back(fmt::format("measured is of {}, not of {}: not applied",
                                        shortened(cluster.measured.stack), shortened(stack)));
  cluster.measured = {};
}

}  // namespace

TracedShape traced_shape(const Scenario& s) {
  return {s.model.hidden,      s.model.head_dim, s.training.sequence,    s.training.overlap.compile,
          s.model.experts > 0, s.model.layers,   s.training.global_batch};
}

void settle_own_runs(Scenario& s) {
  refuse_other_runs(s.cluster, s.training.stack.name);
  OwnRuns& own = s.cluster.measured;
  own.shape = traced_shape(s);
  s.cluster.device.kind_factor = kind_factors(own.traces, own.shape);
  if (own.kernel_launch.value > 0) s.training.stack.host.kernel_launch = own.kernel_launch;
}

namespace {

// The interval by published runs, or by the cluster's own.
ErrorBand band_of_scenario(const Scenario& s, const ConfigPath& path) {
  ErrorBand band = find_band(path, traits_of(s));
  const OwnRuns& own = s.cluster.measured;
  if (own.runs == 0) return band;
  // What traces have earned is of jobs like those that were traced: of others as much of the
  // interval's variance is that of published runs as their shapes do not share.
  double near = 1;
  if (!own.traces.empty()) {
    const double share = nearest_trace(own.traces, own.shape).share;
    near = share * share;
  }
  const auto mixed = [near](double earned, double usual) {
    const double a = std::log(earned), b = std::log(usual);
    return std::exp(std::copysign(std::sqrt(near * a * a + (1 - near) * b * b), a + b));
  };
  band.low = mixed(own.low, band.low);
  band.high = mixed(own.high, band.high);
  band.unknown.clear();
  band.unmeasured = 0;
  band.basis =
      fmt::format("interval: by {} run{} of {} on this cluster (cluster.measured)",
                  format_integer(own.runs), own.runs == 1 ? "" : "s", shortened(own.stack));
  return band;
}

// For people, and `command` for a batch.
constexpr std::array<std::string_view, 5> notes_of_scenario{"name", "title", "notes", "source",
                                                            "command"};

// What the command line chose where nothing was given: lines of the report.
void take_assumed(const Value& assumed, Scenario& scenario) {
  MapReader reader(assumed, "assumed");
  const auto take = [&](const char* key, std::vector<std::string>& lines) {
    const Value* written = reader.optional(key);
    for (const Value& line : written != nullptr ? written->items : std::vector<Value>{})
      lines.push_back(line.text);
  };
  take("training", scenario.training.assumed);
  take("cluster", scenario.cluster.assumed);
  reader.finish();
}

// Values that name a file and are read where no directories are known.
void check_files(const Value& value, const ConfigPath& path, const std::string& reach) {
  for (const auto& entry : value.entries) {
    const bool names_file = entry.key == "file" || entry.key == "histogram";
    const Mark& mark = entry.value.mark;
    if (names_file && entry.value.is_scalar()) {
      const std::string own = reach_of(mark);  // none: the name is on the command line
      check_reach(path, own.empty() ? own : reach, file_from(mark, entry.value.text), mark);
    }
    check_files(entry.value, path, reach);
  }
  for (const Value& item : value.items) check_files(item, path, reach);
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
  std::vector<std::string_view> keys{"model",  "cluster", "training", "plan",
                                     "search", "assumed", "workload"};
  keys.insert(keys.end(), notes_of_scenario.begin(), notes_of_scenario.end());
  MapReader reader(root, "scenario", std::move(keys),
                   "model: llama-3-8b, cluster: dgx-h100, training: {...}");
  Scenario scenario;
  scenario.name = name;
  scenario.file = root.mark.file;
  check_files(root, path, reach_of(root.mark));
  if (const auto workload = reader.text("workload"); workload && *workload != "training") {
    throw ConfigError(
        reader.mark_of("workload"),
        fmt::format("a scenario of {} is none of training", quote(*workload)),
        "evaluate, explain, plan, sweep, compare, groups, run and export take `workload: "
        "inference`");
  }
  read_parts(reader, path, scenario);
  const Value* plan = reader.optional("plan");
  scenario.training =
      read_training(reader.required("training"), path, scenario.model, scenario.cluster, plan);
  ModelSpec& model = scenario.model;
  settle_positions(*root.find("training"), scenario.training, model);
  settle_towers(scenario.training, model);
  Value empty;
  empty.mark = root.mark;
  scenario.plan = read_plan(plan != nullptr ? *plan : empty);
  for (const auto key : expert_recipe_keys()) {
    if (model.experts > 0 || !scenario.plan.is_written(key)) continue;
    scenario.training.assumed.push_back(
        fmt::format("plan.{} left out: the model has no experts", key));
  }
  if (model.experts > 0 && model.shared_experts == 0 &&
      scenario.plan.shared_expert_overlap.value_or(false)) {
    scenario.plan.shared_expert_overlap = false;
    scenario.training.assumed.emplace_back(
        "plan.shared_expert_overlap left out: the model has no shared experts");
  }
  settle_split(model, scenario.plan);
  settle_own_runs(scenario);
  scenario.training.error_band = band_of_scenario(scenario, path);
  scenario.training.peak_errors = find_peak_errors(path, scenario.training.stack.name);
  if (const Value* search = reader.optional("search")) scenario.search = read_search(*search);
  SearchLimits& limits = scenario.search;
  if (limits.memory_confidence)
    limits.memory_margin = memory_margin(*limits.memory_confidence, scenario.training.peak_errors);
  if (const Value* assumed = reader.optional("assumed")) take_assumed(*assumed, scenario);
  for (const auto key : notes_of_scenario) reader.optional(key);
  reader.finish();
  return scenario;
}

std::string scenario_file(const std::string& operand, const ConfigPath& path) {
  if (operand.find('/') != std::string::npos || path_exists(operand)) return operand;
  const std::string ending = ending_of(operand);  // names have dots of their own: llama-3.2-1b-...
  const bool is_file = ending == ".yaml" || ending == ".yml";
  const std::string name = is_file ? stem_of(operand) : operand;
  const auto names = config_names(path, "scenarios");
  if (std::ranges::find(names, name) == names.end()) {
    throw ConfigError(
        {}, fmt::format("there is no file {}, and no scenario of that name", quote(operand)),
        known_names(name, names));
  }
  return find_config(path, "scenarios", name, {operand, 0, 0});
}

Scenario load_scenario(const std::string& file, const ConfigPath& path,
                       const std::vector<std::string>& assignments) {
  const std::string name = stem_of(file);
  if (assignments.empty()) return read_scenario(loaded(path, file), name, path);
  return read_scenario(scenario_tree(file, path, assignments), name, path);
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
  const bool open = r.is_auto("pp") || r.is_auto("vpp") || r.is_auto("stage_layers") ||
                    !r.replicas.empty() || (r.schedule && row_of(*r.schedule).folded);
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

OrderChoices order_choices(const PlanRequest& plan) {
  return {plan.micro_batch_group.value_or(0), plan.in_flight_limit.value_or(0)};
}

ExpertRecipe expert_recipe(const Scenario& scenario) {
  if (scenario.model.experts == 0) return {};
  const PlanRequest& r = scenario.plan;
  ExpertRecipe recipe = scenario.training.stack.defaults.experts;
  recipe.routed = true;
  recipe.dispatcher = r.dispatcher.value_or(recipe.dispatcher);
  recipe.multiprocessors = r.dispatcher_multiprocessors.value_or(recipe.multiprocessors);
  recipe.overlap = r.expert_overlap.value_or(recipe.overlap);
  recipe.delayed_weight_gradient =
      r.delayed_weight_gradient.value_or(recipe.delayed_weight_gradient) && recipe.overlap;
  recipe.shared_overlap = r.shared_expert_overlap.value_or(recipe.shared_overlap);
  return recipe;
}

int usual_shard_groups(const Scenario& scenario, const ParallelPlan& plan) {
  if (!scenario.training.stack.defaults.shards_in_node || scenario.model.experts > 0) return 1;
  const std::int64_t in_node =
      scenario.cluster.devices_per_node / (std::int64_t{plan.tp} * plan.cp);
  return in_node > 1 && plan.dp % in_node == 0 ? static_cast<int>(plan.dp / in_node) : 1;
}

bool has_usual_shard_groups(const Scenario& scenario, const ParallelPlan& plan) {
  const bool sharded = plan.zero > 0 && plan.stages.empty() && plan.replica_groups.empty();
  return plan.dp_replicate == (sharded ? usual_shard_groups(scenario, plan) : 1);
}

Value plan_map(const ParallelPlan& plan, const Scenario& scenario) {
  Value map = to_value(plan);
  if (!has_usual_shard_groups(scenario, plan))
    map.set("dp_replicate", scalar_value(fmt::format("{}", plan.dp_replicate)));
  return map;
}

ParallelPlan unchecked_plan(const Scenario& scenario) {
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
  plan.choices = order_choices(r);
  plan.recompute = r.recompute.value_or(plan.recompute);
  plan.zero = r.zero.value_or(plan.zero);
  const bool groups = plan.zero > 0 && r.lists().empty() && !r.is_auto("dp_replicate");
  plan.dp_replicate = r.dp_replicate.value_or(groups ? usual_shard_groups(scenario, plan) : 1);
  plan.outer_sharding = r.outer_sharding;
  plan.zero_plus_plus = r.zero_plus_plus;
  plan.offload = r.offload;
  plan.stage_layers = r.stage_layers;
  const bool by_cost =
      scenario.training.stack.defaults.layout_by_cost && plan.pp > 1 && plan.vpp == 1;
  if (by_cost && r.stage_layers.empty() && r.lists().empty())
    plan.stage_layers = layers_by_cost(scenario.model, plan.pp);
  plan.rank_order = r.rank_order;
  settle_stages(r, plan);
  settle_replicas(r, scenario.cluster, plan);
  return plan;
}

ParallelPlan resolve_plan(const Scenario& scenario) {
  ParallelPlan plan = unchecked_plan(scenario);
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
  asked.dp_replicate = r.dp_replicate.value_or(asked.dp_replicate);
  asked.outer_sharding = r.outer_sharding;
  asked.zero_plus_plus = r.zero_plus_plus;
  asked.offload = r.offload;
  asked.schedule = r.schedule.value_or(asked.schedule);
  asked.recompute = r.recompute.value_or(asked.recompute);
  // With tp 1 it is switched off.
  asked.sequence_parallel = r.sequence_parallel.value_or(false) && r.tp != 1;
  refuse_first(not_offered(asked, scenario.training.stack), scenario);
}

}  // namespace costmodel
