#include "runtime/cpu/dropout.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/cpu/clones.hpp"
#include "runtime/cpu/random.hpp"
#include "runtime/cpu/rows.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

void expect_probability(double p) {
  if (!(p >= 0 && p < 1)) throw std::invalid_argument("dropout needs a probability in [0, 1)");
}

// Keeps an element unless its 32-bit random word is among the p · 2^32 lowest.
void mask_row(std::int64_t cols, double p, const DropoutKey& key, std::int64_t row,
              std::uint8_t* mask) {
  const auto lowest_kept = static_cast<std::uint64_t>(p * 4294967296.0);
  const auto first =
      static_cast<std::uint64_t>((key.first_row + row) * key.global_cols + key.first_col);
  PhiloxCounter block{};
  for (std::int64_t col = 0; col < cols; ++col) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(col);
    if (col == 0 || index % 4 == 0) block = random_block(key.seed, key.stream, index / 4);
    mask[col] = block[index % 4] >= lowest_kept ? 1 : 0;
  }
}

template <class T>
RUNTIME_CLONES void apply_mask(std::int64_t n, T scale, const T* x, const std::uint8_t* mask,
                               T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = mask[i] != 0 ? x[i] * scale : T(0);
}

template <class T>
RUNTIME_CLONES void add_masked(std::int64_t n, T scale, const T* x, const std::uint8_t* mask,
                               T* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += mask[i] != 0 ? x[i] * scale : T(0);
}

// y = skip + (x + bias), then times the mask; bias and mask may be null.
template <class T>
RUNTIME_CLONES void add_row(std::int64_t n, T scale, const T* x, const T* bias, const T* skip,
                            const std::uint8_t* mask, T* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T sum = bias != nullptr ? x[i] + bias[i] : x[i];
    const T kept = mask == nullptr ? sum : mask[i] != 0 ? sum * scale : T(0);
    y[i] = skip[i] + kept;
  }
}

template <class T>
T scale_of(double p) {
  return static_cast<T>(1 / (1 - p));
}

void expect_mask(const BiasDropoutAdd& op, std::size_t elements) {
  expect_size(elements, op.dropout ? op.rows * op.cols : 0, "mask");
}

}  // namespace

void dropout_mask(std::int64_t rows, std::int64_t cols, double p, const DropoutKey& key,
                  Mask mask) {
  expect_probability(p);
  expect_size(mask.size(), rows * cols, "mask");
  if (p == 0) return std::fill(mask.begin(), mask.end(), std::uint8_t{1});
  for (std::int64_t row = 0; row < rows; ++row)
    mask_row(cols, p, key, row, mask.data() + row * cols);
}

template <class T>
void dropout_forward(const Dropout& op, In<T> x, double p, const DropoutKey& key, Out<T> y,
                     Mask mask) {
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(y.size(), op.rows * op.cols, "y");
  dropout_mask(op.rows, op.cols, p, key, mask);
  apply_mask(op.rows * op.cols, scale_of<T>(p), x.data(), mask.data(), y.data());
}

template <class T>
void dropout_gradient(const Dropout& op, In<T> dy, MaskIn mask, double p, Out<T> dx) {
  expect_probability(p);
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(mask.size(), op.rows * op.cols, "mask");
  expect_size(dx.size(), op.rows * op.cols, "dx");
  apply_mask(op.rows * op.cols, scale_of<T>(p), dy.data(), mask.data(), dx.data());
}

template <class T>
void bias_dropout_add_forward(const BiasDropoutAdd& op, In<T> x, In<T> bias, In<T> skip, double p,
                              const DropoutKey& key, Out<T> y, Mask mask) {
  expect_probability(p);
  expect_mask(op, mask.size());
  expect_size(x.size(), op.rows * op.cols, "x");
  expect_size(bias.size(), bias.empty() ? 0 : op.cols, "bias");
  expect_size(skip.size(), op.rows * op.cols, "skip");
  expect_size(y.size(), op.rows * op.cols, "y");
  if (op.dropout) dropout_mask(op.rows, op.cols, p, key, mask);
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const std::int64_t first = row * op.cols;
    add_row(op.cols, scale_of<T>(p), x.data() + first, bias.empty() ? nullptr : bias.data(),
            skip.data() + first, op.dropout ? mask.data() + first : nullptr, y.data() + first);
  }
}

template <class T>
void bias_dropout_add_input_gradient(const BiasDropoutAdd& op, In<T> dy, MaskIn mask, double p,
                                     Out<T> dx) {
  expect_mask(op, mask.size());
  if (op.dropout) return dropout_gradient<T>({op.rows, op.cols}, dy, mask, p, dx);
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dx.size(), op.rows * op.cols, "dx");
  if (dx.data() != dy.data()) std::ranges::copy(dy, dx.begin());
}

template <class T>
void bias_dropout_add_weight_gradient(const BiasDropoutAdd& op, In<T> dy, MaskIn mask, double p,
                                      Out<T> dbias) {
  expect_probability(p);
  expect_mask(op, mask.size());
  expect_size(dy.size(), op.rows * op.cols, "dy");
  expect_size(dbias.size(), op.cols, "dbias");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* dy_row = dy.data() + row * op.cols;
    if (op.dropout) {
      add_masked(op.cols, scale_of<T>(p), dy_row, mask.data() + row * op.cols, dbias.data());
    } else {
      row_add(op.cols, dy_row, dbias.data());
    }
  }
}

template decltype(dropout_forward<float>) dropout_forward<float>;
template decltype(dropout_forward<double>) dropout_forward<double>;
template decltype(dropout_gradient<float>) dropout_gradient<float>;
template decltype(dropout_gradient<double>) dropout_gradient<double>;
template decltype(bias_dropout_add_forward<float>) bias_dropout_add_forward<float>;
template decltype(bias_dropout_add_forward<double>) bias_dropout_add_forward<double>;
template decltype(bias_dropout_add_input_gradient<float>) bias_dropout_add_input_gradient<float>;
template decltype(bias_dropout_add_input_gradient<double>) bias_dropout_add_input_gradient<double>;
template decltype(bias_dropout_add_weight_gradient<float>) bias_dropout_add_weight_gradient<float>;
template decltype(bias_dropout_add_weight_gradient<double>)
    bias_dropout_add_weight_gradient<double>;

}  // namespace runtime::cpu
