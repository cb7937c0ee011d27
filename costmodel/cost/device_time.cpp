#include "costmodel/cost/device_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "costmodel/cost/grouped_product.hpp"
#include "costmodel/cost/measured_time.hpp"

namespace costmodel {

namespace {

// Tile shapes of the tensor-core kernels in cuBLAS and CUTLASS, and the fraction of the rate they
// reach on a full device (larger tiles reuse more; the fractions follow the CUTLASS profiler's
// published ordering of tile sizes).
struct Tile {
  double rows, cols, share;
};
constexpr std::array tiles{Tile{256, 128, 1.0}, Tile{128, 128, 0.97}, Tile{128, 64, 0.85},
                           Tile{64, 64, 0.70}};

Seconds bytes_time(const Work& work, const DeviceSpec& device) {
  return streaming_time(work.moved, std::max(work.kernels, 1), device);
}

// With fp8 and narrower products, attention and element-wise operators stay in 16 bits.
Precision attention_precision(Precision p) { return is_narrow(p) ? Precision::bf16 : p; }

// Bytes that a cast moves per element. fp8: read in 16 bits, written once as it is and once
// transposed for the backward products (Transformer Engine's cast-transpose). Blocks with scales of
// their own cost more: linear layers of Transformer Engine's GEMM tutorial on a B300 take 0.74 ps
// (mxfp8) and 1.08 ps (nvfp4, with its Hadamard transform) per element longer than the same
// products of cast operands (configs/microbench/gemm_low_precision.yaml; means of three passes),
// here at the 0.86 of 8 TB/s that streams reach.
double cast_bytes(Precision precision) {
  switch (precision) {
    case Precision::mxfp8: return 5.1;
    case Precision::nvfp4: return 7.4;
    default: return 2 + 1 + 1;
  }
}

// Operands narrower than 16 bits are cast for each product: forward x and W, backward the output
// gradient. `bytes`: moved an element.
Seconds cast_time(double m, double n, double k, double matrices, Pass pass,
                  const DeviceSpec& device, Precision precision, double bytes) {
  if (!is_narrow(precision) || pass == Pass::weight_gradient) return {};
  const double elements = pass == Pass::forward ? m * k + matrices * n * k : m * n;
  return streaming_time(Bytes(elements * bytes), pass == Pass::forward ? 2 : 1, device);
}

// A frozen weight in fp8 that is kept once has no weight gradient, for which alone x and the output
// gradient would be transposed; it is itself, read and written in a byte, for the input gradient.
Seconds frozen_cast_time(double m, double n, double k, Pass pass, const DeviceSpec& device,
                         Precision precision) {
  const Seconds cast = cast_time(m, n, k, 0, pass, device, precision, 2 + 1);
  return pass == Pass::input_gradient ? cast + streaming_time(Bytes(2 * n * k), 1, device) : cast;
}

Seconds time(const Linear& o, Pass pass, const DeviceSpec& device, Precision training) {
  const Precision precision = precision_of(o, training);
  const auto m = static_cast<double>(o.m), n = static_cast<double>(o.n),
             k = static_cast<double>(o.k);
  const Seconds cast = o.weight_once && is_narrow(precision)
                           ? frozen_cast_time(m, n, k, pass, device, precision)
                           : cast_time(m, n, k, o.narrow_weight ? 0 : 1, pass, device, precision,
                                       cast_bytes(precision));
  switch (pass) {
    case Pass::forward: return cast + product_time(1, m, n, k, device, precision);
    case Pass::input_gradient: return cast + product_time(1, m, k, n, device, precision);
    case Pass::weight_gradient: {
      const Seconds t = product_time(1, k, n, m, device, precision);
      return o.bias ? t + streaming_time(Bytes(m * n * storage_bytes(precision)), 1, device) : t;
    }
  }
  return {};
}

Seconds time(const GroupedLinear& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto groups = static_cast<double>(o.experts), m = static_cast<double>(o.m),
             n = static_cast<double>(o.n), k = static_cast<double>(o.k);
  const Seconds cast =
      groups * o.start + (o.casts_input ? cast_time(m, n, k, o.narrow_weight ? 0 : groups, pass,
                                                    device, precision, cast_bytes(precision))
                                        : Seconds(0));
  const double rows = m / groups;
  const auto product = o.grouped_mm && device.cache_bandwidth.value > 0 && !is_narrow(precision)
                           ? grouped_product_time
                           : product_time;
  switch (pass) {
    case Pass::forward: return cast + product(groups, rows, n, k, device, precision);
    case Pass::input_gradient: return cast + product(groups, rows, k, n, device, precision);
    case Pass::weight_gradient: {
      const Seconds gradient = product(groups, k, n, rows, device, precision) /
                               (is_narrow(precision) ? device.narrow_group_gradient : 1);
      const Seconds t = groups * o.start + gradient;
      return o.bias ? t + streaming_time(Bytes(m * n * storage_bytes(precision)), 1, device) : t;
    }
  }
  return {};
}

// What a multiprocessor reaches in the kernels of state-space scans (mamba_ssm's in Triton): their
// small products keep to the instructions of every generation since Ampere, so that the tensor peak
// of a later one is far; a device with less reaches its peak. Three shapes with 8,192 tokens on an
// H100, 64 to 128 heads of 64 with 128 states, 1 and 8 groups
// (configs/kernels/pytorch-operators.csv): 0.32, 0.48 and 0.58 forward, 0.23, 0.48 and 0.35 TFLOP/s
// backward; their geometric means.
constexpr double scan_forward = 0.447e12, scan_backward = 0.338e12;

// Multiprocessors times seconds for an element in the backward of Mamba's short convolution, which
// sums its taps' gradients as it goes (causal_conv1d: 14.0 and 11.2 ps with 6,144 and 8,192
// channels), and of its gated norm (8.9, 5.7 and 10.5 ps): on the same H100.
constexpr double convolution_backward = 132 * 12.6e-12, gated_norm_backward = 132 * 8.1e-12;

Seconds element_time(std::int64_t rows, std::int64_t cols, double each, const DeviceSpec& device) {
  return Seconds(static_cast<double>(rows) * static_cast<double>(cols) * each /
                 device.multiprocessors);
}

Seconds time(const Convolution& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const Seconds moving = bytes_time(work_of(o, pass, storage_bytes(precision)), device);
  if (pass == Pass::forward) return moving;
  return max(moving, element_time(o.rows, o.cols, convolution_backward, device));
}

Seconds time(const Norm& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const Seconds moving = bytes_time(work_of(o, pass, storage_bytes(precision)), device);
  if (pass == Pass::forward || !o.gated) return moving;
  return max(moving, element_time(o.rows, o.cols, gated_norm_backward, device));
}

// Multiprocessors times seconds for an element of PyTorch's element-wise kernels where an operand
// is broadcast, lies in strides or has another type than the result: these compute the place of
// every element or convert it by itself (ATen/native/cuda/CUDALoops.cuh), so that instructions
// bound them and not bytes. On an H100 broadcast sums take 286 to 327 ps and where() with a scalar
// 333 to 370 (what is left of the clamped activation with bias of
// configs/kernels/pytorch-operators.csv when its other kernels have the rate of silu times on as
// many rows); on a B200's chip a cast from bf16 to fp32 takes 382 (2.77 ms for 2^30 elements,
// PaddlePaddle/Paddle #76988, against 0.92 ms for the vectorised cast back).
constexpr double indexed_element = 350e-12;

Seconds time(const UnfusedPasses& o, Pass pass, const DeviceSpec& device, Precision) {
  const Passes& all = pass == Pass::forward ? o.forward : o.backward;
  const double elements = static_cast<double>(o.rows) * static_cast<double>(o.cols);
  const auto moving = [&](double bytes, int kernels) {
    return streaming_time(Bytes(bytes * elements), kernels, device);
  };
  return moving(all.bytes - all.indexed_bytes, all.kernels) +
         max(moving(all.indexed_bytes, 0),
             all.indexed * element_time(o.rows, o.cols, indexed_element, device));
}

// The larger of the time of a chunk's products and the time of the bytes.
Seconds time(const Scan& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const Work work = work_of(o, pass, storage_bytes(precision));
  const Seconds moving = bytes_time(work, device);
  if (o.rule == ScanRule::channels) return moving;  // no products: nothing measured its arithmetic
  if (o.rule == ScanRule::state_space || o.rule == ScanRule::linear) {
    const double each = pass == Pass::forward ? scan_forward : scan_backward;
    const double peak = device.peak_of(attention_precision(precision)).value *
                        device.gemm_efficiency_of(attention_precision(precision));
    const FlopsPerSecond rate(std::min(each * device.multiprocessors, peak));
    return max(work.executed / rate, moving);
  }
  const auto q = static_cast<double>(o.chunk_tokens()), p = static_cast<double>(o.head_dim),
             n = static_cast<double>(o.state), chunks = static_cast<double>(o.chunks());
  const double in_heads = chunks * static_cast<double>(o.heads);
  const Precision as = attention_precision(precision);
  const Seconds forward =
      product_time(chunks * static_cast<double>(o.groups), q, q, n, device, as) +
      product_time(in_heads, q, q, n, device, as) * 2 +
      product_time(in_heads, q, p, q, device, as) * 2 +
      product_time(in_heads, n, p, q, device, as) + product_time(in_heads, q, p, n, device, as) * 2;
  return max(forward * (pass == Pass::forward ? 1 : 3), moving);
}

Seconds time(const AttentionScores& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto batch = static_cast<double>(o.batch), s = static_cast<double>(o.s),
             d = static_cast<double>(o.head_dim), keys = static_cast<double>(o.key_count());
  const Precision p = attention_precision(precision);
  if (pass == Pass::forward) return product_time(batch, s, keys, d, device, p);
  return product_time(batch, s, d, keys, device, p) + product_time(batch, keys, d, s, device, p);
}

Seconds time(const AttentionContext& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto batch = static_cast<double>(o.batch), s = static_cast<double>(o.s),
             d = static_cast<double>(o.head_dim), keys = static_cast<double>(o.key_count());
  const Precision p = attention_precision(precision);
  if (pass == Pass::forward) return product_time(batch, s, d, keys, device, p);
  return product_time(batch, s, keys, d, device, p) + product_time(batch, keys, d, s, device, p);
}

// Of the device's measurements of the kernel itself.
const RateTable* table_of(const FlashAttention& o, Pass pass, const DeviceSpec& device,
                          Precision precision) {
  if (!o.as_measured || !o.causal_skip || o.narrow) return nullptr;
  if (!o.cudnn && !o.second_generation) return nullptr;
  for (const RateTable& table : o.cudnn ? device.cudnn_measured : device.attention2_measured)
    if (table.pass == pass && table.precision == attention_precision(precision)) return &table;
  return nullptr;
}

// The part of a multiprocessor's places for thread blocks that FlashAttention 2 with a causal mask
// keeps busy: `rows` rows of queries and heads (sequences times heads) of `length` tokens. A block
// of 128 queries (forward) or keys (backward) takes one unit a block of 128 on the other side, and
// one to begin and end. Of a row the blocks grow forward and shrink backward, and are given out in
// order to whoever is free. The closed form is within 4 % of that schedule (device_time_test).
double flash2_fill(double rows, double length, Pass pass, double head_dim,
                   const DeviceSpec& device) {
  const bool forward = pass == Pass::forward;
  // 255 registers a thread: two blocks of four warps, or one of eight.
  const double places = device.multiprocessors * (forward && head_dim <= 128 ? 2.0 : 1.0);
  const double blocks = std::ceil(length / 128), longest = blocks + 1,
               each = rows * blocks * ((blocks + 1) / 2 + 1) / places;
  if (rows * blocks <= places) return each / longest;
  const double in_turn = std::min(1.0, blocks / places);
  const double tail = forward ? 0.64 : 0.62 * (1 - in_turn * in_turn);
  return each / std::max(longest, each + tail * longest);
}

// Over that of the table's timings: 8,192 tokens in all up to that length, 32 heads of 64 and 128,
// 16 of others; none is taken to be faster than what was timed. cuDNN's blocks stay and take what
// is left.
double fill_over_timed(const FlashAttention& o, Pass pass, double keys, double row,
                       const DeviceSpec& device) {
  const double rows = static_cast<double>(o.sequences) * static_cast<double>(o.heads);
  if (o.cudnn) {
    const auto part = [&](double blocks) {
      return blocks / (blocks + device.attention_half_blocks);
    };
    return std::min(1.0, part(rows * std::ceil(keys / 128)) / part(2048));
  }
  const auto d = static_cast<double>(o.head_dim);
  const double timed =
      std::max(1.0, 8192 / row) * (o.head_dim == 64 || o.head_dim == 128 ? 32 : 16);
  return std::min(1.0, flash2_fill(rows * keys / row, row, pass, d, device) /
                           flash2_fill(timed, row, pass, d, device));
}

Seconds time(const FlashAttention& o, Pass pass, const DeviceSpec& device, Precision precision) {
  const Precision p = attention_precision(precision);
  const Work work = work_of(o, pass, storage_bytes(precision));
  const bool forward = pass == Pass::forward;
  if (const RateTable* table = table_of(o, pass, device, precision)) {
    const auto keys = static_cast<double>(o.blocks > 1 || o.cross ? o.s : o.key_count());
    const double row = std::min(keys, o.attended > 0 ? o.attended
                                      : o.window > 0 ? 2 * static_cast<double>(o.window)
                                                     : keys);
    // Rows shorter than the table's fill less, and so do other numbers of blocks than its timings'.
    const auto part = [](double n, double half) { return n / (n + half); };
    const double first = table->axes.front().front(), half = device.attention_half_sequence;
    const double short_rows = row < first ? part(row, half) / part(first, half) : 1;
    const double sustained = o.cudnn   ? 1
                             : forward ? device.attention2_sustained_forward
                                       : device.attention2_sustained_backward;
    const double timed =
        rate_at(*table, std::array{std::max(row, 1.0), static_cast<double>(o.head_dim)});
    const FlopsPerSecond rate(std::min(timed, device.peak_of(p).value * sustained) * short_rows *
                              fill_over_timed(o, pass, keys, row, device));
    return max(work.executed / rate, bytes_time(work, device));
  }
  const double best = forward ? device.attention_forward : device.attention_backward;
  const double second = forward ? device.attention2_forward : device.attention2_backward;
  // A block of a ring is as short as the rank's queries; gathered keys make long rows.
  const auto s = static_cast<double>(o.blocks > 1 || o.cross ? o.s : o.key_count());
  // Rows of a causal mask have half of s keys on average, those of a window all of it; of packed
  // samples s is theirs.
  const double row = o.attended > 0 ? std::min(s, o.attended)
                     : o.window > 0 ? std::min(s, 2 * static_cast<double>(o.window))
                                    : s;
  const double long_enough = o.causal_skip ? row / (row + device.attention_half_sequence) : 1;
  constexpr double block_rows = 128;  // queries a thread block holds
  const double blocks =
      static_cast<double>(o.sequences) * static_cast<double>(o.heads) * std::ceil(s / block_rows);
  const auto head_dim = static_cast<double>(o.head_dim);
  const double full = blocks / (blocks + device.attention_half_blocks) * head_dim /
                      (head_dim + device.attention_half_head_dim);
  const double narrow = o.narrow ? device.narrow_attention_speedup(head_dim, forward) : 1;
  const double reached = (o.second_generation ? second : best) * long_enough * full * narrow;
  return max(work.executed / FlopsPerSecond(device.peak_of(p).value * reached),
             bytes_time(work, device));
}

template <class Streaming>
Seconds time(const Streaming& o, Pass pass, const DeviceSpec& device, Precision precision) {
  return bytes_time(work_of(o, pass, storage_bytes(precision)), device);
}

Seconds time(const Collective&, Pass, const DeviceSpec&, Precision) { return {}; }

}  // namespace

double tile_fill(double batch, double m, double n, int multiprocessors) {
  double best = 0;
  for (const Tile& tile : tiles) {
    const double count = std::ceil(m / tile.rows) * std::ceil(n / tile.cols) * batch;
    // Half of the rounding is real: libraries choose split-k and stream-k kernels where it hurts
    // (136 A100 and 384 B200 products of SimuMax's tables).
    const double even = std::max(1.0, count / multiprocessors);
    const double waves = (std::ceil(count / multiprocessors) + even) / 2;
    best = std::max(best,
                    tile.share * m * n * batch / (waves * multiprocessors * tile.rows * tile.cols));
  }
  return best;
}

Seconds product_time(double batch, double m, double n, double k, const DeviceSpec& device,
                     Precision precision) {
  const double depth = k / (k + device.gemm_half_k);
  const double fill = tile_fill(batch, m, n, device.multiprocessors);
  const FlopsPerSecond rate(device.peak_of(precision).value * device.gemm_efficiency_of(precision) *
                            depth * fill);
  // Narrow operands are read in their own width (block scales left out); results are 16 bits.
  const double operand = operand_bytes(precision);
  const Bytes moved(batch * (m * n * storage_bytes(precision) + (m * k + n * k) * operand));
  return device.gemm_start +
         max(Flops(2 * batch * m * n * k) / rate, streaming_time(moved, 1, device));
}

bool is_tabled(const Op& op, Pass pass, const DeviceSpec& device, Precision precision) {
  const auto* attention = std::get_if<FlashAttention>(&op);
  return attention != nullptr && table_of(*attention, pass, device, precision) != nullptr;
}

Seconds streaming_time(Bytes moved, int kernels, const DeviceSpec& device) {
  const BytesPerSecond reached(device.memory_bandwidth.value * device.memory_efficiency);
  return (moved + device.memory_half * kernels) / reached;
}

// After a gather in 16 bits all of a rank's weights are cast; fp8 ones were cast with the step and
// are gathered by rows, read and written as columns (Transformer Engine, @d0067d0da6: pytorch/
// tensor/utils.py, post_all_gather_processing; Megatron-LM, --reuse-grad-buf-for-mxfp8-param-ag).
Seconds weight_cast_time(const Op& op, const DeviceSpec& device, Precision training) {
  const auto kernels = [&](double n, double k, std::int64_t matrices, Precision precision) {
    if (!is_narrow(precision)) return Seconds(0);
    const double bytes = precision == Precision::fp8 ? 1 + 1 : cast_bytes(precision);
    return streaming_time(Bytes(static_cast<double>(matrices) * n * k * bytes),
                          static_cast<int>(matrices), device);
  };
  return std::visit(Visitor{[&](const Linear& o) {
                              return kernels(static_cast<double>(o.n), static_cast<double>(o.k), 1,
                                             precision_of(o, training));
                            },
                            [&](const GroupedLinear& o) {
                              return kernels(static_cast<double>(o.n), static_cast<double>(o.k),
                                             o.experts, training);
                            },
                            [](const auto&) { return Seconds(0); }},
                    op);
}

Seconds device_time(const Op& op, Pass pass, const DeviceSpec& device, Precision precision) {
  if (const auto measured = measured_time(op, pass, device, precision)) return *measured;
  return std::visit([&](const auto& o) { return time(o, pass, device, precision); }, op);
}

}  // namespace costmodel
