#include "costmodel/scenario/plan_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <system_error>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/plan/split_rank.hpp"

namespace costmodel {

namespace {

Recompute recomputed_modules(const Value& list) {
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, "recompute.modules is not a list of modules",
                      fmt::format("write [{}, ...]; known: {}", recompute_module_names[1],
                                  fmt::join(recompute_module_names, ", ")));
  }
  Recompute recompute{Recomputation::selective, 0};
  for (const Value& item : list.items) {
    const auto at =
        std::find(recompute_module_names.begin(), recompute_module_names.end(), item.text);
    if (at == recompute_module_names.end()) {
      throw ConfigError(
          item.mark, fmt::format("recompute.modules: {} is not known", quote(item.text)),
          known_names(item.text, {recompute_module_names.begin(), recompute_module_names.end()}));
    }
    recompute.modules |= bit_of(static_cast<RecomputeModule>(at - recompute_module_names.begin()));
  }
  // The attention core alone is what `selective` means.
  if (recompute.modules == bit_of(RecomputeModule::core_attn)) recompute.modules = 0;
  return recompute;
}

Recompute read_recompute(const Value& value) {
  if (value.is_scalar()) {
    for (std::size_t i = 0; i < recomputation_names.size(); ++i) {
      if (recomputation_names[i] == value.text) return {static_cast<Recomputation>(i), 0};
    }
    throw ConfigError(
        value.mark, fmt::format("recompute: {} is not known", quote(value.text)),
        known_names(value.text, {recomputation_names.begin(), recomputation_names.end()}));
  }
  MapReader reader(value, "recompute");
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

// Keys that are reserved but not modelled: accepted only with their neutral value.
void reject_unmodelled(MapReader& reader) {
  const Value* value = reader.optional("offload");
  if (value != nullptr && !(value->is_scalar() && (value->text == "none" || value->text == "auto" ||
                                                   value->text == "false"))) {
    throw ConfigError(value->mark, "offload has no model in this version", "leave it out");
  }
}

// `none` stands for a plan without context parallelism.
std::optional<ContextExchange> read_exchange(MapReader& reader) {
  if (reader.text("cp_comm") == "none") return {};
  const auto at = reader.one_of("cp_comm", context_exchange_names);
  if (!at) return {};
  return static_cast<ContextExchange>(*at);
}

// Relative to the file that names it; on the command line, to the working directory.
std::string beside(const Mark& mark, const std::string& file) {
  namespace fs = std::filesystem;
  const fs::path path(file);
  std::error_code unknown;
  const bool in_file = mark.line > 0 && fs::is_regular_file(mark.file, unknown);
  return path.is_absolute() || !in_file ? file
                                        : (fs::path(mark.file).parent_path() / path).string();
}

void read_schedule_file(const Value& value, PlanRequest& plan) {
  MapReader reader(value, "schedule");
  const Value& file = reader.required("file");
  const std::string path = beside(file.mark, read_text(file, "file"));
  reader.finish();
  plan.listed = std::make_shared<const ListedSchedule>(
      parse_schedule_file(read_file(path, measurement_limits), path));
  plan.schedule = plan.listed->schedule.kind;
}

ScheduleKind read_schedule(MapReader& reader) {
  return static_cast<ScheduleKind>(*reader.one_of("schedule", schedule_names()));
}

void read_stage_layers(const Value& value, PlanRequest& plan) {
  if (value.kind != Value::Kind::sequence)
    throw ConfigError(value.mark, "stage_layers is not a list", "write [12, 12, ...]");
  for (const auto& item : value.items)
    plan.stage_layers.push_back(static_cast<int>(read_integer(item, "stage_layers", {0, 100'000})));
}

// Rows that a plan, a stage and a group of replicas share.
template <class Spec, class Field>
Key<Spec> size_key(std::string_view name, Field field, std::string_view help) {
  return key::whole<Spec>(name, field, any_size, help);
}
template <class Spec>
Key<Spec> exchange_key() {
  return key::special<Spec>(
      "cp_comm", [] { return "none, " + words_text(context_exchange_names); },
      "how context ranks exchange keys and values",
      [](MapReader& reader, Spec& spec) { spec.cp_comm = read_exchange(reader); });
}
template <class Spec>
Key<Spec> recompute_key() {
  return key::special<Spec>(
      "recompute",
      [] {
        return words_text(recomputation_names) + ", {granularity, layers}, {modules: [...]} of " +
               words_text(recompute_module_names);
      },
      "what backward computes again",
      [](MapReader& reader, Spec& spec) {
        if (const Value* value = reader.optional("recompute"))
          spec.recompute = read_recompute(*value);
      });
}
template <class Spec>
Key<Spec> zero_key() {
  return key::whole<Spec>("zero", &Spec::zero, {0, 3},
                          "ZeRO stage: 1 shards optimizer states, 2 gradients, 3 parameters");
}

const Keys<StageRequest>& stage_rows() {
  using S = StageRequest;
  static const auto keys =
      key::rows<S>(size_key<S>("tp", &S::tp, "tensor parallel size"),
                   size_key<S>("dp", &S::dp, "data parallel size"),
                   size_key<S>("cp", &S::cp, "context parallel size"), exchange_key<S>(),
                   size_key<S>("ep", &S::ep, "expert parallel size"),
                   size_key<S>("etp", &S::etp, "tensor parallel size inside experts"),
                   key::whole<S>("layers", &S::layers, {0, 100'000}, "layers of the stage"),
                   zero_key<S>(), recompute_key<S>(),
                   key::text<S>("group", &S::group, "the group of devices that the stage is on"));
  return keys;
}

StageRequest read_stage(const Value& value) {
  StageRequest stage;
  stage.mark = value.mark;
  read_map(value, "stage", stage_rows(), stage);
  return stage;
}

// Layers may stand in the stages or in stage_layers.
void read_stages(const Value& value, PlanRequest& plan) {
  if (value.kind != Value::Kind::sequence || value.items.empty()) {
    throw ConfigError(value.mark, "stages is not a list of stages",
                      "write [{tp: 4, dp: 2, layers: 12}, ...]");
  }
  std::size_t counted = 0;
  for (const Value& item : value.items) {
    plan.stages.push_back(read_stage(item));
    counted += plan.stages.back().layers ? 1 : 0;
  }
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

ReplicaRequest read_replica(const Value& value) {
  ReplicaRequest replica;
  replica.mark = value.mark;
  read_map(value, "group of replicas", replica_rows(), replica);
  return replica;
}

void read_replicas(const Value& value, PlanRequest& plan) {
  if (value.kind != Value::Kind::sequence || value.items.empty()) {
    throw ConfigError(value.mark, "replicas is not a list of groups of replicas",
                      "write [{group: NAME, tp: 2, dp: 4, micro_batch: 1, micro_batches: 8}, ...]");
  }
  for (const Value& item : value.items) plan.replicas.push_back(read_replica(item));
  for (const char* other : {"stages", "stage_layers"}) {
    if (plan.is_written(other)) {
      throw ConfigError(plan.mark_of(other), fmt::format("{} beside replicas", other),
                        "leave one of them out: the stages of replicas are even");
    }
  }
}

// What cannot be searched.
void refuse_automatic(const PlanRequest& plan) {
  const std::string_view beside = plan.lists();
  for (const auto& key : plan.automatic) {
    if (!beside.empty()) {
      throw ConfigError(plan.mark_of(key), fmt::format("{}: auto beside {}", key, beside),
                        fmt::format("give it a value, or leave {} out", beside));
    }
  }
}

}  // namespace

namespace {

using P = PlanRequest;

// `auto` leaves the key to the search.
Key<P> or_auto(Key<P> row) {
  return key::or_word<P>(std::move(row), "auto",
                         [](MapReader& reader, std::string_view name, P& plan) {
                           const bool automatic = reader.is_auto(name);
                           if (automatic) plan.automatic.emplace_back(name);
                           return automatic;
                         });
}

// It follows from the devices: auto is as good as nothing.
Key<P> replicas_key() {
  return key::or_word<P>(
      size_key<P>("dp", &P::dp, "data parallel size; absent: from the devices"), "auto",
      [](MapReader& reader, std::string_view name, P&) { return reader.is_auto(name); });
}

void read_rank_order(MapReader& reader, P& plan) {
  const auto order = reader.text("rank_order");
  if (!order) return;
  if (!Mesh::valid_order(*order)) {
    throw ConfigError(
        reader.mark_of("rank_order"),
        fmt::format("rank_order: {} is not an order of the axes", quote(*order)),
        "write the five names tp, cp, ep, dp, pp once each, the fastest first: tp-cp-ep-dp-pp");
  }
  plan.rank_order = *order;
}

const Keys<P>& axis_rows() {
  static const auto keys = key::rows<P>(
      or_auto(size_key<P>("tp", &P::tp, "tensor parallel size")),
      or_auto(size_key<P>("pp", &P::pp, "pipeline parallel size")), replicas_key(),
      or_auto(size_key<P>("cp", &P::cp, "context parallel size")), or_auto(exchange_key<P>()),
      or_auto(size_key<P>("ep", &P::ep, "expert parallel size")),
      or_auto(size_key<P>("etp", &P::etp, "tensor parallel size inside experts")),
      or_auto(size_key<P>("vpp", &P::vpp, "virtual stages of a pipeline rank")));
  return keys;
}

// What ZeRO shards, and over which ranks.
const Keys<P>& sharding_rows() {
  static const auto keys = key::rows<P>(
      or_auto(zero_key<P>()),
      or_auto(size_key<P>("dp_replicate", &P::dp_replicate,
                          "groups of data-parallel ranks that each hold all of ZeRO's shards "
                          "(HSDP, MiCS); absent: 1")),
      key::word<P>("outer_dp_sharding", &P::outer_sharding, outer_sharding_names,
                   "optim: these groups share the optimizer's states (HFSDP)"),
      key::whole<P>(
          "zero_hpz_partition_size", [](P& p) -> int& { return p.zero_plus_plus.partition; },
          any_size,
          "ZeRO++: ranks that hold a second copy of the weights, which backward gathers; absent: "
          "1"),
      key::flag<P>(
          "zero_quantized_weights", [](P& p) -> bool& { return p.zero_plus_plus.weights; },
          "ZeRO++: forward gathers weights in 8 bits"),
      key::flag<P>(
          "zero_quantized_gradients", [](P& p) -> bool& { return p.zero_plus_plus.gradients; },
          "ZeRO++: gradients travel in 4 bits, within nodes and then between them"));
  return keys;
}

const Keys<P>& step_rows() {
  static const auto keys = key::rows<P>(
      or_auto(size_key<P>("micro_batch", &P::micro_batch, "sequences of a micro-batch")),
      or_auto(key::flag<P>("sequence_parallel", &P::sequence_parallel,
                           "norms and residuals are cut along the sequence over tensor ranks")),
      or_auto(key::special<P>(
          "schedule", [] { return words_text(schedule_names()) + ", {file: FILE}"; },
          "of the pipeline",
          [](MapReader& reader, P& plan) {
            const Value* schedule = reader.optional("schedule");
            if (schedule == nullptr) return;
            if (schedule->is_map()) return read_schedule_file(*schedule, plan);
            plan.schedule = read_schedule(reader);
          })),
      key::whole<P>("micro_batch_group", &P::micro_batch_group, any_size,
                    "interleaved: micro-batches that go through a chunk before the next (pp unless "
                    "given)"),
      key::whole<P>("in_flight_limit", &P::in_flight_limit, any_size,
                    "zero-bubble-h2: the most micro-batches in flight on a rank, pp to 2 pp - 1"),
      or_auto(recompute_key<P>()),
      or_auto(
          key::word<P>("dispatcher", &P::dispatcher, dispatcher_names, "how tokens reach experts")),
      key::whole<P>("dispatcher_multiprocessors", &P::dispatcher_multiprocessors, {0, 1024},
                    "multiprocessors that its kernels take"),
      or_auto(key::flag<P>("expert_overlap", &P::expert_overlap,
                           "expert all-to-all beside another micro-batch's computation")),
      or_auto(key::flag<P>("delayed_weight_gradient", &P::delayed_weight_gradient,
                           "... which then has the weight gradients as well")),
      or_auto(key::flag<P>("shared_expert_overlap", &P::shared_expert_overlap,
                           "shared experts compute beside the exchange")),
      or_auto(key::special<P>("stage_layers", key::said("a list of 0 to 100,000"),
                              "layers of each stage",
                              [](MapReader& reader, P& plan) {
                                if (const Value* list = reader.optional("stage_layers"))
                                  read_stage_layers(*list, plan);
                              })),
      key::whole<P>("split_rank", &P::split_rank, {0, 100'000},
                    "encoder and decoder: the first pipeline rank of the decoder (Megatron-LM's "
                    "split rank)"),
      key::list<P>("stages", stage_rows(), "stages with sizes of their own", read_stages),
      key::list<P>("replicas", replica_rows(), "groups of replicas with shares of their own",
                   read_replicas));
  return keys;
}

const Keys<P>& size_rows() {
  static const Keys<P> keys = joined<P>(axis_rows(), sharding_rows(), step_rows());
  return keys;
}

// Read after what `auto` cannot stand beside is refused.
const Keys<P>& other_rows() {
  static const auto keys =
      key::rows<P>(key::special<P>("offload", key::said("none, auto, false"), "reserved",
                                   [](MapReader& reader, P&) { reject_unmodelled(reader); }),
                   key::special<P>("rank_order", key::said("an order of tp, cp, ep, dp, pp"),
                                   "axes of the mesh of ranks, the fastest first: tp-cp-ep-dp-pp",
                                   read_rank_order));
  return keys;
}

}  // namespace

namespace {

// What the search chooses.
constexpr std::array<std::string_view, 13> searched_keys{
    "tp",       "pp",        "cp",          "cp_comm", "ep",
    "etp",      "vpp",       "micro_batch", "zero",    "sequence_parallel",
    "schedule", "recompute", "stage_layers"};

bool is_auto(const Value* value) {
  return value != nullptr && value->is_scalar() && value->text == "auto";
}

// `auto` in place of a plan, or as its base: {base: auto, tp: 4}. Each key not given is `auto`.
Value spread(const Value& plan) {
  const bool whole = is_auto(&plan);
  if (plan.is_scalar() && !whole) {
    throw ConfigError(plan.mark, fmt::format("plan is {}", quote(plan.text)),
                      "write auto, or a map: {tp: 8, ...}");
  }
  const Value* base = plan.find("base");
  if (base != nullptr && !is_auto(base)) {
    throw ConfigError(base->mark, "the base of a plan is auto or nothing",
                      "write {base: auto, tp: 8, ...}, or leave it out");
  }
  if (!whole && base == nullptr) return plan;
  Value map;
  map.kind = Value::Kind::map;
  map.mark = plan.mark;
  map.entries = plan.entries;
  std::erase_if(map.entries, [](const Value::Entry& entry) { return entry.key == "base"; });
  for (const auto key : searched_keys) {
    const std::string name(key);
    if (name == "stage_layers" && map.find("split_rank") != nullptr)
      continue;  // they follow from it
    if (map.find(name) == nullptr) map.set(name, scalar_value("auto", plan.mark));
  }
  return map;
}

}  // namespace

PlanRequest read_plan(const Value& written) {
  const Value map = spread(written);
  MapReader reader(map, "plan");
  PlanRequest plan;
  plan.mark = map.mark;
  plan.written = map.entries;
  read_keys(reader, size_rows(), plan);
  refuse_automatic(plan);
  read_keys(reader, other_rows(), plan);
  reader.finish();
  return plan;
}

namespace {

// The sizes that the split rank's stages would have besides.
void refuse_beside_split(const PlanRequest& plan) {
  for (const char* other : {"stage_layers", "stages", "replicas"}) {
    if (!plan.is_written(other)) continue;
    throw ConfigError(plan.mark_of("split_rank"), fmt::format("split_rank beside {}", other),
                      "leave one of them out: the layers of each stage follow from split_rank");
  }
}

std::string split_choices(const ModelSpec& model, int pp) {
  std::vector<int> ranks;
  for (int rank = 1; rank < pp; ++rank)
    if (!split_layers(model, pp, rank).empty()) ranks.push_back(rank);
  return ranks.empty()
             ? fmt::format(
                   "no split of pp {} divides both: choose another pp, or write "
                   "stage_layers",
                   pp)
             : fmt::format("choose split_rank among {}, another pp, or write stage_layers",
                           fmt::join(ranks, ", "));
}

}  // namespace

void settle_split(const ModelSpec& model, PlanRequest& plan) {
  if (!plan.split_rank) return;
  const Mark mark = plan.mark_of("split_rank");
  if (!model.encoder_decoder()) {
    throw ConfigError(mark, "split_rank is of a model with an encoder and a decoder",
                      "leave it out, or choose a model of kind t5");
  }
  refuse_beside_split(plan);
  if (!plan.pp) {
    throw ConfigError(mark, "split_rank of a pipeline whose size is not said",
                      "write plan.pp: the ranks from split_rank on hold the decoder");
  }
  const int pp = *plan.pp, split = *plan.split_rank;
  if (split < 1 || split >= pp) {
    throw ConfigError(
        mark, fmt::format("split_rank {} of pp {}: one of the two has no rank", split, pp),
        pp > 1 ? fmt::format("choose 1 to {}", pp - 1) : "choose pp 2 or more, or leave it out");
  }
  plan.stage_layers = split_layers(model, pp, split);
  if (!plan.stage_layers.empty()) return;
  const bool encoder = model.encoder_layers % split != 0;
  throw ConfigError(
      mark,
      fmt::format("split_rank {} leaves the {}'s {} layers {} ranks, which do not divide "
                  "them",
                  split, encoder ? "encoder" : "decoder",
                  encoder ? model.encoder_layers : model.decoder_layers,
                  encoder ? split : pp - split),
      split_choices(model, pp));
}

std::vector<KeyText> plan_keys() {
  return described(joined<P>(size_rows(), other_rows()), "plan.");
}

void settle_stages(const PlanRequest& request, ParallelPlan& plan) {
  if (request.stages.empty()) return;
  int widest = 0;
  for (const StageRequest& stage : request.stages) {
    if (!stage.dp && !request.dp)
      throw ConfigError(stage.mark, "the stage lacks dp", "give it there, or plan.dp for all");
    StagePlan own;
    own.tp = stage.tp.value_or(plan.tp);
    own.dp = stage.dp ? *stage.dp : *request.dp;
    own.cp = stage.cp.value_or(plan.cp);
    if (own.cp > 1)
      own.cp_comm = stage.cp_comm.value_or(request.cp_comm.value_or(ContextExchange::p2p));
    own.ep = stage.ep.value_or(plan.ep);
    own.etp = stage.etp.value_or(plan.etp);
    own.recompute = stage.recompute.value_or(plan.recompute);
    own.zero = stage.zero.value_or(plan.zero);
    own.group = stage.group;
    widest = std::max(widest, own.dp);
    plan.stages.push_back(std::move(own));
  }
  plan.dp = request.dp.value_or(widest);
}

namespace {

// The number of replicas that fit on the devices of the named group.
int replicas_on(const std::string& group, const ClusterSpec& cluster, std::int64_t devices_each) {
  for (const ClusterSpec& own : cluster.groups) {
    if (own.name == group)
      return static_cast<int>(std::max<std::int64_t>(1, own.devices / devices_each));
  }
  return 1;
}

}  // namespace

void settle_replicas(const PlanRequest& request, const ClusterSpec& cluster, ParallelPlan& plan) {
  if (request.replicas.empty()) return;
  for (const ReplicaRequest& r : request.replicas) {
    ReplicaGroup group;
    group.group = r.group;
    group.tp = r.tp.value_or(plan.tp);
    group.pp = r.pp.value_or(plan.pp);
    const std::int64_t each = std::int64_t{group.tp} * group.pp * plan.cp;
    group.dp = r.dp ? *r.dp : request.dp.value_or(replicas_on(r.group, cluster, each));
    group.micro_batch = r.micro_batch.value_or(plan.micro_batch);
    group.micro_batches = r.micro_batches;
    group.recompute = r.recompute.value_or(plan.recompute);
    group.zero = r.zero.value_or(plan.zero);
    plan.replica_groups.push_back(group);
  }
  const auto place = [&](const ReplicaGroup& group) {
    const auto named = [&](const ClusterSpec& own) { return own.name == group.group; };
    return std::find_if(cluster.groups.begin(), cluster.groups.end(), named);
  };
  std::stable_sort(plan.replica_groups.begin(), plan.replica_groups.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  join_replicas(plan);
}

namespace {

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

Value exchange_value(ContextExchange exchange) {
  return scalar_value(std::string(context_exchange_names[static_cast<std::size_t>(exchange)]));
}

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

// What differs from the plainest recipe.
void put_expert_recipe(const ExpertRecipe& own, Value& map) {
  const ExpertRecipe plain;
  const auto put = [&map](const char* key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  if (own.dispatcher != plain.dispatcher)
    put("dispatcher", dispatcher_names[static_cast<std::size_t>(own.dispatcher)]);
  if (own.multiprocessors > 0) put("dispatcher_multiprocessors", own.multiprocessors);
  if (own.overlap) put("expert_overlap", true);
  if (own.delayed_weight_gradient) put("delayed_weight_gradient", true);
  if (own.shared_overlap) put("shared_expert_overlap", true);
}

}  // namespace

Value to_value(const ParallelPlan& p) {
  Value map;
  const bool alike = p.replica_groups.empty();  // else every group says its own
  const auto put = [&map](const std::string& key, const auto& value) {
    map.set(key, scalar_value(fmt::format("{}", value)));
  };
  if (alike) {
    put("tp", p.tp);
    put("pp", p.pp);
    put("dp", p.dp);
  }
  put("cp", p.cp);
  if (p.cp > 1) map.set("cp_comm", exchange_value(p.cp_comm));
  if (p.ep > 1) put("ep", p.ep);
  if (p.etp > 1) put("etp", p.etp);
  put_expert_recipe(p.experts, map);
  put("vpp", p.vpp);
  if (alike) put("micro_batch", p.micro_batch);
  put("sequence_parallel", p.sequence_parallel);
  if (p.listed == nullptr) {
    put("schedule", schedule_name(p.schedule));
  } else {
    Value listed;
    listed.set("file", scalar_value(std::filesystem::absolute(p.listed->file).string()));
    map.set("schedule", listed);
  }
  if (p.choices.group > 0) put("micro_batch_group", p.choices.group);
  if (p.choices.in_flight > 0) put("in_flight_limit", p.choices.in_flight);
  if (alike) {
    map.set("recompute", recompute_value(p.recompute));
    put("zero", p.zero);
    if (p.dp_replicate > 1) put("dp_replicate", p.dp_replicate);
    const ZeroPlusPlus& z = p.zero_plus_plus;
    if (z.partition > 1) put("zero_hpz_partition_size", z.partition);
    if (z.weights) put("zero_quantized_weights", true);
    if (z.gradients) put("zero_quantized_gradients", true);
    if (p.shards_states_further()) put("outer_dp_sharding", outer_sharding_name(p));
  } else {
    map.set("replicas", replicas_value(p));
  }
  if (!p.stages.empty()) {
    map.set("stages", stages_value(p));
  } else if (!p.stage_layers.empty()) {
    Value list;
    list.kind = Value::Kind::sequence;
    for (const int layers : p.stage_layers)
      list.items.push_back(scalar_value(fmt::format("{}", layers)));
    map.set("stage_layers", list);
  }
  put("rank_order", p.rank_order);
  return map;
}

}  // namespace costmodel
