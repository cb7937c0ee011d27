// A GPU cut into virtual devices by green contexts: streams whose kernels run on a part of its
// multiprocessors. They share its memory, its caches and its bandwidth, and the driver does not
// promise that they run side by side.
#pragma once

#include <cuda_runtime_api.h>

namespace runtime::cuda {

// A stream of part `part` of GPU `device` cut into `parts` of `each` multiprocessors. All parts of
// a GPU come from one split, made at the first call and kept until the process ends; a later call
// with another split throws. Throws std::runtime_error where the driver knows no green contexts.
cudaStream_t new_stream_of_part(int device, int parts, int each, int part);

}  // namespace runtime::cuda
