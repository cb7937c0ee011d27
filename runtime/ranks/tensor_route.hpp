// How the tensors of a run on devices of their own go from rank to rank: over a fabric, where every
// rank has one and a device to itself, else by way of the host. All ranks decide alike.
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

// What makes fabrics: the CUDA plug-in's functions, or a test's.
struct FabricMaker {
  std::function<std::string()> missing;  // "" where it can, else a sentence
  std::function<FabricId()> make_id;
  std::function<std::unique_ptr<Fabric>(Device&, const FabricRequest&)> make;
};

struct TensorWay {
  std::unique_ptr<FabricPlan> plan;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<FabricTransport> transport;  // null: by way of the host
  std::string note;                            // which it is and why; "" for one rank
};

// Where a rank's device is; ranks whose machine and bus are the same share it. `machine` is what
// NCCL tells machines apart by (machine_id()), `host` what people call it.
struct DevicePlace {
  std::string host, machine, bus;
};

// NCCL_HOSTID where it is set, else host name and boot id (NCCL 2.28, getHostHash in utils.cc).
std::string machine_id(const std::string& host);

// What stands against a fabric of devices at these places, by rank: NCCL refuses two ranks of one
// GPU ("Duplicate GPU detected"), whatever the others have. A sentence that names the ranks and
// each GPU, with a remedy; "" where nothing does.
std::string shared_device(const std::vector<DevicePlace>& places);

// Every rank of `host` calls it. `place` is its device's. Throws RunFault where another rank does
// not come, and what the maker throws.
TensorWay tensor_way(const FabricMaker& maker, Transport& host, Device& device,
                     const DevicePlace& place, FabricPlan plan, costmodel::Seconds patience);

}  // namespace runtime
