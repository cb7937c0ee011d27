#include "planner/solvers/sharding_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "costmodel/base/unit_text.hpp"
#include "planner/solvers/sharding_descent.hpp"
#include "planner/solvers/sharding_fronts.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

ShardingPrice price_of(const ShardingProblem& problem, const std::vector<int>& choice) {
  ShardingPrice sum;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const ShardingChoice& c = problem.nodes[v][static_cast<std::size_t>(choice[v])];
    sum.seconds += c.seconds;
    sum.bytes += c.bytes;
  }
  for (const ShardingEdge& e : problem.edges) {
    const auto from = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.from)]);
    const auto to = static_cast<std::size_t>(choice[static_cast<std::size_t>(e.to)]);
    sum.seconds += e.seconds[from * problem.nodes[static_cast<std::size_t>(e.to)].size() + to];
  }
  return sum;
}

bool is_possible(const ShardingChoice& choice) {
  return std::isfinite(choice.seconds) && std::isfinite(choice.bytes) && choice.bytes >= 0;
}

std::string senseless(const ShardingProblem& problem) {
  const auto n = static_cast<int>(problem.nodes.size());
  for (int v = 0; v < n; ++v) {
    bool any = false;
    for (const ShardingChoice& c : problem.nodes[static_cast<std::size_t>(v)])
      any = any || is_possible(c);
    if (!any) return fmt::format("node {} has no strategy with a finite time and memory", v);
  }
  for (std::size_t i = 0; i < problem.edges.size(); ++i) {
    const ShardingEdge& e = problem.edges[i];
    if (e.from < 0 || e.from >= n || e.to < 0 || e.to >= n)
      return fmt::format("edge {} joins nodes that are not there", i);
    const std::size_t pairs = problem.nodes[static_cast<std::size_t>(e.from)].size() *
                              problem.nodes[static_cast<std::size_t>(e.to)].size();
    if (e.seconds.size() != pairs) {
      return fmt::format("edge {} has {} costs for {} pairs of strategies", i, e.seconds.size(),
                         pairs);
    }
  }
  if (std::isnan(problem.memory_limit)) return "the memory limit is not a number";
  return {};
}

namespace {

// A price on memory brings the relaxed problem to its limit; labels close the gap.
class Search {
 public:
  Search(const ShardingGraph& graph, const EliminationOrder& order,
         const std::function<bool()>& expired, const ShardingLimits& limits)
      : graph_(graph),
        order_(order),
        expired_(expired),
        limits_(limits),
        tables_(graph, order),
        bytes_graph_(bytes_only(graph)),
        bytes_(bytes_graph_, order) {}

  Sharding run() {
    found_.lower_bound = -infinity;
    Line fast = line(tables_, 0);
    if (fast.value == infinity) return without("no combination of strategies is allowed");
    raise(fast.value);
    if (fast.bytes <= graph_.memory_limit) return finished();
    const Line small = line(bytes_, 1);
    if (small.bytes > graph_.memory_limit) {
      return without(fmt::format("memory: at least {} are needed, {} are there",
                                 format_bytes(Bytes(small.bytes)),
                                 format_bytes(Bytes(std::max(0.0, graph_.memory_limit)))));
    }
    close_in(fast, small);
    if (!met()) close_gap();
    return finished();
  }

 private:
  struct Line {  // the priced cost of one choice, as a function of the price
    double value = infinity, seconds = 0, bytes = 0;
  };

  static bool same(const Line& a, const Line& b) {
    return a.seconds == b.seconds && a.bytes == b.bytes;
  }
  bool out_of_time() const { return expired_ && expired_(); }
  bool met() const {
    return found_.lower_bound >= found_.seconds - std::abs(found_.seconds) * equal_share;
  }
  void raise(double bound) { found_.lower_bound = std::max(found_.lower_bound, bound); }

  void offer(const std::vector<int>& choice) {
    const ShardingPrice price = graph_.price_of(choice);
    if (price.bytes > graph_.memory_limit || price.seconds >= found_.seconds) return;
    found_.choice = choice;
    found_.seconds = price.seconds;
    found_.bytes = price.bytes;
  }

  Line line(ShardingTables& tables, double price) {
    ++found_.statistics.prices;
    Line l{tables.solve(price)};
    if (l.value == infinity) return l;
    const auto choice = tables.choice();
    const ShardingPrice sum = graph_.price_of(choice);
    l.seconds = sum.seconds;
    l.bytes = sum.bytes;
    offer(choice);
    return l;
  }

  // Searches the maximum of the dual: the price at which a choice within memory costs as much as
  // one above it, until none is below both.
  void close_in(Line beyond, Line within) {
    while (!met() && !out_of_time()) {
      price_ = (within.seconds - beyond.seconds) / (beyond.bytes - within.bytes);
      const Line next = line(tables_, price_);
      raise(next.value - price_ * graph_.memory_limit);
      const double both = beyond.seconds + price_ * beyond.bytes;
      if (next.value >= both - std::abs(both) * equal_share) return;
      if (same(next, beyond) || same(next, within)) return;  // but for rounding
      (next.bytes > graph_.memory_limit ? beyond : within) = next;
    }
  }

  // A cutoff nearer to the bound leaves fewer labels; it is raised until the best choice is below
  // it.
  void close_gap() {
    constexpr double first_share = 1.0 / 64, growth = 4;
    tables_.solve(price_);
    tables_.complete();
    bytes_.solve(1);
    bytes_.complete();
    ShardingFronts fronts(tables_, price_, bytes_);
    double share = first_share;
    while (!met() && !out_of_time()) {
      const double cutoff =
          share >= 1 ? found_.seconds
                     : found_.lower_bound + share * (found_.seconds - found_.lower_bound);
      ++found_.statistics.programs;
      const auto outcome = fronts.solve(cutoff, limits_.labels, expired_);
      found_.statistics.labels = fronts.labels();
      if (outcome != ShardingFronts::Outcome::finished) return;
      if (fronts.choice()) {
        offer(*fronts.choice());
        if (found_.seconds <= cutoff + std::abs(cutoff) * equal_share) {
          found_.lower_bound = found_.seconds;
          return;
        }
      }
      raise(std::min(cutoff, found_.seconds));
      share *= growth;
    }
  }

  Sharding without(const std::string& reason) {
    found_.reason = reason;
    found_.lower_bound = infinity;
    return finished();
  }

  Sharding finished() {
    found_.statistics.width = order_.width;
    found_.statistics.states = order_.states;
    if (found_.choice.size() == graph_.nodes.size() && met()) found_.lower_bound = found_.seconds;
    found_.choice = graph_.source_of(found_.choice);
    return std::move(found_);
  }

  const ShardingGraph& graph_;
  const EliminationOrder& order_;
  const std::function<bool()>& expired_;
  const ShardingLimits& limits_;
  ShardingTables tables_;
  ShardingGraph bytes_graph_;
  ShardingTables bytes_;
  double price_ = 0;
  Sharding found_;
};

}  // namespace

Sharding best_sharding(const ShardingProblem& problem, const std::function<bool()>& expired,
                       const ShardingLimits& limits) {
  Sharding none;
  none.lower_bound = infinity;
  none.reason = senseless(problem);
  if (!none.reason.empty()) return none;
  if (problem.nodes.empty()) {
    none.seconds = none.lower_bound = 0;
    return none;
  }
  const ShardingGraph graph = reduced(problem);
  const EliminationOrder order = elimination_order(graph);
  Sharding found = order.states > limits.states
                       ? best_of_wide(problem, graph, order, expired, limits)
                       : Search(graph, order, expired, limits).run();
  // Reports the sum in the problem's order.
  if (!found.choice.empty()) {
    const bool proved = found.lower_bound == found.seconds;
    const ShardingPrice price = price_of(problem, found.choice);
    found.seconds = price.seconds;
    found.bytes = price.bytes;
    found.lower_bound = proved ? price.seconds : std::min(found.lower_bound, price.seconds);
  }
  return found;
}

}  // namespace planner
