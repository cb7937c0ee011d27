// Runs the shardplan executable as a user does: arguments in; standard output, standard error and
// exit status out.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace program {

struct Run {
  int status = 0;  // the exit status; 128 + the signal's number when a signal ended it
  std::string out, err;
};

// A directory of its own, gone with the test; programs run in it, so that files in it have short
// names.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardplan-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch directory");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path path_;
};

namespace detail {

// The test's environment without what would change the program's answers.
inline std::vector<char*> clean_environment() {
  std::vector<char*> list;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (std::strncmp(*entry, "SHARDPLAN_", 10) != 0) list.push_back(*entry);
  list.push_back(nullptr);
  return list;
}

// A program that hangs is killed, and its status is then 128 + SIGKILL.
inline int wait_for(pid_t child, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  int state = 0;
  while (waitpid(child, &state, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace detail

// The program on its way; `finish` waits for its end.
inline pid_t start(std::vector<std::string> arguments, const Scratch& scratch,
                   const std::string& out = ".stdout") {
  arguments.insert(arguments.begin(), "shardplan");
  std::vector<char*> words;
  for (auto& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  auto environment = detail::clean_environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, scratch.path().c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, ".stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failed = posix_spawn(&child, SHARDPLAN_EXECUTABLE, &actions, nullptr, words.data(),
                                 environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error(SHARDPLAN_EXECUTABLE " cannot be started");
  return child;
}

// Long enough for a sanitized program on a busy machine: only what hangs is killed.
constexpr std::chrono::seconds default_patience{600};

inline Run finish(pid_t child, const Scratch& scratch,
                  std::chrono::seconds patience = default_patience,
                  const std::string& out = ".stdout") {
  Run result;
  result.status = detail::wait_for(child, patience);
  if (out == ".stdout") result.out = scratch.read(out);
  result.err = scratch.read(".stderr");
  return result;
}

inline Run run(std::vector<std::string> arguments, const Scratch& scratch,
               std::chrono::seconds patience = default_patience,
               const std::string& out = ".stdout") {
  return finish(start(std::move(arguments), scratch, out), scratch, patience, out);
}

// One word an argument; words hold no spaces.
inline std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < command.size();) {
    const std::size_t end = std::min(command.find(' ', from), command.size());
    if (end > from) words.push_back(command.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

inline std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// Text without what differs between machines: places, and how long a search took.
inline std::string masked(std::string text) {
  text = replaced(std::move(text), SHARDPLAN_SOURCE_DIR, "<source>");
  const std::string before = " valid plans in ";
  if (const auto at = text.find(before); at != std::string::npos) {
    const auto from = at + before.size();
    text.replace(from, text.find(':', from) - from, "<time>");
  }
  return text;
}

}  // namespace program
