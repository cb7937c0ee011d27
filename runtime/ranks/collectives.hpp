// Collectives over any Transport, built of its messages, so that the bytes counted are the bytes
// sent. Ring algorithms (Thakur et al. 2005) send exactly what costmodel::collective_bytes says;
// where elements do not divide, the mean over the ranks does.
//
// The result is the same on every rank and independent of timing: every element is reduced in an
// order that the group alone decides. All ranks of a group make the same calls in the same order.
// Each call takes one tag (runtime/backend/tags.hpp). They throw what the transport throws.
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

// Bytes that this rank sent, by kind (what costmodel::Traffic predicts).
struct TrafficCount {
  std::int64_t all_reduce = 0, all_gather = 0, reduce_scatter = 0, all_to_all = 0, send = 0;
  void add(costmodel::CollectiveKind kind, std::size_t bytes);
  std::int64_t total() const {
    return all_reduce + all_gather + reduce_scatter + all_to_all + send;
  }
  TrafficCount& operator+=(const TrafficCount& o);
  bool operator==(const TrafficCount&) const = default;
};

// The ranks of a collective, in ring order, and which of them this one is.
struct Group {
  std::vector<int> ranks;
  int position = 0;
  int size() const { return static_cast<int>(ranks.size()); }
};

// Throws RunFault when `ranks` has not `me` in it, names a rank twice, or one outside the world.
Group group_of(const Transport& transport, std::vector<int> ranks);

// The seam to what does a group's collectives at once, where messages of ours would go by way of
// the host. Results are those of Communicator's calls of the same names.
class GroupOperations {
 public:
  virtual ~GroupOperations() = default;
  virtual const std::vector<int>& ranks() const = 0;  // in ring order
  virtual void all_reduce(const Vector& values, Reduction reduction) = 0;
  virtual void reduce_scatter(const Vector& values, Reduction reduction) = 0;
  virtual void all_gather(const Vector& values) = 0;
  // Whether what is asked of Memory and Device goes on beside the next collectives; it waits for
  // them at join().
  virtual void beside(bool on) = 0;
  virtual void join() = 0;
  // When those since the last call that went on beside began and were done, from an event on.
  // Waits.
  virtual std::vector<std::pair<costmodel::Seconds, costmodel::Seconds>> spans(
      Streams::Event since) = 0;
};

class Communicator {
 public:
  // All outlive this. The vectors lie in `memory`, which the transport can read. `at_once`, where
  // not null, does the ring collectives, which count as if they were messages.
  Communicator(Transport& transport, Group group, TrafficCount& traffic,
               Memory& memory = host_memory(), GroupOperations* at_once = nullptr);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Group& group() const { return group_; }
  GroupOperations* at_once() const { return at_once_; }

  // Ring; `values` holds the result on every rank.
  void all_reduce(const Vector& values, Reduction reduction, int tag);
  // Binomial tree up and down: fewer messages, for small ones; the same bytes over all ranks.
  void tree_all_reduce(const Vector& values, Reduction reduction, int tag);
  // Ring; chunk `position` of `values` holds the result, the rest partial sums.
  void reduce_scatter(
      const Vector& values, Reduction reduction, int tag,
      costmodel::CollectiveKind counted_as = costmodel::CollectiveKind::reduce_scatter);
  // Ring; from chunk `position` of every rank to all chunks on every rank.
  void all_gather(const Vector& values, int tag,
                  costmodel::CollectiveKind counted_as = costmodel::CollectiveKind::all_gather);
  // Binomial tree from the rank at position `root`. Counted as send, as the cost model does.
  void broadcast(const Vector& values, int root, int tag);
  // Pairwise: to position i goes out[i], from it comes in[i]; both ends agree on sizes.
  void all_to_all(std::span<const std::span<const float>> out, std::span<const std::span<float>> in,
                  int tag);
  // Returns on no rank before all have called it. Empty messages.
  void barrier(int tag);

 private:
  void count_ring(const Vector& values, int kept, costmodel::CollectiveKind kind);
  Vector room(const Vector& like);  // for a message that comes in
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
