// Causal attention block by block, which keeps no scores (Dao et al. 2022, arXiv:2205.14135,
// algorithms 2 and 4): softmax(Q · Kᵀ / √head_dim) · V of a qkv tensor (head_layout.hpp). What
// lasts from forward to backward is qkv, the result and the log-sum-exp of every row of scores.
// Blocks above the diagonal are skipped, whatever op.causal_skip says.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

inline constexpr std::int64_t flash_block = 128;  // queries and keys of a block of scores

// The layout of the qkv tensor that the operator reads.
HeadLayout layout_of(const costmodel::FlashAttention& op);

// Writes out[tokens, heads · head_dim] and log_sum_exp[tokens, heads]. Throws std::invalid_argument
// on a tensor of another size, and where op has keys of other ranks or another head_dim of values.
template <class T = float>
void flash_attention_forward(const costmodel::FlashAttention& op, In<T> qkv, Out<T> out,
                             Out<T> log_sum_exp);

// Adds to dqkv. Throws as forward does.
template <class T = float>
void flash_attention_gradient(const costmodel::FlashAttention& op, In<T> qkv, In<T> out,
                              In<T> log_sum_exp, In<T> dout, Out<T> dqkv);

}  // namespace runtime::cpu
