// Runs the operators of op_cases.hpp on a device and on the CPU with the same data, and compares.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "runtime/cpu/flash_attention.hpp"
#include "runtime/devices/cpu_device.hpp"
#include "tests/runtime/support/attention_amounts.hpp"
#include "tests/runtime/support/op_cases.hpp"
#include "tests/runtime/support/rounding.hpp"

namespace op_test {

using runtime::Number;

inline std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// A case's buffers where a device's tensors live, in its format.
class Placed {
 public:
  Placed(const OpCase& one, runtime::Memory& memory, Number number)
      : case_(one), memory_(memory), number_(number) {
    for (const Buffer& buffer : one.buffers) {
      places_.push_back(memory.allocate(size_of(buffer)));
      memory.write(places_.back(), size_of(buffer), [&](std::span<std::byte> to) {
        if (!is_narrow(buffer))
          std::copy_n(buffer.bytes.begin(), to.size(), to.begin());
        else
          runtime::host_memory().round(
              floats_of(buffer.bytes),
              {to.data(), to.size() / runtime::bytes_of(number_), number_});
      });
    }
  }
  ~Placed() {
    for (void* place : places_) memory_.release(place);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  runtime::OpCall call() const {
    runtime::OpCall call{.node = case_.node, .place = case_.place};
    const auto fill = [&](auto& to, const std::vector<int>& ids) {
      for (std::size_t i = 0; i < ids.size(); ++i) to[i] = tensor(ids[i]);
    };
    fill(call.inputs, case_.inputs);
    fill(call.saved, case_.saved);
    fill(call.input_gradients, case_.input_gradients);
    call.output = tensor(case_.output);
    call.output_gradient = tensor(case_.output_gradient);
    call.matrix = vector(case_.matrix);
    call.bias = vector(case_.bias);
    call.matrix_gradient = tensor(case_.matrix_gradient).floats();
    call.bias_gradient = tensor(case_.bias_gradient).floats();
    call.table_layout = case_.table;
    call.accumulate[0] = case_.accumulate;
    return call;
  }
  // As the case has them: floats again.
  std::vector<std::byte> bytes(std::size_t buffer) const {
    std::vector<std::byte> read(size_of(case_.buffers[buffer]));
    memory_.read(places_[buffer], read);
    if (!is_narrow(case_.buffers[buffer])) return read;
    std::vector<float> wide(read.size() / runtime::bytes_of(number_));
    runtime::in_format(number_, [&](auto value) {
      for (std::size_t i = 0; i < wide.size(); ++i) {
        std::memcpy(&value, read.data() + i * sizeof value, sizeof value);
        wide[i] = value;
      }
    });
    const auto bytes = std::as_bytes(std::span(wide));
    return {bytes.begin(), bytes.end()};
  }

 private:
  runtime::Tensor tensor(int id) const {
    if (id < 0) return {};
    const auto at = static_cast<std::size_t>(id);
    return {places_[at], size_of(case_.buffers[at])};
  }
  runtime::Vector vector(int id) const {
    const runtime::Tensor of = tensor(id);
    return {of.data, of.bytes / runtime::bytes_of(number_), number_};
  }
  bool is_narrow(const Buffer& buffer) const {
    return number_ != Number::f32 && buffer.floats && !buffer.wide;
  }
  std::size_t size_of(const Buffer& buffer) const {
    return is_narrow(buffer) ? buffer.bytes.size() / 2 : buffer.bytes.size();
  }
  const OpCase& case_;
  runtime::Memory& memory_;
  Number number_;
  std::vector<void*> places_;
};

inline void run_passes(runtime::Device& device, const runtime::OpCall& call) {
  if (std::holds_alternative<costmodel::CrossEntropy>(call.node.op)) {
    device.logits_maximum(call);
    device.logits_exponentials(call);
    device.logits_loss(call);
  } else {
    device.forward(call);
  }
  device.input_gradient(call);
  if (std::holds_alternative<costmodel::Linear>(call.node.op)) device.weight_gradient(call);
}

// The largest difference of two tensors of floats, relative to the largest of the second; NaN only
// where both are. Numbers from `masked` on, of either sign, are as good as infinite.
inline double relative_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                                  float masked) {
  const std::vector<float> x = floats_of(a), y = floats_of(b);
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return INFINITY;
    const bool both = std::abs(x[i]) >= masked && std::abs(y[i]) >= masked && std::isfinite(x[i]);
    if (std::isnan(y[i]) || both) continue;
    worst = std::max(worst, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    largest = std::max(largest, std::abs(static_cast<double>(y[i])));
  }
  return worst / largest;
}

// What the order of its products' sums may change in each float of a case, by buffer; nothing where
// a buffer is no product's.
using Allowances = std::vector<std::vector<double>>;

// The case with the absolute values of its numbers.
inline OpCase absolute(OpCase one) {
  for (Buffer& buffer : one.buffers) {
    if (!buffer.floats) continue;
    std::vector<float> values = floats_of(buffer.bytes);
    for (float& value : values) value = std::abs(value);
    std::memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
  }
  return one;
}

// Of operators that are linear in each tensor they read, what they make of absolute values.
inline Allowances allowed_of_products(const OpCase& one, double roundings) {
  const OpCase positive = absolute(one);
  runtime::CpuDevice cpu;
  const Placed placed(positive, cpu.memory(), Number::f32);
  run_passes(cpu, placed.call());
  Allowances all(one.buffers.size());
  for (std::size_t b = 0; b < all.size(); ++b)
    for (const float amount : floats_of(placed.bytes(b)))
      all[b].push_back(2 * rounding::gamma(roundings, rounding::unit<float>) * amount);
  return all;
}

inline Allowances allowed_of_attention(const OpCase& one, const costmodel::FlashAttention& op) {
  const auto doubles = [&](int buffer) {
    const auto floats = floats_of(one.buffers[static_cast<std::size_t>(buffer)].bytes);
    return std::vector<double>(floats.begin(), floats.end());
  };
  const auto qkv = doubles(one.inputs[0]), dout = doubles(one.output_gradient);
  const rounding::AttentionAmounts amounts(runtime::cpu::layout_of(op), qkv, dout);
  Allowances all(one.buffers.size());
  const auto allow = [&](int buffer, std::vector<double> of) {
    for (double& amount : of)
      amount *= 2 * rounding::gamma(amounts.roundings, rounding::unit<float>);
    all[static_cast<std::size_t>(buffer)] = std::move(of);
  };
  allow(one.output, amounts.out);
  allow(one.saved[1], amounts.log_sum_exp);
  allow(one.input_gradients[0], amounts.dqkv);
  return all;
}

// Both results are rounded, each product of at most so many terms and a few more times.
inline Allowances allowed_of(const OpCase& one) {
  const costmodel::Op& op = one.node.op;
  const Place& p = one.place;
  if (const auto* linear = std::get_if<costmodel::Linear>(&op))
    return allowed_of_products(
        one, static_cast<double>(std::max({linear->m, linear->n, linear->k}) + 4));
  if (std::holds_alternative<costmodel::AttentionScores>(op) ||
      std::holds_alternative<costmodel::AttentionContext>(op))
    return allowed_of_products(
        one, static_cast<double>(p.sequence * p.heads / p.kv_heads + p.head_dim + 4));
  if (const auto* flash = std::get_if<costmodel::FlashAttention>(&op))
    return allowed_of_attention(one, *flash);
  return Allowances(one.buffers.size());
}

// The largest difference of two tensors of floats in units of what it may be: `tolerance` of the
// largest of the second, and what is allowed beside it. As relative_difference else.
inline double excess(const std::vector<std::byte>& a, const std::vector<std::byte>& b, float masked,
                     double tolerance, const std::vector<double>& allowed) {
  if (allowed.empty()) return relative_difference(a, b, masked) / tolerance;
  const std::vector<float> x = floats_of(a), y = floats_of(b);
  double worst = 0, largest = 0;
  for (const float value : y)
    if (std::abs(value) < masked) largest = std::max(largest, static_cast<double>(std::abs(value)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) return INFINITY;
    const double error = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
    if (error > 0) worst = std::max(worst, error / (tolerance * largest + allowed[i]));
  }
  return worst;
}

// The numbers of the cases that `word` picks, by name ("softmax", of which there are several) or by
// number; of all without a word.
inline std::vector<std::size_t> picked_cases(const std::vector<OpCase>& cases, const char* word) {
  std::vector<std::size_t> picked;
  for (std::size_t i = 0; i < cases.size(); ++i)
    if (word == nullptr || cases[i].name == word || std::to_string(i) == word) picked.push_back(i);
  return picked;
}

// `tolerance`: of floats, where the CPU has the same numbers as a device of another format, beside
// what the order of products' sums may change; all else is equal. $SHARDPLAN_OP_CASE picks cases,
// so that one that failed can be run alone.
inline void compare_with_cpu(runtime::Device& device, double tolerance,
                             Number number = Number::f32) {
  auto cases = all_cases();
  const float masked = number == Number::f16 ? 65504.0F : 1e30F;
  const char* const word = std::getenv("SHARDPLAN_OP_CASE");
  const auto picked = picked_cases(cases, word);
  REQUIRE_MESSAGE(!picked.empty(), "SHARDPLAN_OP_CASE names no operator case");
  for (const std::size_t op_case : picked) {
    OpCase& one = cases[op_case];
    CAPTURE(op_case);
    CAPTURE(one.name);
    const std::size_t first = one.buffers.front().bytes.size();
    CAPTURE(first);
    runtime::CpuDevice cpu;
    const Placed own(one, device.memory(), number);
    for (std::size_t b = 0; b < one.buffers.size(); ++b) one.buffers[b].bytes = own.bytes(b);
    const Allowances allowed = allowed_of(one);
    const Placed reference(one, cpu.memory(), Number::f32);
    run_passes(device, own.call());
    run_passes(cpu, reference.call());
    for (std::size_t b = 0; b < one.buffers.size(); ++b) {
      CAPTURE(b);
      if (one.buffers[b].floats)
        CHECK(excess(own.bytes(b), reference.bytes(b), masked, tolerance, allowed[b]) <= 1);
      else
        CHECK(own.bytes(b) == reference.bytes(b));
    }
  }
}

}  // namespace op_test
