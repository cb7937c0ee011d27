#include "planner/solvers/slicing_paths.hpp"

#include <algorithm>
#include <cmath>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// Bounds are sums in another order: a path is dropped only if clearly above the cutoff.

}  // namespace

SlicingPaths::SlicingPaths(const SlicingGraph& graph, const SlicingBound& bound)
    : graph_(&graph), bound_(&bound) {
  const auto levels = static_cast<std::size_t>(graph.most_levels()) + 1;
  labels_.resize(levels * (static_cast<std::size_t>(graph.layers()) + 1));
  const auto devices = static_cast<std::size_t>(graph.devices()) + 1;
  reach_.assign(devices, {infinity, 0, 0, 0, 0});
  shorter_.assign(devices, infinity);
}

const std::vector<SlicingPaths::Priced>& SlicingPaths::options_of(std::int32_t kind) {
  const auto c = static_cast<std::size_t>(kind);
  std::vector<Priced>& list = options_[c];
  if (made_[c] != 0) return list;
  made_[c] = 1;
  list.clear();
  const std::size_t first = graph_->first(kind);
  for (std::size_t o = first; o < graph_->first(kind + 1); ++o) {
    const double value = graph_->priced(o, bound_->price());
    if (value <= bound_->best(graph_->level(o), kind) + slack_)
      list.push_back({value, static_cast<std::int32_t>(o - first)});
  }
  std::ranges::sort(list, [](const Priced& a, const Priced& b) {
    return a.value != b.value ? a.value < b.value : a.index < b.index;
  });
  return list;
}

// Prepends stages of a range at `level` to the labels at its end.
void SlicingPaths::extend(int level, int layer, const SlicingGraph::Range& range, bool same) {
  const auto& behind = at(same ? level : level - 1, range.end);
  if (behind.empty()) return;
  const double before = bound_->before(level, layer) - spare_;
  const double least = behind.front().priced + before;
  if (!(bound_->best(level, range.kind) + least <= 0)) return;
  for (const Priced& priced : options_of(range.kind)) {
    if (priced.value + least > 0) break;
    const std::size_t option = graph_->first(range.kind) + static_cast<std::size_t>(priced.index);
    if (graph_->level(option) < level) continue;
    const auto own = static_cast<std::int32_t>(graph_->devices_of(option));
    const double own_seconds = graph_->seconds(option);
    for (std::size_t r = 0; r < behind.size(); ++r) {
      const Label& rest = behind[r];
      if (priced.value + rest.priced + before > 0) break;
      const std::int64_t devices = std::int64_t{rest.devices} + own;
      if (devices > graph_->devices()) continue;
      const double seconds = own_seconds + rest.seconds;
      Reach& reach = reach_[static_cast<std::size_t>(devices)];
      if (seconds >= reach.seconds) continue;
      if (reach.seconds == infinity) touched_.push_back(static_cast<std::int32_t>(devices));
      reach = {seconds, range.end, priced.index, static_cast<std::int32_t>(r),
               static_cast<std::int8_t>(same ? 1 : 0)};
    }
  }
}

// Converts the reached states to the labels of (level, layer), least priced first. A label with at
// least as many following stages and at least as much time as another is dominated.
void SlicingPaths::collect(int level, int layer) {
  auto& labels = at(level, layer);
  for (const std::int32_t devices : touched_) {
    Reach& reach = reach_[static_cast<std::size_t>(devices)];
    double& shorter = shorter_[static_cast<std::size_t>(devices)];
    if (reach.seconds < shorter) {
      if (shorter == infinity) shortened_.push_back(devices);
      shorter = reach.seconds;
      labels.push_back({reach.seconds, reach.seconds + bound_->price() * devices, devices,
                        reach.end, reach.option, reach.rest, reach.same});
    }
    reach.seconds = infinity;
  }
  touched_.clear();
  std::ranges::sort(labels, [](const Label& a, const Label& b) {
    return a.priced != b.priced ? a.priced < b.priced : a.devices < b.devices;
  });
  labels_made_ += labels.size();
}

bool SlicingPaths::trace() {
  const Label* best = nullptr;
  int level = 0;
  for (int k = 1; k <= graph_->levels(); ++k) {
    for (const Label& label : at(k, 0)) {
      if (label.devices != graph_->devices()) continue;
      if (best != nullptr && label.seconds >= best->seconds) continue;
      best = &label;
      level = k;
    }
  }
  if (best == nullptr) return false;
  path_ = {};
  path_.sum = best->seconds;
  path_.devices = best->devices;
  for (int layer = 0; layer < graph_->layers();) {
    const auto ranges = graph_->ranges(layer);
    const auto range =
        std::ranges::find_if(ranges, [&](const auto& r) { return r.end == best->end; });
    const std::size_t option = graph_->first(range->kind) + static_cast<std::size_t>(best->option);
    path_.stages.push_back({layer, best->end, graph_->source(option)});
    path_.longest = std::max(path_.longest, graph_->seconds(option));
    layer = best->end;
    if (best->same == 0) --level;
    best = &at(level, layer)[static_cast<std::size_t>(best->rest)];
  }
  return true;
}

SlicingPaths::Outcome SlicingPaths::solve(double cutoff, const std::function<bool()>& expired) {
  const int layers = graph_->layers(), levels = graph_->levels();
  double least = infinity;
  for (int level = 1; level <= levels; ++level) least = std::min(least, bound_->behind(level, 0));
  const double all = bound_->price() * graph_->devices();
  const double room = rounding * (std::abs(cutoff) + std::abs(all));
  spare_ = cutoff + all + room;
  slack_ = spare_ - least;
  if (slack_ < 0) return Outcome::none;
  made_.assign(graph_->kinds(), 0);
  options_.resize(graph_->kinds());
  for (auto& labels : labels_) labels.clear();
  at(0, layers).push_back({0, 0, 0, layers, 0, 0, 0});
  for (int layer = layers - 1; layer >= 0; --layer) {
    if (expired && expired()) return Outcome::expired;
    for (int level = 1; level <= std::min(levels, layers - layer); ++level) {
      for (const auto& range : graph_->ranges(layer)) extend(level, layer, range, false);
      if (level == levels)
        for (const auto& range : graph_->ranges(layer)) extend(level, layer, range, true);
      collect(level, layer);
    }
    for (const std::int32_t devices : shortened_)
      shorter_[static_cast<std::size_t>(devices)] = infinity;
    shortened_.clear();
  }
  return trace() ? Outcome::found : Outcome::none;
}

}  // namespace planner
