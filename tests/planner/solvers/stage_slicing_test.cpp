#include "planner/solvers/stage_slicing.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/bench/alpa_recurrence.hpp"
#include "tests/bench/slicing_instance.hpp"
#include "tests/planner/support/slicing_brute_force.hpp"
#include "tests/sanitized.hpp"

namespace stage_slicing_test {

using planner::any_in_flight;
using planner::best_slicing;
using planner::Slicing;
using planner::SlicingProblem;
using planner::StageOption;
using slicing::BruteForce;
using slicing::check_consistent;
using slicing::Draw;
using slicing::infinity;

namespace {

enum class Times { random, work, equal_layers };

// Times are whole numbers, so that sums are exact in any order.
double time_of(Times kind, int layers, int devices, Draw& draw) {
  switch (kind) {
    case Times::random: return draw.between(1, 60);
    case Times::work: return 10 * layers * draw.between(8, 12) / devices + draw.between(1, 5);
    case Times::equal_layers: return 840 * layers / devices + 30 * devices;
  }
  return 0;
}

std::vector<StageOption> random_options(Times kind, int layers, const std::vector<int>& sizes,
                                        bool tight, Draw& draw) {
  std::vector<StageOption> list;
  for (const int n : sizes) {
    const int ways = draw.between(1, 2);
    for (int way = 0; way < ways; ++way) {
      const int room = tight ? draw.between(0, 2 + 4 * n / layers) : any_in_flight;
      const double seconds = draw.one_in(40) ? infinity : time_of(kind, layers, n, draw) + 7 * way;
      list.push_back({n, seconds, room, static_cast<int>(list.size())});
    }
  }
  return list;
}

SlicingProblem random_problem(unsigned seed) {
  Draw draw(seed);
  SlicingProblem p;
  p.layers = draw.between(1, 8);
  p.devices = draw.between(1, 8);
  p.micro_batches = draw.of(std::array<std::int64_t, 6>{1, 2, 3, 8, 64, 1000});
  p.clear_ranges();
  const auto kind = draw.of(std::array{Times::random, Times::work, Times::equal_layers});
  const bool tight = draw.one_in(2);
  const auto sizes = planner::submeshes(p.devices, draw.of(std::array{2, 4, 8}));
  if (kind == Times::equal_layers) {  // a class for each length
    for (int length = 1; length <= p.layers; ++length)
      p.options.push_back(random_options(kind, length, sizes, tight, draw));
  }
  for (int first = 0; first < p.layers; ++first) {
    for (int end = first + 1; end <= p.layers; ++end) {
      if (draw.one_in(12)) continue;  // no stage of these layers
      auto& range = p.range_class[p.at(first, end)];
      range = end - first - 1;
      if (kind == Times::equal_layers) continue;
      range = static_cast<std::int32_t>(p.options.size());
      p.options.push_back(random_options(kind, end - first, sizes, tight, draw));
    }
  }
  return p;
}

}  // namespace

TEST_CASE("the best slicing is what trying every slicing finds") {
  int with = 0, without = 0, memory_binds = 0, programs = 0;
  std::uint64_t tried = 0;
  constexpr unsigned share = sanitized ? 20 : 1;
  for (unsigned seed = 0; seed < 1500; seed += share) {
    CAPTURE(seed);
    const SlicingProblem p = random_problem(seed);
    const BruteForce all({p});
    const Slicing found = best_slicing(p);
    CHECK(found.objective == all.best());  // to the last bit
    CHECK(found.stages.empty() == (all.best() == infinity));
    CHECK(found.reason.empty() == !found.stages.empty());
    if (found.stages.empty()) {
      ++without;
      continue;
    }
    ++with;
    check_consistent({p}, found);
    tried += all.tried();
    programs += found.statistics.programs > 0 ? 1 : 0;
    SlicingProblem roomy = p;
    for (auto& list : roomy.options)
      for (auto& o : list) o.most_in_flight = any_in_flight;
    const double without_limit = best_slicing(roomy).objective;
    CHECK(without_limit <= found.objective);
    memory_binds += without_limit < found.objective ? 1 : 0;
  }
  // The draw holds every kind.
  CHECK(with * share >= 900);
  CHECK(without * share >= 100);
  CHECK(memory_binds * share >= 150);
  CHECK(programs * share >= 300);
  CHECK(tried > (sanitized ? 5'000 : 300'000));
}

TEST_CASE("larger slicings are those of Alpa's recurrence") {
  int several = 0, programs = 0;
  for (const auto& [layers, devices] : {std::pair{10, 16}, std::pair{13, 24}, std::pair{16, 12}}) {
    for (const std::int64_t m : {1, 8, 200}) {
      if (sanitized && layers > 10 && m != 8) continue;
      for (const double noise : {0.0, 0.02, 0.4}) {
        CAPTURE(layers);
        CAPTURE(m);
        CAPTURE(noise);
        const auto p = make_problem({.layers = layers,
                                     .devices = devices,
                                     .micro_batches = m,
                                     .noise = noise,
                                     .seed = static_cast<unsigned>(m)});
        const Slicing found = best_slicing(p);
        CHECK(found.objective == doctest::Approx(AlpaRecurrence(p).best()).epsilon(1e-11));
        check_consistent({p}, found);
        several += found.stages.size() > 1 ? 1 : 0;
        programs += found.statistics.programs > 0 ? 1 : 0;
      }
    }
  }
  CHECK(several >= (sanitized ? 6 : 12));
  CHECK(programs >= (sanitized ? 2 : 5));
}

TEST_CASE("a slicing is the same every time, and equal layers do not depend on how they are told") {
  const auto p = make_problem({.layers = 40, .devices = 96, .micro_batches = 48});
  const Slicing once = best_slicing(p), again = best_slicing(p);
  REQUIRE(once.stages.size() == again.stages.size());
  for (std::size_t i = 0; i < once.stages.size(); ++i) {
    CHECK(once.stages[i].end == again.stages[i].end);
    CHECK(once.stages[i].option.devices == again.stages[i].option.devices);
  }
  SlicingProblem apart = p;  // a class of its own for every range
  apart.options.clear();
  for (auto& c : apart.range_class) {
    if (c < 0) continue;
    apart.options.push_back(p.options[static_cast<std::size_t>(c)]);
    c = static_cast<std::int32_t>(apart.options.size()) - 1;
  }
  CHECK(best_slicing(apart).objective == doctest::Approx(once.objective).epsilon(1e-11));
}

TEST_CASE("hundreds of layers on thousands of devices are solved to a proof") {
  const auto p = make_problem({.layers = 250, .devices = 8192});
  const Slicing found = best_slicing(p);
  check_consistent({p}, found);
  CHECK(found.stages.size() > 64);  // more than there are micro-batches in flight
  // Counted on this instance 624,471 and 22; a wide cutoff or a wide interval makes it millions.
  CHECK(found.statistics.labels < 2'000'000);
  CHECK(found.statistics.programs < 60);
}

TEST_CASE("time that runs out leaves a slicing with its proved gap, or the reason for none") {
  const auto p = make_problem({.layers = 96, .devices = 512, .noise = 0.02});
  const Slicing whole = best_slicing(p);
  int asked = 0, between = 0;
  for (const int patience : {0, 1, 5, 20, 80, 200, 500}) {
    asked = 0;
    const Slicing part = best_slicing(p, [&] { return asked++ >= patience; });
    CHECK(part.lower_bound <= whole.objective * (1 + 1e-12));
    if (part.stages.empty()) {
      CHECK(part.reason.find("time ran out") != std::string::npos);
      continue;
    }
    CHECK(part.objective >= whole.objective * (1 - 1e-12));
    between += part.lower_bound < part.objective ? 1 : 0;
  }
  CHECK(between >= 1);
}

namespace {

// Layers that all take `seconds` on one device and divide evenly over more.
SlicingProblem even(int layers, int devices, double seconds) {
  SlicingProblem p;
  p.layers = layers;
  p.devices = devices;
  p.micro_batches = 4;
  p.clear_ranges();
  for (int first = 0; first < layers; ++first)
    for (int end = first + 1; end <= layers; ++end)
      p.range_class[p.at(first, end)] = end - first - 1;
  for (int length = 1; length <= layers; ++length) {
    std::vector<StageOption> list;
    for (const int n : planner::submeshes(devices, 4)) list.push_back({n, length * seconds / n});
    p.options.push_back(list);
  }
  return p;
}

std::string reason_of(const SlicingProblem& p) {
  const Slicing found = best_slicing(p);
  CHECK(found.stages.empty());
  CHECK(found.objective == infinity);
  return found.reason;
}

}  // namespace

TEST_CASE("degenerate slicings have a value or a reason") {
  SUBCASE("one device, one layer") {
    const Slicing one = best_slicing(even(1, 1, 2));
    CHECK(one.objective == 8);  // 2 + 3 · 2
    CHECK(one.stages.size() == 1);
  }
  SUBCASE("one device, many layers") { CHECK(best_slicing(even(9, 1, 2)).objective == 72); }
  SUBCASE("more devices than layers: they share a stage") {
    const Slicing found = best_slicing(even(1, 8, 2));
    REQUIRE(found.stages.size() == 1);
    CHECK(found.stages.front().option.devices == 8);
  }
  SUBCASE("one giant layer takes most of the devices") {
    SlicingProblem p = even(4, 16, 1);
    for (int first = 0; first < 4; ++first) {  // layer 2 is a hundred times the others
      for (int end = first + 1; end <= 4; ++end) {
        if (first > 2 || end <= 2) continue;
        p.range_class[p.at(first, end)] = static_cast<std::int32_t>(p.options.size());
        std::vector<StageOption> list;
        for (const int n : planner::submeshes(16, 4)) list.push_back({n, (end - first + 99.0) / n});
        p.options.push_back(list);
      }
    }
    const Slicing found = best_slicing(p);
    for (const auto& stage : found.stages) {
      if (stage.first <= 2 && stage.end > 2) CHECK(stage.option.devices >= 12);
    }
  }
  SUBCASE("nothing to cut, nothing to run on, nothing to run") {
    CHECK(reason_of(even(0, 4, 1)) == "there are no layers to cut");
    CHECK(reason_of(even(3, 0, 1)) == "there are no devices");
    SlicingProblem p = even(3, 4, 1);
    p.micro_batches = 0;
    CHECK(reason_of(p) == "there are no micro-batches");
  }
  SUBCASE("no bandwidth") {
    CHECK(reason_of(even(3, 4, infinity)) == "every stage with layer 0 takes for ever");
    SlicingProblem p = even(3, 4, 1);  // only between devices
    for (auto& list : p.options)
      for (auto& o : list)
        if (o.devices > 1) o.seconds = infinity;
    CHECK(reason_of(p).find("no slicing uses exactly 4 devices") == 0);
    p.devices = 3;
    CHECK(best_slicing(p).stages.size() == 3);
  }
  SUBCASE("no memory") {
    SlicingProblem p = even(3, 4, 1);
    for (auto& o : p.options[0]) o.most_in_flight = 0;
    for (auto& o : p.options[1]) o.most_in_flight = 0;
    for (auto& o : p.options[2]) o.most_in_flight = 0;
    CHECK(reason_of(p) ==
          "no stage with layer 0 fits in memory, even with one micro-batch in flight");
  }
  SUBCASE("memory for one micro-batch only") {
    SlicingProblem p = even(3, 4, 1);
    for (auto& list : p.options)
      for (auto& o : list) o.most_in_flight = 1;
    CHECK(best_slicing(p).stages.size() == 1);
    p.range_class[p.at(0, 3)] = -1;
    CHECK(reason_of(p).find("stages fit in memory one by one") == 0);
  }
  SUBCASE("no stage allowed") {
    SlicingProblem p = even(3, 4, 1);
    p.clear_ranges();
    CHECK(reason_of(p) == "no stage with layer 0 goes on any of the submeshes");
  }
  SUBCASE("stages that take no time") { CHECK(best_slicing(even(3, 4, 0)).objective == 0); }
}

}  // namespace stage_slicing_test
