// Ranks, groups, and the tiers the groups cross.
#include "costmodel/plan/mesh.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "tests/costmodel/support/fixtures.hpp"

namespace mesh_test {

using namespace costmodel;

namespace {

constexpr const char* orders[] = {"tp-cp-ep-dp-pp", "tp-dp-pp-cp-ep", "dp-tp-pp-ep-cp",
                                  "pp-dp-tp-cp-ep", "cp-pp-tp-ep-dp"};

int product(const GroupLayout& layout) {
  int n = 1;
  for (std::size_t i = 0; i < layout.tiers; ++i) n *= layout.fan[i];
  return n;
}

}  // namespace

TEST_CASE("rank to coordinates and back, in several orders and sizes") {
  for (const auto* order : orders) {
    for (const auto& [tp, dp, pp] :
         {std::tuple{1, 1, 1}, {2, 3, 4}, {8, 2, 5}, {1, 6, 1}, {4, 1, 3}}) {
      const Mesh mesh(tp, dp, pp, order);
      REQUIRE(mesh.size() == tp * dp * pp);
      std::set<std::int64_t> seen;
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
        const Coordinates at = mesh.coordinates(rank);
        CHECK(mesh.rank(at) == rank);
        CHECK(at.tp < tp);
        CHECK(at.dp < dp);
        CHECK(at.pp < pp);
        seen.insert(mesh.rank(at));
      }
      CHECK(seen.size() == static_cast<std::size_t>(mesh.size()));
    }
  }
}

TEST_CASE("ranks nearby are those of a node, and of nodes that links as fast join") {
  ClusterSpec cluster = fixtures::cluster(64);  // of 8 a node
  CHECK(ranks_nearby(layout_of(64, 1, cluster), cluster) == 8);
  CHECK(ranks_nearby(layout_of(32, 2, cluster), cluster) == 4);
  CHECK(ranks_nearby(layout_of(8, 8, cluster), cluster) == 1);
  CHECK(ranks_nearby(layout_of(4, 1, cluster), cluster) == 4);
  cluster.tiers.insert(cluster.tiers.begin() + 1, cluster.tiers.front());
  cluster.tiers[1].devices = 32;  // a rack of four nodes
  cluster.tiers[1].bandwidth = cluster.tiers[0].bandwidth / 2;
  CHECK(ranks_nearby(layout_of(64, 1, cluster), cluster) == 32);
  cluster.tiers[1].bandwidth = cluster.tiers[0].bandwidth / 3;
  CHECK(ranks_nearby(layout_of(64, 1, cluster), cluster) == 8);
}

TEST_CASE("the order of the axes: the first name varies fastest") {
  CHECK(Mesh(2, 3, 4, "tp-cp-ep-dp-pp").stride(Axis::tensor) == 1);
  CHECK(Mesh(2, 3, 4, "tp-cp-ep-dp-pp").stride(Axis::data) == 2);
  CHECK(Mesh(2, 3, 4, "tp-cp-ep-dp-pp").stride(Axis::pipeline) == 6);
  CHECK(Mesh(2, 3, 4, "tp-cp-ep-pp-dp").stride(Axis::pipeline) == 2);
  CHECK(Mesh(2, 3, 4, "tp-cp-ep-pp-dp").stride(Axis::data) == 8);
  CHECK(Mesh(2, 3, 4, "pp-dp-tp-cp-ep").coordinates(5) == Coordinates{0, 1, 1});
  for (const auto* order : orders) CHECK(Mesh::valid_order(order));
  for (const auto* order :
       {"", "tp-dp-pp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-", "tp cp ep dp pp", "TP-cp-ep-dp-pp"})
    CHECK_FALSE(Mesh::valid_order(order));
}

TEST_CASE("the groups along an axis partition the ranks") {
  for (const auto* order : orders) {
    const Mesh mesh(2, 3, 4, order);
    for (const auto axis : {Axis::tensor, Axis::data, Axis::pipeline}) {
      std::multiset<std::int64_t> all;
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
        const auto group = mesh.group(axis, rank);
        CHECK(group.size() == static_cast<std::size_t>(mesh.size(axis)));
        CHECK(std::count(group.begin(), group.end(), rank) == 1);
        for (const auto other : group) CHECK(mesh.group(axis, other) == group);
        if (rank == group.front()) all.insert(group.begin(), group.end());
      }
      std::multiset<std::int64_t> every;
      for (std::int64_t rank = 0; rank < mesh.size(); ++rank) every.insert(rank);
      CHECK(all == every);
    }
  }
}

TEST_CASE("Megatron's groups: tensor ranks share a node, data ranks stride over nodes") {
  // 2 tensor, 4 data, 4 pipeline ranks on four nodes of eight (the example of parallel_state.py,
  // twice as large).
  const Mesh mesh(2, 4, 4, "tp-cp-ep-dp-pp");
  CHECK(mesh.group(Axis::tensor, 5) == std::vector<std::int64_t>{4, 5});
  CHECK(mesh.group(Axis::data, 1) == std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK(mesh.group(Axis::pipeline, 0) == std::vector<std::int64_t>{0, 8, 16, 24});
  const ClusterSpec cluster = fixtures::cluster(32);
  CHECK(mesh.layout(Axis::tensor, cluster).outermost() == 0);
  CHECK(mesh.layout(Axis::data, cluster).outermost() == 0);
  CHECK(mesh.layout(Axis::pipeline, cluster).outermost() == 1);
  const GroupLayout data = Mesh(8, 4, 1, "tp-cp-ep-dp-pp").layout(Axis::data, cluster);
  CHECK(data.fan[0] == 1);
  CHECK(data.fan[1] == 4);
  const GroupLayout half = Mesh(4, 8, 1, "tp-cp-ep-dp-pp").layout(Axis::data, cluster);
  CHECK(half.fan[0] == 2);
  CHECK(half.fan[1] == 4);
  CHECK(Mesh(1, 1, 1, "tp-cp-ep-dp-pp").layout(Axis::data, cluster).outermost() == -1);
}

TEST_CASE("a layout's fans multiply to the group, and count the nodes it lies on") {
  for (const int per_node : {4, 8}) {
    const ClusterSpec cluster = fixtures::cluster(256, per_node);
    for (std::int64_t stride = 1; stride <= 64; stride *= 2) {
      for (int size = 1; size * stride <= 256; size *= 2) {
        const GroupLayout layout = layout_of(size, stride, cluster);
        CAPTURE(size);
        CAPTURE(stride);
        CHECK(product(layout) == size);
        std::set<std::int64_t> nodes;
        for (int i = 0; i < size; ++i) nodes.insert(i * stride / per_node);
        CHECK(layout.fan[1] == static_cast<int>(nodes.size()));
      }
    }
  }
}

TEST_CASE("three tiers") {
  ClusterSpec cluster = fixtures::cluster(64);
  cluster.tiers.insert(cluster.tiers.begin() + 1, cluster.tiers[0]);
  cluster.tiers[1].devices = 32;
  const GroupLayout all = layout_of(64, 1, cluster);
  CHECK(all.fan[0] == 8);
  CHECK(all.fan[1] == 4);
  CHECK(all.fan[2] == 2);
  const GroupLayout sparse = layout_of(4, 16, cluster);
  CHECK(sparse.fan[0] == 1);
  CHECK(sparse.fan[1] == 2);
  CHECK(sparse.fan[2] == 2);
}

TEST_CASE("the tier between neighbours") {
  const ClusterSpec cluster = fixtures::cluster(64);
  CHECK(tier_between(4, 1, cluster) == 0);
  CHECK(tier_between(4, 2, cluster) == 0);
  CHECK(tier_between(2, 8, cluster) == 1);
  CHECK(tier_between(8, 2, cluster) == 1);
  CHECK(tier_between(2, 4, fixtures::cluster(8)) == 0);
}

TEST_CASE("a group that straddles nodes is priced as the one that lies worst") {
  // Nodes of 8: tp 6 lies as {6}, {2 + 4}, {4 + 2}, {6}; tp 3 has groups of 2 + 1; tp 12 lies as 8
  // + 4 and 4 + 8.
  const ClusterSpec cluster = fixtures::cluster(96);
  REQUIRE(cluster.tiers.front().devices == 8);
  CHECK(layout_of(6, 1, cluster).fan[0] == 2);
  CHECK(layout_of(6, 1, cluster).fan[1] == 3);
  CHECK(layout_of(3, 1, cluster).fan[0] == 1);
  CHECK(layout_of(12, 1, cluster).fan[0] == 4);
  CHECK(layout_of(8, 1, cluster).fan[0] == 8);
  CHECK(layout_of(16, 1, cluster).fan[0] == 8);
  CHECK(layout_of(4, 2, cluster).fan[0] == 4);
  CHECK(layout_of(12, 8, cluster).fan[0] == 1);
  CHECK(tier_between(4, 2, cluster) == 0);
  CHECK(tier_between(3, 2, cluster) == 1);  // ranks 6, 8 and 10 are on two nodes
}

// Members within a node of the group that has the fewest in some node, counted one by one.
std::int64_t counted_inside(std::int64_t size, std::int64_t stride, std::int64_t node,
                            std::int64_t devices) {
  std::int64_t fewest = size;
  for (std::int64_t g = 0; g < 64 && (g + 1) * size * stride <= devices; ++g) {
    std::map<std::int64_t, std::int64_t> inside;
    for (std::int64_t k = 0; k < size; ++k) ++inside[(g * size + k) * stride / node];
    for (const auto& [where, count] : inside) fewest = std::min(fewest, count);
  }
  return fewest;
}

TEST_CASE("a group of any size and stride has as few members in a node as counting finds") {
  constexpr int devices = 1200;
  ClusterSpec cluster = fixtures::cluster(devices);
  for (const int node : {2, 6, 8, 12}) {
    cluster.tiers.front().devices = node;
    for (int stride = 1; stride <= 15; ++stride) {
      for (int size = 2; size * stride <= devices; size += 1 + size / 7) {
        CAPTURE(node);
        CAPTURE(stride);
        CAPTURE(size);
        CHECK(layout_of(size, stride, cluster).fan[0] ==
              counted_inside(size, stride, node, devices));
      }
    }
  }
}

}  // namespace mesh_test
