// Small facts of a plan that several prices share.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "costmodel/operators/op_list.hpp"
#include "costmodel/operators/transformer.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/plan/training_spec.hpp"

namespace costmodel {

// Layers of a virtual stage by kind, and how many of each are recomputed.
struct LayerMix {
  int dense = 0, moe = 0;
  int dense_again = 0, moe_again = 0;
  int encoder = 0, decoder = 0;  // of an encoder-decoder model
  int encoder_again = 0, decoder_again = 0;
  bool decoder_starts = false;  // the first decoder layer is among them
  int layers() const { return dense + moe + encoder + decoder; }
  auto operator<=>(const LayerMix&) const = default;
};

// A kind of layers that a model has, and where a mix counts it.
struct LayerGroup {
  LayerKind kind;
  int LayerMix::*number;
  int LayerMix::*again;
};

// Those of a model, first to last in it where it has one after the other.
std::span<const LayerGroup> layer_groups(const ModelSpec& model);

// What the op list recomputes under a plan's granularity.
Recomputed region_of(Recomputation granularity);

// What a stack makes of the recomputation that a plan asks for: where its selective policy keeps
// every second product or layer (torchtitan), half of each stage's layers in full.
Recompute recompute_as_run(const Recompute& asked, const StackSpec& stack);

// Layers of a virtual stage of `layers` that are recomputed; the others keep everything.
int recomputed_layers(const Recompute& recompute, int layers);

// A virtual stage of the model's layers from `first` on, the first of them recomputed.
LayerMix layer_mix(const ModelSpec& model, std::int64_t first, int layers,
                   const Recompute& recompute);

// Tokens of a sequence whose hidden states a virtual stage takes from the one before. A decoder's
// stage takes the encoder's output with the decoder's tokens; where the decoder starts, or goes on
// to nothing but the loss, one of them is enough.
std::int64_t tokens_into(const LayerMix& stage, const TrainingSpec& training);
// The most at either end of a stage, which the mix behind it may need less of.
std::int64_t tokens_at_ends(const LayerMix& stage, bool first, bool last,
                            const TrainingSpec& training);

// Of `weights` parameters on a device, `experts` of them in experts, those that one rank keeps when
// they are sharded over the ranks that hold the same.
double sharded(double weights, double experts, const ParallelPlan& plan);

// Elements of one device's share of the (padded) token table, and so of the output projection.
double vocabulary_table(const ModelSpec& model, int tp);
// Of all the tables that both embeddings of an encoder-decoder model look up in: learned positions
// too, which are whole on every tensor rank.
double shared_tables(const ModelSpec& model, int tp);

}  // namespace costmodel
