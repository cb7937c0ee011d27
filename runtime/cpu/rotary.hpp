// Rotary position embedding (Su et al. 2021, arXiv:2104.09864) of the query and key heads of a qkv
// tensor; values are copied. Element i of a head pairs with i + head_dim / 2 (not interleaved); the
// pair rotates by position · base^(-2i / head_dim).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "costmodel/operators/op.hpp"
#include "runtime/cpu/head_layout.hpp"
#include "runtime/cpu/view.hpp"

namespace runtime::cpu {

inline constexpr double rotary_base = 10000;

// The angle of pair i of a head at a position, in radians.
inline double rotary_angle(std::int64_t position, std::int64_t i, std::int64_t head_dim,
                           double base = rotary_base) {
  const double frequency =
      std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
  return static_cast<double>(position) * frequency;
}

// Cosines and sines [s, head_dim / 2] of the positions first_position ... first_position + s - 1.
template <class T = float>
struct RotaryTable {
  // Throws std::invalid_argument when head_dim is odd.
  RotaryTable(std::int64_t s, std::int64_t head_dim, double base = rotary_base,
              std::int64_t first_position = 0);
  std::int64_t s, half;
  std::vector<T> cosine, sine;
};

// Writes all of `out`, which may alias qkv. op.rows = tokens, op.cols = (heads + kv_heads) ·
// head_dim. Throws std::invalid_argument on a tensor or table of the wrong size.
template <class T = float>
void rotary_forward(const costmodel::Rotary& op, const HeadLayout& layout,
                    const std::type_identity_t<RotaryTable<T>>& table, In<T> qkv, Out<T> out);

// The inverse rotation: dqkv from dout; dqkv may alias dout.
template <class T = float>
void rotary_gradient(const costmodel::Rotary& op, const HeadLayout& layout,
                     const std::type_identity_t<RotaryTable<T>>& table, In<T> dout, Out<T> dqkv);

}  // namespace runtime::cpu
