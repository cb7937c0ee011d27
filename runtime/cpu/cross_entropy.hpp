// Cross-entropy over a vocabulary that may be sharded over ranks (Shoeybi et al. 2019,
// arXiv:1909.08053, section 3), in parts. Between them the caller all-reduces over the ranks: the
// maximum with max, sum and target logit with sum. logits[rows, cols] are those of the tokens
// first_token ... first_token + cols - 1; targets[rows] are token ids of the unsharded vocabulary.
// All throw std::invalid_argument on a tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

template <class T = float>
void cross_entropy_row_maximum(const costmodel::CrossEntropy& op, In<T> logits, Out<T> maximum);

// out = exp(logits - maximum), may alias logits; sum[rows] of out; target_logit[rows] minus the
// maximum, 0 when the target is outside these columns.
template <class T = float>
void cross_entropy_exponentials(const costmodel::CrossEntropy& op, In<T> logits, In<T> maximum,
                                Tokens targets, std::int64_t first_token, Out<T> out, Out<T> sum,
                                Out<T> target_logit);

// From sum and target_logit over all ranks: divides exponentials by sum in place, which gives the
// softmax; loss[rows] = log(sum) - target_logit, in nats.
template <class T = float>
void cross_entropy_finish(const costmodel::CrossEntropy& op, In<T> sum, In<T> target_logit,
                          Out<T> exponentials, Out<T> loss);

// dlogits = scale · (softmax - 1 at the target); may alias softmax. For a mean loss, scale = 1 /
// rows of the batch.
template <class T = float>
void cross_entropy_gradient(const costmodel::CrossEntropy& op, In<T> softmax, Tokens targets,
                            std::int64_t first_token, double scale, Out<T> dlogits);

}  // namespace runtime::cpu
