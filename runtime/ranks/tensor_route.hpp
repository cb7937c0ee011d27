// Chooses how tensors in device memory travel between ranks: over a fabric when every rank has one
// and a device to itself, else staged through host memory. All ranks make the same choice.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backend/device.hpp"
#include "runtime/backend/fabric.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/fabric_plan.hpp"
#include "runtime/ranks/fabric_transport.hpp"

namespace runtime {

// The factory of fabrics: the CUDA library's functions, or a test's.
struct FabricMaker {
  std::function<std::string()> missing;  // "" when fabrics are available, else the reason
  std::function<FabricId()> make_id;
  std::function<std::unique_ptr<Fabric>(Device&, const FabricRequest&)> make;
};

struct TensorWay {
  std::unique_ptr<FabricPlan> plan;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<FabricTransport> transport;  // null: staged through host memory
  std::string note;                            // the choice and its reason; "" for one rank
};

// A rank's device. Ranks with equal machine and bus share it. `machine` is NCCL's machine identity
// (machine_id()), `host` a readable name.
struct DevicePlace {
  std::string host, machine, bus;
};

// NCCL_HOSTID if set, else host name and boot id (NCCL 2.28, getHostHash in utils.cc).
std::string machine_id(const std::string& host);

// Why devices at these places, by rank, cannot form a fabric: NCCL refuses two ranks on one GPU
// ("Duplicate GPU detected"), whatever the other ranks have. A sentence that names the ranks and
// each GPU, with a remedy; "" when they can.
std::string shared_device(const std::vector<DevicePlace>& places);

// Collective over `host`. `place` is the place of `device`. Throws RunFault when another rank does
// not arrive, and what the maker throws.
TensorWay tensor_way(const FabricMaker& maker, Transport& host, Device& device,
                     const DevicePlace& place, FabricPlan plan, costmodel::Seconds patience);

}  // namespace runtime
