#include "costmodel/cli/process.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "costmodel/base/error.hpp"

namespace costmodel {

void require_process(const std::string& program) {
  // The C library loads its unwinder when it first needs one, which ends the process where no
  // memory is left for it: an exception that leaves a library's std::call_once.
  void* frame = nullptr;
  backtrace(&frame, 1);
  constexpr rlim_t least = 256 << 10;  // the price of a plan takes 150 KiB
  struct rlimit stack;
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= least) return;
  throw ConfigError(
      {}, fmt::format("{}: a stack of {} KiB is too small", program, stack.rlim_cur >> 10),
      "ulimit -s 8192 gives the usual one");
}

}  // namespace costmodel
