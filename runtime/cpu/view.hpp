// The argument types of all kernels: contiguous row-major spans of one element type. T is never
// deduced: f(...) is the float kernel; tests call f<double>(...) to compare gradients with finite
// differences.
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

// Throws std::invalid_argument, naming the tensor, when the number of elements differs.
void expect_size(std::size_t elements, std::int64_t expected, const char* tensor);

}  // namespace runtime::cpu
