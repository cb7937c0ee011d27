// Reductions over a row in sixteen lanes, which compilers keep in vector registers; the order of
// the reduction depends only on the length.
#pragma once

#include <cstdint>

namespace runtime::cpu {

inline constexpr int lanes = 16;

// Reduces term(i) over i in [0, n) with `combine`; each lane starts from `start`.
template <class T, class Term, class Combine>
[[gnu::always_inline]] inline T lane_reduce(std::int64_t n, T start, Term term, Combine combine) {
  T lane[lanes];
  for (T& l : lane) l = start;
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] = combine(lane[l], term(i + l));
  for (int l = 0; i < n; ++i, ++l) lane[l] = combine(lane[l], term(i));
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = combine(lane[l], lane[l + width]);
  return lane[0];
}

template <class T, class Term>
[[gnu::always_inline]] inline T lane_sum(std::int64_t n, Term term) {
  return lane_reduce(n, T(0), term, [](T a, T b) { return a + b; });
}

}  // namespace runtime::cpu
