#include "calibrate/fit/measured_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/cost/collective.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

double size(MapReader& shape, std::string_view key) {
  shape.required(key);
  return *shape.number(key, Dimension::count, 1, 1e15);
}

std::optional<double> size_if_any(MapReader& shape, std::string_view key) {
  return shape.number(key, Dimension::count, 1, 1e15);
}

std::int64_t whole(MapReader& shape, std::string_view key) {
  shape.required(key);
  return *shape.integer(key, {1, 1'000'000'000});
}

}  // namespace

void accept(MapReader& reader, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) reader.optional(key);
}

// The first of the figures that the entry has.
std::optional<double> first_of(MapReader& reader, std::initializer_list<std::string_view> keys) {
  std::optional<double> found;
  for (const auto key : keys) {
    const auto value = reader.number(key, Dimension::count, 0, 1e18);
    if (!found && value.value_or(0) > 0) found = value;
  }
  return found;
}

namespace {

Precision read_precision(const std::string& word) {
  // "fp8 (1x128 scaled), bf16 out" is fp8; "fp16/bf16" have one rate
  const std::string first = word.substr(0, word.find_first_of(" /"));
  const auto& names = precision_names;
  const auto at = std::ranges::find(names, first);
  if (at == names.end())
    throw NotPriced{fmt::format("{} is no precision of products", quote(word))};
  return static_cast<Precision>(at - names.begin());
}

Seconds measured_time(const Figures& f, double flops) {
  if (f.time_us) return Seconds(*f.time_us * 1e-6);
  if (f.tflops && flops > 0) return Seconds(flops / (*f.tflops * 1e12));
  if (f.derived_time_us) return Seconds(*f.derived_time_us * 1e-6);
  throw NotPriced{"it holds no time and no rate"};
}

// The product of one of `groups` equal groups. The stages of a layer m x n x k multiply [m, k] ·
// [k, n], [m, n] · [n, k] and [k, m] · [m, n].
Product of_stage(double groups, double m, double n, double k, const std::string& stage) {
  if (stage == "bwd_grad_act") std::swap(n, k);
  if (stage == "bwd_grad_w") std::swap(m, k);
  return {.batch = groups, .m = m, .n = n, .k = k, .precision = {}, .grouped = true};
}

// Where the groups divide k, as those of a weight gradient do, each has all of m.
Product read_group(MapReader& shape, double groups) {
  const auto stage = shape.text("stage");
  const auto own_m = first_of(shape, {"m_per_group", "expected_m_per_group"});
  const auto all_m = size_if_any(shape, "m_total"), m = size_if_any(shape, "m");
  const auto own_k = size_if_any(shape, "k_per_group"), all_k = size_if_any(shape, "k_total");
  const double n = size(shape, "n");
  if (shape.text("distribution").value_or("uniform") != "uniform")
    throw NotPriced{"groups of different size are not priced"};
  if (own_k || all_k)
    return of_stage(groups, size(shape, "m"), n, own_k ? *own_k : *all_k / groups, "");
  if (!own_m && !all_m && !(stage && m))
    throw NotPriced{"it does not say which of its sizes the groups divide"};
  const double rows = own_m ? *own_m : all_m ? *all_m / groups : *m;
  return of_stage(groups, rows, n, size(shape, "k"), stage.value_or(""));
}

}  // namespace

void read_product(MapReader& shape, const Figures& f, Measurement& m) {
  const auto groups = size_if_any(shape, "groups");
  accept(shape, {"layout", "out_dtype", "m_total", "tokens", "hidden", "ffn", "tensor"});
  const auto in = shape.text("in_dtype"), dtype = shape.text("dtype");
  if (shape.optional("gemms") != nullptr) throw NotPriced{"the sum of several products"};
  if (!f.time_us && !f.tflops && !f.derived_time_us)
    throw NotPriced{"it holds no time and no rate"};
  if (!groups && shape.optional("m") == nullptr && shape.optional("n") == nullptr)
    throw NotPriced{"its shape is not known"};
  Product product{};
  if (groups) {
    product = read_group(shape, *groups);
    product.trained = f.says("forward+backward");
  } else {
    product.batch = shape.number("b", Dimension::count, 1, 1e9).value_or(1);
    product.n = size(shape, "n");
    product.k = size(shape, "k");
    product.m = size(shape, "m");
  }
  product.precision = read_precision(in.value_or(dtype.value_or("bf16")));
  product.casts = is_narrow(product.precision) &&
                  (f.says("quantisation included") || f.says("with quantisation") ||
                   f.says("with activation quantisation") || f.says("quantise and"));
  m.what = product;
  m.time = measured_time(
      f, (product.trained ? 6 : 2) * product.batch * product.m * product.n * product.k);
}

namespace {

AttentionRun::Passes passes_of(const Figures& f) {
  if (f.says("fwd+bwd")) return AttentionRun::Passes::both;
  if (f.says("bwd") || f.says("backward")) return AttentionRun::Passes::backward;
  if (f.says("fwd") || f.says("forward")) return AttentionRun::Passes::forward;
  throw NotPriced{"its op names neither fwd nor bwd"};
}

// FLOPs of a run. Backward computes five products, three of them over the keys' size (Dao 2023,
// section 4.1).
double flops_of(const AttentionRun& run) {
  const auto& op = run.op;
  const auto s = static_cast<double>(op.s), keys = static_cast<double>(op.key_count()),
             d = static_cast<double>(op.head_dim), dv = static_cast<double>(op.value_dim());
  const double forward = d + dv, backward = 3 * d + 2 * dv;
  const double products = run.passes == AttentionRun::Passes::forward    ? forward
                          : run.passes == AttentionRun::Passes::backward ? backward
                                                                         : forward + backward;
  return products * 2 * s * keys * static_cast<double>(op.sequences * op.heads) *
         (op.causal_skip ? 0.5 : 1);
}

void read_head_sizes(MapReader& shape, FlashAttention& op) {
  const auto head_dim = shape.integer("head_dim", {1, 100'000});
  const auto key_dim = shape.integer("qk_head_dim", {1, 100'000}),
             value_dim = shape.integer("v_head_dim", {1, 100'000});
  if (!head_dim && !(key_dim && value_dim))
    throw ConfigError(shape.mark(), "shape lacks head_dim", "or qk_head_dim and v_head_dim");
  op.head_dim = head_dim ? *head_dim : *key_dim;
  if (!head_dim && *key_dim != *value_dim) op.v_head_dim = *value_dim;
}

}  // namespace

// Where a source gives no batch or heads, those of FlashAttention's own benchmark: 16,384 tokens of
// hidden size 2048. Their time is then that of the rate, whatever time the source gives.
void read_attention(MapReader& shape, const Figures& f, Measurement& m) {
  AttentionRun kernel{};
  kernel.passes = passes_of(f);
  if (shape.optional("seq") == nullptr) throw NotPriced{"its shape is not known"};
  if (shape.optional("window") != nullptr) throw NotPriced{"a sliding window is not priced"};
  if (shape.boolean("deterministic").value_or(false))
    throw NotPriced{"deterministic kernels are not priced"};
  auto& op = kernel.op;
  op.s = whole(shape, "seq");
  read_head_sizes(shape, op);
  const auto largest = std::int64_t{1'000'000'000};
  const auto keys = shape.integer("kv_seq", {1, largest});
  if (keys && *keys != op.s) op.keys = *keys;
  const auto tokens = shape.integer("tokens", {1, largest}).value_or(16'384);
  const auto hidden = shape.integer("hidden", {1, 1'000'000}).value_or(2048);
  const auto batch = shape.integer("batch", {1, largest}),
             heads = shape.integer("heads", {1, largest});
  op.sequences = batch.value_or(std::max<std::int64_t>(1, tokens / op.s));
  op.heads = heads.value_or(std::max<std::int64_t>(1, hidden / op.head_dim));
  op.kv_heads = shape.integer("kv_heads", {1, largest}).value_or(op.heads);
  op.causal_skip = shape.boolean("causal").value_or(false);
  op.second_generation = f.says("FA2");
  kernel.precision = read_precision(shape.text("dtype").value_or("bf16"));
  op.narrow = kernel.precision == Precision::fp8;
  m.what = kernel;
  const double flops = flops_of(kernel);
  m.time =
      f.tflops && !(batch && heads) ? Seconds(flops / (*f.tflops * 1e12)) : measured_time(f, flops);
}

namespace {

// Bytes of a token's copies: DeepEP sends a 4-byte scale with every 128 fp8 numbers.
double token_bytes(MapReader& shape, double hidden, bool combined) {
  auto dtype = shape.text("dtype");
  if (dtype && combined && dtype->ends_with(" / bf16 combine")) dtype = "bf16";
  const auto stated = size_if_any(shape, "bytes_per_token");
  if (stated) return *stated;
  if (!dtype) throw NotPriced{"the format of its tokens is not known"};
  const double bytes = operand_bytes(read_precision(*dtype));
  return hidden * (bytes == 1 ? 1 + 4.0 / 128 : bytes);
}

// A bandwidth counts one copy of a token for each rank that has a chosen expert or, between nodes,
// for each such node, the own one included (deepseek-ai/DeepEP, tests/test_intranode.py and
// test_internode.py).
void read_exchange(MapReader& shape, const Figures& f, Measurement& m) {
  const auto tokens = size_if_any(shape, "tokens_per_rank"), hidden = size_if_any(shape, "hidden"),
             top_k = size_if_any(shape, "top_k"), local = size_if_any(shape, "local_experts");
  const auto limit = shape.integer("top_groups", {1, 1'000'000});
  accept(shape, {"experts", "routing"});
  ExpertRun run{};
  run.ranks = static_cast<int>(whole(shape, "ranks"));
  run.nodes = f.nodes;
  if (!tokens || !hidden || !top_k) throw NotPriced{"its shape is not known"};
  if (f.says("low latency") || f.says("pplx"))
    throw NotPriced{"kernels for few tokens, of inference, are not priced"};
  const bool hybrid = f.says("HybridEP");
  if (hybrid && f.timing == "torch api")
    throw NotPriced{"the call around kernels that another entry measures"};
  run.routing.dispatcher = Dispatcher::deepep;
  if (hybrid && local) {  // its test sends the probabilities both ways
    run.routing.experts = static_cast<std::int64_t>(*local * run.ranks);
    run.routed = *tokens;
  }
  run.routing.top_k = static_cast<std::int64_t>(*top_k);
  if (limit && f.nodes > *limit) {  // DeepEP's test takes the nodes as groups of experts
    run.routing.groups = f.nodes;
    run.routing.groups_per_token = *limit;
  }
  const double token = token_bytes(shape, *hidden, f.op.starts_with("moe_combine"));
  run.message = Bytes(*tokens * *top_k * token);
  m.what = run;
  if (!f.time_us && f.exchange_gb_s) {
    const double units = f.nodes > 1 ? f.nodes : run.ranks;
    m.time = Seconds(*tokens * token * units_chosen(units, run.routing) / (*f.exchange_gb_s * 1e9));
  } else {
    m.time = measured_time(f, 0);
  }
}

// The kernels in which NCCL's own rings and trees are not.
void refuse_other_kernels(const Figures& f, const std::string& name) {
  if (f.algorithm == "NVLS" || f.interconnect.find("with SHARP") != std::string::npos)
    throw NotPriced{"a reduction in the switch (NVLS) is priced by no formula here"};
  if (name == f.op || f.says("(NCCL)") || f.says("(ring)")) return;
  throw NotPriced{"kernels other than NCCL's rings and trees are not priced"};
}

}  // namespace

void read_collective(MapReader& shape, const Figures& f, Measurement& m) {
  if (f.op.starts_with("moe_dispatch") || f.op.starts_with("moe_combine"))
    return read_exchange(shape, f, m);
  const auto bytes = shape.number("bytes", Dimension::size, 1, 1e15);
  accept(shape, {"dtype", "tokens_per_rank", "hidden", "top_k", "experts", "key", "note"});
  const std::string name = f.op.substr(0, f.op.find_first_of(" :"));
  std::string ours = name;
  std::ranges::replace(ours, '_', '-');
  const auto& names = collective_names;
  const auto at = std::find(names.begin() + 1, names.end(), ours);
  if (at == names.end()) throw NotPriced{fmt::format("{} is no collective of ours", quote(f.op))};
  if (!bytes) throw NotPriced{"its message size is not known"};
  if (shape.optional("ranks") == nullptr) throw NotPriced{"its ranks are not known"};
  CollectiveRun run{};
  run.ranks = static_cast<int>(whole(shape, "ranks"));
  run.nodes = f.nodes;
  if (run.ranks < 2) throw NotPriced{"one rank sends nothing"};
  refuse_other_kernels(f, name);
  run.kind = static_cast<CollectiveKind>(at - names.begin());
  run.message = Bytes(*bytes);
  m.what = run;
  if (!f.time_us && f.bus_gb_s) {  // nccl-tests: what a device sends, by the time
    m.time = collective_bytes(run.kind, run.message, run.ranks) / BytesPerSecond(*f.bus_gb_s * 1e9);
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

namespace {

// BabelStream's kernels over arrays of 2^25 8-byte numbers, its default.
bool read_stream(const Figures& f, Measurement& m) {
  if (!f.op.starts_with("BabelStream") || !f.copy_gb_s) return false;
  const double arrays = f.says("add") || f.says("triad") ? 3 : 2;
  const double bytes = arrays * 8 * static_cast<double>(1 << 25);
  m.what = MemoryKernel{"BabelStream", Bytes(bytes), 1};
  m.time = Seconds(bytes / (*f.copy_gb_s * 1e9));
  return true;
}

}  // namespace

// "rms_norm fwd (cudnn)": the operator that the model prices, by the software that ran it.
void read_memory_kernel(MapReader& shape, const Figures& f, Measurement& m) {
  if (read_stream(f, m)) return;
  const auto rows = shape.integer("rows", {1, 1'000'000'000}),
             cols = shape.integer("hidden", {1, 1'000'000'000});
  const Precision precision = read_precision(shape.text("dtype").value_or("bf16"));
  const bool rms = f.op.starts_with("rms_norm");
  if (!rms && !f.op.starts_with("layer_norm"))
    throw NotPriced{"of memory-bound kernels only norms and copies are priced"};
  if (!rows || !cols) throw NotPriced{"its shape is not known"};
  const Norm norm{*rows, *cols, rms ? Normalization::rmsnorm : Normalization::layernorm};
  const bool backward = f.says(" bwd");
  const auto work =
      work_of(norm, backward ? Pass::input_gradient : Pass::forward, storage_bytes(precision));
  const auto from = std::min(f.op.find('('), f.op.size());
  m.what =
      MemoryKernel{fmt::format("norms {} {}", backward ? "backward" : "forward", f.op.substr(from)),
                   work.moved, work.kernels};
  m.time = measured_time(f, 0);
}

namespace {

// "8x2048x7168": its elements.
double elements_of(const std::string& tensor) {
  double all = 1, one = 0;
  for (const char c : tensor + "x") {
    if (c == 'x') {
      all *= one;
      one = 0;
    } else if (c >= '0' && c <= '9') {
      one = 10 * one + (c - '0');
    } else {
      throw NotPriced{"its shape is not known"};
    }
  }
  if (all <= 0) throw NotPriced{"its shape is not known"};
  return all;
}

}  // namespace

// A cast of 16-bit numbers to a narrow format, along rows, columns or both.
void read_quantisation(MapReader& shape, const Figures& f, Measurement& m) {
  const auto tensor = shape.text("tensor");
  const Precision in = read_precision(shape.text("in_dtype").value_or("bf16")),
                  out = read_precision(shape.text("out_dtype").value_or("none"));
  if (f.says("Hadamard")) throw NotPriced{"Hadamard transforms are not priced"};
  if (!tensor) throw NotPriced{"its shape is not known"};
  const double copies = f.says("both") ? 2 : 1;
  const double bytes = elements_of(*tensor) * (operand_bytes(in) + copies * operand_bytes(out));
  m.what = MemoryKernel{fmt::format("casts to {}", to_string(out)), Bytes(bytes), 1};
  m.time = measured_time(f, 0);
}

// What costs the host as much as the model's launch: an operator of PyTorch that is one kernel.
void read_host(MapReader& shape, const Figures& f, Measurement& m) {
  accept(shape,
         {"m", "n", "k", "in_dtype", "kernel_args", "pairs", "local_experts", "experts", "hidden"});
  const bool one = f.op == "host time of one Linear forward (torch)" ||
                   f.op.starts_with("eager ") ||
                   f.op.starts_with("Inductor kernel run, per kernel");
  const bool many = f.says(" eager kernels") && f.kernels;
  if (!one && !many) throw NotPriced{"no part of the model is this host time"};
  m.what = Launch{many ? *f.kernels : 1};
  m.time = f.host_us ? Seconds(*f.host_us * 1e-6) : measured_time(f, 0);
}

void read_overlap(MapReader& shape, const Figures&, Measurement&) {
  accept(shape, {"m", "n", "k", "in_dtype", "all_gather_bytes", "ranks", "bytes_per_rank"});
  throw NotPriced{"what runs beside something else is not priced alone"};
}

void read_layer(MapReader& shape, const Figures&, Measurement&) {
  accept(shape, {"layers", "batch", "seq", "hidden", "heads", "ffn", "dtype", "tp", "experts",
                 "top_k", "params_per_layer_bytes", "layers_profiled", "m_total", "n", "k",
                 "tokens", "ranks", "tokens_per_rank"});
  throw NotPriced{"whole layers are priced by shardplan evaluate"};
}

}  // namespace calibrate
