// Which sanitizers this build has; slow tests then check fewer cases.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// Only the thread sanitizer, which takes the longest and looks for races alone.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool thread_sanitized = true;
#else
inline constexpr bool thread_sanitized = false;
#endif

// Of a list of cases all; with sanitizers the first and every `stride`-th after it.
template <class Cases>
Cases thinned(const Cases& all, std::size_t stride) {
  if (!sanitized) return all;
  Cases some;
  for (std::size_t i = 0; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}
