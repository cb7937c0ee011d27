// Row kernels: kernel(team, row) is called for each row below the count in the comment next to
// each, with a team of threads that share the row. Tensors, shapes and papers as in runtime/cpu.
#pragma once

#include "runtime/backend/number_format.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/kernels/portable.hpp"

namespace runtime::kernels {

// Calls visit(col) for each of this member's columns.
template <class Team, class Visit>
RUNTIME_PORTABLE void for_columns(const Team& team, Index cols, Visit visit) {
  for (Index col = team.rank(); col < cols; col += team.size()) visit(col);
}

struct NormFigures {
  float mean, inverse;
};

// `centred`: LayerNorm; else RMSNorm, whose mean is 0.
template <class T, class Team>
RUNTIME_PORTABLE NormFigures norm_figures(const Team& team, bool centred, Index cols, float epsilon,
                                          const T* x) {
  float mean = 0, sum = 0, squares = 0;
  if (centred) {
    for_columns(team, cols, [&](Index col) { sum += float(x[col]); });
    mean = team.sum(sum) / static_cast<float>(cols);
  }
  for_columns(team, cols, [&](Index col) {
    const float away = float(x[col]) - mean;
    squares += away * away;
  });
  return {mean, 1 / square_root(team.sum(squares) / static_cast<float>(cols) + epsilon)};
}

template <class T, class Team>
RUNTIME_PORTABLE void norm_row(const Team& team, Index cols, const NormFigures& f, const T* x,
                               const T* gain, const T* shift, T* y) {
  for_columns(team, cols, [&](Index col) {
    const float scaled = (float(x[col]) - f.mean) * f.inverse * float(gain[col]);
    y[col] = T(shift == nullptr ? scaled : scaled + float(shift[col]));
  });
}

template <class T, class Team>
RUNTIME_PORTABLE void norm_row_gradient(const Team& team, bool centred, Index cols,
                                        const NormFigures& f, const T* x, const T* gain,
                                        const T* dy, T* dx, bool accumulate) {
  float along = 0, level = 0;
  for_columns(team, cols, [&](Index col) {
    const float g = float(dy[col]) * float(gain[col]);
    along += g * ((float(x[col]) - f.mean) * f.inverse);
    level += g;
  });
  const float count = static_cast<float>(cols);
  along = team.sum(along) / count;
  level = centred ? team.sum(level) / count : 0.0F;
  for_columns(team, cols, [&](Index col) {
    const float g = float(dy[col]) * float(gain[col]);
    const float d = f.inverse * (g - level - (float(x[col]) - f.mean) * f.inverse * along);
    dx[col] = T(accumulate ? float(dx[col]) + d : d);
  });
}

template <class T>
struct NormForward {  // count: rows
  bool centred;
  Index cols;
  float epsilon;
  const T* x;
  const T* gain;
  const T* shift;  // null: none
  T* y;
  float* statistics;  // [rows, 2] where centred, else [rows, 1]
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const T* from = x + row * cols;
    const NormFigures f = norm_figures(team, centred, cols, epsilon, from);
    norm_row(team, cols, f, from, gain, shift, y + row * cols);
    if (team.rank() != 0) return;
    if (centred) statistics[2 * row] = f.mean;
    statistics[centred ? 2 * row + 1 : row] = f.inverse;
  }
};

// The statistics that NormForward wrote for a row.
RUNTIME_PORTABLE NormFigures kept_figures(bool centred, const float* statistics, Index row) {
  if (centred) return {statistics[2 * row], statistics[2 * row + 1]};
  return {0, statistics[row]};
}

// dx may be dy unless `accumulate`.
template <class T>
struct NormInputGradient {  // count: rows
  bool centred, accumulate;
  Index cols;
  const T* x;
  const T* gain;
  const float* statistics;
  const T* dy;
  T* dx;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index at = row * cols;
    norm_row_gradient(team, centred, cols, kept_figures(centred, statistics, row), x + at, gain,
                      dy + at, dx + at, accumulate);
  }
};

// Query and key heads of a qkv tensor, each a row of head_dim.
struct QkRows {
  cpu::HeadLayout layout;
  constexpr Index heads() const { return layout.heads + layout.kv_heads; }
  constexpr Index rows() const { return layout.tokens() * heads(); }
  constexpr Index first(Index row) const {
    return row / heads() * layout.columns() + row % heads() * layout.head_dim;
  }
  constexpr bool query(Index row) const { return row % heads() < layout.heads; }
};

// Gains and shifts: the queries' [head_dim], then the keys'.
template <class T>
struct QkNormForward {  // count: rows.rows()
  bool centred;
  QkRows rows;
  float epsilon;
  const T* x;
  const T* gain;
  const T* shift;  // null: none
  T* y;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index dim = rows.layout.head_dim, at = rows.first(row), own = rows.query(row) ? 0 : dim;
    norm_row(team, dim, norm_figures(team, centred, dim, epsilon, x + at), x + at, gain + own,
             shift == nullptr ? nullptr : shift + own, y + at);
  }
};

// Also writes the statistics [rows, 2] that the gradients of the gains and shifts need.
template <class T>
struct QkNormGradient {  // count: rows.rows()
  bool centred;
  QkRows rows;
  float epsilon;
  const T* x;
  const T* gain;
  const T* dy;
  T* dx;
  float* statistics;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index dim = rows.layout.head_dim, at = rows.first(row), own = rows.query(row) ? 0 : dim;
    const NormFigures f = norm_figures(team, centred, dim, epsilon, x + at);
    if (team.rank() == 0) {
      statistics[2 * row] = f.mean;
      statistics[2 * row + 1] = f.inverse;
    }
    norm_row_gradient(team, centred, dim, f, x + at, gain + own, dy + at, dx + at, false);
  }
};

// The position of a row's log-sum-exp: rows are [blocks, cols], one block per head.
struct RowPlaces {
  Index cols, block_step, row_step;
  constexpr Index at(Index row) const { return row / cols * block_step + row % cols * row_step; }
};

// Of scores [rows, cols], causal: row i of a block of cols rows sees columns 0 ... i. y may be x.
template <class T>
struct CausalSoftmax {  // count: rows
  Index cols;
  float scale;
  const T* x;
  T* y;
  float* log_sum_exp = nullptr;  // null: not written
  RowPlaces places{};
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index seen = row % cols + 1, at = row * cols;
    float most = lowest_float, sum = 0;
    for_columns(team, seen, [&](Index col) { most = larger(most, scale * float(x[at + col])); });
    most = team.max(most);
    for_columns(team, seen,
                [&](Index col) { sum += exponential(scale * float(x[at + col]) - most); });
    sum = team.sum(sum);
    for_columns(team, cols, [&](Index col) {
      const float e = col < seen ? exponential(scale * float(x[at + col]) - most) / sum : 0.0F;
      y[at + col] = T(e);
    });
    if (log_sum_exp != nullptr && team.rank() == 0)
      log_sum_exp[places.at(row)] = most + logarithm(sum);
  }
};

// Recomputes the probabilities from the log-sum-exp.
template <class T>
struct CausalProbabilities {  // count: rows
  Index cols;
  float scale;
  const float* log_sum_exp;
  RowPlaces places;
  const T* x;
  T* y;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index seen = row % cols + 1, at = row * cols;
    const float level = log_sum_exp[places.at(row)];
    for_columns(team, cols, [&](Index col) {
      y[at + col] = T(col < seen ? exponential(scale * float(x[at + col]) - level) : 0.0F);
    });
  }
};

// ds may be p or dp.
template <class T>
struct SoftmaxGradient {  // count: rows
  Index cols;
  float scale;
  const T* p;
  const T* dp;
  T* ds;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index at = row * cols;
    float sum = 0;
    for_columns(team, cols, [&](Index col) { sum += float(p[at + col]) * float(dp[at + col]); });
    const float mean = team.sum(sum);
    for_columns(team, cols, [&](Index col) {
      ds[at + col] = T(scale * float(p[at + col]) * (float(dp[at + col]) - mean));
    });
  }
};

// The lowest finite number of a format.
template <class T>
inline constexpr float lowest_of = lowest_float;
template <>
inline constexpr float lowest_of<Bf16> = -3.3895314e+38F;
template <>
inline constexpr float lowest_of<F16> = -65504.0F;

// Row maxima; sets the padding columns, from `real` on, to the lowest number.
template <class T>
struct LogitMaximum {  // count: rows
  Index cols, real;
  T* logits;
  float* maximum;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    float most = lowest_float;
    for_columns(team, cols, [&](Index col) {
      T& logit = logits[row * cols + col];
      if (col >= real) logit = T(lowest_of<T>);
      most = larger(most, float(logit));
    });
    most = team.max(most);
    if (team.rank() == 0) maximum[row] = most;
  }
};

// out may be logits.
template <class T, class Out>
struct LogitExponentials {  // count: rows
  Index cols, first_token;
  const T* logits;
  const float* maximum;
  const std::int64_t* targets;
  Out* out;
  float* sum;
  float* target_logit;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const Index target = targets[row] - first_token;
    const float most = maximum[row];
    float all = 0, of_target = 0;
    for_columns(team, cols, [&](Index col) {
      const float below = float(logits[row * cols + col]) - most, e = exponential(below);
      if (col == target) of_target = below;
      all += e;
      out[row * cols + col] = Out(e);
    });
    all = team.sum(all);
    of_target = team.sum(of_target);
    if (team.rank() != 0) return;
    sum[row] = all;
    target_logit[row] = of_target;
  }
};

// loss may be target_logit.
template <class T>
struct LogitLoss {  // count: rows
  Index cols;
  const float* sum;
  const float* target_logit;
  T* exponentials;
  float* loss;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const float inverse = 1 / sum[row];
    for_columns(team, cols, [&](Index col) {
      T& e = exponentials[row * cols + col];
      e = T(float(e) * inverse);
    });
    if (team.rank() == 0) loss[row] = logarithm(sum[row]) - target_logit[row];
  }
};

// For each row, the next row with the same token; `rows` where there is none. As its complement
// where an earlier row has that token.
inline constexpr Index most_linked_rows = 1 << 24;  // float counts them exactly
struct TokenLinks {                                 // count: rows
  Index rows;
  const std::int64_t* tokens;
  std::int32_t* links;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index row) const {
    const std::int64_t token = tokens[row];
    float earlier = 0, nearest = static_cast<float>(-rows);
    for_columns(team, rows, [&](Index other) {
      if (tokens[other] != token) return;
      if (other < row) earlier = 1;
      if (other > row) nearest = larger(nearest, static_cast<float>(-other));
    });
    earlier = team.max(earlier);
    const auto next = static_cast<std::int32_t>(-team.max(nearest));
    if (team.rank() == 0) links[row] = earlier > 0 ? ~next : next;
  }
};

// Adds the sum of a vector, in double, to a total.
struct AddSumOf {  // count: 1
  Index elements;
  const float* values;
  double* total;
  template <class Team>
  RUNTIME_PORTABLE void operator()(const Team& team, Index) const {
    double sum = 0;
    for_columns(team, elements, [&](Index i) { sum += static_cast<double>(values[i]); });
    sum = team.sum(sum);
    if (team.rank() == 0) *total += sum;
  }
};

}  // namespace runtime::kernels
