// Attention that materialises the scores: the products with the queries, keys and values of one qkv
// tensor; the softmax between them is in softmax.hpp. Scores and probabilities are [sequences,
// heads, s, s], neither scaled nor masked here. op.batch = sequences · heads. All throw
// std::invalid_argument on a tensor of the wrong size or a layout that does not match the operator.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// scores = Q · Kᵀ.
template <class T = float>
void attention_scores_forward(const costmodel::AttentionScores& op, const HeadLayout& layout,
                              In<T> qkv, Out<T> scores);
// Adds dQ and dK to dqkv.
template <class T = float>
void attention_scores_gradient(const costmodel::AttentionScores& op, const HeadLayout& layout,
                               In<T> qkv, In<T> dscores, Out<T> dqkv);

// context[tokens, heads · head_dim] = P · V.
template <class T = float>
void attention_context_forward(const costmodel::AttentionContext& op, const HeadLayout& layout,
                               In<T> probabilities, In<T> qkv, Out<T> context);
// Writes dprobabilities and adds dV to dqkv.
template <class T = float>
void attention_context_gradient(const costmodel::AttentionContext& op, const HeadLayout& layout,
                                In<T> probabilities, In<T> qkv, In<T> dcontext,
                                Out<T> dprobabilities, Out<T> dqkv);

}  // namespace runtime::cpu
