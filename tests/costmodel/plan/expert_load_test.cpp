// Loads of experts by real routing, and what follows for the fullest rank's time and memory.
#include "costmodel/plan/expert_load.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <utility>

#include "costmodel/estimate/evaluator.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace expert_load_test {

using namespace costmodel;
using fixtures::contains;

namespace {

// Mixtral's 8 experts on as many H100, two of a node's experts a rank with ep 4.
std::string mixtral(const std::string& training, int ep = 8, const std::string& plan = "") {
  return fmt::format(
      "model: mixtral-8x7b\ncluster: {{base: dgx-h100, devices: 32}}\n"
      "training: {{global_batch: 128, sequence: 4096, stack: megatron-bridge{}}}\n"
      "plan: {{dp: 32, ep: {}, zero: 1{}}}\n",
      training, ep, plan);
}

Estimate estimated(const std::string& yaml) {
  const Scenario s = scenarios::read(yaml);
  return Evaluator(s.model, s.cluster, s.training).estimate(resolve_plan(s));
}

Seconds time(const std::string& training, int ep = 8) {
  return estimated(mixtral(training, ep)).iteration;
}

std::string fault(const std::string& load, const std::string& model = "mixtral-8x7b") {
  return fixtures::config_error([&] {
    scenarios::read("model: " + model +
                    "\ncluster: {base: dgx-h100, devices: 8}\ntraining: {global_batch: 8, "
                    "sequence: 128, expert_load: " +
                    load + "}\n");
  });
}

struct TemporaryFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("shardplan-loads-" + std::to_string(std::random_device{}()));
  TemporaryFolder() { std::filesystem::create_directory(path); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string write(const char* name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

// Of a gamma variable with an integer shape (Erlang): 1 - exp(-x) sum over i < shape of x^i / i!.
double erlang(int shape, double x) {
  double term = std::exp(-x), beyond = 0;
  for (int i = 0; i < shape; ++i) {
    beyond += term;
    term *= x / (i + 1);
  }
  return 1 - beyond;
}

// E[max of `ranks` gamma variables] over their mean, by the integral of 1 - F(x)^ranks: a Dirichlet
// vector does not depend on the sum that it was divided by. A rank of n experts has shape n a.
double expected_fullest(int shape, int ranks) {
  double sum = 0;
  const double step = shape / 2000.0;
  for (double x = step / 2; x < 10 * shape + 60; x += step)
    sum += (1 - std::pow(erlang(shape, x), ranks)) * step;
  return sum / shape;
}

}  // namespace

TEST_CASE(
    "the fullest rank of a Dirichlet distribution is the expected maximum of gamma variables") {
  for (const auto& [a, experts] :
       {std::pair{1.0, 8}, std::pair{10.0, 8}, std::pair{0.125, 64}, std::pair{1.0, 64}}) {
    const ExpertLoad load = load_of_ranks(dirichlet_loads(experts, a), 0);
    for (const int ranks : {2, 8}) {
      CHECK(load.of_fullest(ranks) ==
            doctest::Approx(expected_fullest(static_cast<int>(a * experts) / ranks, ranks))
                .epsilon(0.02));
    }
    CHECK(load.dropped == 0);
  }
}

TEST_CASE("the fullest of one rank is the mean; with fewer experts a rank it only grows") {
  for (const auto& layers : {dirichlet_loads(64, 0.5), skewed_loads(64, 1)}) {
    const ExpertLoad load = load_of_ranks(layers, 0);
    CHECK(load.fullest.size() == 7);  // 1, 2, 4 .. 64
    CHECK(load.of_fullest(1) == 1);
    for (std::size_t i = 1; i < load.fullest.size(); ++i)
      CHECK(load.fullest[i].second > load.fullest[i - 1].second);
  }
}

TEST_CASE("large concentrations and no skew are balanced") {
  CHECK(load_of_ranks(dirichlet_loads(8, 1e6), 0).of_fullest(8) ==
        doctest::Approx(1).epsilon(0.003));
  CHECK(load_of_ranks(skewed_loads(8, 0), 0).of_fullest(8) == 1);
  double before = 9;  // of 8 experts none has more than 8 times the mean
  for (const double a : {0.01, 0.1, 1.0, 10.0, 100.0}) {
    const double now = load_of_ranks(dirichlet_loads(8, a), 0).of_fullest(8);
    CHECK(now < before);
    before = now;
  }
}

TEST_CASE("a rank has neighbours; a capacity cuts each expert, and the rest is dropped") {
  const ExpertLoads one{{3, 1, 0, 0}};
  CHECK(load_of_ranks(one, 0).of_fullest(4) == 3);
  CHECK(load_of_ranks(one, 0).of_fullest(2) == 2);
  const ExpertLoad capped = load_of_ranks(one, 1.5);
  CHECK(capped.of_fullest(4) == 1.5);
  CHECK(capped.of_fullest(2) == 1.25);
  CHECK(capped.dropped == 0.375);  // 1.5 of 4
  // Layers are computed one after the other: their maxima are averaged.
  CHECK(load_of_ranks({{3, 1, 0, 0}, {0, 0, 1, 3}}, 0).of_fullest(2) == 2);
}

TEST_CASE("equal loads are no loads, to the byte") {
  const Estimate none = estimated(mixtral("")),
                 equal = estimated(mixtral(", expert_load: [7, 7, 7, 7, 7, 7, 7, 7]")),
                 tenths =
                     estimated(mixtral(", expert_load: [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]"));
  for (const Estimate& e : {equal, tenths}) {
    CHECK(e.iteration == none.iteration);
    CHECK(e.peak == none.peak);
    CHECK(e.traffic.total() == none.traffic.total());
    CHECK(e.breakdown.ep_comm == none.breakdown.ep_comm);
  }
}

TEST_CASE("the fullest rank sets time, exchange and memory; a capacity bounds them") {
  const std::string skew = ", expert_load: {skew: 1}";
  const Estimate balanced = estimated(mixtral("")), skewed = estimated(mixtral(skew)),
                 capped = estimated(mixtral(skew + ", capacity_factor: 1.5")),
                 padded = estimated(mixtral(", capacity_factor: 1.5"));
  for (const auto part : {&Breakdown::compute, &Breakdown::ep_comm}) {
    CHECK(balanced.breakdown.*part < capped.breakdown.*part);
    CHECK(capped.breakdown.*part <= padded.breakdown.*part);
    CHECK(padded.breakdown.*part < skewed.breakdown.*part);
  }
  CHECK(balanced.peak < capped.peak);
  CHECK(capped.peak <= padded.peak);
  CHECK(padded.peak < skewed.peak);
  // A capacity that no expert reaches is none.
  CHECK(time(skew + ", capacity_factor: 8") == time(skew));
  CHECK(
      contains(capped.notes.front(), "expert_load (skew 1): of 8 ranks the fullest computes 1.5"));
  CHECK(contains(capped.notes.front(), "beyond 1.5 times the mean"));
}

TEST_CASE("a skew costs more where a rank has fewer experts") {
  const std::string skew = ", expert_load: {skew: 1}";
  CHECK(time(skew, 1) == time("", 1));
  CHECK(time(skew, 2) / time("", 2) < time(skew, 8) / time("", 8));
}

TEST_CASE("loads are read from a file, a line a layer, relative to the scenario that names it") {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& loads) {
    folder.write("loads.csv", loads);
    const std::string scenario =
        folder.write("scenario.yaml", mixtral(", expert_load: {histogram: loads.csv}"));
    return load_scenario(scenario, fixtures::configs(), {}).training.expert_load;
  };
  const ExpertLoad load = read("# two layers\n3,1,0,0,1,1,1,1\n\n1 1 1 1 1 1 1 1  # balanced\n");
  CHECK(load.of_fullest(8) == 2);
  CHECK(load.form == "a histogram");
  const auto wrong = [&](const std::string& loads) {
    return fixtures::config_error([&] { read(loads); });
  };
  CHECK(contains(wrong("3,1,0,0,1,1,1\n"),
                 "loads.csv:1:1: expert_load has 7 loads, the model 8 experts"));
  CHECK(contains(wrong("layer 1\n"), "loads.csv:1:1: what stands here is no load of an expert"));
  CHECK(contains(wrong("# nothing\n"), "has no loads of experts"));
}

TEST_CASE("what is no load is refused at its place") {
  CHECK(contains(fault("[1, 2]"), "test.yaml:3:"));
  CHECK(contains(fault("[1, 2]"), "2 loads, the model 8 experts; give one load an expert"));
  CHECK(contains(fault("[0, 0, 0, 0, 0, 0, 0, 0]"), "all loads are 0"));
  CHECK(contains(fault("[1, 1, 1, 1, 1, 1, 1, -1]"), "expert_load"));
  CHECK(contains(fault("{dirichlet: 0}"), "dirichlet"));
  CHECK(contains(fault("{dirichlett: 1}"), "did you mean 'dirichlet'"));
  CHECK(contains(fault("{dirichlet: 1, skew: 1}"), "write a list of loads"));
  CHECK(contains(fault("{}"), "write a list of loads"));
  CHECK(contains(fault("random"), "expert_load is 'random'; write a list of loads"));
  CHECK(contains(fault("{skew: 1}, expert_imbalance: 1.2"), "leave one of them out"));
  CHECK(contains(fault("{skew: 1}", "llama-3-8b"), "a model with experts"));
  CHECK(fault("{skew: 1}, expert_imbalance: none").empty());
  CHECK(fault("none, expert_imbalance: 1.2").empty());
}

}  // namespace expert_load_test
