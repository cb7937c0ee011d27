// Causal blockwise attention that stores no scores (FlashAttention, Dao et al. 2022,
// arXiv:2205.14135, algorithms 2 and 4): softmax(Q · Kᵀ / √head_dim) · V of a qkv tensor
// (head_layout.hpp). The forward keeps qkv, the result and the log-sum-exp of every row of scores
// for the backward. Blocks above the diagonal are always skipped, regardless of op.causal_skip.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

inline constexpr std::int64_t flash_block = 128;  // queries, and keys, per block of scores

// The layout of the qkv tensor that the operator reads.
HeadLayout layout_of(const costmodel::FlashAttention& op);

// Writes out[tokens, heads · head_dim] and log_sum_exp[tokens, heads]. Throws std::invalid_argument
// on a tensor of the wrong size, and when op has keys of other ranks (context parallelism) or
// values with another head_dim.
template <class T = float>
void flash_attention_forward(const costmodel::FlashAttention& op, In<T> qkv, Out<T> out,
                             Out<T> log_sum_exp);

// Accumulates into dqkv. Throws like forward.
template <class T = float>
void flash_attention_gradient(const costmodel::FlashAttention& op, In<T> qkv, In<T> out,
                              In<T> log_sum_exp, In<T> dout, Out<T> dqkv);

}  // namespace runtime::cpu
