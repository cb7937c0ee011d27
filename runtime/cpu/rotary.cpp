#include "runtime/cpu/rotary.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/cpu/clones.hpp"

namespace runtime::cpu {

using namespace costmodel;

namespace {

// Rotates (first, second) by the angle; `direction` -1 rotates back.
template <class T>
RUNTIME_CLONES void turn(std::int64_t half, T direction, const T* cosine, const T* sine, const T* x,
                         T* y) {
  for (std::int64_t i = 0; i < half; ++i) {
    const T first = x[i], second = x[i + half], s = direction * sine[i];
    y[i] = first * cosine[i] - second * s;
    y[i + half] = second * cosine[i] + first * s;
  }
}

template <class T>
void turn_all(const Rotary& op, const HeadLayout& layout, const RotaryTable<T>& table, T direction,
              In<T> x, Out<T> y) {
  const std::int64_t turned = layout.heads + layout.kv_heads, dim = layout.head_dim;
  if (op.rows != layout.tokens() || op.cols != turned * dim || table.s != layout.s ||
      2 * table.half != dim)
    throw std::invalid_argument("the rotary embedding has another layout");
  expect_size(x.size(), op.rows * layout.columns(), "x");
  expect_size(y.size(), op.rows * layout.columns(), "y");
  for (std::int64_t row = 0; row < op.rows; ++row) {
    const T* from = x.data() + row * layout.columns();
    T* to = y.data() + row * layout.columns();
    const std::int64_t angles = row % layout.s * table.half;
    for (std::int64_t head = 0; head < turned; ++head) {
      turn(table.half, direction, table.cosine.data() + angles, table.sine.data() + angles,
           from + head * dim, to + head * dim);
    }
    if (to != from) std::copy(from + turned * dim, from + layout.columns(), to + turned * dim);
  }
}

}  // namespace

template <class T>
RotaryTable<T>::RotaryTable(std::int64_t positions, std::int64_t head_dim, double base,
                            std::int64_t first_position)
    : s(positions), half(head_dim / 2) {
  if (head_dim % 2 != 0) throw std::invalid_argument("a rotary embedding needs an even head_dim");
  cosine.reserve(static_cast<std::size_t>(s * half));
  sine.reserve(static_cast<std::size_t>(s * half));
  for (std::int64_t position = 0; position < s; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = rotary_angle(first_position + position, i, head_dim, base);
      cosine.push_back(static_cast<T>(std::cos(angle)));
      sine.push_back(static_cast<T>(std::sin(angle)));
    }
  }
}

template <class T>
void rotary_forward(const Rotary& op, const HeadLayout& layout,
                    const std::type_identity_t<RotaryTable<T>>& table, In<T> qkv, Out<T> out) {
  turn_all<T>(op, layout, table, T(1), qkv, out);
}

template <class T>
void rotary_gradient(const Rotary& op, const HeadLayout& layout,
                     const std::type_identity_t<RotaryTable<T>>& table, In<T> dout, Out<T> dqkv) {
  turn_all<T>(op, layout, table, T(-1), dout, dqkv);
}

template struct RotaryTable<float>;
template struct RotaryTable<double>;
template decltype(rotary_forward<float>) rotary_forward<float>;
template decltype(rotary_forward<double>) rotary_forward<double>;
template decltype(rotary_gradient<float>) rotary_gradient<float>;
template decltype(rotary_gradient<double>) rotary_gradient<double>;

}  // namespace runtime::cpu
