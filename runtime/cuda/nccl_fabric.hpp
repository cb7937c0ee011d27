// NCCL as a fabric. Its library is loaded on first use, so that one GPU works without it.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend/fabric.hpp"
#include "runtime/backend/streams.hpp"

namespace runtime::cuda {

// "" when NCCL can be used, else a sentence with the reason.
std::string nccl_missing();
// Why the library in this file cannot be used as NCCL; "" when it can.
std::string nccl_missing_in(const char* file);
int nccl_version();  // as NCCL encodes it; 0: not installed

FabricId make_nccl_id();
// `streams` belong to a GPU. Creates the communicators and exchanges once over each, so that no
// later call blocks in connection setup. Throws RunFault when a rank does not arrive,
// std::runtime_error for an error of NCCL.
std::unique_ptr<Fabric> make_nccl_fabric(Streams& streams, const FabricRequest& request);

}  // namespace runtime::cuda
