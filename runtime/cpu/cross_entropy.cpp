#include "runtime/cpu/cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

// The column of the target of row `row`, or -1 when it belongs to another rank.
std::int64_t target_column(const CrossEntropy& op, Tokens targets, std::int64_t first_token,
                           std::int64_t row) {
  const std::int64_t column = targets[static_cast<std::size_t>(row)] - first_token;
  return column >= 0 && column < op.cols ? column : -1;
}

}  // namespace

template <class T>
void cross_entropy_row_maximum(const CrossEntropy& op, In<T> logits, Out<T> maximum) {
  expect_size(logits.size(), op.rows * op.cols, "logits");
  expect_size(maximum.size(), op.rows, "maximum");
  for (std::int64_t row = 0; row < op.rows; ++row)
    maximum[static_cast<std::size_t>(row)] = row_max(op.cols, logits.data() + row * op.cols);
}

template <class T>
void cross_entropy_exponentials(const CrossEntropy& op, In<T> logits, In<T> maximum, Tokens targets,
                                std::int64_t first_token, Out<T> out, Out<T> sum,
                                Out<T> target_logit) {
  expect_size(logits.size(), op.rows * op.cols, "logits");
  expect_size(maximum.size(), op.rows, "maximum");
  expect_size(targets.size(), op.rows, "targets");
  expect_size(out.size(), op.rows * op.cols, "out");
  expect_size(sum.size(), op.rows, "sum");
  expect_size(target_logit.size(), op.rows, "target_logit");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* x = logits.data() + row * op.cols;
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t column = target_column(op, targets, first_token, row);
    target_logit[at] = column >= 0 ? x[column] - maximum[at] : T(0);
    sum[at] = row_exp(op.cols, T(1), maximum[at], x, out.data() + row * op.cols);
  }
}

template <class T>
void cross_entropy_finish(const CrossEntropy& op, In<T> sum, In<T> target_logit,
                          Out<T> exponentials, Out<T> loss) {
  expect_size(sum.size(), op.rows, "sum");
  expect_size(target_logit.size(), op.rows, "target_logit");
  expect_size(exponentials.size(), op.rows * op.cols, "exponentials");
  expect_size(loss.size(), op.rows, "loss");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    row_scale(op.cols, 1 / sum[at], exponentials.data() + row * op.cols);
    loss[at] = static_cast<T>(std::log(static_cast<double>(sum[at]))) - target_logit[at];
  }
}

template <class T>
void cross_entropy_gradient(const CrossEntropy& op, In<T> softmax, Tokens targets,
                            std::int64_t first_token, double scale, Out<T> dlogits) {
  expect_size(softmax.size(), op.rows * op.cols, "softmax");
  expect_size(targets.size(), op.rows, "targets");
  expect_size(dlogits.size(), op.rows * op.cols, "dlogits");
  const T factor = static_cast<T>(scale);
  if (dlogits.data() != softmax.data()) std::ranges::copy(softmax, dlogits.begin());
  for (std::int64_t row = 0; row < op.rows; ++row) {
    T* d = dlogits.data() + row * op.cols;
    const std::int64_t column = target_column(op, targets, first_token, row);
    if (column >= 0) d[column] -= 1;
    row_scale(op.cols, factor, d);
  }
}

template decltype(cross_entropy_row_maximum<float>) cross_entropy_row_maximum<float>;
template decltype(cross_entropy_row_maximum<double>) cross_entropy_row_maximum<double>;
template decltype(cross_entropy_exponentials<float>) cross_entropy_exponentials<float>;
template decltype(cross_entropy_exponentials<double>) cross_entropy_exponentials<double>;
template decltype(cross_entropy_finish<float>) cross_entropy_finish<float>;
template decltype(cross_entropy_finish<double>) cross_entropy_finish<double>;
template decltype(cross_entropy_gradient<float>) cross_entropy_gradient<float>;
template decltype(cross_entropy_gradient<double>) cross_entropy_gradient<double>;

}  // namespace runtime::cpu
