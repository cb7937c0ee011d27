#include "costmodel/plan/plan_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/plan/mesh.hpp"

namespace costmodel {

std::string divisors_text(std::int64_t n, std::int64_t most) {
  std::string text;
  for (std::int64_t i = 1; i <= std::min(n, most); ++i) {
    if (n % i == 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", i);
  }
  return text;
}

// Megatron-LM and Transformer Engine: a causal sequence is split into 2·cp chunks, of which a rank
// takes one from either end; an all-to-all distributes complete heads.
void check_context(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                   Rules& rules) {
  if (p.cp == 1) return;
  rules.require(
      model.attends_by_place(), "cp",
      [&] {
        return std::string("context parallelism of ") +
               (model.recurrent() ? "a state-space scan" : "an indexer") + " is not modelled";
      },
      [] { return std::string("set cp: 1"); });
  rules.require(
      training.sequence % (std::int64_t{2} * p.cp) == 0, "cp",
      [&] {
        return fmt::format("the sequence {} is not divisible by 2 x cp {}", training.sequence,
                           p.cp);
      },
      [] { return std::string("choose another cp, or a sequence of a round length"); });
  rules.require(
      !p.sequence_parallel || training.sequence % (std::int64_t{p.tp} * p.cp) == 0,
      "sequence_parallel",
      [&] {
        return fmt::format("tp {} does not divide the {} tokens that cp {} leaves a rank", p.tp,
                           training.sequence / p.cp, p.cp);
      },
      [] { return std::string("set sequence_parallel: false, or another tp or cp"); });
  const std::int64_t fewest =
      model.window_kv_heads > 0 ? std::min(model.kv_heads, model.window_kv_heads) : model.kv_heads;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, fewest / p.tp);
  rules.require(
      p.cp_comm != ContextExchange::a2a ||
          (model.common_heads() % (std::int64_t{p.tp} * p.cp) == 0 && kv_heads % p.cp == 0),
      "cp_comm",
      [&] {
        return fmt::format(
            "cp_comm a2a deals out heads: tp {} leaves {} and {} key/value heads, "
            "cp {} does not divide both",
            p.tp, model.common_heads() / p.tp, kv_heads, p.cp);
      },
      [] { return std::string("set cp_comm: p2p, or a smaller cp"); });
  check_context_offered(p, training.stack, rules);
}

void check_context_offered(const ParallelPlan& p, const StackSpec& stack, Rules& rules) {
  rules.require(
      p.cp == 1 ||
          (stack.offers.context_parallel && stack.kernels.attention != AttentionKernel::unfused),
      "cp", [&] { return fmt::format("stack {} has no context parallelism", stack.name); },
      [] {
        return std::string(
            "set cp: 1, or choose another training.stack (see `shardplan list "
            "stacks`)");
      });
}

// Megatron-LM's interleaved schedule rejects an encoder before a decoder, "Interleaving is not
// supported with an encoder and decoder model." (core/pipeline_parallel/schedules.py of core 0.2 to
// 0.11); of schedules with split backward or folded stages it is not documented which ranks would
// hold the encoder's output.
void check_two_stacks(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                      Rules& rules) {
  if (!model.encoder_decoder()) return;
  const char* const what = "an encoder-decoder model";
  const bool split = splits_backward(p.schedule);
  rules.require(
      !split, "schedule",
      [&] {
        return fmt::format("schedule {} of {} is not modelled", schedule_name(p.schedule), what);
      },
      [&] {
        return fmt::format("set schedule: 1f1b or gpipe{}",
                           p.vpp > 1 ? " (and vpp: 1, if it is written)" : "");
      });
  rules.require(
      p.vpp == 1 || split, "vpp",
      [&] {
        return fmt::format("{} is not interleaved: Megatron-LM's interleaved schedule refuses it",
                           what);
      },
      [] { return std::string("set schedule: 1f1b and vpp: 1"); });
  rules.require(
      p.cp == 1, "cp",
      [&] { return fmt::format("context parallelism of {} is not modelled", what); },
      [] { return std::string("set cp: 1"); });
  rules.require(
      !p.sequence_parallel || training.decoder_sequence % p.tp == 0, "sequence_parallel",
      [&] {
        return fmt::format("tp {} does not divide the decoder_sequence {}", p.tp,
                           training.decoder_sequence);
      },
      [] { return std::string("set sequence_parallel: false, or another tp"); });
  for (const auto& [key, size] : {std::pair{"decoder_heads", model.decoder_heads},
                                  std::pair{"decoder_ffn_hidden", model.decoder_ffn_hidden}}) {
    rules.require(
        size % p.tp == 0, "tp",
        [&, name = key, n = size] {
          return fmt::format("tp {} does not divide the model's {} {}", p.tp, name, n);
        },
        [&, n = size] { return fmt::format("choose tp among {}", divisors_text(n)); });
  }
  for (std::size_t k = 1; k + 1 < p.stage_layers.size(); ++k) {
    rules.require(
        p.stage_layers[k] > 0, "stage_layers",
        [&] { return fmt::format("stage {} of {} is without layers", k, what); },
        [] { return std::string("give each stage but the first and the last a layer at least"); });
  }
}

// Each group is neighbours in the data-parallel axis (Megatron-LM, parallel_state.py,
// create_hierarchical groups of num_distributed_optimizer_instances; torchtitan, ParallelDims:
// dp_shard inside dp_replicate), and holds as many of the experts' replicas.
void check_hybrid(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                  Rules& rules) {
  const bool optim = p.outer_sharding == OuterSharding::optim;
  const bool alike = rules.require(
      p.even() && p.ways() == 1, "dp_replicate",
      [] {
        return std::string(
            "groups of shards with stages or replicas of their own, or a pipeline "
            "that goes two ways, are not modelled");
      },
      [] { return std::string("leave dp_replicate out"); });
  if (!alike) return;
  rules.require(
      p.dp % p.dp_replicate == 0, "dp_replicate",
      [&] { return fmt::format("dp_replicate {} does not divide dp {}", p.dp_replicate, p.dp); },
      [&] { return fmt::format("choose among {}", divisors_text(p.dp)); });
  rules.require(
      model.experts == 0 || p.expert_replicas() % p.dp_replicate == 0, "dp_replicate",
      [&] {
        return fmt::format(
            "dp_replicate {} does not divide the {} ranks that hold the same experts",
            p.dp_replicate, p.expert_replicas());
      },
      [&] {
        return fmt::format("choose among {}, or a smaller ep", divisors_text(p.expert_replicas()));
      });
  rules.require(
      p.zero >= 1 || p.dp_replicate == 1, "dp_replicate",
      [] { return std::string("groups of shards without ZeRO: nothing is sharded"); },
      [] { return std::string("set zero: 1, 2 or 3, or leave dp_replicate out"); });
  rules.require(
      training.optimizer != Optimizer::muon, "dp_replicate",
      [] {
        return std::string("muon's whole matrices are dealt out over all data-parallel ranks");
      },
      [] { return std::string("leave dp_replicate out, or set training.optimizer: adam"); });
  // Megatron-FSDP: "FSDP primary sharding (optim_grads_params) is required for HFSDP".
  rules.require(
      !optim || (p.zero == 3 && p.dp_replicate > 1), "outer_dp_sharding",
      [] {
        return std::string(
            "outer_dp_sharding: optim is of several groups whose parameters are "
            "sharded");
      },
      [] { return std::string("set zero: 3 and dp_replicate: 2 or more, or leave it out"); });
  check_hybrid_offered(p, training.stack, rules);
}

void check_zero_plus_plus(const ParallelPlan& p, const ModelSpec& model,
                          const TrainingSpec& training, Rules& rules) {
  const ZeroPlusPlus& own = p.zero_plus_plus;
  const char* const key = own.partition > 1 ? "zero_hpz_partition_size"
                          : own.weights     ? "zero_quantized_weights"
                                            : "zero_quantized_gradients";
  rules.require(
      p.even() && p.zero == 3, key,
      [] { return std::string("ZeRO++ is of sharded weights, the same on all stages"); },
      [] { return std::string("set zero: 3, or leave it out"); });
  rules.require(
      p.dp_replicate == 1, key,
      [] { return std::string("ZeRO++ beside groups of shards (MiCS) is not modelled"); },
      [] { return std::string("leave it out, or dp_replicate"); });
  const char* const what = model.experts > 0               ? "experts"
                           : training.fine_tuning.adapts() ? "a frozen base"
                                                           : nullptr;
  rules.require(
      what == nullptr, key, [&] { return fmt::format("ZeRO++ of {} is not modelled", what); },
      [] { return std::string("leave it out"); });
  rules.require(
      p.replicas() % own.partition == 0 && own.partition % p.cp == 0, "zero_hpz_partition_size",
      [&] {
        return fmt::format(
            "zero_hpz_partition_size {} does not divide the {} ranks that hold the "
            "same weights{}",
            own.partition, p.replicas(), p.cp > 1 ? ", by whole context groups" : "");
      },
      [&] { return fmt::format("choose among {}", divisors_text(p.replicas())); });
}

void check_hybrid_offered(const ParallelPlan& p, const StackSpec& stack, Rules& rules) {
  rules.require(
      !p.zero_plus_plus.any() || stack.offers.zero_plus_plus,
      p.zero_plus_plus.partition > 1 ? "zero_hpz_partition_size"
      : p.zero_plus_plus.weights     ? "zero_quantized_weights"
                                     : "zero_quantized_gradients",
      [&] { return fmt::format("stack {} has no ZeRO++", stack.name); },
      [] { return std::string("leave it out, or set training.stack: deepspeed"); });
  rules.require(
      p.dp_replicate == 1 || stack.offers.hybrid_sharding, "dp_replicate",
      [&] { return fmt::format("stack {} shards over all data-parallel ranks", stack.name); },
      [] {
        return std::string(
            "leave dp_replicate out, or choose another training.stack: torchtitan, "
            "megatron-core-2026 or megatron-bridge");
      });
  rules.require(
      p.outer_sharding == OuterSharding::no_shard || stack.offers.outer_optimizer_shards,
      "outer_dp_sharding",
      [&] { return fmt::format("in stack {} each group holds all states", stack.name); },
      [] {
        return std::string(
            "leave outer_dp_sharding out, or choose another training.stack: "
            "megatron-core-2026 or megatron-bridge");
      });
}

// Megatron-Bridge cuts the first matrix of an adapter by its rank (peft/utils.py,
// ParallelLinearAdapter); bitsandbytes shards a base of 4 bits over FSDP's ranks alone (its
// documentation, FSDP-QLoRA).
void check_adapters(const ParallelPlan& p, const TrainingSpec& training, Rules& rules) {
  const FineTuning& tuning = training.fine_tuning;
  if (!tuning.adapts()) return;
  const bool quantised = tuning.base == BasePrecision::nf4;
  rules.require(
      !quantised || p.tp == 1, "tp",
      [&] { return fmt::format("a base in nf4 is not split over tensor ranks, tp is {}", p.tp); },
      [] {
        return std::string("set tp: 1; zero: 3 (FSDP) shards it, or base_precision: bf16 or fp8");
      });
  rules.require(
      !quantised || p.pp == 1, "pp",
      [&] { return fmt::format("a base in nf4 is not split into stages, pp is {}", p.pp); },
      [] {
        return std::string("set pp: 1; zero: 3 (FSDP) shards it, or base_precision: bf16 or fp8");
      });
  rules.require(
      tuning.rank % p.tp == 0, "tp",
      [&] { return fmt::format("tp {} does not divide the adapters' rank {}", p.tp, tuning.rank); },
      [&] {
        return fmt::format("choose tp among {}, or another training.fine_tuning.rank",
                           divisors_text(tuning.rank));
      });
}

// Megatron-LM: ep divides the experts, etp x ep divides the ranks of a stage, and tokens are routed
// as sharded by sequence parallelism.
void check_experts(const ParallelPlan& p, const ModelSpec& model, Rules& rules) {
  const bool has = model.experts > 0;
  for (const auto& [key, size] : {std::pair{"ep", p.ep}, std::pair{"etp", p.etp}}) {
    rules.require(
        has || size == 1, key,
        [&, name = key, n = size] { return fmt::format("{} {} without experts", name, n); },
        [name = key] { return fmt::format("set {}: 1, or choose a model of kind moe", name); });
  }
  if (!has || rules.stop()) return;
  rules.require(
      model.experts % p.ep == 0, "ep",
      [&] { return fmt::format("ep {} does not divide the {} experts", p.ep, model.experts); },
      [&] { return fmt::format("choose ep among {}", divisors_text(model.experts)); });
  const std::int64_t ranks = std::int64_t{p.tp} * p.cp * p.dp;
  const std::int64_t own = std::int64_t{p.ep} * p.etp;
  rules.require(
      ranks % own == 0, "ep",
      [&] {
        return fmt::format("ep {} x etp {} = {} does not divide the {} ranks of a stage", p.ep,
                           p.etp, own, ranks);
      },
      [&] { return fmt::format("choose ep x etp among {}", divisors_text(ranks)); });
  rules.require(
      model.expert_ffn_hidden % p.etp == 0 && model.shared_ffn() % p.tp == 0,
      model.expert_ffn_hidden % p.etp == 0 ? "tp" : "etp",
      [&] {
        return fmt::format("tp {} and etp {} do not divide expert_ffn_hidden {}", p.tp, p.etp,
                           model.expert_ffn_hidden);
      },
      [] { return std::string("choose other sizes"); });
  // parallel_state.py: both grids must have the same pipelines.
  rules.require(
      p.rank_order == default_rank_order || ranks % own != 0 || p.pp == 1 ||
          Mesh(p).stride(Axis::pipeline) == expert_mesh(p).stride(Axis::pipeline),
      "rank_order",
      [&] {
        return fmt::format("rank_order {} lays out the pipelines of experts otherwise than others'",
                           p.rank_order);
      },
      [] { return std::string("leave it out, or make ep x etp equal tp x cp"); });
  rules.require(
      p.tp == 1 || p.sequence_parallel, "sequence_parallel",
      [] { return std::string("experts with tp > 1 need sequence_parallel"); },
      [] { return std::string("set sequence_parallel: true"); });
}

// transformer_config.py, overlap_moe_expert_parallel_comm and moe_shared_expert_overlap: in a
// pipeline the two micro-batches are of different chunks.
void check_overlapped_exchange(const ParallelPlan& p, Rules& rules) {
  const ExpertRecipe& recipe = p.experts;
  const char* const key = recipe.overlap ? "expert_overlap" : "shared_expert_overlap";
  rules.require(
      recipe.dispatcher != Dispatcher::allgather || !(recipe.overlap || recipe.shared_overlap), key,
      [] { return std::string("dispatcher allgather does not overlap with computation"); },
      [key] { return fmt::format("set {}: false, or dispatcher: alltoall", key); });
  if (!recipe.overlap) return;
  rules.require(
      p.ep > 1, "expert_overlap", [] { return std::string("expert_overlap needs ep above 1"); },
      [] { return std::string("set ep above 1, or expert_overlap: false"); });
  rules.require(
      p.pp == 1 || p.vpp > 1, "expert_overlap",
      [] { return std::string("expert_overlap in a pipeline needs virtual stages"); },
      [] { return std::string("set vpp above 1, or expert_overlap: false"); });
  rules.require(
      p.recompute.granularity != Recomputation::full, "expert_overlap",
      [] { return std::string("expert_overlap does not go with full recomputation"); },
      [] { return std::string("set recompute: selective or none, or expert_overlap: false"); });
}

}  // namespace costmodel
