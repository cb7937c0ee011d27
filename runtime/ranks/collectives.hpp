// Collectives over any Transport, built from its messages, so that the bytes counted are the bytes
// sent. Ring algorithms (Thakur et al. 2005) send exactly costmodel::collective_bytes; when the
// elements do not divide by the ranks, the mean over the ranks does.
//
// The result is identical on all ranks and independent of timing: the reduction order of each
// element depends only on the group. All ranks of a group make the same calls in the same order.
// Each call takes one tag (runtime/backend/tags.hpp). All throw what the transport throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "costmodel/operators/op.hpp"
#include "runtime/backend/memory.hpp"
#include "runtime/backend/shard.hpp"
#include "runtime/backend/streams.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

// Bytes that this rank has sent, by kind of collective (predicted by costmodel::Traffic).
struct TrafficCount {
  std::int64_t all_reduce = 0, all_gather = 0, reduce_scatter = 0, all_to_all = 0, send = 0;
  void add(costmodel::CollectiveKind kind, std::size_t bytes);
  std::int64_t total() const {
    return all_reduce + all_gather + reduce_scatter + all_to_all + send;
  }
  TrafficCount& operator+=(const TrafficCount& o);
  bool operator==(const TrafficCount&) const = default;
};

// The ranks of a collective in ring order, and this rank's index among them.
struct Group {
  std::vector<int> ranks;
  int position = 0;
  int size() const { return static_cast<int>(ranks.size()); }
};

// Throws RunFault when `ranks` lacks this rank, names a rank twice, or names one outside the world.
Group group_of(const Transport& transport, std::vector<int> ranks);

// The interface to a group's collectives on the device (NCCL), which avoid staging through host
// memory. Results equal those of Communicator's calls of the same names.
class GroupOperations {
 public:
  virtual ~GroupOperations() = default;
  virtual const std::vector<int>& ranks() const = 0;  // in ring order
  virtual void all_reduce(const Vector& values, Reduction reduction) = 0;
  virtual void reduce_scatter(const Vector& values, Reduction reduction) = 0;
  virtual void all_gather(const Vector& values) = 0;
  // true: the next collectives run concurrently with later work on Memory and Device, which waits
  // for them at join().
  virtual void beside(bool on) = 0;
  virtual void join() = 0;
  // Start and end of each concurrent collective since the last call, in seconds after the event
  // `since`. Waits.
  virtual std::vector<std::pair<costmodel::Seconds, costmodel::Seconds>> spans(
      Streams::Event since) = 0;
};

class Communicator {
 public:
  // All outlive this. Vectors lie in `memory`, which the transport can read. `at_once`, unless
  // null, runs the ring collectives; their bytes are counted as if they were messages.
  Communicator(Transport& transport, Group group, TrafficCount& traffic,
               Memory& memory = host_memory(), GroupOperations* at_once = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Group& group() const { return group_; }
  GroupOperations* at_once() const { return at_once_; }
  int world() const { return transport_.size(); }

  // Ring. `values` holds the result on every rank.
  void all_reduce(const Vector& values, Reduction reduction, int tag);
  // Binomial tree: reduce, then broadcast. Fewer messages, for small vectors; the same bytes over
  // all ranks.
  void tree_all_reduce(const Vector& values, Reduction reduction, int tag);
  // Ring. Chunk `position` of `values` holds the result, the rest partial sums.
  void reduce_scatter(
      const Vector& values, Reduction reduction, int tag,
      costmodel::CollectiveKind counted_as = costmodel::CollectiveKind::reduce_scatter);
  // Ring. Sends chunk `position` of each rank to all ranks.
  void all_gather(const Vector& values, int tag,
                  costmodel::CollectiveKind counted_as = costmodel::CollectiveKind::all_gather);
  // Binomial tree from the rank at position `root`. Counted as send, as in the cost model.
  void broadcast(const Vector& values, int root, int tag);
  // Pairwise: sends out[i] to position i and receives in[i] from it; both ends agree on sizes.
  void all_to_all(std::span<const std::span<const float>> out, std::span<const std::span<float>> in,
                  int tag);
  // A barrier, of empty messages.
  void barrier(int tag);

 private:
  void count_ring(const Vector& values, int kept, costmodel::CollectiveKind kind);
  Vector room(const Vector& like);  // receive buffer
  void send(int position, const Vector& values, costmodel::CollectiveKind kind, int tag);
  void recv(int position, const Vector& values, int tag);
  void recv_reduce(int position, const Vector& values, Reduction reduction, int tag);
  void ring_reduce(const Vector& values, Reduction reduction, costmodel::CollectiveKind kind,
                   int tag);
  void ring_gather(const Vector& values, costmodel::CollectiveKind kind, int tag);
  void tree_reduce(const Vector& values, Reduction reduction, int tag);
  void tree_spread(const Vector& values, int root, costmodel::CollectiveKind kind, int tag);

  Transport& transport_;
  Group group_;
  TrafficCount& traffic_;
  Memory& memory_;
  GroupOperations* at_once_;
  void* incoming_ = nullptr;
  std::size_t room_ = 0;  // bytes
};

}  // namespace runtime
