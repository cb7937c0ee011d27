// Cross-entropy over a vocabulary that may be cut over ranks (Shoeybi et al. 2019,
// arXiv:1909.08053, section 3), in pieces: between them the caller reduces over the ranks, the
// maximum by max, sum and target logit by sum. logits[rows, cols] are those of the tokens
// first_token ... first_token + cols
// - 1; targets[rows] are tokens of the whole vocabulary. All throw std::invalid_argument on a
// tensor of another size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

template <class T = float>
void cross_entropy_row_maximum(const costmodel::CrossEntropy& op, In<T> logits, Out<T> maximum);

// out = exp(logits - maximum), which may be logits; sum[rows] of out; target_logit[rows] less the
// maximum, 0 where the target is not among these columns.
template <class T = float>
void cross_entropy_exponentials(const costmodel::CrossEntropy& op, In<T> logits, In<T> maximum,
                                Tokens targets, std::int64_t first_token, Out<T> out, Out<T> sum,
                                Out<T> target_logit);

// From sum and target_logit over all ranks: exponentials /= sum, in place, which makes them the
// softmax; loss[rows] = log(sum) - target_logit, in nats.
template <class T = float>
void cross_entropy_finish(const costmodel::CrossEntropy& op, In<T> sum, In<T> target_logit,
                          Out<T> exponentials, Out<T> loss);

// dlogits = scale · (softmax - 1 at the target); may be softmax. scale: 1 / rows of the batch for a
// mean loss.
template <class T = float>
void cross_entropy_gradient(const costmodel::CrossEntropy& op, In<T> softmax, Tokens targets,
                            std::int64_t first_token, double scale, Out<T> dlogits);

}  // namespace runtime::cpu
