// The roofline of one device: tiles, waves, bytes.
#include "costmodel/cost/device_time.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <queue>

#include "tests/costmodel/support/fixtures.hpp"

namespace device_time_test {

using namespace costmodel;
using fixtures::relative_error;

TEST_CASE("tiles fill a device by at most all of it") {
  for (const int processors : {1, 7, 108, 132}) {
    for (double m = 1; m < 40000; m = m * 1.7 + 1) {
      for (double n = 1; n < 40000; n = n * 2.3 + 1) {
        for (const double batch : {1.0, 5.0, 96.0}) {
          const double fill = tile_fill(batch, m, n, processors);
          CHECK(fill > 0);
          CHECK(fill <= 1 + 1e-12);
        }
      }
    }
  }
  CHECK(tile_fill(1, 256 * 108, 128, 108) == 1);  // one full wave of the largest tiles
  CHECK(tile_fill(108, 256, 128, 108) == 1);
  CHECK(tile_fill(1, 1, 1, 108) == 0.7 / (108 * 64 * 64));  // one element of one small tile
}

TEST_CASE("one tile more than a full wave starts another wave") {
  DeviceSpec device = fixtures::device();
  device.memory_bandwidth = BytesPerSecond(1e18);  // arithmetic alone
  const auto time = [&](double tiles) {
    return product_time(1, 256 * tiles, 128, 8192, device, Precision::fp16).value;
  };
  // Half of the rounding counts. 109 tiles: the best of 2 waves of 256x128, 3 of 128x128 (218), 5
  // of 128x64 (436), 9 of 64x64 (872).
  const double fill = 0.97 * 218 / ((3 + 218.0 / 108) / 2 * 108);
  CHECK(relative_error(time(109) / time(108), 109.0 / 108 / fill) <= 1e-12);
  CHECK(time(109) > 1.2 * time(108));
  CHECK(relative_error(time(216), 2 * time(108)) <= 1e-12);
}

TEST_CASE("a product that fills the device runs at peak x efficiency x k/(k + half_k)") {
  const DeviceSpec device = fixtures::device();
  const double m = 256 * 108, n = 1280, k = 4096;
  const double rate = 312e12 * device.gemm_efficiency * k / (k + 200);
  CHECK(relative_error(product_time(1, m, n, k, device, Precision::fp16).value,
                       2 * m * n * k / rate) <= 1e-12);
}

TEST_CASE("larger products never take less time") {
  const DeviceSpec device = fixtures::device();
  const auto time = [&](double m, double n, double k) {
    return product_time(1, m, n, k, device, Precision::fp16).value;
  };
  for (double m = 1; m < 30000; m = m * 1.5 + 3) {
    for (double n = 1; n < 30000; n = n * 1.9 + 5) {
      for (double k = 1; k < 30000; k = k * 3 + 7) {
        const double here = time(m, n, k) * (1 - 1e-12);
        CHECK(time(m + 1, n, k) >= here);
        CHECK(time(m, n + 1, k) >= here);
        CHECK(time(m, n, k + 1) >= here);
      }
    }
  }
}

TEST_CASE("what is bound by memory takes its bytes") {
  DeviceSpec device = fixtures::device();
  const double reached = 2e12 * device.memory_efficiency;
  CHECK(relative_error(streaming_time(Bytes(1e9), 3, device).value, (1e9 + 3 * 2e6) / reached) <=
        1e-12);
  // A matrix times a vector.
  CHECK(relative_error(product_time(1, 1, 8192, 8192, device, Precision::fp16).value,
                       ((8192.0 * 8192 + 2 * 8192) * 2 + 2e6) / reached) <= 1e-12);
  const Op norm = Norm{2048, 4096, Normalization::layernorm};
  CHECK(relative_error(device_time(norm, Pass::forward, device, Precision::fp16).value,
                       (2048.0 * 4096 * 4 + 2e6) / reached) <= 1e-12);
  CHECK(relative_error(device_time(norm, Pass::input_gradient, device, Precision::fp16).value,
                       (2048.0 * 4096 * 6 + 2 * 2e6) / reached) <= 1e-12);
  CHECK(relative_error(device_time(norm, Pass::forward, device, Precision::fp32).value,
                       (2048.0 * 4096 * 8 + 2e6) / reached) <= 1e-12);
}

TEST_CASE("a wide product among fp8 ones costs what it costs in 16 bits, a narrow weight no cast") {
  DeviceSpec device = fixtures::device();
  Linear op{4096, 4096, 4096, false, false};
  const auto time = [&](Precision p) { return device_time(op, Pass::forward, device, p).value; };
  const double cast = time(Precision::fp8), sixteen = time(Precision::bf16);
  op.narrow_weight = true;  // 2 + 1 + 1 bytes less for each element of the weight, and a kernel's
  const double reached = device.memory_bandwidth.value * device.memory_efficiency;
  CHECK(relative_error(cast - time(Precision::fp8), 4096.0 * 4096 * 4 / reached) <= 1e-9);
  op.wide = true;
  CHECK(time(Precision::fp8) == sixteen);
  CHECK(time(Precision::mxfp8) == sixteen);
}

TEST_CASE("kernels that find every element by itself follow multiprocessors, others the memory") {
  DeviceSpec device = fixtures::device();
  device.multiprocessors = 132;
  const auto time = [&](double indexed, double indexed_bytes) {
    const Passes all{10, 3, 3, indexed, indexed_bytes};
    return device_time(UnfusedPasses{65536, 2880, all, all}, Pass::forward, device,
                       Precision::bf16);
  };
  const Seconds streamed = time(0, 0), one = time(1, 4), two = time(2, 4);
  const double each = 65536.0 * 2880 * 350e-12 / 132;
  CHECK((two - one).value == doctest::Approx(each));
  CHECK(one < streamed + Seconds(each));  // four of ten bytes go with the elements
  const double memory = device.memory_bandwidth.value;
  device.memory_bandwidth = BytesPerSecond(1.6 * memory);
  CHECK(time(0, 0) < streamed);
  CHECK((time(2, 4) - time(1, 4)).value == doctest::Approx(each));
  device.multiprocessors = 264;
  CHECK((time(4, 4) - time(2, 4)).value == doctest::Approx(each));
  // Where memory is slow enough, its bytes bound such kernels too.
  device.memory_bandwidth = BytesPerSecond(0.01 * memory);
  CHECK(time(1, 4) == time(0, 0));
}

TEST_CASE("every operator takes time in every pass it has, but collectives") {
  const DeviceSpec device = fixtures::device();
  const Op ops[] = {Linear{128, 64, 32, true, false},
                    AttentionScores{8, 128, 64},
                    AttentionContext{8, 128, 64},
                    Softmax{1024, 128, true},
                    FlashAttention{2, 128, 8, 2, 64, true},
                    Dropout{128, 64},
                    Norm{128, 64, Normalization::rmsnorm},
                    Activation{128, 64, true, true},
                    BiasDropoutAdd{128, 64, true, true, false},
                    Rotary{128, 64},
                    Embedding{128, 64, 1000},
                    PositionEmbedding{128, 64, 128},
                    CrossEntropy{128, 1000, LossKernel::unfused},
                    UnfusedPasses{128, 64, {8, 3, 3}, {10, 3, 3}}};
  for (const Op& op : ops) {
    for (const auto pass : {Pass::forward, Pass::input_gradient}) {
      CAPTURE(name_of(op));
      CHECK(device_time(op, pass, device, Precision::fp16).value > 0);
      CHECK(work_of(op, pass, 2).moved.value > 0);
      CHECK(work_of(op, pass, 2).kernels > 0);
    }
  }
  CHECK(has_pass(ops[0], Pass::weight_gradient));
  CHECK_FALSE(has_pass(ops[6], Pass::weight_gradient));
  const Op collective =
      Collective{CollectiveKind::all_reduce, CollectiveKind::none, Axis::tensor, Bytes(1e9)};
  CHECK(device_time(collective, Pass::forward, device, Precision::fp16).value == 0);
}

TEST_CASE("flash attention reaches its share of the peak, and half the work under a causal mask") {
  const DeviceSpec device = fixtures::device();
  const double product = 2.0 * 4 * 32 * 4096 * 4096 * 128;
  const auto time = [&](bool skip, Pass pass) {
    return device_time(FlashAttention{4, 4096, 32, 32, 128, skip}, pass, device, Precision::bf16)
        .value;
  };
  CHECK(relative_error(time(false, Pass::forward), 2 * product / (312e12 * 0.6)) <= 1e-12);
  CHECK(relative_error(time(true, Pass::forward), product / (312e12 * 0.6)) <= 1e-12);
  CHECK(relative_error(time(true, Pass::input_gradient), 2.5 * product / (312e12 * 0.5)) <= 1e-12);
}

TEST_CASE(
    "causal attention on few tokens is slower, and so is an older kernel where a better exists") {
  DeviceSpec device = fixtures::device();
  device.attention_half_sequence = 490;
  device.attention2_forward = 0.3;
  const auto rate = [&](std::int64_t s, bool causal, bool second) {
    const FlashAttention op{1, s, 512, 512, 128, causal, second};
    const Work work = work_of(op, Pass::forward, 2);
    return work.executed.value / device_time(op, Pass::forward, device, Precision::bf16).value;
  };
  CHECK(relative_error(rate(4096, true, false), rate(1 << 20, true, false) * 4096 / 4586) <= 1e-3);
  CHECK(relative_error(rate(4096, false, false), rate(8192, false, false)) <= 1e-12);
  CHECK(relative_error(rate(8192, true, true) * device.attention_forward,
                       rate(8192, true, false) * 0.3) <= 1e-12);
}

namespace {

// When the last block of FlashAttention 2 ends, given out in order to whoever is free: `rows` rows
// of n blocks, of which block i has i + 1 to do with a causal mask (forward; backward the other
// way round), and each one more to begin and end.
double last_end(std::int64_t rows, std::int64_t n, bool forward, std::size_t places) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (std::size_t i = 0; i < places; ++i) free.push(0);
  double last = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < n; ++i) {
      const double end = free.top() + static_cast<double>(forward ? i + 2 : n - i + 1);
      free.pop();
      free.push(end);
      last = std::max(last, end);
    }
  }
  return last;
}

}  // namespace

TEST_CASE("a measured attention kernel of other blocks is as full as its schedule") {
  DeviceSpec device = fixtures::device();
  device.multiprocessors = 132;
  for (const Pass pass : {Pass::forward, Pass::input_gradient}) {
    device.attention2_measured.push_back({MeasuredOp::flash_attention,
                                          pass,
                                          Precision::bf16,
                                          {{1024, 32768}, {64, 128}},
                                          {3e14, 3e14, 3e14, 3e14}});
  }
  for (const Pass pass : {Pass::forward, Pass::input_gradient}) {
    const bool forward = pass == Pass::forward;
    for (const std::int64_t s : {1024, 2048, 4096, 8192, 16384}) {
      const auto time = [&](std::int64_t heads) {
        FlashAttention op{1, s, heads, heads, 128, true, true};
        op.as_measured = true;
        return device_time(op, pass, device, Precision::bf16).value;
      };
      const std::int64_t timed = std::max<std::int64_t>(1, 8192 / s) * 32;
      for (const std::int64_t heads : {16, 24, 32, 56, 128}) {
        const std::size_t places = forward ? 264 : 132;
        const double scheduled =
            last_end(heads, s / 128, forward, places) / last_end(timed, s / 128, forward, places);
        // No faster than what was timed.
        const double slower =
            std::max(scheduled, static_cast<double>(heads) / static_cast<double>(timed));
        CAPTURE(s);
        CAPTURE(heads);
        CHECK(relative_error(time(heads) / time(timed), slower) <= 0.07);
      }
    }
  }
}

TEST_CASE("eight-bit products leave attention in 16 bits") {
  DeviceSpec device = fixtures::device();
  device.peak[static_cast<std::size_t>(Precision::fp8)] = FlopsPerSecond(624e12);
  const FlashAttention attention{4, 4096, 32, 32, 128, false};
  CHECK(device_time(attention, Pass::forward, device, Precision::fp8).value ==
        device_time(attention, Pass::forward, device, Precision::bf16).value);
  // Twice the rate, and operands cast to eight bits once: x and W in forward, the output gradient
  // in backward, read in two bytes, written in one and transposed in one.
  const Linear linear{8192, 8192, 8192, false, false};
  const Bytes operand(8192.0 * 8192 * 4);
  const auto narrow_less_half = [&](Pass pass) {
    return device_time(linear, pass, device, Precision::fp8) -
           0.5 * device_time(linear, pass, device, Precision::bf16);
  };
  CHECK(relative_error(narrow_less_half(Pass::forward).value,
                       streaming_time(2 * operand, 2, device).value) <= 1e-9);
  CHECK(relative_error(narrow_less_half(Pass::input_gradient).value,
                       streaming_time(operand, 1, device).value) <= 1e-9);
  CHECK(std::abs(narrow_less_half(Pass::weight_gradient).value) <= 1e-15);
}

TEST_CASE("a frozen weight of 8 bits that is kept once is transposed for its input gradient") {
  DeviceSpec device = fixtures::device();
  device.peak[static_cast<std::size_t>(Precision::fp8)] = FlopsPerSecond(624e12);
  constexpr double m = 8192, n = 4096, k = 2048;
  Linear trained{8192, 4096, 2048, false, false};
  trained.narrow_weight = true;
  Linear frozen = trained;
  frozen.weight_once = true;
  const auto longer = [&](Pass pass) {
    return device_time(frozen, pass, device, Precision::fp8).value -
           device_time(trained, pass, device, Precision::fp8).value;
  };
  const auto moved = [&](double bytes) { return streaming_time(Bytes(bytes), 0, device).value; };
  const double start = streaming_time(Bytes(0), 1, device).value;
  // What is not transposed, a byte less; W itself, in one byte and out one.
  CHECK(relative_error(-longer(Pass::forward), moved(m * k)) <= 1e-6);
  CHECK(relative_error(longer(Pass::input_gradient) - start, moved(2 * n * k) - moved(m * n)) <=
        1e-6);
}

TEST_CASE("weights that are kept narrow are cast once, fp8 ones turned") {
  const DeviceSpec device = fixtures::device();
  Linear op{8192, 4096, 2048, false, false};
  const auto time = [&](const Op& of, Precision p) {
    return weight_cast_time(of, device, p).value;
  };
  const auto moved = [&](double bytes, int kernels) {
    return streaming_time(Bytes(bytes), kernels, device).value;
  };
  CHECK(time(op, Precision::mxfp8) == doctest::Approx(moved(5.1 * 4096 * 2048, 1)));
  CHECK(time(op, Precision::nvfp4) == doctest::Approx(moved(7.4 * 4096 * 2048, 1)));
  CHECK(time(op, Precision::fp8) == doctest::Approx(moved(2.0 * 4096 * 2048, 1)));
  CHECK(time(op, Precision::bf16) == 0);
  const Op experts = GroupedLinear{65536, 4096, 2048, 8, false, {}};
  CHECK(time(experts, Precision::mxfp8) == doctest::Approx(moved(8 * 5.1 * 4096 * 2048, 8)));
  op.wide = true;
  CHECK(time(op, Precision::mxfp8) == 0);
  CHECK(time(Norm{2048, 4096, Normalization::layernorm}, Precision::mxfp8) == 0);
}

TEST_CASE("narrow weight gradients of products in groups have a rate of their own") {
  DeviceSpec device = fixtures::device();
  device.peak[static_cast<std::size_t>(Precision::fp8)] =
      device.peak[static_cast<std::size_t>(Precision::fp16)];
  const Op op = GroupedLinear{65536, 4096, 4096, 8, false, {}};
  const auto time = [&](Pass pass, Precision precision) {
    return device_time(op, pass, device, precision).value;
  };
  const double wide = time(Pass::weight_gradient, Precision::fp16);
  const double narrow = time(Pass::weight_gradient, Precision::fp8);
  const double forward = time(Pass::forward, Precision::fp8);
  device.narrow_group_gradient = 0.5;
  CHECK(relative_error(time(Pass::weight_gradient, Precision::fp8), 2 * narrow) <= 1e-9);
  CHECK(time(Pass::weight_gradient, Precision::fp16) == wide);
  CHECK(time(Pass::forward, Precision::fp8) == forward);
}

}  // namespace device_time_test
