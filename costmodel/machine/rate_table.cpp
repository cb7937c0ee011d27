#include "costmodel/machine/rate_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

constexpr std::size_t most_axes = 3;

constexpr std::array<std::string_view, 21> names{"linear",
                                                 "bias",
                                                 "flash attention",
                                                 "attention scores",
                                                 "attention context",
                                                 "softmax",
                                                 "dropout",
                                                 "layernorm",
                                                 "rmsnorm",
                                                 "head norm",
                                                 "activation",
                                                 "gated activation",
                                                 "residual",
                                                 "residual with bias",
                                                 "residual with dropout",
                                                 "residual with both",
                                                 "rotary",
                                                 "embedding",
                                                 "position embedding",
                                                 "cross-entropy",
                                                 "optimizer"};

// Where a coordinate lies: between points `low` and `low + 1` of the axis, `share` of the way.
struct Between {
  std::size_t low = 0;
  double share = 0;
};

Between place_on(const std::vector<double>& axis, double x) {
  if (axis.size() == 1 || x <= axis.front()) return {};
  if (x >= axis.back()) return {axis.size() - 2, 1};
  const auto above = std::ranges::upper_bound(axis, x);
  const auto low = static_cast<std::size_t>(above - axis.begin()) - 1;
  return {low, std::log(x / axis[low]) / std::log(axis[low + 1] / axis[low])};
}

// Null when the list lacks it. Most tables have no list, and pay for none.
const MeasuredShape* found_in(const RateTable& table, std::span<const double> sizes) {
  if (table.shapes.empty()) return nullptr;
  const auto before = [](const auto& a, const auto& b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  const auto at = std::ranges::lower_bound(table.shapes, sizes, before, &MeasuredShape::sizes);
  return at != table.shapes.end() && std::ranges::equal(at->sizes, sizes) ? &*at : nullptr;
}

}  // namespace

std::span<const std::string_view> measured_names() { return names; }

double rate_at(const RateTable& table, std::span<const double> point) {
  const std::size_t n = table.axes.size();
  SHARDPLAN_CHECK(point.size() == n && n <= most_axes);
  std::array<Between, most_axes> at{};
  for (std::size_t i = 0; i < n; ++i) at[i] = place_on(table.axes[i], point[i]);
  double logarithm = 0;
  for (std::size_t corner = 0; corner < (std::size_t{1} << n); ++corner) {
    double weight = 1;
    std::size_t index = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool high = (corner >> i & 1U) != 0;
      weight *= high ? at[i].share : 1 - at[i].share;
      index = index * table.axes[i].size() + at[i].low + (high && at[i].share > 0 ? 1 : 0);
    }
    if (weight > 0) logarithm += weight * std::log(table.rates[index]);
  }
  return std::exp(logarithm);
}

std::optional<double> rate_of(const RateTable& table, std::span<const double> sizes) {
  if (const MeasuredShape* found = found_in(table, sizes)) return found->rate;
  if (table.rates.empty()) return std::nullopt;
  return rate_at(table, sizes.first(table.axes.size()));
}

bool has_shape(const RateTable& table, std::span<const double> sizes) {
  if (found_in(table, sizes) != nullptr) return true;
  bool on_grid = sizes.size() == table.axes.size();
  for (std::size_t i = 0; on_grid && i < sizes.size(); ++i)
    on_grid = std::ranges::binary_search(table.axes[i], sizes[i]);
  return on_grid;
}

std::string_view name_of(MeasuredOp op) { return names[static_cast<std::size_t>(op)]; }

TableKeys keys_of(MeasuredOp op) {
  switch (op) {
    case MeasuredOp::linear: return {{"m", "n", "k"}, "flops_per_s"};
    case MeasuredOp::flash_attention:
      return {{"sequence", "head_dim"}, "flops_per_s", {"heads", "kv_heads"}};
    case MeasuredOp::attention_scores:
    case MeasuredOp::attention_context: return {{"sequence", "head_dim"}, "flops_per_s", {"heads"}};
    case MeasuredOp::optimizer: return {{"bytes"}, "bytes_per_s"};
    default: return {{"bytes"}, "bytes_per_s", {"rows"}};
  }
}

}  // namespace costmodel
