#include "planner/traces/trace_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "planner/traces/operator_sizes.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Of an operator's inputs; bf16 where none is recorded, nothing for formats that rows have not.
std::optional<std::string> dtype_of(std::string_view type) {
  if (type.empty() || type == "c10::BFloat16") return "bf16";
  if (type == "c10::Half") return "fp16";
  if (type == "float") return "fp32";
  return std::nullopt;
}

// A row but for its time: kind, op and shape as JSON.
std::optional<std::string> product_row(std::string_view op, const OperatorSizes& sizes,
                                       const std::string& dtype) {
  const bool plain = op == "aten::mm" && sizes.size() >= 2;
  const bool added = op == "aten::addmm" && sizes.size() >= 3;
  if (!plain && !added) return std::nullopt;
  const auto &a = sizes[plain ? 0 : 1], &b = sizes[plain ? 1 : 2];
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  return fmt::format(
      R"("kind": "gemm", "op": "matmul", "shape": {{"b": 1, "m": {0}, "n": {1}, "k": {2}, "in_dtype": "{3}", "out_dtype": "{3}"}})",
      a[0], b[1], a[1], dtype);
}

// Queries of PyTorch's kernels: sequences, tokens, heads, columns of a head.
std::optional<std::string> attention_row(std::string_view op, const OperatorSizes& sizes,
                                         bool backward, const std::string& dtype) {
  const std::size_t queries = backward ? 1 : 0;
  if (op.find("flash_attention") == std::string_view::npos || sizes.size() < queries + 2)
    return std::nullopt;
  const auto &q = sizes[queries], &k = sizes[queries + 1];
  if (q.size() != 4 || k.size() != 4) return std::nullopt;
  return fmt::format(
      R"("kind": "attention", "op": "FlashAttention-2 {}", "shape": {{"batch": {}, "seqlen_q": {}, "seqlen_kv": {}, "heads_q": {}, "heads_kv": {}, "head_dim": {}, "causal": true, "dtype": "{}"}})",
      backward ? "bwd" : "fwd", q[0], q[1], k[1], q[2], k[2], q[3], dtype);
}

std::optional<std::string> copy_row(const TracedKernel& kernel, std::string_view name) {
  constexpr double least = 1e6;  // bytes: below, the start of a kernel is what takes time
  if (name.find("DtoD") == std::string_view::npos || kernel.bytes < least) return std::nullopt;
  return fmt::format(R"("kind": "copy", "op": "device to device", "shape": {{"bytes": {:.0f}}})",
                     kernel.bytes);
}

}  // namespace

std::string trace_rows(const Trace& trace, bool json) {
  std::map<std::string, std::vector<Nanoseconds>> times;
  // Kernels of one call of an operator add up: attention's backward has three.
  std::map<std::uint32_t, std::pair<std::string, Nanoseconds>> calls;
  for (const TracedKernel& kernel : trace.kernels) {
    const std::string& name = trace.text(kernel.name);
    if (const auto copy = copy_row(kernel, name)) times[*copy].push_back(kernel.length);
    if (kernel.launcher == no_operator) continue;
    const std::uint32_t number = operator_of(trace, kernel.launcher);
    const TracedOperator& launcher = trace.operators[number];
    const auto dtype = dtype_of(trace.type_of(launcher));
    if (!dtype) continue;
    const std::string& op = trace.text(launcher.name);
    const OperatorSizes sizes = sizes_of(trace.text(launcher.sizes));
    auto row = product_row(op, sizes, *dtype);
    if (!row) row = attention_row(op, sizes, op.find("backward") != std::string::npos, *dtype);
    if (!row) continue;
    auto& call = calls[number];
    call.first = *row;
    call.second += kernel.length;
  }
  for (const auto& [launcher, call] : calls) times[call.first].push_back(call.second);
  std::vector<std::string> entries;
  const std::string file = costmodel::file_name_of(trace.file);
  for (auto& [row, all] : times) {
    if (all.size() < 2) continue;
    std::ranges::sort(all);
    entries.push_back(fmt::format(
        R"({{"id": {}, "device": {}, {}, "measured": {{"time_us": {:.3f}}}, "source": {{"title": {}, "where": {}}}}})",
        json_string(fmt::format("{}-{}", costmodel::stem_of(trace.file), entries.size() + 1)),
        json_string(trace.device), row, 1e-3 * static_cast<double>(all[all.size() / 2]),
        json_string("kernels of a trace by " + trace.profiler),
        json_string(fmt::format("{}, median of {}", file, all.size()))));
  }
  if (entries.empty()) {
    throw costmodel::ConfigError({trace.file, 0, 0},
                                 "has no product, attention or copy by its sizes",
                                 "record with record_shapes=True, or Nsight with "
                                 "--pytorch=autograd-shapes-nvtx");
  }
  if (json) return fmt::format("[\n{}\n]\n", fmt::join(entries, ",\n"));
  return fmt::format("- {}\n", fmt::join(entries, "\n- "));
}

}  // namespace planner
