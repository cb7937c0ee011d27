// Stages that compute nothing and take the time of costmodel::PipelineTimes, so that the engine can
// be tested against the simulator. Here the clock is virtual and the times equal the simulator's to
// the bit; emulated_real_time.hpp really waits.
//
// A transfer takes `transfer` seconds concurrently with the sender's next action or, when the times
// are blocking, delays it. A stage's rank in the pipeline is its rank in the transport.
#pragma once

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/engine/engine.hpp"

namespace runtime {

// Maps actions to durations and messages; derived classes provide the clock.
class EmulatedStages : public StageBackend {
 public:
  // All three outlive this.
  EmulatedStages(Transport& transport, const costmodel::Schedule& lowered,
                 const costmodel::PipelineTimes& times);
  void forward(int stage, int micro_batch) override;
  void backward(int stage, int micro_batch) override;
  void weight_gradient(int stage, int micro_batch) override;
  void together(std::span<const costmodel::Action> cell) override;
  void send_forward(int stage, int micro_batch) override;
  void recv_forward(int stage, int micro_batch) override;
  void send_backward(int stage, int micro_batch) override;
  void recv_backward(int stage, int micro_batch) override;

 protected:
  virtual void work(costmodel::Seconds duration) = 0;
  virtual void deliver(int to, int tag) = 0;
  virtual void accept(int from, int tag) = 0;

  Transport& transport_;
  const costmodel::Schedule& schedule_;
  const costmodel::PipelineTimes& times_;
};

// A message is its arrival time, 8 bytes; receiving it later than that costs nothing.
class VirtualStages : public EmulatedStages {
 public:
  using EmulatedStages::EmulatedStages;
  costmodel::Seconds now() const override { return costmodel::Seconds(clock_); }

 protected:
  void work(costmodel::Seconds duration) override;
  void deliver(int to, int tag) override;
  void accept(int from, int tag) override;

 private:
  double clock_ = 0;
};

// Runs all ranks of a lowered schedule on the calling thread, in turn, each until it waits for a
// message. Throws RunFault on a deadlock.
costmodel::Timeline emulate_virtual(const costmodel::Schedule& lowered,
                                    const costmodel::PipelineTimes& times);

}  // namespace runtime
