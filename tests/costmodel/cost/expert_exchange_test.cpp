// Dispatch and combine of experts: how many copies of a token travel, and over which links
// (DeepSeek-AI 2024, arXiv:2412.19437, section 3.2.2).
#include "costmodel/cost/expert_exchange.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>

#include "costmodel/cost/collective.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace expert_exchange_test {

using namespace costmodel;

namespace {

// Units with a chosen expert, by drawing: `groups_per_token` groups, then top_k experts in them.
double drawn(int units, int experts, const ExpertRouting& r) {
  std::mt19937 random(7);
  constexpr int trials = 20'000;
  const int groups = r.groups > 0 ? static_cast<int>(r.groups) : 1;
  const int taken = r.groups > 0 ? static_cast<int>(r.groups_per_token) : 1;
  double sum = 0;
  for (int t = 0; t < trials; ++t) {
    std::set<int> chosen_groups;
    while (static_cast<int>(chosen_groups.size()) < taken)
      chosen_groups.insert(static_cast<int>(random() % static_cast<unsigned>(groups)));
    std::set<int> chosen;
    while (static_cast<std::int64_t>(chosen.size()) < r.top_k) {
      const int expert = static_cast<int>(random() % static_cast<unsigned>(experts));
      if (chosen_groups.contains(expert * groups / experts)) chosen.insert(expert);
    }
    std::set<int> hit;
    for (const int expert : chosen) hit.insert(expert * units / experts);
    sum += static_cast<double>(hit.size());
  }
  return sum / trials;
}

}  // namespace

TEST_CASE("the units that a token reaches are those that drawing its experts finds") {
  for (const auto& [groups, taken] : {std::pair{0, 0}, std::pair{8, 4}}) {
    const ExpertRouting routing{Dispatcher::deepep, 8, groups, taken, 1, 256};
    for (const int units : {2, 4, 8, 16, 32, 64}) {
      CAPTURE(units);
      CHECK(std::abs(units_chosen(units, routing) / drawn(units, 256, routing) - 1) <= 0.005);
    }
  }
  // Mixtral: with an expert a rank, the two experts of a token are on two ranks.
  CHECK(units_chosen(8, {Dispatcher::deepep, 2, 0, 0, 1, 8}) == doctest::Approx(2));
}

TEST_CASE("DeepSeek-V3's tokens reach 6.5 of 32 and 7.2 of 64 ranks") {
  const ExpertRouting routing{Dispatcher::hybridep, 8, 8, 4};
  CHECK(std::abs(units_chosen(32, routing) - 6.45) < 0.05);
  CHECK(std::abs(units_chosen(64, routing) - 7.18) < 0.05);
}

TEST_CASE("one copy a node crosses the outer network, in place of one a chosen expert") {
  const ClusterSpec cluster = fixtures::cluster(16);  // two nodes of eight
  const GroupLayout group = layout_of(16, 1, cluster);
  const Bytes message(8.0 * 4096 * 2048 * 2);  // eight copies of a rank's tokens
  const auto all = expert_exchange(message, {Dispatcher::alltoall, 8}, group, cluster);
  const auto once = expert_exchange(message, {Dispatcher::hybridep, 8}, group, cluster);
  CHECK(all.sent.value == message.value * 15 / 16);
  CHECK(all.time == collective_time(CollectiveKind::all_to_all, message, group, cluster));
  // 0.996 copies to the other node in place of 4: the slow network carries a quarter.
  const double outer = message.value / 8 * (2 * (1 - std::pow(0.5, 8))) / 2;
  const Tier& tier = cluster.tiers[1];
  const double least = outer / tier.reached(2).value;
  CHECK(once.sent.value > outer);  // and what stays within the nodes
  CHECK(once.time.value >= least);
  CHECK(once.time.value <= least + 100e-6 + tier.fixed.value);
  CHECK(once.time < 0.5 * all.time);
}

TEST_CASE("inside a node one copy a rank travels, and kernels may be slower than collectives") {
  const ClusterSpec cluster = fixtures::cluster(8);
  const GroupLayout group = layout_of(8, 1, cluster);
  const Bytes message(8.0 * (1 << 26));
  const ExpertRouting routing{Dispatcher::deepep, 8};
  const auto once = expert_exchange(message, routing, group, cluster);
  const double copies = 8 * (1 - std::pow(7.0 / 8, 8));  // 5.25 of 8
  CHECK(once.sent.value == doctest::Approx(message.value / 8 * copies * 7 / 8));
  ExpertRouting slow = routing;
  slow.efficiency = 0.5;
  const auto slower = expert_exchange(message, slow, group, cluster);
  CHECK(slower.sent == once.sent);
  CHECK(slower.time > 1.8 * once.time);
}

TEST_CASE("HybridEP's copies take along the probabilities of the experts of a domain") {
  const ClusterSpec cluster = fixtures::cluster(16);  // two nodes of eight
  const Bytes message(8.0 * 4096 * 2048 * 2);         // eight copies of 4,096 rows of 2,048
  ExpertRouting routing{Dispatcher::hybridep, 8};
  routing.experts = 128;
  const auto sent = [&](int ranks, double routed) {
    return expert_exchange(message, routing, layout_of(ranks, 1, cluster), cluster, routed).sent;
  };
  // All 128 experts are in one node of eight; of sixteen ranks a node has half.
  CHECK(sent(8, 4096) / sent(8, 0) == doctest::Approx(1 + 128 * 4 / 4096.0));
  CHECK(sent(16, 4096) / sent(16, 0) == doctest::Approx(1 + 64 * 4 / 4096.0));
  const GroupLayout group = layout_of(16, 1, cluster);
  const auto map = routing_map(routing, group, cluster, 4096);
  CHECK(map.sent == collective_bytes(CollectiveKind::all_gather, Bytes(4096.0 * 128 * 16), 16));
  CHECK(map.time > Seconds(0));
  CHECK(routing_map(routing, group, cluster, 0).time.value == 0);
  CHECK(routing_map(routing, layout_of(1, 1, cluster), cluster, 4096).time.value == 0);
}

// GB200, 8 experts a rank, 4,096 tokens of 7,168 and 8 copies each, 32 multiprocessors: mean of
// what dispatch and combine reach by the copies alone (configs/microbench/
// expert_dispatch.yaml). By all that is sent, it is one rate for every number of ranks.
TEST_CASE("published dispatches of 8 to 36 ranks have one rate once probabilities are counted") {
  for (const auto& [ranks, reached] :
       {std::pair{8, 750.6}, std::pair{16, 686.6}, std::pair{24, 652.9}, std::pair{32, 623.7},
        std::pair{36, 614.7}}) {
    CAPTURE(ranks);
    const double remote = 1 - 1.0 / ranks, probabilities = 4.0 * 8 * ranks / (2 * 7168);
    CHECK(std::abs(reached * remote * (1 + probabilities) / 657 - 1) < 0.02);
  }
}

TEST_CASE("a group of one sends nothing") {
  const ClusterSpec cluster = fixtures::cluster(8);
  const auto none =
      expert_exchange(Bytes(1e6), {Dispatcher::deepep, 8}, layout_of(1, 1, cluster), cluster);
  CHECK(none.time.value == 0);
  CHECK(none.sent.value == 0);
}

}  // namespace expert_exchange_test
