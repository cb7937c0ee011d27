// NCCL as a fabric. Its library is loaded when it is first asked for, so that one GPU does without.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend/fabric.hpp"
#include "runtime/backend/streams.hpp"

namespace runtime::cuda {

// "" where NCCL can be used, else a sentence that says why not.
std::string nccl_missing();
// That the file of this name cannot be used as NCCL, and why; "" where it can.
std::string nccl_missing_in(const char* file);
int nccl_version();  // as NCCL encodes it; 0 where there is none

FabricId make_nccl_id();
// `streams` are a GPU's. Makes the communicators, and tries each once, so that no later call waits
// for another rank. Throws RunFault where one does not come, std::runtime_error for what NCCL says.
std::unique_ptr<Fabric> make_nccl_fabric(Streams& streams, const FabricRequest& request);

}  // namespace runtime::cuda
