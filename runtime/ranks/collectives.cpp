#include "runtime/ranks/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "costmodel/base/error.hpp"

namespace runtime {

namespace {

using namespace costmodel;

Vector part(const Vector& values, int parts, int index) {
  const Chunk chunk = chunk_of(values.size, parts, (index % parts + parts) % parts);
  return values.subspan(chunk.begin, chunk.size);
}

}  // namespace

TrafficCount& TrafficCount::operator+=(const TrafficCount& o) {
  all_reduce += o.all_reduce;
  all_gather += o.all_gather;
  reduce_scatter += o.reduce_scatter;
  all_to_all += o.all_to_all;
  send += o.send;
  return *this;
}

void TrafficCount::add(CollectiveKind kind, std::size_t bytes) {
  const auto more = static_cast<std::int64_t>(bytes);
  switch (kind) {  // the columns of costmodel::Traffic::add
    case CollectiveKind::none: break;
    case CollectiveKind::all_reduce: all_reduce += more; break;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: all_gather += more; break;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: reduce_scatter += more; break;
    case CollectiveKind::all_to_all: all_to_all += more; break;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::ring:
    case CollectiveKind::send: send += more; break;
  }
}

Group group_of(const Transport& transport, std::vector<int> ranks) {
  const int me = transport.rank();
  const auto fault = [me](const std::string& what) {
    return RunFault(me, fmt::format("a group of rank {} {}", me, what));
  };
  std::set<int> seen;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= transport.size())
      throw fault(fmt::format("names rank {}, but the world has {} ranks", rank, transport.size()));
    if (!seen.insert(rank).second) throw fault(fmt::format("names rank {} twice", rank));
  }
  const auto at = std::ranges::find(ranks, me);
  if (at == ranks.end()) throw fault("leaves that rank out");
  const auto position = static_cast<int>(at - ranks.begin());
  return {std::move(ranks), position};
}

Communicator::Communicator(Transport& transport, Group group, TrafficCount& traffic, Memory& memory,
                           GroupOperations* at_once)
    : transport_(transport),
      group_(std::move(group)),
      traffic_(traffic),
      memory_(memory),
      at_once_(at_once) {
  SHARDPLAN_CHECK(at_once == nullptr || at_once->ranks() == group_.ranks);
}

// A rank sends every part once except the one it keeps: what a ring of messages counts.
void Communicator::count_ring(const Vector& values, int kept, CollectiveKind kind) {
  traffic_.add(kind, values.bytes() - part(values, group_.size(), kept).bytes());
}

Communicator::~Communicator() {
  if (incoming_ != nullptr) memory_.release(incoming_);
}

Vector Communicator::room(const Vector& like) {
  if (room_ < like.bytes()) {
    if (incoming_ != nullptr) memory_.release(std::exchange(incoming_, nullptr));
    room_ = 0;
    incoming_ = memory_.allocate(like.bytes());
    room_ = like.bytes();
  }
  return {incoming_, like.size, like.number};
}

// An empty part is not sent: both ends know that it is empty.
void Communicator::send(int position, const Vector& values, CollectiveKind kind, int tag) {
  if (values.empty()) return;
  transport_.send(group_.ranks[static_cast<std::size_t>(position)], tag,
                  {static_cast<const std::byte*>(values.data), values.bytes()});
  traffic_.add(kind, values.bytes());
}

void Communicator::recv(int position, const Vector& values, int tag) {
  if (values.empty()) return;
  transport_.recv(group_.ranks[static_cast<std::size_t>(position)], tag,
                  {static_cast<std::byte*>(values.data), values.bytes()});
}

void Communicator::recv_reduce(int position, const Vector& values, Reduction reduction, int tag) {
  if (values.empty()) return;
  const Vector incoming = room(values);
  recv(position, incoming, tag);
  memory_.reduce(reduction, incoming, values);
}

// Part c starts at the rank after its owner and accumulates every rank's contribution around the
// ring.
void Communicator::ring_reduce(const Vector& values, Reduction reduction, CollectiveKind kind,
                               int tag) {
  const int n = group_.size(), me = group_.position;
  for (int step = 1; step < n; ++step) {
    send((me + 1) % n, part(values, n, me - step), kind, tag);
    recv_reduce((me + n - 1) % n, part(values, n, me - step - 1), reduction, tag);
  }
}

void Communicator::ring_gather(const Vector& values, CollectiveKind kind, int tag) {
  const int n = group_.size(), me = group_.position;
  for (int step = 0; step + 1 < n; ++step) {
    send((me + 1) % n, part(values, n, me - step), kind, tag);
    recv((me + n - 1) % n, part(values, n, me - step - 1), tag);
  }
}

void Communicator::all_reduce(const Vector& values, Reduction reduction, int tag) {
  if (at_once_ != nullptr) {
    at_once_->all_reduce(values, reduction);
    count_ring(values, group_.position, CollectiveKind::all_reduce);
    return count_ring(values, group_.position + 1, CollectiveKind::all_reduce);
  }
  ring_reduce(values, reduction, CollectiveKind::all_reduce, tag);
  ring_gather(values, CollectiveKind::all_reduce, tag);
}

void Communicator::reduce_scatter(const Vector& values, Reduction reduction, int tag,
                                  CollectiveKind counted_as) {
  if (at_once_ != nullptr) {
    at_once_->reduce_scatter(values, reduction);
    return count_ring(values, group_.position, counted_as);
  }
  ring_reduce(values, reduction, counted_as, tag);
}

void Communicator::all_gather(const Vector& values, int tag, CollectiveKind counted_as) {
  if (at_once_ != nullptr) {
    at_once_->all_gather(values);
    return count_ring(values, group_.position + 1, counted_as);
  }
  ring_gather(values, counted_as, tag);
}

// Position i sends its sum to i without its lowest set bit, after receiving from its children.
void Communicator::tree_reduce(const Vector& values, Reduction reduction, int tag) {
  const int n = group_.size(), me = group_.position;
  for (int bit = 1; bit < n; bit *= 2) {
    if ((me & bit) != 0) return send(me - bit, values, CollectiveKind::all_reduce, tag);
    if (me + bit < n) recv_reduce(me + bit, values, reduction, tag);
  }
}

void Communicator::tree_spread(const Vector& values, int root, CollectiveKind kind, int tag) {
  const int n = group_.size();
  const int me = (group_.position - root + n) % n;  // counted from the root
  const auto place = [&](int from_root) { return (from_root + root) % n; };
  int bit = 1;
  for (; bit < n && (me & bit) == 0; bit *= 2) {
  }
  if (me != 0) recv(place(me - bit), values, tag);
  for (bit /= 2; bit > 0; bit /= 2)
    if (me + bit < n) send(place(me + bit), values, kind, tag);
}

void Communicator::tree_all_reduce(const Vector& values, Reduction reduction, int tag) {
  tree_reduce(values, reduction, tag);
  tree_spread(values, 0, CollectiveKind::all_reduce, tag);
}

void Communicator::broadcast(const Vector& values, int root, int tag) {
  SHARDPLAN_CHECK(root >= 0 && root < group_.size());
  tree_spread(values, root, CollectiveKind::broadcast, tag);
}

void Communicator::all_to_all(std::span<const std::span<const float>> out,
                              std::span<const std::span<float>> in, int tag) {
  const int n = group_.size(), me = group_.position;
  const auto own = static_cast<std::size_t>(me);
  SHARDPLAN_CHECK(out.size() == group_.ranks.size() && in.size() == group_.ranks.size());
  SHARDPLAN_CHECK(out[own].size() == in[own].size());
  memory_.copy(out[own], in[own]);
  for (int step = 1; step < n; ++step) {
    const int to = (me + step) % n, from = (me + n - step) % n;
    const auto& message = out[static_cast<std::size_t>(to)];
    send(to, {const_cast<float*>(message.data()), message.size(), Number::f32},  // only read
         CollectiveKind::all_to_all, tag);
    recv(from, in[static_cast<std::size_t>(from)], tag);
  }
}

// Dissemination barrier (Hensgen et al. 1988): after round k each rank knows that the 2^k ranks
// before it have arrived.
void Communicator::barrier(int tag) {
  const int n = group_.size(), me = group_.position;
  for (int distance = 1; distance < n; distance *= 2) {
    transport_.send(group_.ranks[static_cast<std::size_t>((me + distance) % n)], tag, {});
    transport_.recv(group_.ranks[static_cast<std::size_t>((me + n - distance) % n)], tag, {});
  }
}

}  // namespace runtime
