#include "calibrate/fit/microbenchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/cost/collective.hpp"

namespace calibrate {

using costmodel::Bytes;
using costmodel::CollectiveKind;
using costmodel::ConfigError;
using costmodel::Dimension;
using costmodel::MapReader;
using costmodel::Precision;
using costmodel::Seconds;
using costmodel::Value;

namespace {

constexpr std::array<std::string_view, 4> kinds{"gemm", "attention", "collective", "copy"};

// Why an entry is not priced; caught where the entry is read.
struct NotPriced {
  std::string reason;
};

// The fields of an entry other than its shape.
struct Figures {
  std::string op;
  int nodes = 1;
  std::string algorithm;
  std::optional<double> time_us, tflops, bus_gb_s, copy_gb_s;  // as measured
  std::optional<double> derived_time_us;
};

void accept(MapReader& reader, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) reader.optional(key);
}

std::optional<double> positive(MapReader& reader, std::string_view key) {
  return reader.number(key, Dimension::count, 1e-9, 1e18);
}

double size(MapReader& shape, std::string_view key) {
  shape.required(key);
  return *shape.number(key, Dimension::count, 1, 1e15);
}

std::int64_t whole(MapReader& shape, std::string_view key) {
  shape.required(key);
  return *shape.integer(key, {1, 1'000'000'000});
}

Figures read_figures(MapReader& entry) {
  static const Value nothing;
  Figures f;
  entry.required("op");
  f.op = *entry.text("op");
  const Value* system = entry.optional("system");
  MapReader where(system == nullptr ? nothing : *system, "system");
  f.nodes = static_cast<int>(where.integer("nodes", {1, 1'000'000}).value_or(1));
  f.algorithm = where.text("algo").value_or("");
  accept(where, {"gpus", "interconnect", "note", "scale", "gpus_per_node"});
  where.finish();
  MapReader measured(entry.required("measured"), "measured");
  const auto in_place = positive(measured, "in_place_time_us");
  f.time_us = positive(measured, "time_us");
  if (!f.time_us) f.time_us = in_place;
  f.tflops = positive(measured, "tflops");
  f.bus_gb_s = positive(measured, "busbw_gb_s");
  f.copy_gb_s = positive(measured, "bandwidth_gb_s");
  accept(measured,
         {"efficiency", "algbw_gb_s", "in_place_busbw_gb_s", "in_place_algbw_gb_s", "samples",
          "time_us_min", "time_us_max", "wrong", "in_place_wrong", "memory_bw_gb_s",
          "bandwidth_gb_s_min", "bandwidth_gb_s_max", "entries", "local_us", "time_us_reverse"});
  measured.finish();
  if (const Value* derived = entry.optional("derived"); derived != nullptr) {
    MapReader reader(*derived, "derived");
    f.derived_time_us = positive(reader, "time_us");
    accept(reader, {"formula", "tflops", "tflops_causal_halved", "efficiency", "busbw_gb_s"});
    reader.finish();
  }
  return f;
}

Precision read_precision(const std::string& word) {
  // "fp8 (1x128 scaled), bf16 out" is fp8; "fp16/bf16" have one rate
  const std::string first = word.substr(0, word.find_first_of(" /"));
  const auto& names = costmodel::precision_names;
  const auto at = std::find(names.begin(), names.end(), first);
  if (at == names.end())
    throw NotPriced{fmt::format("{} is no precision of products", costmodel::quote(word))};
  return static_cast<Precision>(at - names.begin());
}

Seconds measured_time(const Figures& f, double flops) {
  if (f.time_us) return Seconds(*f.time_us * 1e-6);
  if (f.tflops && flops > 0) return Seconds(flops / (*f.tflops * 1e12));
  if (f.derived_time_us) return Seconds(*f.derived_time_us * 1e-6);
  throw NotPriced{"it holds no time and no rate"};
}

void read_product(MapReader& shape, const Figures& f, Measurement& m) {
  const Value* groups = shape.optional("groups");
  accept(shape, {"layout", "out_dtype", "stage", "m_total", "m_per_group"});
  const auto in = shape.text("in_dtype"), dtype = shape.text("dtype");
  const double n = size(shape, "n"), k = size(shape, "k");
  const double batch = shape.number("b", Dimension::count, 1, 1e9).value_or(1);
  if (groups != nullptr) {
    shape.optional("m");
    shape.finish();
    throw NotPriced{"products in groups are not priced"};
  }
  const Product product{batch, size(shape, "m"), n, k,
                        read_precision(in.value_or(dtype.value_or("bf16")))};
  m.what = product;
  m.time = measured_time(f, 2 * batch * product.m * n * k);
}

AttentionRun::Passes passes_of(const std::string& op) {
  const auto has = [&](const char* word) { return op.find(word) != std::string::npos; };
  if (has("fwd+bwd")) return AttentionRun::Passes::both;
  if (has("bwd") || has("backward")) return AttentionRun::Passes::backward;
  if (has("fwd") || has("forward")) return AttentionRun::Passes::forward;
  throw NotPriced{"its op names neither fwd nor bwd"};
}

// Products of one pass against forward's two: backward computes five (Dao 2023, section 4.1).
double products_of(AttentionRun::Passes passes) {
  switch (passes) {
    case AttentionRun::Passes::forward: return 1;
    case AttentionRun::Passes::backward: return 2.5;
    case AttentionRun::Passes::both: return 3.5;
  }
  return 1;
}

// Where a source gives no batch or heads, those of FlashAttention's own benchmark: 16,384 tokens of
// hidden size 2048.
void read_attention(MapReader& shape, const Figures& f, Measurement& m) {
  AttentionRun kernel{};
  kernel.passes = passes_of(f.op);
  auto& op = kernel.op;
  op.s = whole(shape, "seq");
  const auto head_dim = shape.integer("head_dim", {1, 100'000});
  const auto key_dim = shape.integer("qk_head_dim", {1, 100'000}),
             value_dim = shape.integer("v_head_dim", {1, 100'000});
  if (!head_dim && !(key_dim && value_dim))
    throw ConfigError(shape.mark(), "shape lacks head_dim", "or qk_head_dim and v_head_dim");
  op.head_dim = head_dim ? *head_dim : *key_dim;
  const auto tokens = shape.integer("tokens", {1, 1'000'000'000}).value_or(16'384);
  const auto hidden = shape.integer("hidden", {1, 1'000'000}).value_or(2048);
  const auto largest = std::int64_t{1'000'000'000};
  op.sequences =
      shape.integer("batch", {1, largest}).value_or(std::max<std::int64_t>(1, tokens / op.s));
  op.heads = shape.integer("heads", {1, largest})
                 .value_or(std::max<std::int64_t>(1, hidden / op.head_dim));
  op.kv_heads = shape.integer("kv_heads", {1, largest}).value_or(op.heads);
  op.causal_skip = shape.boolean("causal").value_or(false);
  op.second_generation = f.op.starts_with("FA2");
  kernel.precision = read_precision(shape.text("dtype").value_or("bf16"));
  if (!head_dim && *key_dim != *value_dim) {
    shape.finish();
    throw NotPriced{"keys and values of different size are not priced"};
  }
  const auto s = static_cast<double>(op.s);
  const double flops = products_of(kernel.passes) * 4 * s * s *
                       static_cast<double>(op.sequences * op.heads * op.head_dim) *
                       (op.causal_skip ? 0.5 : 1);
  m.what = kernel;
  m.time = f.tflops ? Seconds(flops / (*f.tflops * 1e12)) : measured_time(f, flops);
}

void read_collective(MapReader& shape, const Figures& f, Measurement& m) {
  const auto bytes = shape.number("bytes", Dimension::size, 1, 1e15);
  accept(shape, {"dtype", "tokens_per_rank", "hidden", "top_k"});
  CollectiveRun run{};
  run.ranks = static_cast<int>(whole(shape, "ranks"));
  run.nodes = f.nodes;
  std::string name = f.op;
  std::replace(name.begin(), name.end(), '_', '-');
  const auto& names = costmodel::collective_names;
  const auto at = std::find(names.begin() + 1, names.end(), name);
  if (at == names.end())
    throw NotPriced{fmt::format("{} is no collective of ours", costmodel::quote(f.op))};
  if (!bytes) throw NotPriced{"its message size is not known"};
  if (run.ranks < 2) throw NotPriced{"one rank sends nothing"};
  if (f.algorithm == "NVLS")
    throw NotPriced{"a reduction in the switch (NVLS) is priced by no formula here"};
  run.kind = static_cast<CollectiveKind>(at - names.begin());
  run.message = Bytes(*bytes);
  m.what = run;
  if (!f.time_us && f.bus_gb_s) {  // nccl-tests: what a device sends, by the time
    m.time = costmodel::collective_bytes(run.kind, run.message, run.ranks) /
             costmodel::BytesPerSecond(*f.bus_gb_s * 1e9);
  } else {
    m.time = measured_time(f, 0);
  }
}

// Bandwidth counts bytes read and written, as CUDA's samples print it. Where the source names no
// size, that of p2pBandwidthLatencyTest: 40 million 4-byte numbers.
void read_copy(MapReader& shape, const Figures& f, Measurement& m) {
  const double bytes = shape.number("bytes", Dimension::size, 1, 1e15).value_or(160e6);
  if (!f.op.starts_with("device-local copy") && !f.op.starts_with("device memory copy"))
    throw NotPriced{"a copy between devices or with the host is not priced"};
  m.what = Copy{Bytes(2 * bytes)};
  if (f.copy_gb_s) {
    m.time = Seconds(2 * bytes / (*f.copy_gb_s * 1e9));
  } else {
    m.time = measured_time(f, 0);
  }
}

Measurement read_entry(MapReader& entry, std::size_t kind, const Value& shape_map) {
  Measurement m;
  entry.required("device");
  m.device = *entry.text("device");
  const Figures figures = read_figures(entry);
  MapReader source(entry.required("source"), "source");
  source.required("title");
  m.title = *source.text("title");
  m.measured = source.text("measured").value_or("");
  accept(source, {"where", "ref"});
  source.finish();
  accept(entry, {"confidence", "notes"});
  entry.finish();
  m.id = entry.text("id").value_or("");
  MapReader shape(shape_map, "shape");
  constexpr std::array readers{read_product, read_attention, read_collective, read_copy};
  readers[kind](shape, figures, m);
  shape.finish();
  return m;
}

}  // namespace

Microbenchmarks& Microbenchmarks::operator+=(const Microbenchmarks& other) {
  measurements.insert(measurements.end(), other.measurements.begin(), other.measurements.end());
  unused.insert(unused.end(), other.unused.begin(), other.unused.end());
  return *this;
}

Microbenchmarks read_microbenchmarks(const Value& list) {
  static const Value nothing;
  if (list.kind != Value::Kind::sequence) {
    throw ConfigError(list.mark, "is not a list of measurements",
                      "write a list of {id, device, kind, op, shape, measured, source}");
  }
  Microbenchmarks found;
  for (const Value& item : list.items) {
    MapReader entry(item, "measurement");
    entry.required("id");
    const std::string id = *entry.text("id");
    entry.required("kind");
    const auto kind = entry.one_of("kind", kinds);
    const Value* shape = entry.optional("shape");
    try {
      found.measurements.push_back(read_entry(entry, *kind, shape == nullptr ? nothing : *shape));
    } catch (const NotPriced& why) {
      found.unused.push_back({id, why.reason});
    }
  }
  return found;
}

}  // namespace calibrate
