// A parallel for loop over independent work items.
#pragma once

#include <cstddef>
#include <functional>

namespace costmodel {

// Calls work(i) once for every i < `count`, on at most `threads` threads (at least the caller's).
// When items throw, all others still run; then the exception of the smallest such i is rethrown.
void share_out(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace costmodel
