// Executes one pipeline rank's actions, in the order the schedule gives, and notes when each ran.
// What an action is, a backend says: threads and MPI compute, the emulated backend waits.
#pragma once

#include <functional>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace runtime {

// A moment of a backend: its time, or where that is known later only, a number that stands for it.
struct Moment {
  costmodel::Seconds time{};
  int event = -1;
};

// One rank's share of an iteration. `stage` is virtual, as in the schedule; a transfer's stage is
// the one whose result travels.
class StageBackend {
 public:
  virtual ~StageBackend() = default;
  virtual void forward(int stage, int micro_batch) = 0;
  virtual void backward(int stage, int micro_batch) = 0;
  virtual void weight_gradient(int stage, int micro_batch) = 0;
  virtual void send_forward(int stage, int micro_batch) = 0;
  virtual void recv_forward(int stage, int micro_batch) = 0;
  virtual void send_backward(int stage, int micro_batch) = 0;
  virtual void recv_backward(int stage, int micro_batch) = 0;
  // Seconds since the iteration began, on this backend's clock.
  virtual costmodel::Seconds now() const = 0;
  // Before and after each action. Backends whose actions go on after the call has returned have
  // moments that are known later: time_of() waits for them.
  virtual Moment moment() { return {now()}; }
  virtual costmodel::Seconds time_of(const Moment& moment) { return moment.time; }
};

// Performs one action of `rank`.
costmodel::Event execute(const costmodel::Action& action, int rank, StageBackend& backend);

// Runs the actions of `rank` in a lowered schedule (costmodel::lower): the events of its compute
// and transfer streams, in order. A forward or backward that had to wait for its input starts when
// it has it. `begins`, where given, hears of each action before it is performed.
std::vector<costmodel::Event> execute(
    const costmodel::Schedule& lowered, int rank, StageBackend& backend,
    const std::function<void(const costmodel::Action&)>& begins = {});

}  // namespace runtime
