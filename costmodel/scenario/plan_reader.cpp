#include "costmodel/scenario/plan_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/replica_groups.hpp"
#include "costmodel/plan/split_rank.hpp"

namespace costmodel {

namespace {

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
  for (const PlanKey& key : plan_key_rows()) {
    const std::string name(key.row.name);
    if (name == "stage_layers" && map.find("split_rank") != nullptr)
      continue;  // they follow from it
    if (key.searched == PlanKey::Searched::by_plan && map.find(name) == nullptr)
      map.set(name, scalar_value("auto", plan.mark));
  }
  return map;
}

}  // namespace

PlanRequest read_plan(const Value& written) {
  const Value map = spread(written);
  std::vector<std::string_view> names;
  for (const PlanKey& key : plan_key_rows()) names.push_back(key.row.name);
  MapReader reader(map, "plan", std::move(names), "tp: 8, ...");
  PlanRequest plan;
  plan.mark = map.mark;
  plan.written = map.entries;
  for (const PlanKey& key : plan_key_rows()) key.row.read(reader, plan);
  reader.finish();
  refuse_automatic(plan);
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
  if (plan.is_written("stage_layers") && plan.stage_layers.empty()) {
    plan.split_rank.reset();  // `stage_layers=[]`, as a change of the plan has it, takes its place
    return;
  }
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
    return std::ranges::find_if(cluster.groups, named);
  };
  std::ranges::stable_sort(plan.replica_groups,
                           [&](const auto& a, const auto& b) { return place(a) < place(b); });
  join_replicas(plan);
}

}  // namespace costmodel
