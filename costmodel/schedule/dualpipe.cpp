#include "costmodel/schedule/dualpipe.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// A rank of a V of `depth` ranks: its two chunks, near and far from the first stage, and the number
// of the first micro-batch of each.
struct Place {
  int depth, rank;
  int stage[2];
  int first[2];
  int micro_batches;  // through each chunk
};

// The eight steps of one rank. Chunk 0 is the near one.
class DualOrder {
 public:
  explicit DualOrder(const Place& place) : at_(place) {
    const int behind = at_.depth - at_.rank - 1, rank = at_.rank;
    for (int i = 0; i < 2 * behind; ++i) forward(0);
    for (int i = 0; i <= rank; ++i) {
      forward(0);
      forward(1);
    }
    for (int i = 0; i < behind; ++i) {
      input_gradient(1);
      weight_gradient();
      forward(1);
    }
    for (int i = 0; i < at_.micro_batches - 2 * at_.depth + rank + 1; ++i) {
      const bool apart = i == 0 && behind == 0;
      forward(0);
      backward(1, !apart);
      forward(1);
      backward(0, true);
    }
    for (int i = 0; i < behind; ++i) {
      backward(1, false);
      forward(1);
      backward(0, true);
    }
    drain();
  }
  Actions list;

 private:
  // The later half of the backwards leaves its weight gradients to fill the bubbles.
  void drain() {
    const int behind = at_.depth - at_.rank - 1, steps = at_.rank + 1;
    for (int i = 0; i < 2 * steps; ++i) {
      const int chunk = i % 2 == 0 ? 1 : 0;
      if (i < steps) {
        backward(chunk, false);
      } else {
        input_gradient(chunk);
      }
    }
    for (int i = 0; i < behind; ++i) {
      weight_gradient();
      input_gradient(0);
    }
    while (next_ < pending_.size()) weight_gradient();
  }

  void forward(int chunk) { add(ActionKind::forward, chunk, forwards_[chunk]++, false); }
  void backward(int chunk, bool beside) {
    const int micro_batch = backwards_[chunk]++;
    add(ActionKind::backward, chunk, micro_batch, beside);
    add(ActionKind::weight_gradient, chunk, micro_batch, true);
  }
  void input_gradient(int chunk) {
    pending_.emplace_back(chunk, backwards_[chunk]);
    add(ActionKind::backward, chunk, backwards_[chunk]++, false);
  }
  void weight_gradient() {
    const auto [chunk, micro_batch] = pending_[next_++];
    add(ActionKind::weight_gradient, chunk, micro_batch, false);
  }
  void add(ActionKind kind, int chunk, int micro_batch, bool beside) {
    list.push_back({kind, at_.stage[chunk], at_.first[chunk] + micro_batch, beside});
  }

  Place at_;
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::vector<std::pair<int, int>> pending_;  // chunk and micro-batch, in order
  std::size_t next_ = 0;
};

// The middle ranks are as deep as the last rank of a V.
int depth_of(int rank, int ranks) { return std::min(rank, ranks - 1 - rank); }

double joined(int rank, int depth, bool near, double micro_batches) {
  const int behind = depth - rank - 1;
  const double in_turn = micro_batches - 2 * depth + rank + 1;
  return in_turn + (near ? (behind == 0 ? -1 : 0) : behind);
}

double forwards_first(int rank, int depth) {
  const int behind = depth - rank - 1;
  return 2.0 * behind + 2.0 * (rank + 1) + (behind == 0 ? 1 : 0);
}

Seconds together(const EvenPipeline& e) {
  return e.together > Seconds(0) ? e.together : e.forward + e.backward + e.weight_gradient;
}

// Of a V of `depth` ranks with so many micro-batches through each chunk.
Seconds time_of(int depth, double micro_batches, const EvenPipeline& e) {
  const Seconds apart = e.forward + e.backward + e.weight_gradient;
  const double pairs = joined(depth - 1, depth, true, micro_batches) +
                       joined(depth - 1, depth, false, micro_batches);
  const Seconds bubble =
      (depth - 1.0) * (together(e) + e.backward - 2 * e.weight_gradient);  // t_B - 3 t_W of it
  return pairs * together(e) + (2 * micro_batches - pairs) * apart + max(Seconds(0), bubble);
}

}  // namespace

bool takes_dualpipe(int ranks, long long micro_batches) {
  return ranks % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2LL * ranks;
}

bool takes_dualpipe_v(int ranks, long long micro_batches) { return micro_batches >= 2LL * ranks; }

ActionsByRank dualpipe_order(const OrderRequest& request) {
  const int p = request.ranks, half = request.micro_batches / 2;
  SHARDPLAN_CHECK(takes_dualpipe(p, request.micro_batches));
  ActionsByRank lists;
  for (int rank = 0; rank < p; ++rank) {
    // The near chunk is the one whose micro-batches come from this end of the pipeline.
    const bool ahead = rank < p / 2;
    const int near = ahead ? 0 : half, far = ahead ? half : 0;
    const int depth = depth_of(rank, p);
    lists.push_back(DualOrder({p / 2, depth, {depth, p - 1 - depth}, {near, far}, half}).list);
  }
  return lists;
}

ActionsByRank dualpipe_v_order(const OrderRequest& request) {
  const int p = request.ranks, m = request.micro_batches;
  SHARDPLAN_CHECK(takes_dualpipe_v(p, m));
  ActionsByRank lists;
  for (int rank = 0; rank < p; ++rank)
    lists.push_back(DualOrder({p, rank, {rank, 2 * p - 1 - rank}, {0, 0}, m}).list);
  return lists;
}

double dualpipe_forwards_first(int rank, const EvenPipeline& e) {
  return forwards_first(depth_of(rank, e.ranks), e.ranks / 2);
}
double dualpipe_v_forwards_first(int rank, const EvenPipeline& e) {
  return forwards_first(rank, e.ranks);
}

double dualpipe_joined(int rank, int chunk, const EvenPipeline& e) {
  const bool near = (chunk == 0) == (rank < e.ranks / 2);
  return joined(depth_of(rank, e.ranks), e.ranks / 2, near, e.micro_batches / 2);
}
double dualpipe_v_joined(int rank, int chunk, const EvenPipeline& e) {
  return joined(rank, e.ranks, chunk == 0, e.micro_batches);
}

Seconds dualpipe_time(const EvenPipeline& e) {
  return time_of(e.ranks / 2, e.micro_batches / 2, e);
}
Seconds dualpipe_v_time(const EvenPipeline& e) { return time_of(e.ranks, e.micro_batches, e); }

double dualpipe_bubble(const EvenPipeline& e) {
  return (e.ranks / 2.0 - 1) * 2 / (3 * e.micro_batches);
}
double dualpipe_v_bubble(const EvenPipeline& e) {
  return (e.ranks - 1.0) * 2 / (6 * e.micro_batches);
}

}  // namespace costmodel
