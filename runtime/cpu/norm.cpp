#include "runtime/cpu/norm.hpp"

#include "runtime/cpu/norm_rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

// LayerNorm's shift; null for RMSNorm, which has none.
template <class Span>
auto* shift_of(const Norm& op, Span shift) {
  expect_size(shift.size(), op.kind == Normalization::layernorm ? op.cols : 0, "shift");
  return shift.empty() ? nullptr : shift.data();
}

template <class T>
RowStatistics<T> statistics_of(Normalization kind, In<T> statistics, std::int64_t row) {
  const T* figures = statistics.data() + row * norm_figures(kind);
  if (kind == Normalization::layernorm) return {figures[0], figures[1]};
  return {0, figures[0]};
}

}  // namespace

std::int64_t norm_figures(Normalization kind) { return kind == Normalization::layernorm ? 2 : 1; }

template <class T>
void norm_forward(const Norm& op, In<T> x, In<T> gain, In<T> shift, Out<T> y, Out<T> statistics) {
  const std::int64_t figures = norm_figures(op.kind);
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(gain.size(), op.cols, "gain");
  expect_size(y.size(), op.rows * op.cols, "y");
  expect_size(statistics.size(), op.rows * figures, "statistics");
  const T* shift_data = shift_of(op, shift);
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* x_row = x.data() + row * op.cols;
    const RowStatistics<T> found = norm_row_statistics(op.kind, op.cols, x_row);
    norm_row_forward(op.cols, found, x_row, gain.data(), shift_data, y.data() + row * op.cols);
    T* kept = statistics.data() + row * figures;
    if (figures == 2) *kept++ = found.mean;
    *kept = found.inverse;
  }
}

template <class T>
void norm_input_gradient(const Norm& op, In<T> x, In<T> gain, In<T> statistics, In<T> dy, Out<T> dx,
                         bool accumulate) {
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(gain.size(), op.cols, "gain");
  expect_size(statistics.size(), op.rows * norm_figures(op.kind), "statistics");
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dx.size(), op.rows * op.cols, "dx");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const std::int64_t first = row * op.cols;
    norm_row_input_gradient(op.kind, op.cols, statistics_of<T>(op.kind, statistics, row),
                            x.data() + first, gain.data(), dy.data() + first, dx.data() + first,
                            accumulate);
  }
}

template <class T>
void norm_weight_gradient(const Norm& op, In<T> x, In<T> statistics, In<T> dy, Out<T> dgain,
                          Out<T> dshift) {
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(statistics.size(), op.rows * norm_figures(op.kind), "statistics");
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dgain.size(), op.cols, "dgain");
  T* shift_data = shift_of(op, dshift);
  for (std::int64_t row = 0; row < op.rows; ++row) {
    norm_row_weight_gradient(op.cols, statistics_of<T>(op.kind, statistics, row),
                             x.data() + row * op.cols, dy.data() + row * op.cols, dgain.data(),
                             shift_data);
  }
}

template decltype(norm_forward<float>) norm_forward<float>;
template decltype(norm_forward<double>) norm_forward<double>;
template decltype(norm_input_gradient<float>) norm_input_gradient<float>;
template decltype(norm_input_gradient<double>) norm_input_gradient<double>;
template decltype(norm_weight_gradient<float>) norm_weight_gradient<float>;
template decltype(norm_weight_gradient<double>) norm_weight_gradient<double>;

}  // namespace runtime::cpu
