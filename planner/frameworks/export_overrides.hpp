// A plan as the fields of a configuration that Megatron Core's classes make up: Megatron-Bridge's
// ConfigContainer, or a recipe of NeMo 2.x. The fields follow from the arguments of Megatron-LM.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/scenario/scenario.hpp"
#include "planner/frameworks/export_megatron.hpp"

namespace planner {

enum class OverrideTarget : std::uint8_t { bridge, nemo };

struct Override {
  std::string field;  // "model.num_layers"
  std::string value;  // as Hydra writes it: 8, true, null, [a,b], or a word without quotes
};

struct OverrideExport {
  std::vector<Override> list;        // in the order of the table
  std::vector<std::string> without;  // arguments that have no field
};

// What an export of fields writes.
struct OverridesScript {
  std::string script;  // bash
  std::vector<Override> overrides;
  std::vector<std::string> notes;
};

// Of what export_megatron() made of the plan. --attention-backend is a value of an enumeration,
// which a word cannot say: has_unfused_attention() tells it.
OverrideExport export_overrides(const MegatronExport& exported, const costmodel::Scenario& scenario,
                                const costmodel::ParallelPlan& plan, OverrideTarget target);

bool has_unfused_attention(const MegatronExport& exported);

}  // namespace planner
