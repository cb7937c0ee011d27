#include "costmodel/schedule/orders.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// Gaps from rounding do not count as time.
constexpr double rounding = 1e-9;

template <class Rank>
ActionsByRank by_rank(int ranks, Rank order_of) {
  ActionsByRank lists;
  for (int rank = 0; rank < ranks; ++rank) lists.push_back(order_of(rank));
  return lists;
}

// Megatron's interleaved order: groups of micro-batches, of p or as many as the request says, go
// through one chunk after the other.
struct InterleavedOrder {
  int ranks, chunks, micro_batches, rank, group;

  // The k-th forward (or backward) of the rank.
  Action action(ActionKind kind, int k) const {
    const int first = k / (group * chunks) * group;  // micro-batch of the group
    const int within = k - first * chunks, own = std::min(group, micro_batches - first);
    const int turn = within / own;
    const int chunk = kind == ActionKind::backward ? chunks - 1 - turn : turn;
    return {kind, chunk * ranks + rank, first + within - turn * own};
  }
};

// Warm-up forwards, then one forward and one backward in turn, then the remaining backwards.
Actions alternating(int rank, const OrderRequest& request, int warm_up) {
  Actions list;
  const int total = request.micro_batches * request.chunks;
  list.reserve(2 * static_cast<std::size_t>(total));
  const int group = request.choices.group > 0 ? request.choices.group : request.ranks;
  const InterleavedOrder order{request.ranks, request.chunks, request.micro_batches, rank, group};
  warm_up = std::min(warm_up, total);
  int backward = 0;
  const auto add_backward = [&] { list.push_back(order.action(ActionKind::backward, backward++)); };
  for (int k = 0; k < total; ++k) {
    list.push_back(order.action(ActionKind::forward, k));
    if (k >= warm_up) add_backward();
  }
  while (backward < total) add_backward();
  return list;
}

// `warm_up` forwards, then backward and forward in turn, then the remaining backwards.
Actions h_order(int rank, int m, int warm_up) {
  Actions list;
  for (int j = 0; j < warm_up; ++j) list.push_back({ActionKind::forward, rank, j});
  for (int j = 0; j < m; ++j) {
    list.push_back({ActionKind::backward, rank, j});
    if (warm_up + j < m) list.push_back({ActionKind::forward, rank, warm_up + j});
  }
  return list;
}

// Forwards that end before the first backward can start, p - rank at least, by rank.
std::vector<int> eager_warm_up(int ranks, const PipelineTimes& times, int in_flight) {
  std::vector<int> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(ranks - rank);
  std::vector<double> fill{0}, pace;  // first forward's start; slowest forward up to here
  double slowest = 0;
  for (const Seconds forward : times.forward) {
    fill.push_back(fill.back() + forward.value + times.transfer.value);
    slowest = std::max(slowest, forward.value);
    pace.push_back(slowest);
  }
  double ready = fill.back() - times.transfer.value;  // the first backward on this rank
  for (auto r = static_cast<std::size_t>(ranks); r-- > 0;) {
    const double spare = ready - fill[r] - times.forward[r].value;
    const double more = std::floor(spare / pace[r] * (1 + rounding));
    counts[r] = std::max(counts[r], 1 + static_cast<int>(std::min(more, 2.0 * ranks - 1)));
    ready += times.backward[r].value + times.transfer.value;
  }
  if (in_flight > 0) counts.front() = std::min(counts.front(), std::max(in_flight, ranks));
  // A rank runs at least one forward more than the next before its first backward.
  for (std::size_t r = 1; r < counts.size(); ++r)
    counts[r] = std::min(counts[r], counts[r - 1] - 1);
  return counts;
}

class VOrder {
 public:
  VOrder(int rank, int ranks, int micro_batches)
      : stages_{rank, 2 * ranks - 1 - rank}, batches_(micro_batches) {
    const int whole = std::max(micro_batches, 2 * ranks);  // short ones: the longer one, thinned
    for (int i = 0; i < 2 * (ranks - rank) - 1; ++i) forward(0);
    for (int i = 0; i < rank; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < ranks - rank; ++i) {
      forward(1);
      backward(1);
    }
    while (forwards_[1] < whole) {
      if (forwards_[0] < whole) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    for (int i = 0; i < rank; ++i) {
      backward(0);
      backward(1);
    }
    for (int i = 0; i < ranks - rank; ++i) backward(0);
  }
  Actions list;

 private:
  void forward(int chunk) { add(ActionKind::forward, chunk, forwards_[chunk]++); }
  void backward(int chunk) { add(ActionKind::backward, chunk, backwards_[chunk]++); }
  void add(ActionKind kind, int chunk, int micro_batch) {
    if (micro_batch < batches_) list.push_back({kind, stages_[chunk], micro_batch});
  }
  int stages_[2];
  int batches_;
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
};

}  // namespace

ActionsByRank serial_order(const OrderRequest& request) {
  return by_rank(request.ranks, [&](int rank) {
    Actions list;
    for (int j = 0; j < request.micro_batches; ++j) {
      list.push_back({ActionKind::forward, rank, j});
      list.push_back({ActionKind::backward, rank, j});
    }
    return list;
  });
}

ActionsByRank gpipe_order(const OrderRequest& request) {
  return by_rank(request.ranks, [&](int rank) {
    Actions list;
    for (const auto kind : {ActionKind::forward, ActionKind::backward})
      for (int j = 0; j < request.micro_batches; ++j) list.push_back({kind, rank, j});
    return list;
  });
}

ActionsByRank one_f_one_b_order(const OrderRequest& request) {
  return by_rank(request.ranks,
                 [&](int rank) { return alternating(rank, request, request.ranks - rank - 1); });
}

bool takes_groups(int ranks, long long micro_batches, int group) {
  if (group == 0) return micro_batches % ranks == 0;
  const long long rest = micro_batches % group;
  return group >= ranks && (rest == 0 || rest >= ranks);
}

int interleaved_warm_up(int rank, int p, int v, long long m, int group) {
  if (m == p)  // Megatron: all forwards first when there is one group of micro-batches
    return static_cast<int>(m) * v;
  return 2 * (p - rank - 1) + (v - 1) * (group > 0 ? group : p);
}

ActionsByRank interleaved_order(const OrderRequest& request) {
  const int group = request.choices.group;
  SHARDPLAN_CHECK(takes_groups(request.ranks, request.micro_batches, group));
  return by_rank(request.ranks, [&](int rank) {
    return alternating(
        rank, request,
        interleaved_warm_up(rank, request.ranks, request.chunks, request.micro_batches, group));
  });
}

ActionsByRank handcrafted_order(const OrderRequest& request) {
  const int m = request.micro_batches;
  return by_rank(request.ranks,
                 [&](int rank) { return h_order(rank, m, std::min(request.ranks - rank, m)); });
}

ActionsByRank eager_order(const OrderRequest& request) {
  SHARDPLAN_CHECK(request.times != nullptr);
  const std::vector<int> warm_up =
      eager_warm_up(request.ranks, *request.times, request.choices.in_flight);
  const int m = request.micro_batches;
  return by_rank(request.ranks, [&](int rank) {
    return h_order(rank, m, std::min(warm_up[static_cast<std::size_t>(rank)], m));
  });
}

ActionsByRank v_order(const OrderRequest& request) {
  return by_rank(request.ranks,
                 [&](int rank) { return VOrder(rank, request.ranks, request.micro_batches).list; });
}

}  // namespace costmodel
