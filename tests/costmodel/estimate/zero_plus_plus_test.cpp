// ZeRO++ on two nodes of eight: memory, traffic and time of its three parts by hand.
#include "costmodel/estimate/zero_plus_plus.hpp"

#include <doctest/doctest.h>

#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace zero_plus_plus_test {

using namespace costmodel;

namespace {

const ModelSpec model = fixtures::gpt(8, 2048, 16, 51200, 512);

TrainingSpec training() {
  TrainingSpec training = fixtures::training(64, 512);
  training.stack.offers.zero_plus_plus = true;
  return training;
}

ParallelPlan plan_of(const ZeroPlusPlus& own) {
  ParallelPlan plan;
  plan.dp = 16;
  plan.zero = 3;
  plan.zero_plus_plus = own;
  return plan;
}

const ZeroPlusPlus all{.partition = 8, .weights = true, .gradients = true};

Evaluator evaluator() { return {model, fixtures::cluster(16), training()}; }

double parameters() { return evaluator().cost(plan_of({})).ranks.front().weights.all; }

}  // namespace

TEST_CASE("a second copy of the weights in shards over a node's ranks") {
  const double psi = parameters();
  const auto weights = [](const ZeroPlusPlus& own) {
    return evaluator().cost(plan_of(own)).ranks.front().memory.weights.value;
  };
  CHECK(weights({}) == doctest::Approx(2 * psi / 16));
  CHECK(weights({.partition = 8}) == doctest::Approx(2 * psi / 16 + 2 * psi / 8));
  CHECK(weights({.weights = true}) == doctest::Approx(2 * psi / 16));
}

// Table 1 of the paper, of M = 2 psi bytes: between nodes 3 M, and with all three 0.75 M. Here both
// levels are counted.
TEST_CASE("bytes of a micro-batch: half, none between nodes, a quarter") {
  const double psi = parameters(), m = 4;
  const auto traffic = [](const ZeroPlusPlus& own) {
    return evaluator().estimate(plan_of(own)).traffic;
  };
  const Traffic plain = traffic({}), some = traffic({.partition = 8}), every = traffic(all);
  CHECK(plain.all_gather.value == doctest::Approx(m * 2 * 15 / 16 * 2 * psi));
  CHECK(plain.reduce_scatter.value == doctest::Approx(m * 15 / 16 * 2 * psi));
  CHECK(some.all_gather.value == doctest::Approx(m * (15.0 / 16 + 7.0 / 8) * 2 * psi));
  CHECK(some.reduce_scatter == plain.reduce_scatter);
  CHECK(every.all_gather.value == doctest::Approx(m * (15.0 / 16 * psi + 7.0 / 8 * 2 * psi)));
  CHECK(every.reduce_scatter.value == 0);
  CHECK(every.all_to_all.value == doctest::Approx(m * (7.0 / 8 + 1.0 / 2 / 8) * psi / 2));
}

TEST_CASE("time: collectives over their groups, and passes that quantise") {
  const ClusterSpec cluster = fixtures::cluster(16);
  TrainingSpec apart = training();
  apart.overlap.nothing_hidden = true;
  Evaluator its(model, cluster, apart);
  const GroupLayout every = layout_of(16, 1, cluster), node = layout_of(8, 1, cluster),
                    between = layout_of(2, 8, cluster);
  const double psi = parameters(), layers = model.layers;
  const auto passes = [&](const ZeroPlusPlus& own) {
    const StageRow row = its.cost(plan_of(own)).stages[0];
    return std::pair{row.zero_forward.value, row.zero_backward.value};
  };
  const auto time = [&](CollectiveKind kind, double bytes, const GroupLayout& group) {
    return layers * collective_time(kind, Bytes(bytes / layers), group, cluster).value;
  };
  using enum CollectiveKind;
  const double whole = time(all_gather, 2 * psi, every),
               scattered = time(reduce_scatter, 2 * psi, every);
  CHECK(passes({}).first == doctest::Approx(whole));
  CHECK(passes({}).second == doctest::Approx(whole + scattered));
  const double inside = time(all_gather, 2 * psi, node);
  CHECK(passes({.partition = 8}).first == doctest::Approx(whole));
  CHECK(passes({.partition = 8}).second == doctest::Approx(inside + scattered));
  const double narrow = time(all_gather, psi, every);
  CHECK(passes({.weights = true}).first > narrow);  // and is widened
  CHECK(passes({.weights = true}).first < whole);
  const double exchanged = time(all_to_all, psi / 2, node) + time(all_to_all, psi / 16, between);
  const double reduced = passes({.gradients = true}).second - whole;
  CHECK(reduced > exchanged);  // and is quantised and summed
  CHECK(reduced < scattered);
  CHECK(its.estimate(plan_of(all)).iteration < its.estimate(plan_of({})).iteration);
}

// All-to-alls of gradients in a node, then between nodes: not within a whole rack whose links are
// those between nodes.
TEST_CASE("a third tier does not make a rack of a node") {
  ClusterSpec cluster = fixtures::cluster(16);
  cluster.tiers.push_back(cluster.tiers.back());
  cluster.tiers.back().devices = 32;
  cluster.devices = 32;
  TrainingSpec apart = training();
  apart.overlap.nothing_hidden = true;
  Evaluator its(model, cluster, apart);
  ParallelPlan plan = plan_of({.gradients = true});
  plan.dp = 32;
  const double psi = parameters(), layers = model.layers;
  const auto time = [&](double bytes, const GroupLayout& group) {
    return layers *
           collective_time(CollectiveKind::all_to_all, Bytes(bytes / layers), group, cluster).value;
  };
  const StageRow row = its.cost(plan).stages[0];
  const double exchanged =
      time(psi / 2, layout_of(8, 1, cluster)) + time(psi / 16, layout_of(4, 8, cluster));
  const double reduced = row.zero_backward.value - row.zero_forward.value;
  CHECK(reduced > exchanged);
  CHECK(reduced < 2 * exchanged);  // with the passes that quantise
  CHECK(its.estimate(plan).iteration < its.estimate([&] {
                                            ParallelPlan plain = plan;
                                            plain.zero_plus_plus = {};
                                            return plain;
                                          }())
                                           .iteration);
}

TEST_CASE("in words, and what is refused") {
  CHECK(fixtures::contains(to_string(plan_of(all)), "ZeRO 3++ (hpZ 8, qwZ, qgZ)"));
  const auto fault = [](const ParallelPlan& plan, const TrainingSpec& t = training()) {
    const auto found = violations(plan, model, fixtures::cluster(16), t);
    return found.empty() ? std::string() : found.front().key + ": " + found.front().reason;
  };
  CHECK(fault(plan_of(all)).empty());
  CHECK(fixtures::contains(fault(plan_of({.partition = 3})), "does not divide the 16 ranks"));
  ParallelPlan two = plan_of(all);
  two.zero = 2;
  CHECK(fixtures::contains(fault(two), "zero_hpz_partition_size: ZeRO++ is of sharded weights"));
  TrainingSpec without = training();
  without.stack.offers.zero_plus_plus = false;
  CHECK(fixtures::contains(fault(plan_of({.weights = true}), without),
                           "zero_quantized_weights: stack  has no ZeRO++"));
}

}  // namespace zero_plus_plus_test
