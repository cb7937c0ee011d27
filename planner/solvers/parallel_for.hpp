// Pieces of work that know nothing of one another, shared out to threads.
#pragma once

#include <cstddef>
#include <functional>

namespace planner {

// work(i) once for every i below `count`, by so many threads at most and at least the caller's.
// When pieces throw, all others are still done, and what the first of them by i threw is thrown
// again.
void share_out(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace planner
