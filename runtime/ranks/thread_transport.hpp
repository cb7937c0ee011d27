// Ranks as threads of one process: messages are copied into the receiver's mailbox, and who waits
// sleeps. The first rank that cannot go on ends the run for all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

struct ThreadOptions {
  costmodel::Seconds patience{60};  // how long a rank waits for one message
};

class ThreadWorld {
 public:
  ThreadWorld(int size, const ThreadOptions& options);
  ~ThreadWorld();
  ThreadWorld(const ThreadWorld&) = delete;
  ThreadWorld& operator=(const ThreadWorld&) = delete;

  // The transport of one rank, alive as long as this world. Any thread may use it.
  Transport& of(int rank);

  // Ends the run: every rank that waits for a message, or sends or waits later, throws a RunFault
  // that says "the run was given up: " and this cause. The first cause stands. A rank that waited
  // in vain has given up by itself; as `by` it may still say more of that.
  void give_up(const RunFault& cause, int by = -1);
  std::optional<RunFault> cause() const;

  // This rank sends no more; who waits for a message from it that never came throws RunFault.
  void finished(int rank);

 private:
  class State;
  class Rank;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Runs `program` once a rank, each on a thread of its own, and joins them all. Throws the RunFault
// of the rank that failed first; whatever a rank throws becomes one that names it.
void run_ranks(int ranks, const ThreadOptions& options,
               const std::function<void(Transport&)>& program);

}  // namespace runtime
