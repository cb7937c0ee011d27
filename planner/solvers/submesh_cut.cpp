#include "planner/solvers/submesh_cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "planner/solvers/submesh_states.hpp"

namespace planner {

namespace {

class SubmeshCutter {
 public:
  explicit SubmeshCutter(const SubmeshProblem& problem)
      : p_(problem), states_(problem), known_(problem.start) {}

  SubmeshCut run() {
    if (states_.shortest() < infinity) search();
    cut_.effort = states_.effort();
    cut_.bound = known_;
    if (cut_.stages.empty() && cut_.complete) cut_.bound = infinity;
    if (!cut_.stages.empty()) cut_.bound = std::min(cut_.bound, cut_.time);
    return std::move(cut_);
  }

 private:
  // Most problems have no cut within the limit; else growing steps from below, where little has to
  // be looked at; then halves.
  void search() {
    known_ = std::max(known_, states_.shortest() * (1 - rounding));
    const double most = std::min(p_.limit, states_.longest());
    if (p_.limit < infinity || known_ <= 0) settle(p_.limit < infinity ? most : 0);
    constexpr double first_step = 0.01;
    for (double step = first_step; cut_.complete && cut_.stages.empty() && known_ < most; step *= 2)
      settle(std::min(known_ * (1 + step), most));
    while (cut_.complete && !cut_.stages.empty() && cut_.time > known_ * (1 + p_.tolerance))
      settle((known_ + cut_.time) / 2);
  }

  void settle(double limit) {
    switch (states_.solve(limit)) {
      case SubmeshStates::Outcome::unsettled: cut_.complete = false; break;
      case SubmeshStates::Outcome::none: known_ = std::max(known_, limit); break;
      case SubmeshStates::Outcome::found: take(limit); break;
    }
  }

  // Where labels were made one, stages may take longer than the limit; the search goes on above
  // what is known no more.
  void take(double limit) {
    std::vector<SlicedStage> stages = states_.stages();
    const double time = states_.time(stages);
    if (time < cut_.time) {
      cut_.time = time;
      cut_.stages = std::move(stages);
    }
    if (time > limit * (1 + p_.tolerance)) cut_.complete = false;
  }

  const SubmeshProblem& p_;
  SubmeshStates states_;
  double known_;  // no cut is quicker
  SubmeshCut cut_;
};

}  // namespace

SubmeshCut best_submesh_cut(const SubmeshProblem& problem) { return SubmeshCutter(problem).run(); }

namespace {

// A size of a class's options, and the most micro-batches in flight of these.
struct Room {
  int devices, most_in_flight;
};

std::vector<std::vector<Room>> rooms_of(const SlicingProblem& group, bool memory) {
  std::vector<std::vector<Room>> all;
  for (const auto& list : group.options) {
    std::map<int, int> most;
    for (const StageOption& o : list) {
      if (!(o.forward + o.backward < infinity)) continue;
      int& known = most[o.devices];
      known = std::max(known, memory ? o.most_in_flight : any_in_flight);
    }
    auto& rooms = all.emplace_back();
    for (const auto& [devices, in_flight] : most) rooms.push_back({devices, in_flight});
  }
  return all;
}

}  // namespace

int fewest_stages(const SubmeshProblem& p, bool memory) {
  const int layers = p.groups.front()->layers;
  const auto m = p.groups.front()->micro_batches;
  constexpr int never = std::numeric_limits<int>::max();
  std::vector<std::vector<int>> stages;  // by devices used and first layer
  int used = 0;
  stages.emplace_back(at(layers + 1), never);
  stages.front().back() = 0;
  for (std::size_t g = p.groups.size(); g-- > 0;) {
    const SlicingProblem& group = *p.groups[g];
    const auto rooms = rooms_of(group, memory);
    const int behind = used;
    used += group.devices;
    stages.resize(at(used + 1), std::vector<int>(at(layers + 1), never));
    for (int from = behind; from < used; ++from) {
      for (int end = layers; end > 0; --end) {
        const int known = stages[at(from)][at(end)];
        if (known == never) continue;
        const auto in_flight = std::min<std::int64_t>(known + 1, m);
        for (int first = 0; first < end; ++first) {
          const auto c = group.range_class[group.at(first, end)];
          if (c < 0) continue;
          for (const Room& room : rooms[at(c)]) {
            if (from + room.devices > used) break;
            int& then = stages[at(from + room.devices)][at(first)];
            if (room.most_in_flight >= in_flight) then = std::min(then, known + 1);
          }
        }
      }
    }
  }
  return stages[at(used)].front();
}

std::string why_no_submesh_cut(const SubmeshProblem& p) {
  const auto groups = static_cast<int>(p.groups.size());
  if (p.groups.front()->layers < groups) {
    return fmt::format("{} layers for {} groups: every group needs a stage of a layer at least",
                       p.groups.front()->layers, groups);
  }
  return fewest_stages(p, false) < std::numeric_limits<int>::max()
             ? "no slicing fits in memory with the micro-batches in flight"
             : "no stages use up the devices of every group";
}

}  // namespace planner
