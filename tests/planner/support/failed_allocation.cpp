// A library to be loaded before a program: its FAIL_AT-th call of malloc() fails, once. It counts
// from where the other libraries are ready, and the program's own code begins.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

std::atomic<long> calls{0}, failing{-1};

__attribute__((constructor)) void begin() {
  const char* const at = std::getenv("FAIL_AT");
  if (at != nullptr) failing = std::atol(at);
  calls = 0;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t size);  // glibc's own, under any other

void* malloc(std::size_t size) {
  if (++calls != failing) return __libc_malloc(size);
  errno = ENOMEM;
  return nullptr;
}
}
