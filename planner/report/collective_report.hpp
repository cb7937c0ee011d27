// The report of `collective`: the price of a primitive, and how it comes about.
#pragma once

#include <string>
#include <vector>

#include "costmodel/cost/collective.hpp"
#include "planner/report/plan_report.hpp"
#include "planner/report/table.hpp"

namespace planner {

// The primitives that have a price of their own, in the order of reports.
inline constexpr std::array primitives{costmodel::CollectiveKind::broadcast,
                                       costmodel::CollectiveKind::scatter,
                                       costmodel::CollectiveKind::gather,
                                       costmodel::CollectiveKind::reduce,
                                       costmodel::CollectiveKind::all_reduce,
                                       costmodel::CollectiveKind::all_gather,
                                       costmodel::CollectiveKind::reduce_scatter,
                                       costmodel::CollectiveKind::all_to_all,
                                       costmodel::CollectiveKind::send};

// A group of ranks on a cluster.
struct CollectiveGroup {
  const costmodel::ClusterSpec& cluster;
  costmodel::GroupLayout layout;
};

struct CollectivePrice {
  costmodel::CollectiveKind kind = costmodel::CollectiveKind::none;
  costmodel::Bytes message, sent;  // as nccl-tests counts the size; what a device sends at most
  std::string algorithm;           // "ring"
  bool measured = false;           // from the tier's table: `terms` are then of the formula
  costmodel::Seconds time;
  costmodel::BytesPerSecond algorithm_bandwidth, bus_bandwidth;
  double bus_factor = 1;
  costmodel::CollectiveTerms terms;
};
CollectivePrice priced(costmodel::CollectiveKind kind, costmodel::Bytes message,
                       const CollectiveGroup& group);

// Another way to sum what every rank holds, with its price.
struct SumWay {
  std::string name;
  costmodel::Seconds time;
  std::string from;
};
// Ring, trees, two levels, by a root, by parameter servers; in this order.
std::vector<SumWay> ways_to_sum(costmodel::Bytes message, const CollectiveGroup& group);

// The price of one size, with its formula; of an all-reduce, the other ways too.
std::string collective_report(const CollectivePrice& price, const CollectiveGroup& group,
                              const ReportStyle& style);

// One row a size, or a primitive: size, time, bandwidths, algorithm.
Table collective_table(const std::vector<CollectivePrice>& prices);
std::string collective_heading(const CollectiveGroup& group);

// The same for programs: base units.
Table collective_rows(const std::vector<CollectivePrice>& prices);

}  // namespace planner
