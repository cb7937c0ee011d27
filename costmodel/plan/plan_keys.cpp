#include "costmodel/plan/plan_keys.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_key_values.hpp"

namespace costmodel {

namespace {

using P = PlanRequest;
using Plan = ParallelPlan;
using Searched = PlanKey::Searched;

bool never(const Plan&) { return false; }
bool has_groups(const Plan& p) { return !p.replica_groups.empty(); }

Value text_value(const auto& value) { return scalar_value(fmt::format("{}", value)); }

// A key whose value in a plan is what `field` gives: a number or a switch.
template <class Field>
auto value_of(Field field) {
  return [field](const Plan& plan) { return text_value(std::invoke(field, plan)); };
}

// The same where 0 stands for a plan without the key.
template <class Field>
auto value_above_zero(Field field) {
  return [field](const Plan& plan) {
    const auto value = std::invoke(field, plan);
    return value > 0 ? text_value(value) : Value();
  };
}

// Implied where it is 1.
template <class Field>
auto is_one(Field field) {
  return [field](const Plan& plan) { return std::invoke(field, plan) <= 1; };
}

// `auto` leaves the key to the search.
PlanKey searched(PlanKey key, Searched by) {
  key.row = key::or_word<P>(std::move(key.row), "auto",
                            [](MapReader& reader, std::string_view name, P& plan) {
                              const bool automatic = reader.is_auto(name);
                              if (automatic) plan.automatic.emplace_back(name);
                              return automatic;
                            });
  key.searched = by;
  return key;
}
PlanKey by_plan(PlanKey key) { return searched(std::move(key), Searched::by_plan); }
PlanKey by_key(PlanKey key) { return searched(std::move(key), Searched::by_key); }

PlanKey titled(std::string_view title, PlanKey key) {
  key.title = title;
  return key;
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

std::vector<PlanKey> axis_rows() {
  return {titled("tensor parallel", by_plan({size_key<P>("tp", &P::tp, "tensor parallel size"),
                                             value_of(&Plan::tp), has_groups})),
          titled("pipeline parallel", by_plan({size_key<P>("pp", &P::pp, "pipeline parallel size"),
                                               value_of(&Plan::pp), has_groups})),
          titled("data parallel", {replicas_key(), value_of(&Plan::dp), has_groups}),
          titled("context parallel", by_plan({size_key<P>("cp", &P::cp, "context parallel size"),
                                              value_of(&Plan::cp), never})),
          titled("exchange of context ranks", by_plan({exchange_key<P>(),
                                                       [](const Plan& p) {
                                                         return p.cp > 1 ? exchange_value(p.cp_comm)
                                                                         : scalar_value("none");
                                                       },
                                                       is_one(&Plan::cp)})),
          titled("expert parallel", by_plan({size_key<P>("ep", &P::ep, "expert parallel size"),
                                             value_of(&Plan::ep), is_one(&Plan::ep)})),
          titled("tensor parallel in experts",
                 by_plan({size_key<P>("etp", &P::etp, "tensor parallel size inside experts"),
                          value_of(&Plan::etp), is_one(&Plan::etp)}))};
}

// How tokens reach their experts. Where the model has experts all of it is written: what is left
// out is the default of the stack, which may be another.
template <class Part>
auto recipe_value(Part part) {
  return [part](const Plan& p) {
    const bool plain = std::invoke(part, p.experts) == std::invoke(part, ExpertRecipe());
    return p.experts.routed || !plain ? text_value(std::invoke(part, p.experts)) : Value();
  };
}

std::vector<PlanKey> expert_rows() {
  using E = ExpertRecipe;
  const auto flag = [](std::string_view name, auto asked, bool E::*chosen, std::string_view help) {
    return by_key({key::flag<P>(name, asked, help), recipe_value(chosen), never});
  };
  const auto dispatcher_name = [](const E& recipe) {
    return dispatcher_names[static_cast<std::size_t>(recipe.dispatcher)];
  };
  return {by_key({key::word<P>("dispatcher", &P::dispatcher, dispatcher_names,
                               "how tokens reach experts"),
                  recipe_value(dispatcher_name), never}),
          {key::whole<P>("dispatcher_multiprocessors", &P::dispatcher_multiprocessors, {0, 1024},
                         "multiprocessors that its kernels take"),
           recipe_value(&E::multiprocessors), never},
          flag("expert_overlap", &P::expert_overlap, &E::overlap,
               "expert all-to-all beside another micro-batch's computation"),
          flag("delayed_weight_gradient", &P::delayed_weight_gradient, &E::delayed_weight_gradient,
               "... which then has the weight gradients as well"),
          flag("shared_expert_overlap", &P::shared_expert_overlap, &E::shared_overlap,
               "shared experts compute beside the exchange")};
}

// What a pipeline does with a micro-batch.
std::vector<PlanKey> step_rows() {
  return {
      titled("virtual stages a device",
             by_plan({size_key<P>("vpp", &P::vpp, "virtual stages of a pipeline rank"),
                      value_of(&Plan::vpp), never})),
      titled("micro-batch",
             by_plan({size_key<P>("micro_batch", &P::micro_batch, "sequences of a micro-batch"),
                      value_of(&Plan::micro_batch), has_groups})),
      by_plan({key::flag<P>("sequence_parallel", &P::sequence_parallel,
                            "norms and residuals are cut along the sequence over tensor ranks"),
               value_of(&Plan::sequence_parallel), never}),
      by_plan({key::special<P>(
                   "schedule", [] { return words_text(schedule_names()) + ", {file: FILE}"; },
                   "of the pipeline", read_schedule),
               schedule_value, never}),
      by_plan({size_key<P>("micro_batch_group", &P::micro_batch_group,
                           "interleaved: micro-batches that go through a chunk before the next (pp "
                           "unless given)"),
               value_above_zero([](const Plan& p) { return p.choices.group; }), never}),
      {key::whole<P>("in_flight_limit", &P::in_flight_limit, any_size,
                     "zero-bubble-h2: the most micro-batches in flight on a rank, pp to 2 pp - 1"),
       value_above_zero([](const Plan& p) { return p.choices.in_flight; }), never},
      by_plan({recompute_key<P>(), [](const Plan& p) { return recompute_value(p.recompute); },
               has_groups})};
}

// What ZeRO shards, and over which ranks.
std::vector<PlanKey> sharding_rows() {
  const auto plus_plus = [](auto part) {
    return [part](const Plan& p) { return text_value(p.zero_plus_plus.*part); };
  };
  using Z = ZeroPlusPlus;
  return {titled("ZeRO stage", by_plan({zero_key<P>(), value_of(&Plan::zero), has_groups})),
          by_key({size_key<P>("dp_replicate", &P::dp_replicate,
                              "groups of data-parallel ranks that each hold all of ZeRO's shards "
                              "(HSDP, MiCS); absent: 1, or the stack's"),
                  value_of(&Plan::dp_replicate), is_one(&Plan::dp_replicate)}),
          {key::word<P>("outer_dp_sharding", &P::outer_sharding, outer_sharding_names,
                        "optim: these groups share the optimizer's states (HFSDP)"),
           value_of(outer_sharding_name),
           [](const Plan& p) { return p.outer_sharding == OuterSharding::no_shard; }},
          {key::whole<P>(
               "zero_hpz_partition_size", [](P& p) -> int& { return p.zero_plus_plus.partition; },
               any_size,
               "ZeRO++: ranks that hold a second copy of the weights, which backward gathers; "
               "absent: 1"),
           plus_plus(&Z::partition), [](const Plan& p) { return p.zero_plus_plus.partition <= 1; }},
          {key::flag<P>(
               "zero_quantized_weights", [](P& p) -> bool& { return p.zero_plus_plus.weights; },
               "ZeRO++: forward gathers weights in 8 bits"),
           plus_plus(&Z::weights), [](const Plan& p) { return !p.zero_plus_plus.weights; }},
          {key::flag<P>(
               "zero_quantized_gradients", [](P& p) -> bool& { return p.zero_plus_plus.gradients; },
               "ZeRO++: gradients travel in 4 bits, within nodes and then between them"),
           plus_plus(&Z::gradients), [](const Plan& p) { return !p.zero_plus_plus.gradients; }},
          titled("kept in host memory",
                 by_key({offload_key(), [](const Plan& p) { return offload_value(p.offload); },
                         [](const Plan& p) { return !p.offload.any(); }}))};
}

// What stages and groups of devices have of their own. Read after the sizes they are held against.
std::vector<PlanKey> own_rows() {
  return {
      titled("layers of the stages",
             by_plan({key::special<P>("stage_layers",
                                      key::fixed_text("a list of 0 to 100,000, or 12x2+6"),
                                      "layers of each stage",
                                      [](MapReader& reader, P& plan) {
                                        if (const Value* list = reader.optional("stage_layers"))
                                          read_stage_layers(*list, plan);
                                      }),
                      [](const Plan& p) { return has_groups(p) ? Value() : stage_layers_value(p); },
                      [](const Plan& p) { return !p.stages.empty() || p.stage_layers.empty(); }})),
      {key::whole<P>("split_rank", &P::split_rank, {0, 100'000},
                     "encoder and decoder: the first pipeline rank of the decoder (Megatron-LM's "
                     "split rank)"),
       {},
       never},
      titled("Each stage's own sizes",
             {key::list<P>("stages", stage_rows(), "stages with sizes of their own", read_stages),
              [](const Plan& p) { return p.stages.empty() ? Value() : stages_value(p); }, never}),
      titled("Each group of replicas",
             {key::list<P>("replicas", replica_rows(),
                           "groups of replicas with shares of their own", read_replicas),
              [](const Plan& p) { return has_groups(p) ? replicas_value(p) : Value(); }, never}),
      titled("order of ranks",
             {key::special<P>("rank_order", key::fixed_text("an order of tp, cp, ep, dp, pp"),
                              "axes of the mesh of ranks, the fastest first: tp-cp-ep-dp-pp",
                              read_rank_order),
              value_of(&Plan::rank_order), never})};
}

}  // namespace

const std::vector<PlanKey>& plan_key_rows() {
  static const std::vector<PlanKey> rows = [] {
    std::vector<PlanKey> all;
    for (const auto& part : {axis_rows(), expert_rows(), step_rows(), sharding_rows(), own_rows()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return rows;
}

std::vector<std::string_view> expert_recipe_keys() {
  std::vector<std::string_view> names;
  for (const PlanKey& key : expert_rows()) names.push_back(key.row.name);
  return names;
}

std::vector<KeyText> plan_keys() {
  Keys<P> rows;
  for (const PlanKey& key : plan_key_rows()) rows.push_back(key.row);
  return described(rows, "plan.");
}

Value to_value(const ParallelPlan& plan) {
  Value map;
  for (const PlanKey& key : plan_key_rows()) {
    if (!key.value || key.implied(plan)) continue;
    if (Value value = key.value(plan); value.kind != Value::Kind::null)
      map.set(std::string(key.row.name), std::move(value));
  }
  return map;
}

std::string flow_text(const Value& value) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (value.is_map()) {
    for (const auto& entry : value.entries) add(entry.key + ": " + flow_text(entry.value));
    return "{" + text + "}";
  }
  if (value.kind == Value::Kind::sequence) {
    for (const Value& item : value.items) add(flow_text(item));
    return "[" + text + "]";
  }
  return value.text;
}

}  // namespace costmodel
