#include "planner/solvers/slicing_bound.hpp"

#include <algorithm>
#include <cmath>

#include "planner/solvers/tolerances.hpp"

namespace planner {

namespace {

// Sums of the same times in another order differ by less.

}  // namespace

void SlicingBound::price_kinds(double price) {
  const int levels = graph_->levels(), kinds = static_cast<int>(graph_->kinds());
  row_ = static_cast<std::size_t>(levels) + 1;
  best_.assign(graph_->kinds() * row_, infinity);
  for (int k = 0; k < kinds; ++k) {
    double* best = best_.data() + at(0, k);
    const std::size_t end = graph_->first(k + 1);
    for (std::size_t begin = graph_->first(k), to = begin; begin < end; begin = to) {
      const int level = graph_->level(begin);
      while (to < end && graph_->level(to) == level) ++to;
      best[level] = graph_->least_priced(begin, to, price);
    }
    for (int level = levels - 1; level >= 1; --level)  // what fits there fits below
      best[level] = best[level + 1] < best[level] ? best[level + 1] : best[level];
  }
}

// Priced time of the layers from a range's first one on, if the range is a stage at this level.
double SlicingBound::from(const SlicingGraph::Range& range, int level) const {
  const double fewer = behind(level - 1, range.end);
  const double same = level == graph_->levels() ? behind(level, range.end) : fewer;
  return best(level, range.kind) + std::min(fewer, same);
}

// Fills behind_ from the last layer to the first.
void SlicingBound::walk_back() {
  const int layers = graph_->layers(), levels = graph_->levels();
  behind_.assign((static_cast<std::size_t>(layers) + 1) * row_, infinity);
  behind_[at(0, layers)] = 0;
  for (int layer = layers - 1; layer >= 0; --layer) {
    double* least = behind_.data() + at(0, layer);
    for (const auto& range : graph_->ranges(layer)) {
      const double* best = best_.data() + at(0, range.kind);
      const double* behind = behind_.data() + at(0, range.end);
      for (int level = 1; level < levels; ++level) {
        const double time = best[level] + behind[level - 1];
        least[level] = time < least[level] ? time : least[level];
      }
      least[levels] = std::min(least[levels], from(range, levels));
    }
  }
}

// Follows the minima of walk_back from the first layer on.
SlicingPath SlicingBound::trace(double price) const {
  const int layers = graph_->layers(), levels = graph_->levels();
  SlicingPath path;
  int level = 1;
  for (int k = 2; k <= levels; ++k)
    if (behind(k, 0) < behind(level, 0)) level = k;
  for (int layer = 0; layer < layers;) {
    const auto ranges = graph_->ranges(layer);
    const auto range = std::ranges::find_if(
        ranges, [&](const auto& r) { return from(r, level) == behind(level, layer); });
    std::size_t chosen = graph_->first(range->kind);
    double least = infinity;
    for (std::size_t o = chosen; o < graph_->first(range->kind + 1); ++o) {
      if (graph_->level(o) < level) break;
      const double priced = graph_->priced(o, price);
      if (priced >= least) continue;
      least = priced;
      chosen = o;
    }
    path.stages.push_back({layer, range->end, graph_->source(chosen)});
    path.devices += path.stages.back().option.devices;
    path.longest = std::max(path.longest, graph_->seconds(chosen));
    layer = range->end;
    const bool stays = level == levels && behind(level, layer) <= behind(level - 1, layer);
    if (!stays) --level;
  }
  for (std::size_t i = path.stages.size(); i-- > 0;) path.sum += path.stages[i].option.seconds;
  return path;
}

bool SlicingBound::met_by(const Line& line, double price) {
  if (line.devices != graph_->devices()) return false;
  met_ = trace(price);
  price_ = price;
  return true;
}

bool SlicingBound::evaluate(double price, Line& line) {
  price_kinds(price);
  walk_back();
  double least = infinity;
  for (int level = 1; level <= graph_->levels(); ++level) least = std::min(least, behind(level, 0));
  if (least == infinity) return false;
  const SlicingPath path = trace(price);
  line = {path.sum, static_cast<double>(path.devices)};
  return true;
}

// The highest point of the lower envelope of all paths' lines, between a path of too few devices
// and one of too many (Kelley's cutting planes in one dimension).
double SlicingBound::close_in(Line few, Line many) {
  const double devices = graph_->devices();
  for (;;) {
    const double price = (few.sum - many.sum) / (many.devices - few.devices);
    const double envelope = few.sum + price * (few.devices - devices);
    Line line;
    evaluate(price, line);
    const double value = line.sum + price * (line.devices - devices);
    price_ = price;
    if (met_by(line, price)) return line.sum;
    if (value >= envelope - rounding * (std::abs(envelope) + std::abs(price) * devices))
      return std::min(value, envelope);
    (line.devices < devices ? few : many) = line;
  }
}

// Moves the price away from its start until there are paths on both sides of the number of devices:
// first a little, then doubling, up to a price that dominates everything else. False when that
// brackets nothing.
bool SlicingBound::bracket(Line& few, Line& many) {
  const double devices = graph_->devices();
  const bool dearer = many.devices > devices;
  Line& wanted = dearer ? few : many;
  const double steep = 2 * (1 + graph_->longest()) * graph_->layers();
  const double start = price_, size = std::abs(start);
  for (const double step : {size * 0.03, size, size + steep}) {
    if (step == 0) continue;
    evaluate(start + (dearer ? step : -step), wanted);
    if (dearer ? wanted.devices <= devices : wanted.devices >= devices) return true;
    (dearer ? many : few) = wanted;
  }
  return false;
}

double SlicingBound::solve() {
  met_.reset();
  Line line, few, many;
  if (!evaluate(price_, line)) return infinity;
  if (met_by(line, price_)) return line.sum;
  (line.devices > graph_->devices() ? many : few) = line;
  if (!bracket(few, many)) return infinity;
  return close_in(few, many);
}

void SlicingBound::ready(double price) {
  price_ = price;
  const int layers = graph_->layers(), levels = graph_->levels();
  price_kinds(price_);
  walk_back();
  before_.assign((static_cast<std::size_t>(layers) + 1) * row_, infinity);
  std::fill_n(before_.begin(), row_, 0.0);
  for (int first = 0; first < layers; ++first) {
    const double* before = before_.data() + at(0, first);
    for (const auto& range : graph_->ranges(first)) {
      const double* best = best_.data() + at(0, range.kind);
      double* least = before_.data() + at(0, range.end);
      for (int level = 1; level <= levels; ++level) {
        const int own = std::min(level + 1, levels);  // of the stage just before
        const double time = best[own] + before[own];
        least[level] = time < least[level] ? time : least[level];
      }
    }
  }
}

}  // namespace planner
