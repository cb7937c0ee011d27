#include "planner/report/collective_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

const char* algorithm_of(CollectiveKind kind, Algorithm algorithm) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return algorithm == Algorithm::tree ? "double binary tree" : "ring";
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return "ring, once around in pieces";
    case CollectiveKind::scatter:
    case CollectiveKind::gather: return "root's links, binomial tree";
    case CollectiveKind::all_to_all: return "pairwise exchange";
    case CollectiveKind::send: return "point to point";
    default: return "ring";
  }
}

std::string name_of(CollectiveKind kind) {
  return std::string(collective_names[static_cast<std::size_t>(kind)]);
}

std::string two_digits(double v) { return fmt::format("{:.3g}", v); }

std::string bandwidth_text(BytesPerSecond r) { return fmt::format("{:.2f}", r.value / 1e9); }

Table tier_table(const CollectivePrice& price, const CollectiveGroup& group) {
  Table t{{left("tier"), "units joined", "carries", "links' rate", "transfer", "hops", "latency"}};
  for (const TierTerm& term : price.terms.tiers) {
    const auto& tier = group.cluster.tiers[term.tier];
    t.rows.push_back({tier.name, fmt::format("{}", group.layout.fan[term.tier]),
                      format_bytes(term.carried), format_bandwidth(term.rate),
                      format_seconds(term.carried / term.rate), two_digits(term.hops),
                      format_seconds(term.hops * tier.latency)});
  }
  return t;
}

// "24 us + 112 x 1 us + 14 x 5 us + 1.969 GiB / 340.6 GB/s = 6.46 ms"
std::string formula(const CollectivePrice& price, const CollectiveGroup& group) {
  std::string text = "fixed " + format_seconds(price.terms.fixed);
  const TierTerm* slowest = nullptr;
  for (const TierTerm& term : price.terms.tiers) {
    text += fmt::format(" + {} hops x {}", two_digits(term.hops),
                        format_seconds(group.cluster.tiers[term.tier].latency));
    if (slowest == nullptr || term.carried / term.rate > slowest->carried / slowest->rate)
      slowest = &term;
  }
  if (slowest != nullptr) {
    text += fmt::format(" + {} / {} ({}, the slowest)", format_bytes(slowest->carried),
                        format_bandwidth(slowest->rate), group.cluster.tiers[slowest->tier].name);
  }
  return fmt::format("{} = {}", text, format_seconds(price.terms.time));
}

// What a primitive sends, as a formula of n and S.
const char* sent_formula(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "2 S (n - 1) / n";
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send: return "S";
    default: return "S (n - 1) / n";
  }
}

const char* factor_formula(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce: return "2 (n - 1) / n";
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send: return "1";
    default: return "(n - 1) / n";
  }
}

// What S is: nccl-tests' size.
const char* size_text(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return "what a rank holds afterwards";
    case CollectiveKind::scatter: return "what the root holds before";
    case CollectiveKind::gather: return "what the root holds afterwards";
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all: return "what a rank holds before";
    default: return "the message of a rank";
  }
}

Table value_table(const CollectivePrice& p, const CollectiveGroup& group) {
  Table t{{left("symbol"), "value", left("from")}};
  t.rows.push_back({"S", format_bytes(p.message), size_text(p.kind)});
  t.rows.push_back({"n", fmt::format("{}", group.layout.size), "ranks"});
  t.rows.push_back(
      {"sent", format_bytes(p.sent), fmt::format("by a device at most: {}", sent_formula(p.kind))});
  t.rows.push_back({"time", format_seconds(p.time),
                    p.measured ? std::string("measured on this tier; the formula below is not used")
                               : formula(p, group)});
  t.rows.push_back({"algbw", bandwidth_text(p.algorithm_bandwidth) + " GB/s", "S / time"});
  t.rows.push_back(
      {"busbw", bandwidth_text(p.bus_bandwidth) + " GB/s",
       fmt::format("algbw x {} (nccl-tests, doc/PERFORMANCE.md)", factor_formula(p.kind))});
  return t;
}

Table ways_table(const std::vector<SumWay>& ways) {
  Table t{{left("way"), "time", "against the best", left("how")}};
  const Seconds best =
      std::ranges::min(ways, {}, [](const SumWay& w) { return w.time.value; }).time;
  for (const SumWay& way : ways) {
    t.rows.push_back(
        {way.name, format_seconds(way.time), fmt::format("{:.2f}x", way.time / best), way.from});
  }
  return t;
}

}  // namespace

CollectivePrice priced(CollectiveKind kind, Bytes message, const CollectiveGroup& group) {
  CollectivePrice p;
  p.kind = kind;
  p.message = message;
  const auto& [cluster, layout] = group;
  p.sent = collective_bytes(kind, message, layout.size);
  p.time = collective_time(kind, message, layout, cluster);
  const Algorithm chosen =
      kind == CollectiveKind::all_reduce &&
              collective_time(kind, message, layout, cluster, Algorithm::tree) <
                  collective_time(kind, message, layout, cluster, Algorithm::ring)
          ? Algorithm::tree
          : Algorithm::ring;
  p.algorithm = algorithm_of(kind, chosen);
  p.terms = collective_terms(kind, message, layout, cluster, chosen);
  p.measured = p.time != p.terms.time;
  p.bus_factor = bus_bandwidth_factor(kind, layout.size);
  if (p.time.value > 0) {
    p.algorithm_bandwidth = BytesPerSecond(message.value / p.time.value);
    p.bus_bandwidth = p.algorithm_bandwidth * p.bus_factor;
  }
  return p;
}

std::vector<SumWay> ways_to_sum(Bytes message, const CollectiveGroup& group) {
  using enum CollectiveKind;
  const ClusterSpec& cluster = group.cluster;
  const GroupLayout& layout = group.layout;
  const auto by = [&](Algorithm algorithm) {
    return collective_time(all_reduce, message, layout, cluster, algorithm);
  };
  const auto time = [&](CollectiveKind kind, Bytes bytes) {
    return collective_time(kind, bytes, layout, cluster);
  };
  std::vector<SumWay> ways{
      {"ring", by(Algorithm::ring), "2 S (n - 1) / n over every link"},
      {"double binary tree", by(Algorithm::tree), "up and down, log2 of the nodes deep"}};
  if (layout.fan[static_cast<std::size_t>(layout.outermost())] != layout.size) {
    ways.push_back({"hierarchical", by(Algorithm::hierarchical),
                    "reduce-scatter inside, all-reduce of the shares between, all-gather inside"});
  }
  ways.push_back({"reduce and broadcast", time(reduce, message) + time(broadcast, message),
                  "by one rank, in pieces along the ring"});
  ways.push_back({"sharded parameter server", 2 * time(all_to_all, message),
                  "every rank serves 1/n: push and pull S (n - 1) / n each (Li et al. 2014)"});
  ways.push_back({"parameter server", 2 * time(all_to_all, message * layout.size),
                  "one rank serves all: its links take S (n - 1) in and out"});
  return ways;
}

std::string collective_heading(const CollectiveGroup& group) {
  const auto& layout = group.layout;
  std::string tiers;
  for (std::size_t i = 0; i < layout.tiers; ++i) {
    if (layout.fan[i] > 1) {
      tiers += fmt::format("{}{} {}", tiers.empty() ? "" : " x ", layout.fan[i],
                           group.cluster.tiers[i].name);
    }
  }
  return fmt::format("{} ranks, {} apart, on {}: {}", format_integer(layout.size),
                     format_integer(layout.stride), group.cluster.title, tiers);
}

std::string collective_report(const CollectivePrice& price, const CollectiveGroup& group,
                              const ReportStyle& style) {
  const std::string what =
      fmt::format("{} of {}, {}", name_of(price.kind), format_bytes(price.message),
                  price.measured ? std::string("measured") : price.algorithm);
  std::string text;
  for (const std::string& line : {what, collective_heading(group)}) {
    text += style.markup == Markup::markdown ? bullet(line, style)
                                             : fmt::format("{}\n", escaped(line, style));
  }
  text += "\n" + section_table(value_table(price, group), style);
  if (!price.terms.tiers.empty()) text += table_section("Tiers", tier_table(price, group), style);
  if (price.kind == CollectiveKind::all_reduce) {
    text += table_section("The same sum in other ways",
                          ways_table(ways_to_sum(price.message, group)), style);
  }
  return text;
}

Table collective_table(const std::vector<CollectivePrice>& prices) {
  Table t{{left("primitive"), "size (B)", "size", "time", "algbw (GB/s)", "busbw (GB/s)", "sent",
           left("algorithm")}};
  for (const CollectivePrice& p : prices) {
    t.rows.push_back({name_of(p.kind), fmt::format("{:.0f}", p.message.value),
                      format_bytes(p.message), format_seconds(p.time),
                      bandwidth_text(p.algorithm_bandwidth), bandwidth_text(p.bus_bandwidth),
                      format_bytes(p.sent), p.measured ? "measured" : p.algorithm});
  }
  return t;
}

Table collective_rows(const std::vector<CollectivePrice>& prices) {
  Table t{{left("primitive"), "bytes", "time_s", "algbw_bytes_per_s", "busbw_bytes_per_s",
           "sent_bytes", left("algorithm"), left("measured")}};
  for (const CollectivePrice& p : prices) {
    t.rows.push_back(
        {name_of(p.kind), fmt::format("{:.17g}", p.message.value),
         fmt::format("{:.9g}", p.time.value), fmt::format("{:.9g}", p.algorithm_bandwidth.value),
         fmt::format("{:.9g}", p.bus_bandwidth.value), fmt::format("{:.17g}", p.sent.value),
         p.algorithm, p.measured ? "yes" : "no"});
  }
  return t;
}

}  // namespace planner
