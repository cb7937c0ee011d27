// DualPipe (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.1) and DualPipeV, its cut in half. Most
// forwards run together with a whole backward, so that the communication of one hides behind the
// computation of the other; weight gradients are separate where a bubble is to be filled. The order
// is fixed: it is the eight steps of the repository deepseek-ai/DualPipe (dualpipe.py,
// dualpipev.py).
//
// DualPipe: half of the micro-batches go from the first rank to the last and half back, so that a
// rank has two stages, r and p - 1 - r, and every parameter is on two ranks. DualPipeV: one way, on
// a V; a rank r of it does what rank r of the first half of 2p ranks does.
#pragma once

#include "costmodel/schedule/orders.hpp"

namespace costmodel {

// Even p, and an even number of micro-batches, 2p at least.
ActionsByRank dualpipe_order(const OrderRequest& request);
// 2p micro-batches at least.
ActionsByRank dualpipe_v_order(const OrderRequest& request);

// Whether the order exists for these micro-batches.
bool takes_dualpipe(int ranks, long long micro_batches);
bool takes_dualpipe_v(int ranks, long long micro_batches);

// The chunks that a rank forwards before its first backward.
double dualpipe_forwards_first(int rank, const EvenPipeline& even);
double dualpipe_v_forwards_first(int rank, const EvenPipeline& even);

// The forwards of a rank's chunk that run together with a backward of its other one. In the middle
// (on the last rank of a V) the first of them does not.
double dualpipe_joined(int rank, int chunk, const EvenPipeline& even);
double dualpipe_v_joined(int rank, int chunk, const EvenPipeline& even);

// Time of an even pipeline: the busiest rank's work and the repository's bubble,
// (p/2 - 1)(t_F&B + t_B - 3 t_W), where t_B is the whole backward; with p of DualPipeV's chunks,
// twice its ranks. The orders have this bubble where t_F equals the input gradient's time, is no
// less than t_W, and t_F&B lies between the longer of the two and their sum.
Seconds dualpipe_time(const EvenPipeline& even);
Seconds dualpipe_v_time(const EvenPipeline& even);
// Idle over busy time, at t_f = t_b = t_w and t_F&B the sum.
double dualpipe_bubble(const EvenPipeline& even);
double dualpipe_v_bubble(const EvenPipeline& even);

}  // namespace costmodel
