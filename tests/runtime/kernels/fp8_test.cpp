// The formats of eight bits against their specification, the casts of tensors, and products and
// training in fp8 against those in fp32.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime/kernels/fp8.hpp"
#include "runtime/run/run_command.hpp"
#include "tests/runtime/support/host_executor.hpp"
#include "tests/runtime/support/op_compare.hpp"
#include "tests/runtime/support/trained.hpp"

namespace fp8_test {

namespace cpu_fp8_test {

using runtime::Bf16;
using runtime::E4M3;
using runtime::E5M2;
using runtime::fp8_scale;
using Floats = std::vector<float>;

namespace {

template <class Format>
float number(int code) {
  return static_cast<float>(std::bit_cast<Format>(static_cast<std::uint8_t>(code)));
}

// OFP8's value of a code: (-1)^S · 2^(E - bias) · 1.M, below the first exponent 2^(1 - bias) · 0.M.
float specified(int code, int mantissa, int bias) {
  const int exponent = (code & 0x7f) >> mantissa, steps_up = code & ((1 << mantissa) - 1);
  const int whole = exponent == 0 ? 0 : 1 << mantissa;
  const double value =
      std::ldexp(whole + steps_up, (exponent == 0 ? 1 : exponent) - bias - mantissa);
  return static_cast<float>(code < 0x80 ? value : -value);
}

// Codes 0 to `largest` are numbers; each is its own, and what lies between two goes to the nearer,
// or to the even one.
template <class Format>
void check_numbers(int mantissa, int bias, int largest) {
  for (int code = 0; code < 0x100; ++code) {
    CAPTURE(code);
    if ((code & 0x7f) > largest) continue;
    CHECK(number<Format>(code) == specified(code, mantissa, bias));
    CHECK(Format(number<Format>(code)).bits() == code);
  }
  for (int code = 0; code < largest; ++code) {
    CAPTURE(code);
    const float low = number<Format>(code), high = number<Format>(code + 1);
    REQUIRE(low < high);
    const float middle = low + (high - low) / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    for (const int sign : {0, 0x80}) {
      const auto rounded = [&](float value) { return Format(sign == 0 ? value : -value).bits(); };
      CHECK(rounded(middle) == (even | sign));
      CHECK(rounded(std::nextafter(middle, 0.0F)) == (code | sign));
      CHECK(rounded(std::nextafter(middle, INFINITY)) == ((code + 1) | sign));
    }
  }
  const float most = number<Format>(largest);
  for (const float more :
       {std::nextafter(most, INFINITY), 1.04F * most, 2 * most, 3e38F, INFINITY}) {
    CHECK(Format(more).bits() == largest);
    CHECK(Format(-more).bits() == (largest | 0x80));
  }
  CHECK(std::isnan(static_cast<float>(Format(NAN))));
}

Floats normals(std::int64_t count, std::uint64_t stream) {
  Floats values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = runtime::cpu::normal(7, stream, i);
  return values;
}

float largest_of(const Floats& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// What fp8 leaves of a tensor: scaled, rounded, and scaled back.
template <class Format>
Floats quantised(const Floats& values) {
  const float scale = fp8_scale<Format>(largest_of(values));
  Floats result;
  for (const float value : values)
    result.push_back(static_cast<float>(Format(value * scale)) * (1 / scale));
  return result;
}

// Root of the mean square of the difference, relative to that of the second.
double deviation(const Floats& own, const Floats& reference) {
  REQUIRE(own.size() == reference.size());
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    difference += std::pow(static_cast<double>(own[i]) - static_cast<double>(reference[i]), 2);
    all += std::pow(static_cast<double>(reference[i]), 2);
  }
  return std::sqrt(difference / all);
}

}  // namespace

TEST_CASE("every code of E4M3 and E5M2 is the specification's number, and rounding finds it") {
  check_numbers<E4M3>(3, 7, 0x7e);
  check_numbers<E5M2>(2, 15, 0x7b);
  for (const int sign : {0, 0x80}) {  // OFP8, table 2
    CHECK(std::abs(number<E4M3>(0x7e | sign)) == 448);
    CHECK(std::abs(number<E4M3>(0x08 | sign)) == 0x1p-6F);
    CHECK(std::abs(number<E4M3>(0x01 | sign)) == 0x1p-9F);
    CHECK(std::isnan(number<E4M3>(0x7f | sign)));
    CHECK(std::abs(number<E5M2>(0x7b | sign)) == 57344);
    CHECK(std::abs(number<E5M2>(0x04 | sign)) == 0x1p-14F);
    CHECK(std::abs(number<E5M2>(0x01 | sign)) == 0x1p-16F);
    CHECK(std::isinf(number<E5M2>(0x7c | sign)));
    for (const int nan : {0x7d, 0x7e, 0x7f}) CHECK(std::isnan(number<E5M2>(nan | sign)));
  }
}

TEST_CASE("a scale makes the largest magnitude the format's, where there is one") {
  CHECK(fp8_scale<E4M3>(448) == 1);
  CHECK(fp8_scale<E4M3>(7) == 64);
  CHECK(fp8_scale<E5M2>(7) == 8192);
  for (const float none : {0.0F, INFINITY, NAN}) CHECK(fp8_scale<E4M3>(none) == 1);
  CHECK(std::isfinite(fp8_scale<E4M3>(1e-40F)));
  for (const float most : {0.1F, 3.0F, 1e20F, 1e-30F})
    CHECK(E4M3(most * fp8_scale<E4M3>(most)).bits() == 0x7e);
}

namespace {

template <class Format>
void check_cast(std::int64_t rows, std::int64_t cols, int team) {
  using namespace runtime::kernels;
  const auto values = normals(rows * cols, 1);
  struct alignas(16) Lines {
    Bf16 of[16];
  };
  std::vector<Lines> lines(values.size() / 16);
  Floats x;
  for (std::size_t i = 0; i < values.size(); ++i) {
    lines[i / 16].of[i % 16] = Bf16(values[i]);
    x.push_back(static_cast<float>(Bf16(values[i])));
  }
  const Bf16* const from = lines.front().of;
  const Index parts = LargestOfParts<Bf16>::parts_of(rows * cols);
  Floats largest(static_cast<std::size_t>(parts)), scale(2 * scale_step);
  run_team(team, parts, LargestOfParts<Bf16>{rows * cols, from, largest.data()});
  run_team(team, 1, ScaleOfParts<Format>{parts, largest.data(), scale.data()});
  CHECK(scale[0] == fp8_scale<Format>(largest_of(x)));
  CHECK(scale[scale_step] == 1 / scale[0]);
  std::vector<Format> codes(x.size()), turned(x.size());
  const CastTo<Bf16, Format> cast{rows, cols, from, scale.data(), codes.data(), turned.data()};
  for (Index i = 0; i < cast.elements(); ++i) cast(i);
  bool same = true;
  for (Index row = 0; row < rows; ++row) {
    for (Index col = 0; col < cols; ++col) {
      const auto at = static_cast<std::size_t>(row * cols + col);
      const std::uint8_t code = Format(x[at] * scale[0]).bits();
      same = same && codes[at].bits() == code;
      same = same && turned[static_cast<std::size_t>(col * rows + row)].bits() == code;
    }
  }
  CHECK(same);
}

}  // namespace

TEST_CASE("a tensor is cast with its own scale, as it lies and transposed, by any team") {
  check_cast<E4M3>(48, 112, 1);  // two parts, the second not whole
  check_cast<E4M3>(16, 16, 3);
  check_cast<E5M2>(80, 64, 4);
  CHECK(runtime::kernels::fits_fp8(32, 48, nullptr));
  CHECK_FALSE(runtime::kernels::fits_fp8(32, 40, nullptr));
  CHECK_FALSE(runtime::kernels::fits_fp8(8, 48, nullptr));
  CHECK_FALSE(runtime::kernels::fits_fp8(32, 48, reinterpret_cast<const void*>(8)));
}

namespace {

class Fp8OnHost : public KernelDeviceOnHost<Bf16> {
 public:
  Fp8OnHost() : KernelDeviceOnHost<Bf16>(true) {}
};

// y, dx, dw and dbias of a product, in fp32.
struct Passes {
  Floats y, dx, dw, dbias;
};

Passes passes_of(runtime::Device& device, const op_test::OpCase& one, runtime::Number number) {
  const op_test::Placed placed(one, device.memory(), number);
  op_test::run_passes(device, placed.call());
  const auto floats = [&](int buffer) -> Floats {
    if (buffer < 0) return {};
    return op_test::floats_of(placed.bytes(static_cast<std::size_t>(buffer)));
  };
  return {floats(one.output), floats(one.input_gradients[0]), floats(one.matrix_gradient),
          floats(one.bias_gradient)};
}

// As the CPU's of the case, with the numbers of these buffers fake-quantised.
Passes reference_of(const op_test::OpCase& one, bool casts) {
  runtime::CpuDevice cpu;
  const auto with = [&](auto quantise_x, auto quantise_w, auto quantise_dy) {
    op_test::OpCase changed = one;
    const auto change = [&](int buffer, auto quantise) {
      auto& bytes = changed.buffers[static_cast<std::size_t>(buffer)].bytes;
      const Floats values = quantise(op_test::floats_of(bytes));
      std::memcpy(bytes.data(), values.data(), bytes.size());
    };
    change(one.inputs[0], quantise_x);
    change(one.matrix, quantise_w);
    change(one.output_gradient, quantise_dy);
    return passes_of(cpu, changed, runtime::Number::f32);
  };
  const auto same = [](Floats values) { return values; };
  const auto exact = with(same, same, same);
  if (!casts) return exact;
  Passes all = with(quantised<E4M3>, quantised<E4M3>, quantised<E5M2>);
  all.dbias = exact.dbias;  // of the gradient as it is
  return all;
}

// The case with its numbers as bf16 has them.
op_test::OpCase in_bf16(op_test::OpCase one) {
  for (auto& buffer : one.buffers) {
    if (buffer.wide) continue;
    Floats values = op_test::floats_of(buffer.bytes);
    for (float& value : values) value = static_cast<float>(Bf16(value));
    std::memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
  }
  return one;
}

}  // namespace

TEST_CASE(
    "a product in fp8 is that of the quantised numbers, and a few percent from the exact one") {
  const auto one = in_bf16(op_test::linear_case(64, 48, 96, true, false));
  Fp8OnHost device;
  const Passes own = passes_of(device, one, runtime::Number::bf16);
  const Passes fake = reference_of(one, true), exact = reference_of(one, false);
  CHECK(device.fp8_products() == 3);
  CHECK(deviation(own.y, fake.y) <= 2e-3);  // results are rounded to bf16
  CHECK(deviation(own.dx, fake.dx) <= 2e-3);
  // A sum of 64 products, and scales that are multiplied before it or behind it.
  const Floats amounts = reference_of(op_test::absolute(one), true).dw;
  CHECK(rounding::excess(own.dw, fake.dw, {amounts.begin(), amounts.end()},
                         2 * rounding::gamma(64 + 6, rounding::unit<float>)) <= 1);
  CHECK(deviation(own.dbias, exact.dbias) <= 1e-7);
  // Two operands of three bits behind the point; one of three and one of two.
  CHECK(deviation(own.y, exact.y) <= 0.04);
  CHECK(deviation(own.y, exact.y) >= 0.03);
  CHECK(deviation(own.dx, exact.dx) <= 0.065);
  CHECK(deviation(own.dw, exact.dw) <= 0.065);
}

TEST_CASE("what fp8 does not take is multiplied in bf16") {
  for (const bool table : {false, true}) {
    const auto one = table ? op_test::linear_case(64, 48, 96, false, true)
                           : op_test::linear_case(33, 65, 129, true, false);
    Fp8OnHost device;
    KernelDeviceOnHost<Bf16> plain;
    const Passes own = passes_of(device, one, runtime::Number::bf16);
    const Passes reference = passes_of(plain, one, runtime::Number::bf16);
    CHECK(device.fp8_products() == 0);
    CHECK(own.y == reference.y);
    CHECK(own.dx == reference.dx);
    CHECK(own.dw == reference.dw);
  }
}

TEST_CASE(
    "in fp8 a model learns nearly what it learns in fp32, and holds what the cost model says") {
  const FarMemory::Unwatched open;
  const char* plans[] = {
      "{micro_batch: 4}",
      "{tp: 2, sequence_parallel: true, pp: 2, micro_batch: 2, schedule: 1f1b}",
      "{dp: 2, zero: 1, micro_batch: 2, recompute: full}",
  };
  for (const std::string plan : plans) {
    for (const char* model : {training_test::gpt, training_test::llama}) {
      CAPTURE(plan);
      CAPTURE(model);
      const bool alone = plan == plans[0];
      if (thread_sanitized && (alone || model == training_test::gpt)) continue;
      const int ranks = alone ? 1 : plan.find("pp") == plan.npos ? 2 : 4;
      const auto s = training_test::scenario(model, "stack: shardplan-cpu", plan, ranks);
      const int count = alone ? training_test::steps_alone : training_test::steps_cut;
      const auto own =
          training_test::trained(training_test::in_16_bits(s, costmodel::Precision::fp8), count,
                                 std::make_unique<Fp8OnHost>);
      const auto reference = training_test::trained(s, count);
      // A code of three bits behind the point is off by 2^-4 at most; 256 tokens of their own make
      // a sixteenth of that, and logits that have hardly begun to differ an eighth.
      CHECK(training_test::loss_difference(own.measured.loss, reference.measured.loss) <=
            0x1p-4 / 16 / 8);
      for (std::size_t p = 0; p < own.measured.memory.size(); ++p) {
        const auto& held = own.measured.memory[p];
        const auto& predicted = own.predicted.memory[p];
        CHECK(held[0] == predicted.weights.value);
        CHECK(held[1] == predicted.gradients.value);
        CHECK(held[2] == predicted.optimizer.value);
        CHECK(held[3] == predicted.activations.value);
        CHECK(own.measured.traffic[p].send.value == own.predicted.rank_traffic[p].send.value);
      }
    }
  }
}

}  // namespace cpu_fp8_test

}  // namespace fp8_test
