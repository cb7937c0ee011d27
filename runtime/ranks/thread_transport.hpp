// Ranks as threads of one process: a message is copied into the receiver's mailbox, and a waiting
// receiver sleeps. The first rank that fails ends the run for all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

struct ThreadOptions {
  costmodel::Seconds patience{60};  // timeout of one message
};

class ThreadWorld {
 public:
  ThreadWorld(int size, const ThreadOptions& options);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  // The transport of one rank; lives as long as this world. Thread-safe.
  Transport& of(int rank);

  // Ends the run: every current or later send and recv throws a RunFault that says "the run was
  // given up: " and the cause. The first cause is kept; rank `by`, whose own timeout was that
  // cause, may replace it by a more detailed one.
  void give_up(const RunFault& cause, int by = -1);
  std::optional<RunFault> cause() const;

  // Declares that this rank sends no more; a rank that waits for a message it never sent throws
  // RunFault.
  void finished(int rank);

 private:
  class State;
  class Rank;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Runs `program` once per rank, each on its own thread, and joins them. Throws the RunFault of the
// first rank that failed; other exceptions become a RunFault that names the rank.
void run_ranks(int ranks, const ThreadOptions& options,
               const std::function<void(Transport&)>& program);

}  // namespace runtime
