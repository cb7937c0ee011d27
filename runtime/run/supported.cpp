#include "runtime/run/supported.hpp"

#include <fmt/format.h>

#include <utility>

#include "costmodel/plan/pipeline.hpp"
#include "costmodel/plan/stage_plan.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// The gradients of all groups are summed shard by shard of the tensor ranks.
std::vector<Violation> unsupported_together(const ModelSpec& model,
                                            const std::vector<Pipeline>& all) {
  std::vector<Violation> found;
  const ParallelPlan& first = all.front().plan;
  for (const Pipeline& one : all) {
    if (one.plan.tp != first.tp) {
      found.push_back({"replicas",
                       fmt::format("the runtime sums gradients of equally wide tensor groups, and "
                                   "group '{}' has tp {}, group '{}' tp {}",
                                   all.front().group, first.tp, one.group, one.plan.tp),
                       "give all groups the same tp"});
    }
    const bool apart = one.plan.pp > 1;
    if (model.tie_embeddings && apart != (first.pp > 1)) {
      found.push_back({"replicas",
                       "the tied embedding is on one stage in some groups and on two in others",
                       "give all groups pp 1 or none, or set tie_embeddings: false"});
    }
  }
  return found;
}

// How the weights are trained and sharded.
template <class Refuse>
void refuse_recipe(const TrainingSpec& training, const ParallelPlan& plan, Refuse refuse) {
  refuse(training.fine_tuning.adapts(), "training",
         "the runtime trains all weights: it has no adapters and no frozen base",
         "leave training.fine_tuning out, or set its method: full");
  refuse(plan.zero_plus_plus.any(), "zero", "the runtime has no ZeRO++",
         "leave the keys zero_hpz_partition_size, zero_quantized_weights and _gradients out");
  refuse(plan.dp_replicate > 1, "dp_replicate", "the runtime shards over all data-parallel ranks",
         "leave dp_replicate out");
  refuse(training.packing.packed, "training",
         "the runtime's attention does not tell the samples of a sequence apart",
         "leave training.packing out");
  refuse(training.optimizer != Optimizer::adam, "optimizer", "the runtime's optimizer is Adam",
         "set optimizer: adam");
}

// Of the plan of one pipeline.
std::vector<Violation> unsupported_alone(const ModelSpec& model, const TrainingSpec& training,
                                         const ParallelPlan& plan) {
  std::vector<Violation> found;
  const auto refuse = [&](bool fault, const char* key, std::string reason, std::string remedy) {
    if (fault) found.push_back({key, std::move(reason), std::move(remedy)});
  };
  refuse(model.experts > 0 || model.recurrent() || model.latent_attention(), "model",
         "the runtime has no experts, scans or latent attention", "take a gpt or llama model");
  refuse(model.encoder_decoder(), "model", "the runtime has no encoder-decoder models",
         "take a gpt or llama model");
  refuse(model.towers != nullptr, "model", "the runtime has no towers",
         "set training.images: 0 or audio_clips: 0");
  refuse((model.towers == nullptr && !model.plain_block()) || model.windowed(training.sequence),
         "model", "the runtime has no windows, gates, sinks, encoders, or norms in other places",
         "take a gpt or llama model without them");
  refuse(model.parallel_block, "model", "the runtime has no parallel attention and MLP",
         "set parallel_block: false");
  refuse(model.positions == Positions::alibi, "model", "the runtime has no ALiBi",
         "set positions: rotary or learned");
  const bool known = model.gated_mlp ? model.activation == ActivationFunction::silu
                                     : model.activation == ActivationFunction::gelu;
  refuse(!known, "model", "the runtime's activations are GELU and, gated, SiLU",
         "set activation: gelu, or silu with gated_mlp: true");
  for (int k = 0; k < plan.different_stages(); ++k) {
    const StagePlan stage = plan.stage(k);
    const std::size_t before = found.size();
    refuse(stage.cp > 1, "cp", "the runtime has no context parallelism", "set cp: 1");
    refuse(stage.ep > 1 || stage.etp > 1, "ep", "the runtime has no expert parallelism",
           "set ep: 1 and etp: 1");
    for (std::size_t i = before; i < found.size(); ++i) blame_stage(plan, k, found[i]);
  }
  refuse(!row_of(plan.schedule).waits, "schedule", "only the emulated backend runs this schedule",
         "use --backend emulated, or 1f1b");
  refuse(plan.ways() > 1, "schedule",
         "only the emulated backend holds each stage's parameters on two ranks",
         "use --backend emulated, or dualpipe-v with vpp: 2");
  refuse(model.kv_heads % plan.tp != 0, "tp",
         fmt::format("tp {} does not divide the {} key/value heads", plan.tp, model.kv_heads),
         "choose a tp that does");
  const bool ends_apart = model.tie_embeddings &&
                          costmodel::rank_of(plan.schedule, plan.pp, plan.virtual_stages() - 1) > 0;
  refuse(ends_apart && plan.zero >= 2, "zero",
         "a tied embedding on two stages keeps whole gradients, which ZeRO 2 and 3 do not have",
         "set zero: 1, or tie_embeddings: false");
  refuse(ends_apart && !training.stack.collectives.embedding_all_reduce, "stack",
         fmt::format("stack {} does not sum tied embeddings over stages", training.stack.name),
         "choose another training.stack, or tie_embeddings: false");
  refuse(training.stack.memory.selective_half &&
             plan.recompute.granularity == Recomputation::selective,
         "recompute",
         fmt::format("the runtime does not recompute as stack {} does", training.stack.name),
         "set recompute: full, or choose another training.stack");
  refuse_recipe(training, plan, refuse);
  return found;
}

}  // namespace

std::vector<Violation> unsupported(const ModelSpec& model, const TrainingSpec& training,
                                   const ParallelPlan& plan) {
  const auto pipelines = pipelines_of(plan, training.global_batch);
  for (const Pipeline& pipeline : pipelines) {
    auto faults = unsupported_alone(model, training, pipeline.plan);
    if (!faults.empty()) return faults;
  }
  return unsupported_together(model, pipelines);
}

}  // namespace runtime
