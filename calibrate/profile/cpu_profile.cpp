#include "calibrate/profile/cpu_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "calibrate/fit/fit_network.hpp"
#include "calibrate/profile/measured_tables.hpp"
#include "calibrate/profile/profile_parts.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/machine/collective_table_reader.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

Value machine_value(const Machine& machine, const std::string& command) {
  Value map;
  for (const auto& [key, value] : machine.listed()) map.set(key, quoted(value));
  map.set("command", quoted(command));
  return map;
}

std::string measured_by(const Machine& machine) {
  return fmt::format("measured by shardplan calibrate, {}, {}", machine.date, machine.processor);
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<double> medians_of(const std::vector<Record>& records, std::string_view op) {
  std::vector<double> all;
  for (const Record& r : records)
    if (r.op == op) all.push_back(r.time.median.value);
  return all;
}

// The slowdown of ranks that compute concurrently, one rank alone included, against one rank at the
// tables' pace, which the machine seldom keeps; and the pace during the measurement.
Value together_value(const std::vector<Record>& records, const std::string& by) {
  struct Seen {
    std::vector<double> passes, sticks;
  };
  std::map<double, Seen> seen;  // by ranks
  for (const Record& r : records) {
    if (r.op == "together") seen[r.amount].passes.push_back(r.time.median.value);
    if (r.op == "yardstick together") seen[r.amount].sticks.push_back(r.time.median.value);
  }
  const auto alone = medians_of(records, "alone"), stick = medians_of(records, "yardstick");
  Value list;
  list.kind = Value::Kind::sequence;
  if (alone.empty() || stick.empty()) return list;
  for (const auto& [ranks, times] : seen) {
    list.items.push_back(
        group({{"devices", figure(ranks)},
               {"slowdown", figure(median_of(times.passes) / median_of(alone))},
               {"pace", figure(median_of(times.sticks) / stick.front())}},
              by + ": a model of two layers on each, against one at the pace of `operators`"));
  }
  return list;
}

}  // namespace

Value device_profile(const std::vector<Record>& records, const Machine& machine,
                     const std::string& command) {
  using costmodel::Pass;
  const std::string by = measured_by(machine);
  const double peak = std::max(1.0, best_rate(records, "linear", Pass::forward));
  const double bytes_per_s = std::max(1.0, bandwidth(records)), call = call_time(records);
  Value map;
  map.set("title", quoted(fmt::format("{}, one core", machine.processor)));
  map.set("peak_flops_per_s",
          group({{"fp32", figure(peak)}}, by + ": the fastest product (" + machine.products + ")"));
  map.set("vector_flops_per_s",
          group({{"value", figure(peak / 2)}}, "assumed: half the product's rate"));
  map.set("multiprocessors", group({{"value", scalar_value("1")}}, "one core is one device"));
  map.set("memory", group({{"bytes", figure(std::floor(machine.memory_bytes / machine.cores))},
                           {"bandwidth_bytes_per_s", figure(bytes_per_s)}},
                          by + ": a core's share of the memory; the largest triad"));
  set_formulas(map, records, peak, bytes_per_s, by);
  map.set("launch", group({{"kernel_s", figure(call)}}, by + ": a product of one by one"));
  map.set("operators", group({{"tables", to_value(tables_of(records))}},
                             by + ": medians at one pace, by the runtime's own device"));
  const Value together = together_value(records, by);
  if (!together.items.empty()) {
    map.set("together", together);
    map.set("pace", group({{"yardstick_s", figure(medians_of(records, "yardstick").front())}},
                          by + ": a product of 64 x 64 x 64 at the pace of `operators`"));
  }
  map.set("machine", machine_value(machine, command));
  return map;
}

namespace {

std::vector<Measurement> collectives_of(const std::vector<Record>& records) {
  std::vector<Measurement> all;
  const auto& names = collective_names;
  for (const Record& r : records) {
    const auto kind = std::ranges::find(names, r.op);
    if (kind == names.end()) continue;
    Measurement m;
    m.id = m.title = r.task;
    m.what = CollectiveRun{static_cast<CollectiveKind>(kind - names.begin()), Bytes(r.amount),
                           static_cast<int>(r.point[1]), 1};
    m.time = r.time.least;
    all.push_back(m);
  }
  return all;
}

double best_bus_rate(const std::vector<Measurement>& measurements) {
  double best = 1e6;
  for (const Measurement& m : measurements) {
    const auto& run = std::get<CollectiveRun>(m.what);
    const auto sent = collective_bytes(run.kind, run.message, run.ranks);
    best = std::max(best, sent.value / m.time.value);
  }
  return best;
}

}  // namespace

Value cluster_profile(const std::vector<Record>& records, const Machine& machine,
                      const Ranks& ranks, const std::string& command, const std::string& device) {
  const auto measurements = collectives_of(records);
  ClusterSpec base;
  Tier tier;
  tier.name = ranks.are;
  base.devices = base.devices_per_node = tier.devices = std::max(2, ranks.count);
  tier.bandwidth = BytesPerSecond(best_bus_rate(measurements));
  tier.latency = Seconds(5e-6);
  tier.fixed = Seconds(1e-6);
  tier.efficiency = 0.8;
  base.tiers = base.known_tiers = {tier};
  std::vector<Unused> unused;
  const auto groups = fit_network(base, measurements, unused);
  const Value count = scalar_value(std::to_string(ranks.count));
  Entries entries{{"name", scalar_value(ranks.are)},
                  {"devices", count},
                  {"bandwidth_bytes_per_s", figure(tier.bandwidth.value)}};
  for (const char* key : {"latency_s", "fixed_s"}) entries.emplace_back(key, scalar_value("0"));
  std::string errors = "no collective was measured: one rank";
  for (const auto& fitted : groups) {
    for (const auto& constant : fitted.constants) {
      const std::string key = constant.name.substr(constant.name.rfind('.') + 1);
      std::erase_if(entries, [&](const auto& entry) { return entry.first == key; });
      entries.emplace_back(key, figure(constant.after));
    }
    errors = fmt::format(
        "{} collectives of {}, in `measured`; where that has none, fitted: median error "
        "{:.1f} %, 90th percentile {:.1f} %",
        fitted.points, ranks.are, fitted.after.median, fitted.after.p90);
  }
  Value tiers;
  tiers.kind = Value::Kind::sequence;
  tiers.items = {group(entries, measured_by(machine) + ": " + errors)};
  if (!measurements.empty())
    tiers.items.front().set("measured", to_value(collective_tables_of(records)));
  Value map;
  map.set("title", quoted(fmt::format("{}, a process a core", machine.processor)));
  map.set("device", quoted(device));
  map.set("devices", count);
  map.set("devices_per_node", count);
  map.set("tiers", tiers);
  map.set("machine", machine_value(machine, command));
  return map;
}

}  // namespace calibrate
