// A way to split training over devices, fully resolved: every key has a value.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/plan/recompute.hpp"
#include "costmodel/schedule/schedule.hpp"

namespace costmodel {

struct ClusterSpec;
struct ModelSpec;
struct StackSpec;
struct TrainingSpec;

// How context-parallel ranks see each other's keys and values. p2p: ring attention, K and V go
// round while their last block is attended to (Liu et al. 2023, arXiv:2310.01889). a2a: all-to-all
// to whole sequences of fewer heads and back (DeepSpeed-Ulysses, Jacobs et al. 2023,
// arXiv:2309.14509). all_gather: K and V of the whole sequence are gathered first (Llama 3,
// arXiv:2407.21783, section 3.3.2). The names are Megatron's --cp-comm-type.
enum class ContextExchange { p2p, a2a, all_gather };
inline constexpr std::array<std::string_view, 3> context_exchange_names{"p2p", "a2a", "all_gather"};

inline constexpr std::string_view default_rank_order = "tp-cp-ep-dp-pp";

// One pipeline stage where stages differ. Its devices are tp x cp x dp; every stage works on the
// same sequences of a micro-batch, so a replica of it takes (plan.dp x plan.micro_batch) / dp.
struct StagePlan {
  int tp = 1;
  int dp = 1;
  Recompute recompute;
  int zero = 0;
  std::string group;  // of the cluster's groups; empty: the next one with devices left
  int cp = 1;
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;
  int etp = 1;
  bool operator==(const StagePlan&) const = default;
};

// The replicas of the whole model that one group of a mixed cluster holds, where every group holds
// some: dp pipelines of their own sizes on all of its devices, each of which takes micro_batches an
// iteration.
struct ReplicaGroup {
  std::string group;  // of the cluster's
  int tp = 1;
  int pp = 1;
  int dp = 1;
  std::int64_t micro_batch = 1;    // sequences
  std::int64_t micro_batches = 1;  // of each replica
  Recompute recompute;
  int zero = 0;

  std::int64_t sequences() const { return dp * micro_batch * micro_batches; }
  bool operator==(const ReplicaGroup&) const = default;
};

struct ParallelPlan {
  int tp = 1;  // t
  int pp = 1;  // p
  int dp = 1;  // d
  int cp = 1;  // context parallel: a sequence is cut over so many ranks
  ContextExchange cp_comm = ContextExchange::p2p;
  int ep = 1;                    // expert parallel: experts are dealt out over so many ranks
  int etp = 1;                   // tensor parallel size inside an expert
  int vpp = 1;                   // v: virtual stages a device holds
  std::int64_t micro_batch = 1;  // b, sequences
  bool sequence_parallel = false;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  Recompute recompute;
  int zero = 0;                   // ZeRO stage
  std::vector<int> stage_layers;  // layers of each of the p·v virtual stages; empty: equal shares
  std::string rank_order{default_rank_order};
  // First to last, in place of tp, cp, cp_comm, ep, etp, dp, recompute and zero above; empty: all
  // stages are alike.
  std::vector<StagePlan> stages;
  // One for each of the cluster's groups, in their order, in place of tp, pp, dp, micro_batch,
  // recompute and zero above; then pp above is their sum: the pipeline ranks of all groups, one
  // group's after the other's. Empty: replicas are all alike.
  std::vector<ReplicaGroup> replica_groups;

  // The most there can be where the sizes as written multiply to more.
  std::int64_t devices() const {
    if (!stages.empty()) return devices_of_stages();
    if (!replica_groups.empty()) return devices_of_replicas();
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    const std::int64_t replicated = std::int64_t{dp} * cp, model = std::int64_t{tp} * pp;
    return replicated > 0 && model > most / replicated ? most : model * replicated;
  }
  // Ranks that hold the same weights: their gradients are summed, ZeRO shards over them.
  int replicas() const { return dp * cp; }
  // The same of experts (Megatron's expert-data-parallel group).
  std::int64_t expert_replicas() const {
    return std::int64_t{tp} * cp * dp / (std::int64_t{ep} * etp);
  }
  std::int64_t micro_batches(std::int64_t global_batch) const {
    return global_batch / (dp * micro_batch);
  }
  int virtual_stages() const { return pp * vpp; }
  std::int64_t devices_of_stages() const;
  std::int64_t devices_of_replicas() const;
  bool operator==(const ParallelPlan&) const = default;
};

// A rule the plan breaks: the plan key at fault, what is wrong, and what would mend it.
struct Violation {
  std::string key;
  std::string reason;
  std::string remedy;
};

// The rules by which Megatron-LM accepts a plan (arguments.py, parallel_state.py,
// transformer_config.py of core 0.20), and ours where it has none. Empty when the plan is valid.
// Never throws.
std::vector<Violation> violations(const ParallelPlan& plan, const ModelSpec& model,
                                  const ClusterSpec& cluster, const TrainingSpec& training);

// The same verdict without words, for the search.
bool is_valid(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
              const TrainingSpec& training);

// The rules that a plan breaks with any model on any devices: the stack does not offer what it asks
// for.
std::vector<Violation> not_offered(const ParallelPlan& plan, const StackSpec& stack);

// How layers that do not divide evenly are still placed, as Megatron does with
// --account-for-embedding-in-pipeline-split and
// --account-for-loss-in-pipeline-split: the embedding, the loss, or both count as a layer. none
// when they divide. balanced when no such count divides: the most even contiguous partition with
// embedding and loss as layers, the larger shares first; for frameworks that partition freely
// (DeepSpeed). impossible when there are fewer layers than stages. Nothing of it applies when
// stage_layers is given.
enum class UnevenSplit { none, loss, embedding_and_loss, balanced, impossible };
UnevenSplit uneven_split(const ParallelPlan& plan, const ModelSpec& model);

// Layers of virtual stage k, counted from 0: stage_layers, or equal shares, or an uneven split,
// whose first or last stage has one layer less.
int layers_of(const ParallelPlan& plan, const ModelSpec& model, int virtual_stage);

// Vocabulary padded to a multiple of 128·t (Megatron's --make-vocab-size-divisible-by).
std::int64_t padded_vocab(std::int64_t vocab, int tp);

}  // namespace costmodel
