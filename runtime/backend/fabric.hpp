// The interface to direct transfers between the devices of ranks, without staging through host
// memory; NCCL implements it. A fabric holds the communicators of a FabricPlan, addressed by the
// index of their round, and enqueues operations on streams. One communicator runs its operations in
// the order enqueued; sender and receiver may enqueue a message at different times, and the first
// to arrive waits in its stream.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/base/units.hpp"

#include "runtime/backend/memory.hpp"
#include "runtime/backend/streams.hpp"

namespace runtime {

// A rank's place in one round.
struct FabricSeat {
  int group = -1;  // index among the round's groups; -1: in none
  int position = 0, size = 1;
  bool channel = false;
  std::string name;  // "the tensor group of ranks 0, 1"
};

// The shared identifier of one fabric, made by rank 0 (ncclUniqueId).
using FabricId = std::array<std::byte, 128>;

struct FabricRequest {
  int rank = 0, ranks = 1;
  std::vector<FabricSeat> seats;  // by round
  FabricId id{};
  costmodel::Seconds patience{60};  // timeout while the communicators are made
  std::function<void()> heed = {};  // called while waiting; an exception ends the wait
};

class Fabric {
 public:
  using Stream = Streams::Stream;
  virtual ~Fabric() = default;

  // To and from the peer of a channel.
  virtual void send(int round, Stream stream, std::span<const std::byte> message) = 0;
  virtual void recv(int round, Stream stream, std::span<std::byte> message) = 0;
  // Like Communicator's (ranks/collectives.hpp), over this rank's group in the round.
  virtual void all_reduce(int round, Stream stream, const Vector& values, Reduction reduction) = 0;
  virtual void reduce_scatter(int round, Stream stream, const Vector& values,
                              Reduction reduction) = 0;
  virtual void all_gather(int round, Stream stream, const Vector& values) = 0;

  // An asynchronous error as a sentence that names the group; "" when there is none.
  virtual std::string fault() = 0;
  // Aborts all pending operations. No call may follow.
  virtual void abort() noexcept = 0;
};

}  // namespace runtime
