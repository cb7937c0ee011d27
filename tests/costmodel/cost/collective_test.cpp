// What collectives send and how long they take.
#include "costmodel/cost/collective.hpp"

#include <doctest/doctest.h>

#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/collective_table_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace collective_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

using enum CollectiveKind;
constexpr CollectiveKind kinds[] = {all_reduce, all_gather, reduce_scatter, all_to_all,
                                    broadcast,  scatter,    gather,         reduce};

}  // namespace

TEST_CASE("bytes a device sends") {
  for (const int n : {2, 3, 8, 64}) {
    const double others = static_cast<double>(n - 1) / n;
    CHECK(collective_bytes(all_reduce, Bytes(960), n).value == 2 * others * 960);
    for (const auto kind : {all_gather, reduce_scatter, all_to_all, scatter, gather})
      CHECK(collective_bytes(kind, Bytes(960), n).value == others * 960);
    CHECK(collective_bytes(broadcast, Bytes(960), n).value == 960);
    CHECK(collective_bytes(send, Bytes(960), n).value == 960);
    CHECK(collective_bytes(none, Bytes(960), n).value == 0);
  }
  for (const auto kind : kinds) CHECK(collective_bytes(kind, Bytes(960), 1).value == 0);
}

TEST_CASE("one rank, or no bytes: no time") {
  const ClusterSpec cluster = fixtures::cluster(64);
  for (const auto kind : kinds) {
    CHECK(collective_time(kind, Bytes(1e9), layout_of(1, 1, cluster), cluster).value == 0);
    CHECK(collective_time(kind, Bytes(0), layout_of(8, 1, cluster), cluster).value == 0);
  }
}

TEST_CASE("a ring inside a node, by hand") {
  const ClusterSpec cluster = fixtures::cluster(64);  // 300 GB/s at 0.8, 1.5 us, fixed 20 us
  const GroupLayout node = layout_of(8, 1, cluster);
  const double transfer = 2 * 7.0 / 8 * 1e9 / (300e9 * 0.8);
  CHECK(
      relative_error(collective_time(all_reduce, Bytes(1e9), node, cluster, Algorithm::ring).value,
                     20e-6 + 2 * 7 * 1.5e-6 + transfer) <= 1e-12);
  CHECK(relative_error(collective_time(all_gather, Bytes(1e9), node, cluster).value,
                       20e-6 + 7 * 1.5e-6 + transfer / 2) <= 1e-12);
}

TEST_CASE("a ring over nodes leaves each over as many links as it has ranks there") {
  const ClusterSpec cluster = fixtures::cluster(64);
  // Eight nodes of eight: the bottleneck is 8 links of 25 GB/s at 0.9 (180 GB/s), below 240 GB/s
  // inside.
  const double all = 2 * 63.0 / 64 * 1e9 / (8 * 25e9 * 0.9);
  CHECK(relative_error(collective_time(all_reduce, Bytes(1e9), layout_of(64, 1, cluster), cluster,
                                       Algorithm::ring)
                           .value,
                       40e-6 + 2 * (56 * 1.5e-6 + 7 * 5e-6) + all) <= 1e-12);
  // One rank a node: one link.
  const double sparse = 2 * 7.0 / 8 * 1e9 / (25e9 * 0.9);
  CHECK(relative_error(collective_time(all_reduce, Bytes(1e9), layout_of(8, 8, cluster), cluster,
                                       Algorithm::ring)
                           .value,
                       40e-6 + 2 * 7 * 5e-6 + sparse) <= 1e-12);
}

TEST_CASE("an all-reduce is a reduce-scatter and an all-gather with one start") {
  const ClusterSpec cluster = fixtures::cluster(64);
  for (const std::int64_t stride : {1, 2, 8}) {
    for (const int n : {2, 4, 8}) {
      const GroupLayout group = layout_of(n, stride, cluster);
      const Seconds fixed = cluster.tiers[static_cast<std::size_t>(group.outermost())].fixed;
      for (const double bytes : {1.0, 1e6, 1e9}) {
        const Seconds parts = collective_time(reduce_scatter, Bytes(bytes), group, cluster) +
                              collective_time(all_gather, Bytes(bytes), group, cluster) - fixed;
        const Seconds whole =
            collective_time(all_reduce, Bytes(bytes), group, cluster, Algorithm::ring);
        CHECK(relative_error(whole.value, parts.value) <= 1e-12);
      }
    }
  }
}

TEST_CASE("more bytes never take less time") {
  const ClusterSpec cluster = fixtures::cluster(1024);
  for (const auto kind : kinds) {
    for (const std::int64_t stride : {1, 4, 8, 16}) {
      for (const int n : {2, 3, 8, 64}) {
        const GroupLayout group = layout_of(n, stride, cluster);
        double before = 0;
        for (double bytes = 1; bytes < 1e12; bytes *= 3) {
          const double time = collective_time(kind, Bytes(bytes), group, cluster).value;
          CHECK(time >= before);
          CHECK(time > 0);
          before = time;
        }
      }
    }
  }
}

TEST_CASE(
    "a tree wins for small messages on many ranks, large ones take as long either way; the "
    "all-reduce "
    "takes the better") {
  const ClusterSpec cluster = fixtures::cluster(1024);
  const GroupLayout all = layout_of(1024, 1, cluster);
  const auto time = [&](double bytes, Algorithm a) {
    return collective_time(all_reduce, Bytes(bytes), all, cluster, a).value;
  };
  CHECK(time(1e3, Algorithm::tree) < time(1e3, Algorithm::ring) / 10);
  const GroupLayout node = layout_of(8, 1, cluster);
  CHECK(relative_error(time(1e11, Algorithm::ring), time(1e11, Algorithm::tree)) <= 0.01);
  // Inside a node the tree is a chain that sends what the ring sends.
  CHECK(collective_time(all_reduce, Bytes(1e9), node, cluster, Algorithm::ring) ==
        collective_time(all_reduce, Bytes(1e9), node, cluster, Algorithm::tree));
  for (const int n : {2, 8, 64, 1024}) {
    const GroupLayout group = layout_of(n, 1, cluster);
    for (const double bytes : {1e3, 1e6, 1e9, 1e11}) {
      const double ring =
          collective_time(all_reduce, Bytes(bytes), group, cluster, Algorithm::ring).value;
      const double tree =
          collective_time(all_reduce, Bytes(bytes), group, cluster, Algorithm::tree).value;
      CHECK(collective_time(all_reduce, Bytes(bytes), group, cluster).value ==
            std::min(ring, tree));
    }
  }
}

TEST_CASE("no collective beats the bytes it must send over its links") {
  // A device owns one link of each tier: what it sends in all cannot go faster than the inner link.
  const ClusterSpec cluster = fixtures::cluster(256);
  for (const auto kind : kinds) {
    for (const int n : {2, 4, 8, 16, 128}) {
      const double sent = collective_bytes(kind, Bytes(1e9), n).value;
      CHECK(collective_time(kind, Bytes(1e9), layout_of(n, 1, cluster), cluster).value >=
            sent / 300e9);
    }
  }
}

TEST_CASE("a transfer takes its tier's start, one hop and its bytes") {
  const ClusterSpec cluster = fixtures::cluster(64);
  CHECK(relative_error(transfer_time(Bytes(1e6), 0, 8, cluster).value,
                       20e-6 + 1.5e-6 + 1e6 / 240e9) <= 1e-12);
  CHECK(relative_error(transfer_time(Bytes(1e6), 1, 8, cluster).value,
                       40e-6 + 5e-6 + 1e6 / 22.5e9) <= 1e-12);
}

TEST_CASE("traffic adds up by kind") {
  Traffic t;
  t.add(all_reduce, Bytes(1));
  t.add(all_gather, Bytes(2));
  t.add(reduce_scatter, Bytes(4));
  t.add(all_to_all, Bytes(8));
  t.add(send, Bytes(16));
  t.add(none, Bytes(32));
  CHECK(t.total().value == 31);
  Traffic twice = t * 2;
  twice += t;
  CHECK(twice.all_reduce.value == 3);
  CHECK(twice.send.value == 48);
  CHECK(twice.total().value == 93);
}

TEST_CASE("devices of a node share its links; a device alone has at most its own") {
  ClusterSpec cluster = fixtures::cluster(64);
  Tier& network = cluster.tiers.back();
  network.fixed = network.latency = Seconds(0);
  const auto rate = [&](std::int64_t senders) {
    return 1e9 / (transfer_time(Bytes(1e9), 1, senders, cluster).value * network.efficiency);
  };
  CHECK(relative_error(rate(1), network.bandwidth.value) <=
        1e-12);  // a link for each: nothing to share
  network.single = network.bandwidth * 4;
  CHECK(relative_error(rate(1), network.bandwidth.value * 4) <= 1e-12);
  CHECK(relative_error(rate(4), network.bandwidth.value * 2) <= 1e-12);
  CHECK(relative_error(rate(8), network.bandwidth.value) <= 1e-12);
  CHECK(relative_error(rate(32), network.bandwidth.value) <= 1e-12);
}

TEST_CASE("measured times come before the formulas, for the ranks and the tier they are of") {
  ClusterSpec cluster = fixtures::cluster(64);
  CollectiveTable table{all_reduce, 8, {}};
  table.curve.axes = {{1e6, 1e8}};
  table.curve.rates = {1e9, 1e11};
  cluster.tiers[0].measured = {table};
  const GroupLayout node = layout_of(8, 1, cluster);
  const auto time = [&](double bytes) {
    return collective_time(all_reduce, Bytes(bytes), node, cluster).value;
  };
  CHECK(relative_error(time(1e6), 1e-3) <= 1e-12);
  CHECK(relative_error(time(1e8), 1e-3) <= 1e-12);
  CHECK(relative_error(time(1e7), 1e-3) <= 1e-12);  // 1e10 bytes a second between the two
  CHECK(relative_error(time(1e9), 1e-2) <= 1e-12);  // at the rate of the largest
  CHECK(relative_error(time(10), 1e-3) <= 1e-12);   // as long as the smallest
  CHECK(time(0) == 0);

  const ClusterSpec formulas = fixtures::cluster(64);
  for (const GroupLayout& other :
       {layout_of(4, 1, cluster), layout_of(64, 1, cluster), layout_of(8, 8, cluster)}) {
    CHECK(collective_time(all_reduce, Bytes(1e7), other, cluster) ==
          collective_time(all_reduce, Bytes(1e7), other, formulas));
  }
  CHECK(collective_time(all_gather, Bytes(1e7), node, cluster) ==
        collective_time(all_gather, Bytes(1e7), node, formulas));
  CHECK(collective_time(all_reduce, Bytes(1e7), node, cluster, Algorithm::ring) ==
        collective_time(all_reduce, Bytes(1e7), node, formulas, Algorithm::ring));
}

TEST_CASE("a measured transfer") {
  ClusterSpec cluster = fixtures::cluster(64);
  CollectiveTable table{send, 2, {}};
  table.curve.axes = {{1e6}};
  table.curve.rates = {1e9};
  cluster.tiers[0].measured = cluster.tiers[1].measured = {table};
  CHECK(relative_error(transfer_time(Bytes(1e6), 0, 4, cluster).value, 1e-3) <= 1e-12);
  CHECK(relative_error(transfer_time(Bytes(1e6), 1, 1, cluster).value, 1e-3) <= 1e-12);
  // Several that share a link were not measured.
  CHECK(transfer_time(Bytes(1e6), 1, 4, cluster) ==
        transfer_time(Bytes(1e6), 1, 4, fixtures::cluster(64)));
}

TEST_CASE("measured times read back as they were written, and their faults") {
  CollectiveTable table{reduce_scatter, 4, {}};
  table.curve.axes = {{1e3, 2e6}};
  table.curve.rates = {5e8, 7e9};
  const auto parsed = [](const std::string& text) {
    return read_collective_tables(parse_yaml(text, "t.yaml"));
  };
  const auto read = parsed(to_yaml(to_value(std::vector{table})));
  REQUIRE(read.size() == 1);
  CHECK(read[0].kind == reduce_scatter);
  CHECK(read[0].ranks == 4);
  CHECK(read[0].curve.axes == table.curve.axes);
  CHECK(read[0].curve.rates == table.curve.rates);

  const auto fault = [&](const std::string& text) {
    try {
      parsed(text);
    } catch (const ConfigError& told) {
      return std::string(told.what());
    }
    return std::string("none");
  };
  const std::string whole = "- {collective: all-reduce, ranks: 2, bytes: [1], bytes_per_s: [1]}\n";
  CHECK(fault("{}").find("not a list") != std::string::npos);
  CHECK(fault("- {collective: none, ranks: 2}").find("'none'") != std::string::npos);
  CHECK(fault("- {collective: send, ranks: 1}").find("ranks") != std::string::npos);
  CHECK(fault("- {collective: send, ranks: 2, bytes: [2, 1], bytes_per_s: [1, 1]}")
            .find("does not grow") != std::string::npos);
  CHECK(fault(whole + whole).find("all-reduce of 2 ranks has two tables") != std::string::npos);
}

TEST_CASE("a group smaller than its unit has the links among its devices") {
  ClusterSpec cluster = fixtures::cluster(64);
  const auto gather = [&](int ranks) {
    return collective_time(all_gather, Bytes(1e9), layout_of(ranks, 1, cluster), cluster).value;
  };
  const double eight = gather(8), sixty_four = gather(64);
  cluster.tiers.front().groups = {{2, BytesPerSecond(20e9)}, {4, BytesPerSecond(80e9)}};
  CHECK(relative_error(gather(2), 20e-6 + 1.5e-6 + 0.5 * 1e9 / 20e9) <= 1e-12);
  CHECK(relative_error(gather(4), 20e-6 + 3 * 1.5e-6 + 0.75 * 1e9 / 80e9) <= 1e-12);
  CHECK(gather(8) == eight);
  CHECK(gather(64) == sixty_four);
  CHECK(relative_error(transfer_time(Bytes(1e9), 0, 1, cluster).value,
                       20e-6 + 1.5e-6 + 1e9 / 20e9) <= 1e-12);
}

TEST_CASE("the terms of a price add up to it, for every primitive, size and group") {
  const ClusterSpec cluster = fixtures::cluster(1024);
  for (const auto kind : {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, scatter,
                          gather, reduce, send}) {
    for (const std::int64_t stride : {1, 4, 8, 16}) {
      for (const int n : {2, 3, 8, 64}) {
        const GroupLayout group = layout_of(n, stride, cluster);
        for (const auto algorithm : {Algorithm::ring, Algorithm::tree}) {
          const auto terms = collective_terms(kind, Bytes(1e8), group, cluster, algorithm);
          double latency = 0, transfer = 0;
          for (const TierTerm& term : terms.tiers) {
            latency += term.hops * cluster.tiers[term.tier].latency.value;
            transfer = std::max(transfer, (term.carried / term.rate).value);
          }
          const double time = collective_time(kind, Bytes(1e8), group, cluster, algorithm).value;
          CHECK(relative_error(terms.fixed.value + latency + transfer, time) <= 1e-12);
          CHECK(relative_error(terms.time.value, time) <= 1e-12);
        }
      }
    }
  }
}

TEST_CASE("bus bandwidth is nccl-tests': what the links would show if they were the limit") {
  for (const int n : {2, 8, 100}) {
    const double others = static_cast<double>(n - 1) / n;
    CHECK(bus_bandwidth_factor(all_reduce, n) == 2 * others);
    for (const auto kind : {all_gather, reduce_scatter, all_to_all, scatter, gather})
      CHECK(bus_bandwidth_factor(kind, n) == others);
    for (const auto kind : {broadcast, reduce, send}) CHECK(bus_bandwidth_factor(kind, n) == 1);
  }
  // Within a node of equal links a large message shows the link's rate, whatever the primitive.
  const ClusterSpec cluster = fixtures::cluster(64);  // 300 GB/s at 0.8
  const GroupLayout node = layout_of(8, 1, cluster);
  for (const auto kind : kinds) {
    const double time = collective_time(kind, Bytes(1e13), node, cluster).value;
    CHECK(relative_error(1e13 / time * bus_bandwidth_factor(kind, 8), 240e9) <= 1e-4);
  }
}

TEST_CASE("broadcast and reduce go around the ring once, in pieces sent on from rank to rank") {
  ClusterSpec cluster = fixtures::cluster(64);
  const double message = 1e9, piece = 512 * 1024;
  const double inside = piece / (300e9 * 0.8), between = piece / (25e9 * 0.9);
  for (const auto kind : {broadcast, reduce}) {
    cluster.tiers[1].single = BytesPerSecond(25e9);
    const auto off = [&](int ranks, double by_hand) {
      const GroupLayout group = layout_of(ranks, 1, cluster);
      return relative_error(collective_time(kind, Bytes(message), group, cluster).value, by_hand);
    };
    CHECK(off(2, 20e-6 + 1.5e-6 + message / (300e9 * 0.8)) <= 1e-12);
    CHECK(off(8, 20e-6 + 7 * 1.5e-6 + 6 * inside + message / (300e9 * 0.8)) <= 1e-12);
    const double hops = 40e-6 + 56 * 1.5e-6 + 7 * 5e-6, sent = message / (8 * 25e9 * 0.9);
    CHECK(off(64, hops + 56 * inside + 6 * between + sent) <= 1e-12);
    // Four links of twice the bandwidth in place of eight: half as many pieces on the way.
    cluster.tiers[1].single = BytesPerSecond(50e9);
    CHECK(off(64, hops + 56 * inside + 6 * between / 2 + sent) <= 1e-12);
  }
}

TEST_CASE("a hierarchical all-reduce, by hand") {
  const ClusterSpec cluster = fixtures::cluster(64);  // 8 nodes of 8
  const auto time = [&](double bytes, Algorithm algorithm) {
    return collective_time(all_reduce, Bytes(bytes), layout_of(64, 1, cluster), cluster, algorithm)
        .value;
  };
  const double inside = 20e-6 + 7 * 1.5e-6 + 7.0 / 8 * 1e9 / 240e9;
  const double between = 40e-6 + 2 * 7 * 5e-6 + 2 * 7.0 / 8 * 1e9 / 8 / (25e9 * 0.9);
  CHECK(relative_error(time(1e9, Algorithm::hierarchical), 2 * inside + between) <= 1e-12);
  // It sends less between nodes than the ring, waits for the nodes' links besides, and hops less.
  CHECK(time(1e9, Algorithm::hierarchical) > time(1e9, Algorithm::ring));
  CHECK(time(1e4, Algorithm::hierarchical) < time(1e4, Algorithm::ring));
  // In one node there is nothing between.
  CHECK(collective_time(all_reduce, Bytes(1e9), layout_of(8, 1, cluster), cluster,
                        Algorithm::hierarchical)
            .value == doctest::Approx(2 * inside));
}

}  // namespace collective_test
