// The cut of layers into stages on submeshes: its time against the simulator, the bound against
// every cut there is, and what has none.
#include "planner/solvers/submesh_cut.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "costmodel/schedule/schedule.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "planner/solvers/submesh_states.hpp"
#include "tests/planner/support/slicing_brute_force.hpp"

namespace submesh_cut_test {

using planner::any_in_flight;
using planner::SlicedStage;
using planner::SlicingProblem;
using planner::StageOption;
using planner::SubmeshCut;
using planner::SubmeshProblem;
using planner::SubmeshStates;
using slicing::Draw;
using slicing::infinity;

namespace {

SlicingProblem random_group(int layers, int devices, std::int64_t m, bool work, int slowness,
                            Draw& draw) {
  SlicingProblem p;
  p.layers = layers;
  p.devices = devices;
  p.micro_batches = m;
  p.clear_ranges();
  for (int first = 0; first < layers; ++first) {
    for (int end = first + 1; end <= layers; ++end) {
      if (draw.one_in(12)) continue;  // no stage
      p.range_class[p.at(first, end)] = static_cast<std::int32_t>(p.options.size());
      auto& list = p.options.emplace_back();
      for (int n = 1; n <= devices; n *= 2) {
        for (int k = draw.between(0, 2); k >= 0; --k) {
          const int all =
              work ? slowness * (end - first) * draw.between(20, 30) / n + 3 : draw.between(2, 40);
          StageOption& o = list.emplace_back();
          o.devices = n;
          o.most_in_flight = draw.one_in(3) ? draw.between(0, 5) : any_in_flight;
          o.tag = draw.between(0, 99);
          o.forward = draw.between(1, all - 1);
          o.backward = all - o.forward;
          o.reduction = draw.one_in(2) ? 0 : draw.between(0, 9);
          o.after = draw.one_in(2) ? 0 : draw.between(0, 9);
        }
      }
    }
  }
  return p;
}

struct Instance {
  std::vector<SlicingProblem> groups;
  SubmeshProblem problem;
};

Instance random_instance(unsigned seed) {
  Draw draw(seed);
  Instance made;
  const int layers = draw.between(1, 7), count = seed % 5 == 0 ? draw.between(1, 3) : 2;
  const int m = std::vector<int>{1, 2, 3, 8, 64}[static_cast<std::size_t>(draw.between(0, 4))];
  const bool work = draw.one_in(2);
  for (int g = 0; g < count; ++g) {
    const int devices = count == 3 ? draw.between(1, 2) : draw.between(1, 4);
    made.groups.push_back(random_group(layers, devices, m, work, draw.between(1, 4), draw));
  }
  const int slow = draw.between(0, 5);
  if (slow > 0) {
    made.problem.transfer = [slow](std::size_t group, int devices, bool join, int layer) {
      return static_cast<double>(slow * (join ? 3 : 1) + layer + static_cast<int>(group)) / devices;
    };
  }
  made.problem.blocking = draw.one_in(3);
  if (draw.one_in(4)) made.problem.least_stages = draw.between(1, 3);
  if (draw.one_in(4)) made.problem.most_stages = made.problem.least_stages + draw.between(0, 3);
  return made;
}

void connect(Instance& made) {
  made.problem.groups.clear();
  for (const SlicingProblem& group : made.groups) made.problem.groups.push_back(&group);
}

// A stage and where it stands.
struct Placed {
  SlicedStage stage;
  std::size_t group = 0;
};

// What submesh_cut.hpp says, from the first stage on.
double time_of(const SubmeshProblem& p, const std::vector<Placed>& stages) {
  const auto m = static_cast<double>(p.groups.front()->micro_batches);
  const std::size_t count = stages.size();
  std::vector<double> f, b, in;
  const auto transfer = [&](std::size_t k, std::size_t boundary) {  // the one before a stage
    if (!p.transfer || boundary == 0 || boundary == count) return 0.0;
    const bool join = stages[boundary - 1].group != stages[boundary].group;
    const Placed& own = stages[k];
    return p.transfer(own.group, own.stage.option.devices, join, stages[boundary].stage.first);
  };
  for (std::size_t k = 0; k < count; ++k) {
    const StageOption& o = stages[k].stage.option;
    f.push_back(o.forward + (p.blocking ? transfer(k, k + 1) : 0));
    b.push_back(o.backward + (p.blocking ? transfer(k, k) : 0));
    in.push_back(p.blocking ? 0 : 2 * transfer(k, k));
  }
  double longest = 0, before = 0;
  for (std::size_t k = 0; k < count; ++k) {
    before += in[k];
    double behind = 0;
    for (std::size_t j = k + 1; j < count; ++j) behind += f[j] + b[j] + in[j];
    const double n = std::min(static_cast<double>(count - k), m), w = f[k] + b[k];
    const double rounds = std::ceil(m / n) * (w + behind) + std::fmod(m - 1, n) * b[k];
    longest = std::max(longest, before + stages[k].stage.option.after +
                                    std::max({m * w, m * w + behind - (n - 1) * f[k], rounds,
                                              m > n ? (m - n + 1) * w + 2 * behind : 0}));
    before += w;
  }
  return longest + stages.front().stage.option.reduction;
}

// Calls `visit` with every cut.
class EveryCut {
 public:
  explicit EveryCut(const SubmeshProblem& problem) : p_(problem) {}
  template <class Visit>
  void each(const Visit& visit) {
    from(0, p_.groups.front()->devices, 0, visit);
  }

 private:
  template <class Visit>
  void from(std::size_t group, int devices, int first, const Visit& visit) {
    const SlicingProblem& g = *p_.groups[group];
    if (devices == 0 && group + 1 < p_.groups.size())
      return from(group + 1, p_.groups[group + 1]->devices, first, visit);
    if (devices == 0 && first == g.layers && allowed()) visit(stages_);
    for (int end = first + 1; end <= g.layers; ++end) {
      const auto c = g.range_class[g.at(first, end)];
      if (c < 0) continue;
      for (const StageOption& o : g.options[static_cast<std::size_t>(c)]) {
        if (o.devices > devices) continue;
        stages_.push_back({{first, end, o}, group});
        from(group, devices - o.devices, end, visit);
        stages_.pop_back();
      }
    }
  }
  bool allowed() const {
    const auto count = static_cast<int>(stages_.size());
    for (int k = 0; k < count; ++k) {
      const auto in_flight = std::min<std::int64_t>(count - k, p_.groups.front()->micro_batches);
      if (stages_[static_cast<std::size_t>(k)].stage.option.most_in_flight < in_flight)
        return false;
    }
    return count >= p_.least_stages && count <= p_.most_stages;
  }

  const SubmeshProblem& p_;
  std::vector<Placed> stages_;
};

}  // namespace

TEST_CASE("as good as every cut there is, over one to three groups") {
  int none = 0, some = 0, several_stages = 0, limited = 0;
  for (unsigned seed = 0; seed < 900; ++seed) {
    Instance made = random_instance(seed);
    connect(made);
    double best = infinity;
    EveryCut(made.problem).each([&](const std::vector<Placed>& stages) {
      best = std::min(best, time_of(made.problem, stages));
    });
    const SubmeshCut found = best_submesh_cut(made.problem);
    INFO("seed " << seed);
    CHECK(found.complete);
    if (best == infinity) {
      ++none;
      CHECK(found.stages.empty());
      CHECK(found.bound == infinity);
      continue;
    }
    ++some;
    REQUIRE(!found.stages.empty());
    CHECK(planner::fewest_stages(made.problem, true) <= static_cast<int>(found.stages.size()));
    CHECK(found.bound <= best * (1 + 1e-9));
    CHECK(found.time >= best * (1 - 1e-9));
    CHECK(found.time <= found.bound * (1 + 1.001e-4));
    CHECK(found.time == doctest::Approx(SubmeshStates(made.problem).time(found.stages)));
    several_stages += found.stages.size() > made.groups.size() ? 1 : 0;
    // A limit below the best leaves none, and then it is the bound.
    made.problem.limit = best * 0.98;
    const SubmeshCut less = best_submesh_cut(made.problem);
    CHECK(less.stages.empty());
    made.problem.limit = best * 1.001;
    const SubmeshCut same = best_submesh_cut(made.problem);
    CHECK(same.time == doctest::Approx(best).epsilon(2e-4));
    made.problem.start = best * 0.9;
    CHECK(best_submesh_cut(made.problem).time == doctest::Approx(best).epsilon(2e-4));
    ++limited;
  }
  CHECK(none > 20);
  CHECK(some > 500);
  CHECK(several_stages > 100);
  CHECK(limited == some);
}

TEST_CASE("no simulated pipeline of a cut ends before the cut's time") {
  std::uint64_t tried = 0;
  double tightest = 0;
  for (unsigned seed = 2000; seed < 2150; ++seed) {
    Instance made = random_instance(seed);
    connect(made);
    const auto m = made.groups.front().micro_batches;
    std::vector<double> scratch;
    EveryCut(made.problem).each([&](const std::vector<Placed>& stages) {
      if (++tried % 7 != 0) return;
      const auto p = static_cast<int>(stages.size());
      costmodel::PipelineTimes times;
      times.blocking = made.problem.blocking;
      for (std::size_t k = 0; k < stages.size(); ++k) {
        const SlicedStage& own = stages[k].stage;
        times.forward.emplace_back(own.option.forward);
        times.backward.emplace_back(own.option.backward);
        if (k == 0) continue;
        const auto side = [&](std::size_t of) {
          if (!made.problem.transfer) return 0.0;
          return made.problem.transfer(stages[of].group, stages[of].stage.option.devices,
                                       stages[k].group != stages[k - 1].group, own.first);
        };
        const costmodel::Seconds slower(std::max(side(k - 1), side(k)));
        times.forward_transfer.push_back(slower);
        times.backward_transfer.push_back(slower);
      }
      const auto program = costmodel::compile(
          costmodel::generate(costmodel::ScheduleKind::one_f_one_b, p, 1, static_cast<int>(m)));
      const double end = costmodel::simulate_makespan(program, times, scratch).value;
      const StageOption& front = stages.front().stage.option;
      double after = 0;
      for (const Placed& stage : stages) after = std::max(after, stage.stage.option.after);
      const double time = time_of(made.problem, stages), all = end + front.reduction + after;
      CHECK(time <= all * (1 + 1e-12));
      tightest = std::max(tightest, time / all);
    });
  }
  CHECK(tried > 10000);
  CHECK(tightest > 0.9999);
}

TEST_CASE("what has no cut says why") {
  const auto one_option = [](int layers, int devices, double seconds, int most = any_in_flight) {
    SlicingProblem p;
    p.layers = layers;
    p.devices = devices;
    p.micro_batches = 4;
    p.clear_ranges();
    for (int first = 0; first < layers; ++first)
      for (int end = first + 1; end <= layers; ++end) p.range_class[p.at(first, end)] = 0;
    p.options.push_back({{.most_in_flight = most, .forward = seconds, .backward = seconds}});
    return p;
  };
  const auto why = [](const SlicingProblem& a, const SlicingProblem& b) {
    SubmeshProblem p;
    p.groups = {&a, &b};
    CHECK(best_submesh_cut(p).stages.empty());
    CHECK(best_submesh_cut(p).bound == infinity);
    return planner::why_no_submesh_cut(p);
  };
  CHECK(why(one_option(1, 1, 1), one_option(1, 1, 1)) ==
        "1 layers for 2 groups: every group needs a stage of a layer at least");
  CHECK(why(one_option(4, 3, 1), one_option(4, 2, 1)) ==
        "no stages use up the devices of every group");
  CHECK(why(one_option(4, 2, 1, 1), one_option(4, 1, 1)) ==
        "no slicing fits in memory with the micro-batches in flight");
  CHECK(why(one_option(4, 2, infinity), one_option(4, 1, 1)) ==
        "no stages use up the devices of every group");
}

TEST_CASE("what effort and time leave undone is no part of the bound") {
  Instance made;
  Draw draw(7);
  for (int g = 0; g < 2; ++g) made.groups.push_back(random_group(24, 8, 16, true, 2, draw));
  connect(made);
  const SubmeshCut whole = best_submesh_cut(made.problem);
  REQUIRE(whole.complete);
  REQUIRE(!whole.stages.empty());
  double before = 0;
  int less = 0;
  for (const std::uint64_t effort : {whole.effort / 1000, whole.effort / 4, whole.effort}) {
    made.problem.most_effort = effort;
    const SubmeshCut part = best_submesh_cut(made.problem);
    CHECK(part.bound <= whole.time);
    CHECK(part.bound >= before);
    less += part.complete ? 0 : 1;
    before = part.bound;
  }
  CHECK(less >= 2);
  made.problem.expired = [] { return true; };
  CHECK(!best_submesh_cut(made.problem).complete);
}

}  // namespace submesh_cut_test
