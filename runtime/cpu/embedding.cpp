#include "runtime/cpu/embedding.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

void expect_below(std::int64_t position, std::int64_t positions) {
  if (position >= 0 && position < positions) return;
  throw std::invalid_argument("position " + std::to_string(position) + " of a table of " +
                              std::to_string(positions));
}

}  // namespace

template <class T>
void embedding_forward(const Embedding& op, Tokens tokens, std::int64_t first_token, In<T> table,
                       Out<T> y) {
  expect_size(tokens.size(), op.rows, "tokens");
  expect_size(table.size(), op.vocab * op.cols, "table");
  expect_size(y.size(), op.rows * op.cols, "y");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const std::int64_t token = tokens[static_cast<std::size_t>(row)] - first_token;
    T* out = y.data() + row * op.cols;
    if (token >= 0 && token < op.vocab) {
      std::copy_n(table.data() + token * op.cols, op.cols, out);
    } else {
      std::fill_n(out, op.cols, T(0));
    }
  }
}

template <class T>
void embedding_weight_gradient(const Embedding& op, Tokens tokens, std::int64_t first_token,
                               In<T> dy, Out<T> dtable) {
  expect_size(tokens.size(), op.rows, "tokens");
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dtable.size(), op.vocab * op.cols, "dtable");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const std::int64_t token = tokens[static_cast<std::size_t>(row)] - first_token;
    if (token >= 0 && token < op.vocab)
      row_add(op.cols, dy.data() + row * op.cols, dtable.data() + token * op.cols);
  }
}

template <class T>
void position_embedding_forward(const PositionEmbedding& op, const RowPositions& rows, In<T> x,
                                In<T> table, Out<T> y) {
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(table.size(), op.positions * op.cols, "table");
  expect_size(y.size(), op.rows * op.cols, "y");
  if (y.data() != x.data()) std::ranges::copy(x, y.begin());
  for (std::int64_t row = 0; row < op.rows; ++row) {
    expect_below(rows.at(row), op.positions);
    row_add(op.cols, table.data() + rows.at(row) * op.cols, y.data() + row * op.cols);
  }
}

template <class T>
void position_embedding_weight_gradient(const PositionEmbedding& op, const RowPositions& rows,
                                        In<T> dy, Out<T> dtable) {
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dtable.size(), op.positions * op.cols, "dtable");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    expect_below(rows.at(row), op.positions);
    row_add(op.cols, dy.data() + row * op.cols, dtable.data() + rows.at(row) * op.cols);
  }
}

template decltype(embedding_forward<float>) embedding_forward<float>;
template decltype(embedding_forward<double>) embedding_forward<double>;
template decltype(embedding_weight_gradient<float>) embedding_weight_gradient<float>;
template decltype(embedding_weight_gradient<double>) embedding_weight_gradient<double>;
template decltype(position_embedding_forward<float>) position_embedding_forward<float>;
template decltype(position_embedding_forward<double>) position_embedding_forward<double>;
template decltype(position_embedding_weight_gradient<float>)
    position_embedding_weight_gradient<float>;
template decltype(position_embedding_weight_gradient<double>)
    position_embedding_weight_gradient<double>;

}  // namespace runtime::cpu
