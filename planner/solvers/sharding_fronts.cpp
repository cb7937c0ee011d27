#include "planner/solvers/sharding_fronts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// The Pareto front: of entries sorted by seconds and then bytes, keeps those with fewer bytes than
// all before.
template <class Entry>
void keep_front(std::vector<Entry>& entries, double (*seconds)(const Entry&),
                double (*bytes)(const Entry&)) {
  std::ranges::stable_sort(entries, [&](const Entry& a, const Entry& b) {
    return seconds(a) != seconds(b) ? seconds(a) < seconds(b) : bytes(a) < bytes(b);
  });
  double least = infinity;
  std::erase_if(entries, [&](const Entry& e) {
    if (bytes(e) >= least) return true;
    least = bytes(e);
    return false;
  });
}

}  // namespace

ShardingFronts::ShardingFronts(const ShardingTables& priced, double price,
                               const ShardingTables& bytes)
    : tables_(&priced),
      bytes_(&bytes),
      price_(price),
      limit_(priced.graph().memory_limit),
      fronts_(priced.order().buckets.size()) {}

void ShardingFronts::combine(const Front& child, std::size_t state,
                             std::vector<Partial>& partials) const {
  std::vector<Partial> longer;
  for (const Partial& p : partials) {
    for (std::size_t i = child.first[state]; i < child.first[state + 1]; ++i) {
      const Label& label = child.labels[i];
      if (p.bytes + label.bytes > limit_) continue;
      Partial next{p.seconds + label.seconds, p.bytes + label.bytes, p.picks};
      next.picks.push_back(static_cast<std::uint32_t>(i));
      longer.push_back(std::move(next));
    }
  }
  partials = std::move(longer);
  if (partials.size() > 1) {
    keep_front<Partial>(
        partials, [](const Partial& p) { return p.seconds; },
        [](const Partial& p) { return p.bytes; });
  }
}

// Collects all labels of a state of the scope in found_.
void ShardingFronts::extend(std::size_t b, std::size_t state,
                            const std::vector<std::size_t>& offset, double cutoff) {
  const ShardingBucket& bucket = tables_->order().buckets[b];
  const BucketView& view = tables_->view(b);
  const auto& node = tables_->graph().nodes[at(bucket.node)];
  const double outside = tables_->outside(b, state) - price_ * limit_;
  const double room = limit_ - bytes_->outside(b, state);
  if (tables_->inside(b, state) + outside >= cutoff) return;
  for (std::size_t x = 0; x < node.size(); ++x) {
    double seconds = node.seconds[x];
    for (std::size_t i = 0; i < view.edges.size(); ++i)
      seconds += view.edges[i].values[offset[i] + x * view.edges[i].own];
    if (std::isinf(seconds)) continue;
    std::vector<Partial> partials{{seconds, node.bytes[x], {}}};
    for (std::size_t k = 0; k < bucket.children.size() && !partials.empty(); ++k) {
      const std::size_t i = view.edges.size() + k;
      combine(fronts_[at(bucket.children[k])], offset[i] + x * view.children[k].own, partials);
    }
    for (Partial& p : partials) {
      if (p.seconds + price_ * p.bytes + outside >= cutoff || p.bytes > room) continue;
      found_.push_back({Label{p.seconds, p.bytes, static_cast<std::int32_t>(x), 0}, p.picks});
    }
  }
}

// The best of found_ become the labels of the next state.
void ShardingFronts::settle(std::size_t b) {
  using Found = std::pair<Label, std::vector<std::uint32_t>>;
  Front& front = fronts_[b];
  keep_front<Found>(
      found_, [](const Found& f) { return f.first.seconds; },
      [](const Found& f) { return f.first.bytes; });
  for (auto& [label, picks] : found_) {
    label.picks = front.picks.size();
    front.labels.push_back(label);
    front.picks.insert(front.picks.end(), picks.begin(), picks.end());
  }
  labels_ += found_.size();
  found_.clear();
  front.first.push_back(front.labels.size());
}

void ShardingFronts::trace(std::size_t b, const Label& label, std::vector<int>& choice) const {
  std::vector<std::pair<std::size_t, const Label*>> open{{b, &label}};
  while (!open.empty()) {
    const auto [at_bucket, l] = open.back();
    open.pop_back();
    const ShardingBucket& bucket = tables_->order().buckets[at_bucket];
    choice[at(bucket.node)] = l->own;
    for (std::size_t k = 0; k < bucket.children.size(); ++k) {
      const std::uint32_t pick = fronts_[at_bucket].picks[l->picks + k];
      open.emplace_back(at(bucket.children[k]), &fronts_[at(bucket.children[k])].labels[pick]);
    }
  }
}

ShardingFronts::Outcome ShardingFronts::solve(double cutoff, double most,
                                              const std::function<bool()>& expired) {
  choice_.reset();
  cutoff += std::abs(cutoff) * rounding;
  double labels = 0;
  for (std::size_t b = 0; b < fronts_.size(); ++b) {
    if (expired && expired()) return Outcome::expired;
    Front& front = fronts_[b];
    front = {{0}, {}, {}};
    const BucketView& view = tables_->view(b);
    std::vector<BucketInput> inputs = view.edges;
    inputs.insert(inputs.end(), view.children.begin(), view.children.end());
    bool full = false;
    for_each_state(view.sizes, inputs, [&](std::size_t state, const auto& offset) {
      full = full || labels + static_cast<double>(front.labels.size()) > most;
      if (!full) extend(b, state, offset, cutoff);
      settle(b);
    });
    if (full) return Outcome::full;
    labels += static_cast<double>(front.labels.size());
  }
  const auto& root = fronts_.back();
  if (root.labels.empty()) return Outcome::finished;
  // Sorted by time, so the first one is the best.
  choice_.emplace(tables_->graph().nodes.size(), 0);
  trace(fronts_.size() - 1, root.labels.front(), *choice_);
  seconds_ = root.labels.front().seconds;
  return Outcome::finished;
}

}  // namespace planner
