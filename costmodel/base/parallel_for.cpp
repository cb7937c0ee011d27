#include "costmodel/base/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace costmodel {

void share_out(std::size_t count, int threads, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const auto wanted = std::min(count, static_cast<std::size_t>(std::max(1, threads)));
    others.reserve(wanted);
    try {
      while (others.size() + 1 < wanted) others.emplace_back(take);
    } catch (const std::system_error&) {  // there are no more: those that there are share the work
    }
    take();
  }
  for (const auto& fault : thrown) {
    if (fault) std::rethrow_exception(fault);
  }
}

}  // namespace costmodel
