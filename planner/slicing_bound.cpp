#include "planner/slicing_bound.hpp"

#include <algorithm>
#include <cmath>

#include "planner/optimum.hpp"

namespace planner {

namespace {

// Sums of the same times in another order differ by less.

bool usable(const StageOption& option, int devices) {
  return option.devices >= 1 && option.devices <= devices && option.most_in_flight >= 1 &&
         option.seconds >= 0 && std::isfinite(option.seconds);
}

// Levels at which some option stops fitting, and one more; no stage has more in flight than there
// are layers or micro-batches.
int levels_of(const SlicingProblem& p) {
  const int most = static_cast<int>(std::min<std::int64_t>(p.layers, p.micro_batches));
  int levels = 1;
  for (const auto& list : p.options) {
    for (const StageOption& o : list) {
      if (usable(o, p.devices) && o.most_in_flight < most)
        levels = std::max(levels, o.most_in_flight + 1);
    }
  }
  return levels;
}

}  // namespace

SlicingGraph::SlicingGraph(const SlicingProblem& problem) : problem_(&problem) {
  levels_ = levels_of(problem);
  first_.reserve(problem.options.size() + 1);
  first_.push_back(0);
  std::vector<std::uint32_t> order;
  for (const auto& list : problem.options) {
    add(list, order);
    first_.push_back(seconds_.size());
  }
  for (const double seconds : seconds_) longest_ = std::max(longest_, seconds);
}

// Of options of one size, those that are quicker than all that fit at least as often; highest level
// first.
void SlicingGraph::add(const std::vector<StageOption>& list, std::vector<std::uint32_t>& order) {
  order.clear();
  for (std::size_t i = 0; i < list.size(); ++i)
    if (usable(list[i], devices())) order.push_back(static_cast<std::uint32_t>(i));
  const auto level_at = [&](std::uint32_t i) { return std::min(list[i].most_in_flight, levels_); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (list[a].devices != list[b].devices) return list[a].devices < list[b].devices;
    if (level_at(a) != level_at(b)) return level_at(a) > level_at(b);
    return list[a].seconds != list[b].seconds ? list[a].seconds < list[b].seconds : a < b;
  });
  double quickest = infinity;
  int devices = 0;
  std::erase_if(order, [&](std::uint32_t i) {
    if (list[i].devices != devices) quickest = infinity;
    devices = list[i].devices;
    const bool useless = list[i].seconds >= quickest;
    quickest = std::min(quickest, list[i].seconds);
    return useless;
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return level_at(a) > level_at(b); });
  for (const std::uint32_t i : order) {
    seconds_.push_back(list[i].seconds);
    devices_.push_back(list[i].devices);
    level_.push_back(level_at(i));
    source_.push_back(i);
  }
}

// Four at a time: one after another, each minimum would wait for the one before.
double SlicingGraph::least_priced(std::size_t begin, std::size_t end, double price,
                                  double limit) const {
  const double* seconds = seconds_.data();
  const double* devices = devices_.data();
  double never = infinity;
  const auto value = [&](std::size_t i) {
    const double priced = seconds[i] + price * devices[i];
    return seconds[i] <= limit ? priced : never;
  };
  double least[4] = {infinity, infinity, infinity, infinity};
  std::size_t i = begin;
  for (; i + 4 <= end; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      const double priced = value(i + k);
      least[k] = priced < least[k] ? priced : least[k];
    }
  }
  for (; i < end; ++i) least[0] = std::min(least[0], value(i));
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

SlicingBound::SlicingBound(const SlicingGraph& graph) : graph_(&graph) {
  const auto levels = static_cast<std::size_t>(graph.levels()) + 1;
  const auto layers = static_cast<std::size_t>(graph.layers()) + 1;
  best_.resize(levels * graph.classes());
  behind_.resize(levels * layers);
  before_.resize(levels * layers);
  next_.resize(levels * layers);
}

void SlicingBound::price_classes(double price) {
  const std::size_t classes = graph_->classes();
  std::fill(best_.begin(), best_.end(), infinity);
  for (std::size_t c = 0; c < classes; ++c) {
    const std::size_t end = graph_->first(c + 1);
    for (std::size_t from = graph_->first(c), to = from; from < end; from = to) {
      const int level = graph_->level(from);
      while (to < end && graph_->level(to) == level) ++to;
      best_[at_class(level, c)] = graph_->least_priced(from, to, price, limit_);
    }
  }
  for (int level = graph_->levels() - 1; level >= 1; --level) {  // what fits there fits below
    double* best = best_.data() + at_class(level, 0);
    const double* above = best + classes;
    for (std::size_t c = 0; c < classes; ++c) best[c] = above[c] < best[c] ? above[c] : best[c];
  }
}

// behind_[level][layer] from the last layer to the first.
void SlicingBound::walk_back() {
  const int layers = graph_->layers(), levels = graph_->levels();
  std::fill(behind_.begin(), behind_.end(), infinity);
  behind_[at_layer(0, layers)] = 0;
  for (int layer = layers - 1; layer >= 0; --layer) {
    const std::int32_t* row = graph_->row(layer);
    for (int level = 1; level <= std::min(levels, layers - layer); ++level) {
      const double* best = best_.data() + at_class(level, 0);
      const double* fewer = behind_.data() + at_layer(level - 1, 0);
      const double* same = level == levels ? behind_.data() + at_layer(level, 0) : fewer;
      double least = infinity;
      int choice = -1;
      // The stages behind it take a layer each at least; one alone takes all layers.
      const int from = level == 1 && levels > 1 ? layers : layer + 1;
      for (int end = from; end <= layers - level + 1; ++end) {
        if (row[end] < 0) continue;
        const double time =
            best[static_cast<std::size_t>(row[end])] + std::min(fewer[end], same[end]);
        if (time < least) {
          least = time;
          choice = end;
        }
      }
      behind_[at_layer(level, layer)] = least;
      next_[at_layer(level, layer)] = choice;
    }
  }
}

// Follows the choices of walk_back from the first layer.
SlicingPath SlicingBound::trace(double price) const {
  const int layers = graph_->layers(), levels = graph_->levels();
  SlicingPath path;
  int level = 1;
  for (int k = 2; k <= levels; ++k)
    if (behind(k, 0) < behind(level, 0)) level = k;
  for (int layer = 0; layer < layers;) {
    const int end = next_[at_layer(level, layer)];
    const auto c = static_cast<std::size_t>(graph_->row(layer)[end]);
    std::size_t chosen = graph_->first(c);
    double least = infinity;
    for (std::size_t o = chosen; o < graph_->first(c + 1) && graph_->level(o) >= level; ++o) {
      const double priced = graph_->priced(o, price);
      if (graph_->seconds(o) > limit_ || priced >= least) continue;
      least = priced;
      chosen = o;
    }
    path.stages.push_back({layer, end, graph_->source(c, chosen)});
    path.devices += path.stages.back().option.devices;
    path.longest = std::max(path.longest, graph_->seconds(chosen));
    const bool stays = level == levels && behind(level, end) <= behind(level - 1, end);
    if (!stays) --level;
    layer = end;
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
  price_classes(price);
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

// Moves the price away from where it started until there is a path on either side of the number of
// devices: a little, as much again as it is, and so far that hardly anything else counts. False
// when not even that brings one about.
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

double SlicingBound::solve(double limit) {
  limit_ = limit;
  met_.reset();
  Line line, few, many;
  if (!evaluate(price_, line)) return infinity;
  if (met_by(line, price_)) return line.sum;
  (line.devices > graph_->devices() ? many : few) = line;
  if (!bracket(few, many)) return infinity;
  return close_in(few, many);
}

void SlicingBound::ready(double limit, double price) {
  limit_ = limit;
  price_ = price;
  const int layers = graph_->layers(), levels = graph_->levels();
  price_classes(price_);
  walk_back();
  std::fill(before_.begin(), before_.end(), infinity);
  for (int level = 0; level <= levels; ++level) before_[at_layer(level, 0)] = 0;
  for (int layer = 1; layer < layers; ++layer) {
    for (int level = std::min(levels, layers - layer); level >= 1; --level) {
      const int own = std::min(level + 1, levels);  // of the stage just before
      double least = infinity;
      for (int first = 0; first < layer; ++first) {
        const std::int32_t c = graph_->row(first)[layer];
        if (c < 0) continue;
        least = std::min(least, best(own, static_cast<std::size_t>(c)) + before(own, first));
      }
      before_[at_layer(level, layer)] = least;
    }
  }
}

}  // namespace planner
