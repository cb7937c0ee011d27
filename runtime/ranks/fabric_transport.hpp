// Tensor transfers over a Fabric, for the engine: pipeline messages as a Transport, and the
// collectives of a group. All run asynchronously on streams of their own, concurrent with compute:
//
//   channel   one stream per channel that the rank sends or receives on
//   tensor    collectives of the tensor group and of the two ends of a pipeline
//   replicas  collectives of the ranks that hold the same weights
//
// A message is copied to a buffer before it is sent, so that its tensor can be reused before the
// receiver takes it. Receives are posted as soon as they are announced (expect()), two ahead. The
// compute stream waits only for what it needs. The plan's memory does not include these buffers.
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/fabric.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/collectives.hpp"
#include "runtime/ranks/fabric_plan.hpp"

namespace runtime {

class FabricTransport : public Transport {
 public:
  // All outlive this. `host` carries no tensors; it provides the rank and reports when the run is
  // given up. `memory` holds the fabric's tensors. `patience`: the timeout without progress.
  FabricTransport(Transport& host, const FabricPlan& plan, Fabric& fabric, Streams& streams,
                  Memory& memory, costmodel::Seconds patience);
  // Aborts the fabric when operations are pending.
  ~FabricTransport() override;
  FabricTransport(const FabricTransport&) = delete;
  FabricTransport& operator=(const FabricTransport&) = delete;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // Pipeline messages only.
  void send(int to, int tag, std::span<const std::byte> message) override;
  void recv(int from, int tag, std::span<std::byte> message) override;
  void expect(int from, int tag, std::size_t bytes) override;
  void heed() override { look(); }

  // The operations of the rank's group; null when it has none. Lives as long as this.
  GroupOperations* group(FabricUse use);
  // Waits until no operation is pending.
  void settle();

 private:
  class Group;
  struct Slot {  // the buffer of one message
    void* data = nullptr;
    std::size_t bytes = 0;
    Streams::Event event = 0;  // sent, or received
    Streams::Event taken = 0;  // received and copied to its destination
  };
  struct Expected {
    int from, tag;
    std::size_t bytes;
  };
  struct Arriving {
    Expected message;
    std::size_t slot;
    Streams::Event given;
  };
  struct Channel {
    int round = 0;
    Streams::Stream stream = 0;
    std::deque<Slot> slots;
    std::size_t received = 0;
    std::deque<Expected> expected;  // announced, not posted yet
    std::deque<Arriving> arriving;
  };
  struct Given {
    Streams::Event event;
    Streams::Stream stream;
    std::string what;
    int other;     // the rank to blame on a timeout
    bool awaited;  // compute or settle() waits for it
  };
  using Clock = std::chrono::steady_clock;

  Channel& channel(int from, int to, int tag);
  Slot new_slot(std::size_t bytes);
  Slot& sending_slot(Channel& channel, std::size_t bytes);
  std::size_t receiving_slot(Channel& channel, std::size_t bytes);
  void receive_ahead(Channel& channel);
  void after_compute(Streams::Stream stream);
  Streams::Event give(Streams::Stream stream, std::string what, int other, bool awaited);
  template <class Which>
  void await(Which which);
  void forget_passed();
  void look();

  Transport& host_;
  const FabricPlan& plan_;
  Fabric& fabric_;
  Streams& streams_;
  Memory& memory_;
  const costmodel::Seconds patience_;
  const Streams::Event computed_;    // marks the compute stream's progress
  std::map<int, Channel> channels_;  // by round
  std::map<FabricUse, std::unique_ptr<Group>> groups_;
  Streams::Stream tensor_stream_ = 0;  // 0: not made yet
  std::deque<Given> under_way_;
  std::vector<Streams::Event> spare_;
  Clock::time_point moved_;  // last progress, for the timeout
};

}  // namespace runtime
