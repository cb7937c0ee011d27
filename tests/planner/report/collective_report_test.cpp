// The report of `collective`: prices are the cost model's, formulas have the values.
#include "planner/report/collective_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace collective_report_test {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using fixtures::contains;
using fixtures::relative_error;
using namespace planner;

TEST_CASE("a price is the cost model's, whatever the primitive") {
  const costmodel::ClusterSpec cluster = fixtures::cluster(64);
  for (const int ranks : {2, 8, 64}) {
    const CollectiveGroup group{cluster, costmodel::layout_of(ranks, 1, cluster)};
    for (const CollectiveKind kind : primitives) {
      for (const double bytes : {1.0, 1e6, 1e9}) {
        const CollectivePrice p = priced(kind, Bytes(bytes), group);
        CHECK(p.time == collective_time(kind, Bytes(bytes), group.layout, cluster));
        CHECK(p.time == p.terms.time);
        CHECK_FALSE(p.measured);
        CHECK(relative_error(p.algorithm_bandwidth.value * p.time.value, bytes) <= 1e-12);
        CHECK(relative_error(p.bus_bandwidth.value, p.algorithm_bandwidth.value * p.bus_factor) <=
              1e-12);
      }
    }
  }
}

TEST_CASE("ways to sum: a parameter server is the slowest, sharded it sends what the ring does") {
  const costmodel::ClusterSpec cluster = fixtures::cluster(64);
  const CollectiveGroup node{cluster, costmodel::layout_of(8, 1, cluster)};
  const auto of = [&](const std::vector<SumWay>& ways, const std::string& name) {
    const auto at = std::ranges::find(ways, name, &SumWay::name);
    REQUIRE(at != ways.end());
    return at->time.value;
  };
  const auto inside = ways_to_sum(Bytes(1e10), node);
  CHECK(relative_error(of(inside, "sharded parameter server"), of(inside, "ring")) <= 0.01);
  CHECK(relative_error(of(inside, "parameter server"), 8 * of(inside, "ring")) <= 0.01);
  CHECK(std::ranges::find(inside, "hierarchical", &SumWay::name) == inside.end());
  const auto all = ways_to_sum(Bytes(1e10), {cluster, costmodel::layout_of(64, 1, cluster)});
  CHECK(of(all, "hierarchical") > of(all, "ring"));
  CHECK(of(all, "parameter server") > 100 * of(all, "ring"));
}

TEST_CASE("the report shows the formula with its values, and more than one price a table") {
  const costmodel::ClusterSpec cluster = fixtures::cluster(64);
  const CollectiveGroup group{cluster, costmodel::layout_of(64, 1, cluster)};
  const auto price = priced(CollectiveKind::all_reduce, Bytes(1e9), group);
  const std::string text = collective_report(price, group, {});
  CHECK(contains(text, "2 S (n - 1) / n"));
  CHECK(contains(text, "hops x"));
  CHECK(contains(text, "The same sum in other ways"));
  const Table rows = collective_rows({price, price});
  CHECK(rows.rows.size() == 2);
  for (const auto& row : rows.rows) CHECK(row.size() == rows.columns.size());
}

TEST_CASE("a measured tier's time replaces the formula, and the report says so") {
  costmodel::ClusterSpec cluster = fixtures::cluster(8);
  costmodel::CollectiveTable table{CollectiveKind::all_gather, 8, {}};
  table.curve.axes = {{1e3, 1e9}};
  table.curve.rates = {1e9, 1e11};
  cluster.tiers.front().measured.push_back(table);
  const CollectiveGroup group{cluster, costmodel::layout_of(8, 1, cluster)};
  const auto price = priced(CollectiveKind::all_gather, Bytes(1e9), group);
  CHECK(price.measured);
  CHECK(relative_error(price.time.value, 1e-2) <= 1e-9);
  CHECK(contains(collective_report(price, group, {}), "measured on this tier"));
}

}  // namespace collective_report_test
