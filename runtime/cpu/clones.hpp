// Loops of the CPU kernels that are compiled for several processors, the best of which is taken at
// run time. No fused multiply-adds and no sums in another order: all give the same bytes.
#pragma once

#ifdef RUNTIME_CPU_CLONES
#define RUNTIME_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RUNTIME_CLONES
#endif
