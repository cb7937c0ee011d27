// Loops of the CPU kernels that are compiled for several processors, the best of which is taken at
// run time. No fused multiply-adds and no sums in another order: all give the same bytes.
#pragma once

#if defined(RUNTIME_CPU_CLONES) && !defined(__clang__)  // clang-tidy reads what g++ is told
#define RUNTIME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUNTIME_CLONES
#endif
