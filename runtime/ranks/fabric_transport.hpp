// Tensors by way of a Fabric, for the engine: messages between stages as a Transport, and the
// collectives of a group at once. All is put into streams of its own, beside the computation:
//
//   channel   a stream for each channel that the rank sends over or receives from
//   tensor    collectives of the tensor group, and of the two ends of a pipeline
//   replicas  collectives of the ranks that hold the same weights
//
// A message that is sent is copied beside the tensors first, so that its tensor may be used again
// although the receiver takes it later; one that comes is received as soon as it is known that it
// will be wanted (expect()), two ahead. The compute stream waits for what it needs and nothing
// else. Memory for that is beside what a plan counts. One thread uses it.
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
  // All outlive this. `host` carries no tensor; it says which rank this is, and whether the run was
  // given up. The memory is that in which the fabric's tensors lie. Ranks may stand still for
  // `patience`.
  FabricTransport(Transport& host, const FabricPlan& plan, Fabric& fabric, Streams& streams,
                  Memory& memory, costmodel::Seconds patience);
  // Aborts the fabric where something is still under way.
  ~FabricTransport() override;
  FabricTransport(const FabricTransport&) = delete;
  FabricTransport& operator=(const FabricTransport&) = delete;

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  // Of the pipeline's messages only.
  void send(int to, int tag, std::span<const std::byte> message) override;
  void recv(int from, int tag, std::span<std::byte> message) override;
  void expect(int from, int tag, std::size_t bytes) override;
  void heed() override { look(); }

  // Of the rank's group; null where it has none. Lives as long as this.
  GroupOperations* group(FabricUse use);
  // Waits until nothing is under way.
  void settle();

 private:
  class Group;
  struct Slot {  // memory of one message
    void* data = nullptr;
    std::size_t bytes = 0;
    Streams::Event event = 0;  // it has gone, or it has come
    Streams::Event taken = 0;  // of one that came: it was copied to where it was wanted
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
    std::deque<Expected> expected;  // not received yet
    std::deque<Arriving> arriving;
  };
  struct Given {
    Streams::Event event;
    Streams::Stream stream;
    std::string what;
    int other;     // the rank at fault where it does not come to an end
    bool awaited;  // the computation, or settle(), goes on after it
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
  const Streams::Event computed_;    // how far the compute stream has come
  std::map<int, Channel> channels_;  // by round
  std::map<FabricUse, std::unique_ptr<Group>> groups_;
  Streams::Stream tensor_stream_ = 0;  // 0: not made yet
  std::deque<Given> under_way_;
  std::vector<Streams::Event> spare_;
  Clock::time_point moved_;  // when something last came to its end, or was first waited for
};

}  // namespace runtime
