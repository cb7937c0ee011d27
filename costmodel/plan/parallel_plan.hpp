// A fully resolved parallel plan: every key has a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/expert_recipe.hpp"
#include "costmodel/plan/host_offload.hpp"
#include "costmodel/plan/recompute.hpp"
#include "costmodel/schedule/schedule_file.hpp"

namespace costmodel {

struct ClusterSpec;
struct ModelSpec;
struct StackSpec;
struct TrainingSpec;

// How context-parallel ranks exchange keys and values. p2p: ring attention; K and V travel around
// the ring while attention runs on the previous block (Liu et al. 2023, arXiv:2310.01889). a2a: an
// all-to-all from sequence shards to head shards and back (DeepSpeed-Ulysses, Jacobs et al. 2023,
// arXiv:2309.14509). all_gather: K and V of the full sequence are gathered first (Llama 3,
// arXiv:2407.21783, section 3.3.2). The names are those of Megatron's --cp-comm-type.
enum class ContextExchange { p2p, a2a, all_gather };
inline constexpr std::array<std::string_view, 3> context_exchange_names{"p2p", "a2a", "all_gather"};

inline constexpr std::string_view default_rank_order = "tp-cp-ep-dp-pp";

// Larger than any number of devices or sequences, yet sums do not overflow. Products stop here.
inline constexpr std::int64_t beyond_any = 1'000'000'000'000;

// What the groups of a hybrid sharding have in shards between them: nothing, each holds all states;
// or the optimizer's, over all ranks, while gradients and parameters are sharded inside a group.
// The names are those of Megatron-FSDP's --outer-dp-sharding-strategy (HSDP, HFSDP).
enum class OuterSharding { no_shard, optim };
inline constexpr std::array<std::string_view, 2> outer_sharding_names{"no_shard", "optim"};

// ZeRO++ (Wang et al. 2023, arXiv:2306.10209), in place of ZeRO-3's collectives; DeepSpeed's names.
struct ZeroPlusPlus {
  int partition = 1;  // hpZ, zero_hpz_partition_size: ranks over which a second copy of the weights
                      // is sharded, which backward gathers; 1: none
  bool weights = false;    // qwZ, zero_quantized_weights: forward gathers them in 8 bits
  bool gradients = false;  // qgZ, zero_quantized_gradients: they travel in 4 bits
  bool any() const { return partition > 1 || weights || gradients; }
  bool operator==(const ZeroPlusPlus&) const = default;
};

// One pipeline stage of a plan with heterogeneous stages, on tp x cp x dp devices. All stages
// process the same sequences of a micro-batch, so a replica of this stage takes (plan.dp x
// plan.micro_batch) / dp sequences.
struct StagePlan {
  int tp = 1;
  int dp = 1;
  Recompute recompute;
  int zero = 0;
  std::string group;  // of the cluster's groups; empty: the next one with free devices
  int cp = 1;
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;
  int etp = 1;
  std::int64_t devices() const;
  bool operator==(const StagePlan&) const = default;
};

// The replicas of the complete model on one group of a mixed cluster, for plans in which every
// group holds replicas: dp pipelines on all devices of the group, each of which takes micro_batches
// micro-batches per iteration.
struct ReplicaGroup {
  std::string group;  // a group of the cluster
  int tp = 1;
  int pp = 1;
  int dp = 1;
  std::int64_t micro_batch = 1;    // sequences
  std::int64_t micro_batches = 1;  // per replica
  Recompute recompute;
  int zero = 0;

  std::int64_t sequences() const { return dp * micro_batch * micro_batches; }
  std::int64_t devices(int cp) const;
  bool operator==(const ReplicaGroup&) const = default;
};

// A plan is a list of pipelines, each a list of stages (pipelines_of, stage): most often one
// pipeline, of which dp replicas run alike, with stages that have the same sizes.
struct ParallelPlan {
  int tp = 1;  // t
  int pp = 1;  // p
  int dp = 1;  // d
  int cp = 1;  // context parallel: ranks a sequence is sharded over
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;                    // expert parallel: ranks the experts are distributed over
  int etp = 1;                   // tensor parallel size inside an expert
  ExpertRecipe experts;          // ignored by models without experts
  int vpp = 1;                   // v: virtual stages per device
  std::int64_t micro_batch = 1;  // b, sequences
  bool sequence_parallel = false;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::shared_ptr<const ListedSchedule> listed;  // with a kind from a file, else null
  OrderChoices choices{};                        // of the schedule's order
  Recompute recompute;
  int zero = 0;  // ZeRO stage
  // Hybrid sharding (HSDP, Zhao et al. 2023, arXiv:2304.11277, section 3.2.2; MiCS, Zhang et al.
  // 2022, arXiv:2205.00119): the ranks that hold the same weights form so many groups, each of
  // neighbours, and ZeRO shards within a group. Megatron-LM's
  // --num-distributed-optimizer-instances.
  int dp_replicate = 1;
  OuterSharding outer_sharding = OuterSharding::no_shard;
  ZeroPlusPlus zero_plus_plus;
  HostOffload offload;
  std::vector<int> stage_layers;  // layers of each of the p·v virtual stages; empty: an equal split
  std::string rank_order{default_rank_order};
  // Heterogeneous stages, first to last; they replace tp, cp, cp_comm, ep, etp, dp, recompute and
  // zero above. Empty: all stages are identical.
  std::vector<StagePlan> stages;
  // One entry per group of the cluster, in the cluster's order; they replace tp, dp, micro_batch,
  // recompute and zero above. pp above is then the sum of theirs: the pipeline ranks of the groups
  // are numbered consecutively. Empty: all replicas are identical.
  std::vector<ReplicaGroup> replica_groups;

  // Number of pipelines; each has its own number of replicas.
  int pipelines() const { return std::max(1, static_cast<int>(replica_groups.size())); }
  // Whether one pipeline, on the entire cluster, has stages of the sizes above.
  bool even() const { return stages.empty() && replica_groups.empty(); }
  // The sizes of a stage of the only pipeline: its own, or those above.
  StagePlan stage(int k) const;
  // The stages that say sizes of their own; if none does, stage 0 speaks for all.
  int different_stages() const { return std::max(1, static_cast<int>(stages.size())); }

  // Number of devices; the largest int64 when the product overflows.
  std::int64_t devices() const {
    if (!even()) return devices_of_all();
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t replicated = std::int64_t{dp} * cp, model = std::int64_t{tp} * pp;
    return replicated > 0 && model > most / replicated ? most : model * replicated;
  }
  // Ranks that hold the same weights: they sum their gradients.
  int replicas() const { return dp * cp * ways(); }
  // The same for expert weights (Megatron's expert-data-parallel group).
  std::int64_t expert_replicas() const {
    return std::int64_t{tp} * cp * dp / (std::int64_t{ep} * etp) * ways();
  }
  // Ranks over which ZeRO shards, and the same for expert weights.
  int shards() const { return replicas() / dp_replicate; }
  std::int64_t expert_shards() const { return expert_replicas() / dp_replicate; }
  // Whether the optimizer's states are sharded over more ranks than the rest.
  bool shards_states_further() const {
    return dp_replicate > 1 && outer_sharding == OuterSharding::optim;
  }
  // The pipeline ranks that hold each stage's weights: 2 where the schedule goes two ways.
  int ways() const { return row_of(schedule).two_way ? 2 : 1; }
  int chunks() const { return chunks_held(schedule, vpp); }  // of a rank
  std::int64_t micro_batches(std::int64_t global_batch) const {
    return global_batch / (dp * micro_batch);
  }
  int virtual_stages() const { return pp * vpp; }
  std::int64_t devices_of_all() const;  // summed stage by stage
  bool operator==(const ParallelPlan&) const = default;
};

constexpr std::string_view outer_sharding_name(const ParallelPlan& plan) {
  return outer_sharding_names[static_cast<std::size_t>(plan.outer_sharding)];
}

// A broken rule: the plan key at fault, the reason, and a remedy.
struct Violation {
  std::string key;
  std::string reason;
  std::string remedy;
};

// Checks the rules by which Megatron-LM accepts a plan (arguments.py, parallel_state.py,
// transformer_config.py of core 0.20), and Shardplan's own where Megatron-LM has none. Empty when
// the plan is valid. Never throws.
std::vector<Violation> violations(const ParallelPlan& plan, const ModelSpec& model,
                                  const ClusterSpec& cluster, const TrainingSpec& training);
// Those of Megatron-LM for an exchange of experts that overlaps with computation; among the above
// for stacks of its lineage.
std::vector<Violation> overlap_violations(const ParallelPlan& plan);

// The same check without messages, for the search.
bool is_valid(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
              const TrainingSpec& training);

// The features of the plan that the stack does not offer, for any model and devices.
std::vector<Violation> not_offered(const ParallelPlan& plan, const StackSpec& stack);

// How layers are placed when they do not divide evenly. loss, embedding_and_loss: the loss, or
// both, count as a layer, as with Megatron's --account-for-loss-in-pipeline-split and
// --account-for-embedding-in-pipeline-split. none: the layers divide. balanced: no such count
// divides; the most even contiguous partition with embedding and loss as layers, larger shares
// first, for frameworks that partition freely (DeepSpeed). impossible: fewer layers than stages.
// Ignored when stage_layers is given.
enum class UnevenSplit { none, loss, embedding_and_loss, balanced, impossible };
UnevenSplit uneven_split(const ParallelPlan& plan, const ModelSpec& model);

// Layers of each of `stages` stages that they do not divide into: all take equal shares and the
// last what these leave, as with Megatron's --decoder-last-pipeline-num-layers (DeepSeek-V3's 61
// layers on 8 ranks: seven times 8, and 5); the most even ones where that would leave it none.
// Empty for fewer layers than stages.
std::vector<int> rest_on_last(std::int64_t layers, std::int64_t stages);

// Whether such equal shares leave the last stage any layers.
bool leaves_rest(std::int64_t layers, std::int64_t stages);

// Number of layers of virtual stage k, counted from 0: from stage_layers, an equal split, or an
// uneven split, whose first or last stage has one layer less.
int layers_of(const ParallelPlan& plan, const ModelSpec& model, int virtual_stage);

// The layout of a framework that cuts blocks by their multiply-adds a token, the output projection
// among them (StackDefaults::layout_by_cost): a stage ends with the block that takes the sum over
// its share (nanotron, src/nanotron/models/base.py). Stages between that this leaves empty get a
// layer.
std::vector<int> layers_by_cost(const ModelSpec& model, int stages);

// Vocabulary padded to a multiple of 128·t (Megatron's --make-vocab-size-divisible-by).
std::int64_t padded_vocab(std::int64_t vocab, int tp);

}  // namespace costmodel
