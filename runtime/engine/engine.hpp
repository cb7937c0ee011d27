// Executes one pipeline rank's actions in the order of the schedule and records when each ran. A
// StageBackend defines what an action does: training ones compute, emulated ones wait.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/timeline.hpp"

namespace runtime {

// A point in time of a backend: its time or, when that is known only later, the number of an event.
struct Moment {
  costmodel::Seconds time{};
  int event = -1;
};

// Performs one rank's actions. `stage` is the virtual stage, as in the schedule; for a transfer,
// the stage that produced the tensor.
class StageBackend {
 public:
  virtual ~StageBackend() = default;
  virtual void forward(int stage, int micro_batch) = 0;
  virtual void backward(int stage, int micro_batch) = 0;
  virtual void weight_gradient(int stage, int micro_batch) = 0;
  // Actions that the schedule joins in a cell: one after the other, unless the backend can do
  // better.
  virtual void together(std::span<const costmodel::Action> cell);
  virtual void send_forward(int stage, int micro_batch) = 0;
  virtual void recv_forward(int stage, int micro_batch) = 0;
  virtual void send_backward(int stage, int micro_batch) = 0;
  virtual void recv_backward(int stage, int micro_batch) = 0;
  // Seconds since the iteration began, on the backend's clock.
  virtual costmodel::Seconds now() const = 0;
  // The engine calls moment() before and after each action. Asynchronous backends return an event;
  // time_of() then waits for it.
  virtual Moment moment() { return {now()}; }
  virtual costmodel::Seconds time_of(const Moment& moment) { return moment.time; }
};

// Performs one cell of `rank`'s actions, which most often is one action.
costmodel::Event execute(std::span<const costmodel::Action> cell, int rank, StageBackend& backend);

// Runs the actions of `rank` in a lowered schedule (costmodel::lower) and returns the events of its
// compute and transfer streams, in order, one event a cell. A forward or backward that waited for
// its input starts when the input has arrived. `begins`, if given, is called before each cell, with
// its first action.
std::vector<costmodel::Event> execute(
    const costmodel::Schedule& lowered, int rank, StageBackend& backend,
    const std::function<void(const costmodel::Action&)>& begins = {});

}  // namespace runtime
