// Stages that compute nothing and take the time that costmodel::PipelineTimes says, so that the
// engine can be held to the simulator. Here the clock is virtual and the outcome the simulator's to
// the bit; runtime/engine/emulated_real_time.hpp waits in earnest.
//
// A transfer takes `transfer` seconds beside whatever the sender does next, or, where the times are
// blocking, instead of it. A stage's rank in the pipeline is its rank in the transport.
#pragma once

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/stage_times.hpp"
#include "costmodel/schedule/timeline.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/engine/engine.hpp"

namespace runtime {

// Which durations and which messages the actions mean; clocks are the derived classes'.
class EmulatedStages : public StageBackend {
 public:
  // All three outlive this.
  EmulatedStages(Transport& transport, const costmodel::Schedule& lowered,
                 const costmodel::PipelineTimes& times);
  void forward(int stage, int micro_batch) override;
  void backward(int stage, int micro_batch) override;
  void weight_gradient(int stage, int micro_batch) override;
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

// Messages are the 8 bytes of when they arrive; a rank that accepts one later than it came has lost
// nothing.
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

// All ranks of a lowered schedule on the calling thread, each as far as its messages let it, in
// turn. Throws RunFault when none can go on before all are done.
costmodel::Timeline emulate_virtual(const costmodel::Schedule& lowered,
                                    const costmodel::PipelineTimes& times);

}  // namespace runtime
