// A library to be loaded before a program: its FAIL_AT-th call of malloc() fails, once. It counts
// from where the other libraries are ready, and the program's own code begins. With NO_THREADS set
// no thread begins.
#include <dlfcn.h>
#include <pthread.h>

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

int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*work)(void*), void* on) {
  if (std::getenv("NO_THREADS") != nullptr) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  return reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"))(thread, how, work, on);
}
}
