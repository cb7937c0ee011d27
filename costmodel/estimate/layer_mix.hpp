// The layers of a virtual stage by kind, and other facts of a plan that several prices use.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <numeric>
#include <vector>

#include "costmodel/operators/lifetimes.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// The numbers of layers of a virtual stage by kind, in the order of ModelSpec::blocks(), and how
// many of each are recomputed (`again`).
struct LayerMix {
  std::array<int, most_blocks> number{}, again{};
  bool decoder_starts = false;  // includes the first decoder layer
  int layers() const { return std::accumulate(number.begin(), number.end(), 0); }
  auto operator<=>(const LayerMix&) const = default;
};
LayerMix operator+(const LayerMix& a, const LayerMix& b);

// Of an encoder-decoder model, the places of its two kinds.
inline constexpr std::size_t encoder_place = 0, decoder_place = 1;

// The layers of a stage of one kind.
struct LayerCount {
  LayerKind kind;
  int number = 0, again = 0;
};
std::vector<LayerCount> layer_counts_of(const ModelSpec& model, const LayerMix& mix);

// The kind of a layer of multi-token prediction: that of the model's last layer.
LayerKind mtp_layer(const ModelSpec& model);

// The region of the op list that a granularity recomputes.
Recomputed region_of(const Recompute& recompute);

// The recomputation that a stack really performs: full recomputation of half of each stage's
// layers, where its selective policy keeps every second product or layer (torchtitan).
Recompute recompute_as_run(const Recompute& asked, const StackMemory& memory);

// Whether a part of a tower is: a trained layer, where all layers of the language model are.
bool recomputes(LayerKind of_tower, const Recompute& recompute, const FineTuning& tuning);

// The number of recomputed layers in a virtual stage of `layers`; the others keep everything.
int recomputed_layers(const Recompute& recompute, int layers);

// The mix of the model's layers [first, first + layers), of which the first ones are recomputed.
LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute);

// Tokens per sequence in the hidden states that a virtual stage receives. A stage with decoder
// layers receives the encoder's output and the decoder's tokens; the stage where the decoder starts
// receives only the former, a stage with only the loss only the latter.
std::int64_t tokens_into(const LayerMix& stage, const TrainingSpec& training);
// The larger of the tokens per sequence at the input and at the output of a stage. For the output
// this is an upper bound: the next stage may need fewer.
std::int64_t tokens_at_ends(const LayerMix& stage, bool first, bool last,
                            const TrainingSpec& training);

// The parameters that one rank keeps, of `weights` on a device with `experts` of them in experts,
// when they are sharded as ZeRO shards.
inline double sharded(double weights, double experts, const ParallelPlan& plan) {
  const double others = (weights - experts) / plan.shards();
  return experts == 0 ? others : others + experts / static_cast<double>(plan.expert_shards());
}
// The same of the optimizer's states.
inline double sharded_states(double weights, double experts, const ParallelPlan& plan) {
  const double part = sharded(weights, experts, plan);
  return plan.shards_states_further() ? part / plan.dp_replicate : part;
}

// Elements of one device's shard of the (padded) token table, and of the output projection.
double vocabulary_table(const ModelSpec& model, int tp);
// Elements of all tables that both embeddings of an encoder-decoder model use: also the learned
// positions, which every tensor rank holds unsharded.
double shared_tables(const ModelSpec& model, int tp);

}  // namespace costmodel
