// The seam to what moves tensors between ranks without the host: NCCL is one. It has the
// communicators of a FabricPlan, which are called by their rounds, and puts work into streams.
// What a communicator is given is done in that order; both ends of a message give it at some time,
// and who comes first waits in its stream.
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
  int group = -1;  // which of the round's groups; -1: in none
  int position = 0, size = 1;
  bool channel = false;
  std::string name;  // "the tensor group of ranks 0, 1"
};

// What the ranks of one fabric have in common, made by rank 0.
using FabricId = std::array<std::byte, 128>;

struct FabricRequest {
  int rank = 0, ranks = 1;
  std::vector<FabricSeat> seats;  // by round
  FabricId id{};
  costmodel::Seconds patience{60};  // for the others while the communicators are made
  std::function<void()> heed = {};  // called while waiting; what it throws ends that
};

class Fabric {
 public:
  using Stream = Streams::Stream;
  virtual ~Fabric() = default;

  // To and from the other rank of a channel.
  virtual void send(int round, Stream stream, std::span<const std::byte> message) = 0;
  virtual void recv(int round, Stream stream, std::span<std::byte> message) = 0;
  // As Communicator's, of this rank's group of the round.
  virtual void all_reduce(int round, Stream stream, const Vector& values, Reduction reduction) = 0;
  virtual void reduce_scatter(int round, Stream stream, const Vector& values,
                              Reduction reduction) = 0;
  virtual void all_gather(int round, Stream stream, const Vector& values) = 0;

  // What went wrong beside the calls, as a sentence with the group it went wrong in; "" where
  // nothing has.
  virtual std::string fault() = 0;
  // Ends all that is under way and all that will come; nothing more is given afterwards.
  virtual void abort() noexcept = 0;
};

}  // namespace runtime
