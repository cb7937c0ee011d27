// KernelDevice's fp8 products: both operands are cast for each product, each with its own scale,
// into memory that the plan does not count.
#pragma once

#include "runtime/kernels/kernel_device_class.hpp"

namespace runtime::kernels {

template <class Executor, class T>
template <class Format>
Codes<Format> KernelDevice<Executor, T>::cast(const Operand& from, float* codes, float* scale,
                                              float* largest) {
  const Index parts = LargestOfParts<T>::parts_of(from.count());
  run_.rows(parts, LargestOfParts<T>::part, LargestOfParts<T>{from.count(), from.values, largest});
  run_.rows(1, parts, ScaleOfParts<Format>{parts, largest, scale});
  auto* const to = reinterpret_cast<Format*>(codes);
  const CastTo<T, Format> kernel{from.rows,
                                 from.cols,
                                 from.values,
                                 scale,
                                 from.turned ? nullptr : to,
                                 from.turned ? to : nullptr};
  run_.elements(kernel.elements(), kernel);
  return {to, scale + scale_step};
}

template <class Executor, class T>
template <class A, class B, class Result>
bool KernelDevice<Executor, T>::fp8_product(const OpCall& call, const Operand& a, const Operand& b,
                                            const Ending<T>& ending, double beta, Result* c) {
  if constexpr (number_of<T> == Number::bf16) {
    if (!fp8_ || call.table_layout || !fits_fp8(a.rows, a.cols, a.values) ||
        !fits_fp8(b.rows, b.cols, b.values))
      return false;
    const cpu::Gemm gemm{
        .m = a.outer(), .n = b.outer(), .k = a.inner(), .transpose_b = true, .beta = beta};
    if (!can_end(ending, Number::bf16, number_of<Result>, gemm)) return false;
    constexpr Index in_a_float = sizeof(float), scales = 64;
    const Index of_a = a.count() / in_a_float, of_b = b.count() / in_a_float;
    const Index parts = LargestOfParts<T>::parts_of(std::max(a.count(), b.count()));
    float* const room = run_.scratch(of_a + of_b + scales + parts);
    float *const scale = room + of_a + of_b, *const largest = scale + scales;
    const Codes<A> left = cast<A>(a, room, scale, largest);
    const Codes<B> right = cast<B>(b, room + of_a, scale + 2 * scale_step, largest);
    return run_.fp8_product(gemm, left, right, ending, c);
  } else {
    return false;
  }
}

}  // namespace runtime::kernels
