#include "planner/accuracy/operator_timings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/kernel_time.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/plan/kernel_set_reader.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double bf16 = 2;                     // bytes of an element, as all were timed
constexpr std::string_view maker = "NVIDIA ";  // before a device's name, as PyTorch has it

using Cells = std::vector<std::string>;

// Cells between commas; a quoted one may have some.
Cells cells_of(std::string_view line) {
  Cells cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

struct Row {
  const std::map<std::string, std::size_t>* columns;
  Cells cells;
  std::string text(const std::string& column) const {
    const auto at = columns->find(column);
    return at == columns->end() || at->second >= cells.size() ? "" : cells[at->second];
  }
  std::int64_t operator[](const char* column) const {
    const double value = number(column);
    return value > 0 && value < 1e15 ? static_cast<std::int64_t>(value) : 0;
  }
  // What is neither a name nor a time nor computed of the others.
  std::string sizes() const {
    std::string all;
    for (const auto& [column, at] : *columns) {
      static constexpr std::array<std::string_view, 9> others{
          "op",           "operator", "device", "direction", "seconds",
          "microseconds", "flops",    "bytes",  "tensors"};
      if (at >= cells.size() || cells[at].empty() ||
          std::ranges::find(others, column) != others.end())
        continue;
      all += (all.empty() ? "" : " ") + column + " " + cells[at];
    }
    return all;
  }
  double number(const char* column) const {
    const std::string own = text(column);
    double value = 0;
    std::from_chars(own.data(), own.data() + own.size(), value);
    return value;
  }
};

// What was timed, as the cost model has it.
struct Timed {
  const DeviceSpec& device;
  const KernelSet &eager, &compiled, &halves;
  bool forward;

  using Price = std::optional<Seconds>;
  Price kernel(const KernelSet& set, KernelOp op, double elements, double source = 0) const {
    const auto found = kernel_time(set, op, forward, elements, source, bf16, device);
    return found ? Price(found->time) : std::nullopt;
  }
  Price of(const KernelSet& set, const Op& op) const {
    const auto found =
        kernels_of(op, forward ? Pass::forward : Pass::input_gradient, set, bf16, device);
    return found ? Price(found->time) : std::nullopt;
  }
  // A product or attention.
  Price pass(const Op& op, Pass which) const {
    return device_time(op, which, device, Precision::bf16);
  }
  // Without the casts of its operands.
  Price fp8_product(const Row& r) const {
    return product_time(1, r.number("m"), r.number("n"), r.number("k"), device, Precision::fp8);
  }
  // With sums that stay in the tensor cores: the geometric mean of nine pairs, on an H100 and an
  // H200 (configs/kernels/pytorch-operators.csv).
  Price fast_fp8_product(const Row& r) const { return *fp8_product(r) * 0.947; }
  Price of_routed(const Row& r) const {
    constexpr std::int64_t width = 1408;  // of every timing, and in no column
    return of(eager, Activation{r["tokens"] * r["top_k"], width, true, false});
  }
  // `each`: bytes of an element, where the table does not state them all.
  Price streamed(const Row& r, double each) const {
    const double all = r.number("bytes");
    return streaming_time(Bytes(all > 0 ? all : each * r.number("tokens") * r.number("hidden")), 1,
                          device);
  }
  Price passes(const Op& op) const {
    if (forward) return pass(op, Pass::forward);
    return *pass(op, Pass::input_gradient) + *pass(op, Pass::weight_gradient);
  }
};

double area(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

Linear product(const Row& r) { return {r["m"], r["n"], r["k"], false, false}; }

FlashAttention attention(const Row& r, bool cudnn) {
  FlashAttention op{r["batch"], r["tokens"], r["heads"], r["heads"], r["head_dim"], true};
  op.second_generation = true;
  op.as_measured = true;
  op.cudnn = cudnn;
  return op;
}

using Priced = std::optional<Seconds> (*)(const Timed&, const Row&);
struct Known {
  std::string_view name;
  Priced price;
};

Timed::Price sum(const Timed::Price& a, const Timed::Price& b) {
  return a && b ? Timed::Price(*a + *b) : std::nullopt;
}

// By full name.
constexpr std::array<Known, 30> priced_operators{{
    {"rms_norm",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Norm{r["tokens"], r["hidden"], Normalization::rmsnorm});
     }},
    {"layer_norm",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Norm{r["tokens"], r["hidden"], Normalization::layernorm});
     }},
    {"residual add",  // backward adds nothing where it is timed by itself
     [](const Timed& t, const Row& r) {
       return t.forward ? t.kernel(t.eager, KernelOp::residual, area(r["tokens"], r["hidden"]))
                        : Timed::Price();
     }},
    {"silu times",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Activation{r["tokens"], r["width"], true, false});
     }},
    {"gelu tanh",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Activation{r["tokens"], r["width"], false, false});
     }},
    {"rope complex",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Rotary{r["tokens"], r["hidden"]});
     }},
    {"rope halves,heads first",
     [](const Timed& t, const Row& r) {
       return t.of(t.halves, Rotary{r["tokens"], r["hidden"]});
     }},
    {"repeat kv 4",  // of keys or of values: half of what a layer does
     [](const Timed& t, const Row& r) {
       const auto both = t.kernel(t.eager, KernelOp::repeat_kv, 2 * area(r["tokens"], r["hidden"]));
       return both ? Timed::Price(*both / 2) : both;
     }},
    {"cross_entropy of float()",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, CrossEntropy{r["tokens"], r["vocab"], LossKernel::unfused});
     }},
    {"compiled cross_entropy of float()",
     [](const Timed& t, const Row& r) {
       return t.of(t.compiled, CrossEntropy{r["tokens"], r["vocab"], LossKernel::compiled});
     }},
    {"compiled silu times",
     [](const Timed& t, const Row& r) {
       return t.of(t.compiled, Activation{r["tokens"], r["width"], true, false});
     }},
    {"compiled add and rms_norm",
     [](const Timed& t, const Row& r) {
       const double all = area(r["tokens"], r["hidden"]);
       const auto norm = t.kernel(t.compiled, KernelOp::rmsnorm, all);
       // Backward alone there are no further gradients to add.
       return t.forward ? sum(t.kernel(t.compiled, KernelOp::residual, all), norm) : norm;
     }},
    {"embedding",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager, Embedding{r["tokens"], r["hidden"], r["vocab"]});
     }},
    {"gather rows",
     [](const Timed& t, const Row& r) {
       return t.of(t.eager,
                   Permute{r["tokens"], r["hidden"], std::max<std::int64_t>(1, r["top_k"])});
     }},
    {"dropout",
     [](const Timed& t, const Row& r) {
       return t.kernel(t.eager, KernelOp::dropout, area(r["tokens"], r["hidden"]));
     }},
    {"qk norm",
     [](const Timed& t, const Row& r) {
       const std::int64_t head = std::max<std::int64_t>(1, r["head_dim"]);
       return t.of(t.eager,
                   Norm{r["tokens"] * r["hidden"] / head, head, Normalization::rmsnorm, 2});
     }},
    {"adamw fused fp32 and clip_grad_norm foreach",
     [](const Timed& t, const Row& r) {
       return t.kernel(t.eager, KernelOp::optimizer, r.number("parameters"));
     }},
    {"product forward",
     [](const Timed& t, const Row& r) { return t.pass(product(r), Pass::forward); }},
    {"product input gradient",
     [](const Timed& t, const Row& r) { return t.pass(product(r), Pass::input_gradient); }},
    {"product weight gradient",
     [](const Timed& t, const Row& r) { return t.pass(product(r), Pass::weight_gradient); }},
    {"grouped product",
     [](const Timed& t, const Row& r) {
       return t.passes(GroupedLinear{r["rows"], r["n"], r["k"], r["experts"], false, Seconds(0),
                                     false, false, true});
     }},
    {"attention flash2",
     [](const Timed& t, const Row& r) {
       return t.pass(attention(r, false), t.forward ? Pass::forward : Pass::input_gradient);
     }},
    {"attention cudnn",
     [](const Timed& t, const Row& r) {
       return t.pass(attention(r, true), t.forward ? Pass::forward : Pass::input_gradient);
     }},
    {"fp8 product, scale a tensor", [](const Timed& t, const Row& r) { return t.fp8_product(r); }},
    {"fp8 product, scale a tensor, fast",
     [](const Timed& t, const Row& r) { return t.fast_fp8_product(r); }},
    {"fp8 product, scale a row",  // as they were timed
     [](const Timed& t, const Row& r) { return t.fast_fp8_product(r); }},
    {"silu times on routed rows", [](const Timed& t, const Row& r) { return t.of_routed(r); }},
    {"unfused silu times on routed rows",
     [](const Timed& t, const Row& r) { return t.of_routed(r); }},
    {"copy fp32", [](const Timed& t, const Row& r) { return t.streamed(r, 4 + 4); }},
    {"cast fp32 to bf16", [](const Timed& t, const Row& r) { return t.streamed(r, 4 + 2); }},
}};

// "fp8 product: scale a row" and "fp8 product, scale a row" are one name.
std::string plain_name(std::string name) {
  for (std::size_t at; (at = name.find(": ")) != std::string::npos;) name.replace(at, 1, ",");
  return name;
}

KernelSet kernels(const ConfigPath& path, const char* name) {
  const ResolvedConfig found = resolve_config(path, "kernels", scalar_value(name));
  return read_kernel_set(found.value, found.name);
}

DeviceSpec device_alone(const ConfigPath& path, const std::string& name) {
  const ResolvedConfig found = resolve_config(path, "devices", scalar_value(name));
  ClusterSpec cluster;
  cluster.device = read_device(found.value, found.name);
  cluster.devices = cluster.devices_per_node = 1;
  set_neighbours(cluster);
  // Operators alone are timed after a rest.
  cluster.device.attention2_sustained_forward = cluster.device.attention2_sustained_backward = 1;
  return cluster.device;
}

// Fused AdamW and clipping are one operator of the optimizer: the two timings of as many parameters
// and tensors are added.
void join_optimizer(std::vector<std::pair<std::string, Row>>& rows, std::vector<Seconds>& times) {
  constexpr std::string_view step = "adamw fused fp32", clip = "clip_grad_norm foreach";
  const auto sizes = [&](std::size_t i) {
    return std::pair(rows[i].second["parameters"], rows[i].second["tensors"]);
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Seconds> clipped;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].first == clip) clipped.emplace(sizes(i), times[i]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].first != step) continue;
    const auto found = clipped.find(sizes(i));
    if (found == clipped.end()) continue;
    rows[i].first = fmt::format("{} and {}", step, clip);
    times[i] += found->second;
  }
}

}  // namespace

std::vector<OperatorTiming> operator_timings(const std::string& file, const std::string& device,
                                             const ConfigPath& path) {
  const std::string text = read_file(file, measurement_limits);
  std::map<std::string, std::size_t> columns;
  std::vector<std::pair<std::string, Row>> rows;
  std::vector<Seconds> times;
  const DeviceSpec spec = device_alone(path, device);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == '#') continue;
    Cells cells = cells_of(line);
    if (columns.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) columns.emplace(cells[i], i);
      const bool fits = (columns.contains("op") || columns.contains("operator")) &&
                        (columns.contains("seconds") || columns.contains("microseconds"));
      if (!fits) {
        throw ConfigError({file, 1, 1}, "is no table of operators",
                          "its first line names the columns: operator (or op), direction, "
                          "microseconds (or seconds), and sizes");
      }
      continue;
    }
    Row row{&columns, std::move(cells)};
    std::string of = row.text("device");
    if (of.starts_with(maker)) of.erase(0, maker.size());
    if (spec.title.find(of.substr(0, of.find(' '))) == std::string::npos) continue;
    if (const std::string way = row.text("direction");
        !way.empty() && way != "forward" && way != "backward")
      continue;
    const double seconds = row.number("seconds") + row.number("microseconds") * 1e-6;
    if (!(seconds > 0) || !std::isfinite(seconds)) continue;
    const std::string name = row.text("operator").empty() ? row.text("op") : row.text("operator");
    rows.emplace_back(plain_name(name), std::move(row));
    times.emplace_back(seconds);
  }
  join_optimizer(rows, times);
  const KernelSet eager = kernels(path, "pytorch-eager"),
                  compiled = kernels(path, "pytorch-compiled"),
                  halves = kernels(path, "transformers-adapters");
  std::vector<OperatorTiming> timings;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, row] = rows[i];
    OperatorTiming& timing = timings.emplace_back(
        OperatorTiming{name, row.text("direction"), row.sizes(), times[i], Seconds(0)});
    const auto match = std::ranges::find(priced_operators, std::string_view(name), &Known::name);
    if (match == priced_operators.end()) continue;
    const Timed timed{spec, eager, compiled, halves, timing.direction != "backward"};
    if (const auto price = match->price(timed, row)) timing.priced = *price;
  }
  return timings;
}

std::vector<OperatorGroup> operator_groups(const std::vector<OperatorTiming>& timings) {
  std::vector<OperatorGroup> groups;
  for (const OperatorTiming& each : timings) {
    if (each.priced.value <= 0) continue;
    auto group = std::ranges::find_if(groups, [&](const OperatorGroup& g) {
      return g.name == each.name && g.direction == each.direction;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), OperatorGroup{each.name, each.direction});
    const double error = 100 * (each.priced / each.measured - 1);
    ++group->rows;
    group->mean += std::abs(error);
    group->bias += error;
    if (std::abs(error) > std::abs(group->largest)) group->largest = error;
  }
  for (OperatorGroup& group : groups) {
    group.mean /= group.rows;
    group.bias /= group.rows;
  }
  return groups;
}

Table operator_table(const std::vector<OperatorGroup>& groups) {
  Table t{{left("operator"), left("direction"), "timings", "mean error %", "bias %", "largest %"}};
  for (const OperatorGroup& group : groups) {
    t.rows.push_back({group.name, group.direction, fmt::format("{}", group.rows),
                      fmt::format("{:.1f}", group.mean), fmt::format("{:+.1f}", group.bias),
                      fmt::format("{:+.1f}", group.largest)});
  }
  return t;
}

Table operator_table(const std::vector<OperatorTiming>& timings) {
  Table t{
      {left("operator"), left("direction"), left("sizes"), "measured us", "priced us", "error %"}};
  for (const OperatorTiming& each : timings) {
    if (each.priced.value <= 0) continue;
    t.rows.push_back({each.name, each.direction, each.sizes,
                      fmt::format("{:.1f}", 1e6 * each.measured.value),
                      fmt::format("{:.1f}", 1e6 * each.priced.value),
                      fmt::format("{:+.1f}", 100 * (each.priced / each.measured - 1))});
  }
  return t;
}

}  // namespace planner
