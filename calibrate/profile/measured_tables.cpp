#include "calibrate/profile/measured_tables.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "costmodel/cost/measured_time.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

using Point = std::vector<double>;
using Rates = std::map<Point, std::vector<double>>;  // measured at each point

constexpr double one_point = 1.125;  // ratio of sizes

// Merges neighbouring points: the geometric mean of their sizes, the median of their rates.
void fill_curve(const Rates& rates, RateTable& table) {
  table.axes = {{}};
  for (auto at = rates.begin(); at != rates.end();) {
    const double first = at->first.front();
    double logarithms = 0, count = 0;
    std::vector<double> here;
    for (; at != rates.end() && at->first.front() < first * one_point; ++at, ++count) {
      logarithms += std::log(at->first.front());
      here.push_back(median_rate(at->second));
    }
    table.axes.front().push_back(std::exp(logarithms / count));
    table.rates.push_back(median_rate(here));
  }
}

std::vector<double> coordinates(const Rates& rates, std::size_t axis) {
  std::set<double> all;
  for (const auto& [point, values] : rates) all.insert(point[axis]);
  return {all.begin(), all.end()};
}

// Points in the order of the axes, the first slowest.
void add_points(const RateTable& table, Point& point, std::vector<Point>& all) {
  if (point.size() == table.axes.size()) {
    all.push_back(point);
    return;
  }
  for (const double x : table.axes[point.size()]) {
    point.push_back(x);
    add_points(table, point, all);
    point.pop_back();
  }
}

bool lacks(const Rates& rates, const Point& point) { return rates.find(point) == rates.end(); }

void fill_grid(const Rates& rates, RateTable& table) {
  for (std::size_t i = 0; i < rates.begin()->first.size(); ++i)
    table.axes.push_back(coordinates(rates, i));
  std::vector<Point> points;
  Point empty;
  add_points(table, empty, points);
  for (const Point& point : points)
    if (lacks(rates, point)) std::erase(table.axes.front(), point.front());
  std::erase_if(points, [&](const Point& point) {
    const auto& kept = table.axes.front();
    return std::ranges::find(kept, point.front()) == kept.end();
  });
  for (const Point& point : points) table.rates.push_back(median_rate(rates.at(point)));
}

// The size of a point: the base-2 logarithm of the product of its coordinates.
double octaves(const Point& point) {
  double sum = 0;
  for (const double x : point) sum += std::log2(x);
  return sum;
}

// The rate in a layer over the rate in isolation.
struct InALayer {
  double size, ratio;
};

// The median of the ratios, weighted towards similar sizes: small operators find their inputs in
// the caches, large ones do not.
double ratio_near(double size, const std::vector<InALayer>& in_order_of_ratio) {
  constexpr double bandwidth = 3;  // octaves
  std::vector<double> weights;
  for (const InALayer& seen : in_order_of_ratio) {
    const double off = (seen.size - size) / bandwidth;
    weights.push_back(std::exp(-off * off / 2));
  }
  const double half = std::accumulate(weights.begin(), weights.end(), 0.0) / 2;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= half) return in_order_of_ratio[i].ratio;
  }
  return in_order_of_ratio.back().ratio;
}

void bring_into_a_layer(const std::vector<Record>& records, RateTable& table) {
  const std::string name = in_a_layer(name_of(table.op));
  std::vector<InALayer> all;
  for (const Record& r : records) {
    if (r.op != name || r.pass != table.pass) continue;
    const double rate = r.amount / r.time.median.value;
    all.push_back({octaves(r.point), rate / rate_at(table, r.point)});
  }
  if (all.empty()) return;
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  std::vector<Point> points;
  Point empty;
  add_points(table, empty, points);
  for (std::size_t i = 0; i < points.size(); ++i)
    table.rates[i] *= ratio_near(octaves(points[i]), all);
}

}  // namespace

double median_rate(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : std::sqrt(values[n / 2 - 1] * values[n / 2]);
}

std::string in_a_layer(std::string_view op) { return std::string(op) + " in a layer"; }

std::string in_precision(std::string_view op, Precision precision) {
  return std::string(op) + " in " + std::string(to_string(precision));
}

std::vector<Record> records_in(const std::vector<Record>& records, Precision precision) {
  std::vector<Record> chosen;
  for (const std::string_view name : measured_names()) {
    for (const Record& r : records) {
      if (r.op != in_precision(name, precision)) continue;
      chosen.push_back(r);
      chosen.back().op = name;
    }
  }
  return chosen;
}

std::vector<RateTable> tables_of(const std::vector<Record>& records, Precision precision) {
  std::map<std::pair<std::string, Pass>, Rates> measured;
  const auto names = measured_names();
  for (const Record& r : records) {
    if (std::ranges::count(names, r.op) == 0) continue;
    measured[{r.op, r.pass}][r.point].push_back(r.amount / r.time.median.value);
  }
  std::vector<RateTable> tables;
  for (const auto& [key, rates] : measured) {
    RateTable table;
    table.op = static_cast<MeasuredOp>(std::ranges::find(names, key.first) - names.begin());
    table.pass = key.second;
    // The optimizer's parameters are fp32 in every precision.
    table.precision = table.op == MeasuredOp::optimizer ? Precision::fp32 : precision;
    const bool curve = keys_of(table.op).axes.size() == 1;
    (curve ? fill_curve : fill_grid)(rates, table);
    if (table.rates.empty()) continue;
    if (!curve) bring_into_a_layer(records, table);
    tables.push_back(std::move(table));
  }
  return tables;
}

std::vector<CollectiveTable> collective_tables_of(const std::vector<Record>& records) {
  std::map<std::pair<std::size_t, int>, Rates> measured;
  const auto& names = collective_names;
  for (const Record& r : records) {
    const auto kind = std::ranges::find(names, r.op);
    if (kind == names.end()) continue;
    const std::pair key(static_cast<std::size_t>(kind - names.begin()),
                        static_cast<int>(r.point.at(1)));
    measured[key][{r.point.front()}].push_back(r.amount / r.time.median.value);
  }
  std::vector<CollectiveTable> tables;
  for (const auto& [key, rates] : measured) {
    CollectiveTable table{static_cast<CollectiveKind>(key.first), key.second, {}};
    fill_curve(rates, table.curve);
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace calibrate
