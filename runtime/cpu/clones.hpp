// Marks loops of the CPU kernels for compilation for several processors; the best clone is chosen
// at run time. No fused multiply-adds and no reordered sums: all clones give identical bytes.
#pragma once

#if defined(RUNTIME_CPU_CLONES) && !defined(__clang__)  // clang-tidy gets g++'s flags
#define RUNTIME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUNTIME_CLONES
#endif
