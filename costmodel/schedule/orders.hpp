// The published orders of forwards and backwards, by pipeline rank. A backward here is the input
// gradient where the schedule splits it: zero_bubble.hpp adds the weight gradients.
#pragma once

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/action.hpp"
#include "costmodel/schedule/stage_times.hpp"

namespace costmodel {

// What a plan may choose of an order; 0: as published.
struct OrderChoices {
  // Interleaved: the micro-batches that go through a chunk before the next chunk's turn, p unless
  // given (Megatron-LM's microbatch_group_size_per_vp_stage).
  int group = 0;
  // Zero-bubble-h2: the most micro-batches in flight on a rank, 2p - 1 unless given.
  int in_flight = 0;
  bool operator==(const OrderChoices&) const = default;
};

struct OrderRequest {
  int ranks = 1;                         // p
  int chunks = 1;                        // v
  int micro_batches = 1;                 // m
  const PipelineTimes* times = nullptr;  // only eager_order reads them
  OrderChoices choices{};
};

// A pipeline of equal stages: the times of one chunk.
struct EvenPipeline {
  int ranks = 1;             // p
  int chunks = 1;            // v
  double micro_batches = 1;  // m
  Seconds forward, backward, transfer, weight_gradient;
  // Of a forward and a whole backward that run together; 0: as long as both. Only kinds that
  // overlap them read it.
  Seconds together{};
  OrderChoices choices{};
};

// One micro-batch runs through all stages and back before the next one starts.
ActionsByRank serial_order(const OrderRequest& request);
// All forwards, then all backwards (GPipe, Huang et al. 2019, arXiv:1811.06965).
ActionsByRank gpipe_order(const OrderRequest& request);
// PipeDream-flush (Narayanan et al. 2021, arXiv:2104.04473, section 2.2.1).
ActionsByRank one_f_one_b_order(const OrderRequest& request);
// Megatron's (section 2.2.2 there): micro-batches go p at a time through each chunk, or in the
// groups that are chosen, of which the last may be smaller (Megatron-LM,
// core/pipeline_parallel/schedules.py, get_schedule_table). Needs what
// takes_groups() asks.
ActionsByRank interleaved_order(const OrderRequest& request);
// A group is no smaller than the pipeline, and the last one neither: else a rank would wait for a
// micro-batch of its own next chunk (the rule of Megatron-LM).
bool takes_groups(int ranks, long long micro_batches, int group);
// The forwards that a rank of it runs before its first backward.
int interleaved_warm_up(int rank, int ranks, int chunks, long long micro_batches, int group = 0);
// Zero-bubble-h1 (Qi et al. 2024, arXiv:2401.10241): p - rank forwards, then backward and forward
// in turn.
ActionsByRank handcrafted_order(const OrderRequest& request);
// Zero-bubble-h2: as many forwards first as end before the first backward can start, and as may be
// in flight. With p in flight it is zero-bubble-h1's order.
ActionsByRank eager_order(const OrderRequest& request);
// Zero-bubble-v: the first chunk's forwards fill the pipeline down, the second chunk's bring them
// back up, and every rank meets its first backward when it holds 2p chunks (appendix of
// arXiv:2405.15362; the order that PyTorch's ZBV and the zero-bubble fork of Megatron run).
ActionsByRank v_order(const OrderRequest& request);

}  // namespace costmodel
