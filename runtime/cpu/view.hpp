// The arguments of every kernel: contiguous memory of one element type, row-major. T is never
// deduced: kernels are called as f(...) for float and as f<double>(...) by tests, which compare
// gradients with finite differences in double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace runtime::cpu {

template <class T>
using In = std::type_identity_t<std::span<const T>>;
template <class T>
using Out = std::type_identity_t<std::span<T>>;
using Tokens = std::span<const std::int64_t>;

// Throws std::invalid_argument with the name of the tensor when it has not that many elements.
void expect_size(std::size_t elements, std::int64_t expected, const char* tensor);

}  // namespace runtime::cpu
