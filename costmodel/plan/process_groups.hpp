// Which ranks form which groups, as the programs that make them list them.
//
// megatron: Megatron-LM's initialize_model_parallel (megatron/core/parallel_state.py). Two grids
// over the same ranks (mesh.hpp): tensor x context x data x pipeline for all but experts, expert
// tensor x expert x expert data x pipeline for these. A group holds the ranks that differ only in
// its axes; groups are listed by the coordinates on the other axes, the first axis of the order
// fastest (generate_masked_orthogonal_rank_groups). The embedding group is the first and the last
// rank of a pipeline, the position embedding group the first (default_embedding_ranks).
//
// vllm: vllm/distributed/parallel_state.py, initialize_model_parallel: ranks are laid out as
// data x pipeline x prefill context x tensor, the last fastest, so rank = pp_rank * tp + tp_rank
// within a replica; an expert group is all ranks of a pipeline stage over all replicas, so
// ep = tp x cp x dp or 1.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

enum class RankLayout { megatron, vllm };
inline constexpr std::array<std::string_view, 2> rank_layout_names{"megatron", "vllm"};

struct ProcessGroups {
  std::string_view kind;   // "tensor"
  std::string_view use;    // what travels in it
  std::int64_t apart = 1;  // ranks between neighbours; 0: not the same everywhere
  std::vector<std::vector<std::int64_t>> groups;
};

// Why there are no groups for these sizes, and what to do; empty when there are.
struct GroupFault {
  std::string reason, remedy;
};
GroupFault group_fault(const ParallelPlan& plan, RankLayout layout);

// The groups of an even plan without a fault: tensor, pipeline, data, context and what they form
// together. Those of experts only where ep or etp is more than 1.
std::vector<ProcessGroups> process_groups(const ParallelPlan& plan, RankLayout layout);

}  // namespace costmodel
