#include <dnnl.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cpu/gemm_float.hpp"

// From the OpenMP library that oneDNN uses; its <omp.h> would have to be this compiler's.
extern "C" void omp_set_num_threads(int threads);

namespace runtime::cpu {

const char* const float_provider = "oneDNN";

namespace {

// OpenMP keeps the number of threads per calling thread: every rank sets it once.
void stay_on_this_thread() {
#ifdef RUNTIME_CPU_OPENMP
  thread_local const bool alone = (omp_set_num_threads(1), true);
  static_cast<void>(alone);
#endif
}

// oneDNN makes its kernels in the first product of a process, and a process that has no memory for
// them ends by a signal there: more than they take is asked for before. Throws std::bad_alloc.
void make_kernels() {
  [[maybe_unused]] static const bool made = [] {
    constexpr std::size_t room = std::size_t{32} << 20;
    constexpr dnnl_dim_t n = 16;
    ::operator delete(::operator new(room));
    const std::vector<float> ones(n * n, 1);
    std::vector<float> product(n * n);
    return dnnl_sgemm('N', 'N', n, n, n, 1, ones.data(), n, ones.data(), n, 0, product.data(), n) ==
           dnnl_success;
  }();
}

void multiply_as_stored(const Gemm& g, const float* a, const float* b, float* c) {
  const auto letter = [](bool transpose) { return transpose ? 'T' : 'N'; };
  const dnnl_status_t status = dnnl_sgemm(letter(g.transpose_a), letter(g.transpose_b), g.m, g.n,
                                          g.k, static_cast<float>(g.alpha), a, g.lda, b, g.ldb,
                                          static_cast<float>(g.beta), c, g.ldc);
  if (status != dnnl_success)
    throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(status));
}

// With few rows oneDNN reads b in place. Rows of b at strides of half a page or more map to the
// same few sets of the first-level cache, and the product takes up to twice as long (Zen 3, b
// aligned to 32 bytes or more; 64 to 512 rows).
bool collides(const Gemm& g) {
  constexpr std::int64_t half_a_page = 2048 / sizeof(float);
  return !g.transpose_b && g.ldb % half_a_page == 0 && g.m >= 64 && g.m < 512 && g.k > 0;
}

// Columns of b per step: their copy stays in a cache until it is multiplied.
std::int64_t panel_of(const Gemm& g) {
  constexpr std::int64_t floats = std::int64_t{1} << 18, step = 64;
  return std::clamp<std::int64_t>(floats / g.k / step * step, step, 4 * step);
}

void multiply_panels(const Gemm& g, const float* a, const float* b, float* c) {
  constexpr std::int64_t aside = 16;  // a cache line of padding per row
  const std::int64_t width = std::min(panel_of(g), g.n), stride = width + aside;
  thread_local std::vector<float> copied;
  copied.resize(std::max(copied.size(), static_cast<std::size_t>(g.k * stride)));
  for (std::int64_t first = 0; first < g.n; first += width) {
    Gemm panel = g;
    panel.n = std::min(width, g.n - first);
    panel.ldb = stride;
    for (std::int64_t row = 0; row < g.k; ++row)
      std::copy_n(b + row * g.ldb + first, panel.n, copied.data() + row * stride);
    multiply_as_stored(panel, a, copied.data(), c + first);
  }
}

}  // namespace

void multiply_floats(const Gemm& g, const float* a, const float* b, float* c) {
  stay_on_this_thread();
  make_kernels();
  (collides(g) ? multiply_panels : multiply_as_stored)(g, a, b, c);
}

}  // namespace runtime::cpu
