// Token and position embeddings. Token ids are those of the unsharded vocabulary. All throw
// std::invalid_argument on a tensor of the wrong size.
#pragma once

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

// y[rows, cols] = rows of table[vocab, cols] for the tokens first_token ... first_token + vocab -
// 1; zeros for other tokens, so that the sum over the vocabulary's shards is the embedding.
template <class T = float>
void embedding_forward(const costmodel::Embedding& op, Tokens tokens, std::int64_t first_token,
                       In<T> table, Out<T> y);
// Accumulates into dtable.
template <class T = float>
void embedding_weight_gradient(const costmodel::Embedding& op, Tokens tokens,
                               std::int64_t first_token, In<T> dy, Out<T> dtable);

// y[rows, cols] = x + table[position of the row]; the gradient of x is dy itself. y may alias x.
// Throws std::invalid_argument when a position is not below op.positions.
template <class T = float>
void position_embedding_forward(const costmodel::PositionEmbedding& op, const RowPositions& rows,
                                In<T> x, In<T> table, Out<T> y);
// Accumulates into dtable[positions, cols].
template <class T = float>
void position_embedding_weight_gradient(const costmodel::PositionEmbedding& op,
                                        const RowPositions& rows, In<T> dy, Out<T> dtable);

}  // namespace runtime::cpu
