// Splits a GPU into virtual devices by green contexts: streams whose kernels run on a subset of the
// multiprocessors (SMs). The parts share memory, caches and bandwidth, and the driver does not
// promise that their kernels run concurrently.
#pragma once

#include <cuda_runtime_api.h>

namespace runtime::cuda {

// A stream on part `part` of GPU `device`, split into `parts` of `each` multiprocessors. All parts
// of a GPU come from one split, made at the first call and kept until the process ends; a later
// call with another split throws. Throws std::runtime_error when the driver does not support green
// contexts.
cudaStream_t new_stream_of_part(int device, int parts, int each, int part);

}  // namespace runtime::cuda
