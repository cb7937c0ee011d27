// The values of plan keys that are more than a number, a word or a switch: recomputation, context
// exchange, schedules, stages and groups of replicas, read and written.
#pragma once

#include <optional>

#include "costmodel/config/key.hpp"
#include "costmodel/plan/plan_request.hpp"

namespace costmodel {

// Rows that a plan, a stage and a group of replicas share.
template <class Spec, class Field>
Key<Spec> size_key(std::string_view name, Field field, std::string_view help) {
  return key::whole<Spec>(name, field, any_size, help);
}

// `none` stands for a plan without context parallelism.
std::optional<ContextExchange> read_exchange(MapReader& reader);
template <class Spec>
Key<Spec> exchange_key() {
  return key::special<Spec>(
      "cp_comm", [] { return "none, " + words_text(context_exchange_names); },
      "how context ranks exchange keys and values",
      [](MapReader& reader, Spec& spec) { spec.cp_comm = read_exchange(reader); });
}
Value exchange_value(ContextExchange exchange);

Recompute read_recompute(const Value& value);
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
Value recompute_value(const Recompute& recompute);

template <class Spec>
Key<Spec> zero_key() {
  return key::whole<Spec>("zero", &Spec::zero, {0, 3},
                          "ZeRO stage: 1 shards optimizer states, 2 gradients, 3 parameters");
}

// `offload`: what is kept in host memory.
Key<PlanRequest> offload_key();
Value offload_value(const HostOffload& offload);

// `schedule`: the name of a kind, or {file: FILE}.
void read_schedule(MapReader& reader, PlanRequest& plan);
Value schedule_value(const ParallelPlan& plan);

// A list, or the same in short as reports write it: 20+12x3.
void read_stage_layers(const Value& value, PlanRequest& plan);
Value stage_layers_value(const ParallelPlan& plan);

const Keys<StageRequest>& stage_rows();
// Layers may stand in the stages or in stage_layers, which is read before.
void read_stages(const Value& value, PlanRequest& plan);
Value stages_value(const ParallelPlan& plan);

const Keys<ReplicaRequest>& replica_rows();
void read_replicas(const Value& value, PlanRequest& plan);
Value replicas_value(const ParallelPlan& plan);

}  // namespace costmodel
