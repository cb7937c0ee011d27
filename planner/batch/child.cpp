#include "planner/batch/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "costmodel/base/error.hpp"
#include "costmodel/base/file_descriptor.hpp"
#include "costmodel/base/output_file.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t most_errors = std::size_t{64} << 10;

[[noreturn]] void cannot_start(int fault) {
  throw ConfigError({},
                    std::string("shardplan: no process can be started: ") + std::strerror(fault),
                    "ask for fewer --jobs");
}

// Between fork and exec of a process with threads: system calls alone.
[[noreturn]] void become(const char* program, char* const* arguments, int errors, int nothing,
                         pid_t parent, std::size_t memory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit most{memory, memory};
  if (memory > 0 && setrlimit(RLIMIT_DATA, &most) != 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(program, arguments);
  _exit(127);
}

// Reads to the end of the pipe, or until `stopped` or the time is over.
void drain(int pipe, pid_t child, const std::function<bool()>& stopped, double seconds,
           ChildEnd& end) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto is_late = [&] {
    return seconds > 0 && std::chrono::duration<double>(Clock::now() - start).count() > seconds;
  };
  constexpr int patience_ms = 50;
  std::array<char, 4096> piece{};
  for (;;) {
    if (!end.stopped && !end.late) {
      end.stopped = stopped && stopped();
      end.late = !end.stopped && is_late();
      if (end.stopped || end.late) kill(child, SIGKILL);
    }
    pollfd change{pipe, POLLIN, 0};
    if (poll(&change, 1, patience_ms) == 0) continue;
    const ssize_t count = read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    if (end.errors.size() < most_errors)
      end.errors.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

ChildEnd run_child(const std::string& program, const std::vector<std::string>& arguments,
                   const std::function<bool()>& stopped, const ChildLimits& limits) {
  std::vector<char*> words;
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start(errno);
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  const FileDescriptor nothing = open_null_device();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) cannot_start(errno);
  if (child == 0) {
    become(program.c_str(), words.data(), to.get(), nothing.get(), parent, limits.memory);
  }
  to.close();
  ChildEnd end;
  drain(from.get(), child, stopped, limits.seconds, end);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace planner
