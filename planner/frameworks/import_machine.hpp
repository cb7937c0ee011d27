// What a machine says of itself, as a cluster: `nvidia-smi topo -m`, and the environment that Slurm
// gives a job.
#pragma once

#include <string>

#include "planner/exchange/imported_job.hpp"

namespace planner {

// A cluster file from the matrix of `nvidia-smi topo -m`: devices of a node, and a tier for each
// kind of path that joins more of them (NV# NVLink, PIX and PXB PCIe switches, PHB and NODE host
// bridges, SYS between sockets), then the network where there are NICs. Which devices they are and
// how fast the paths, the matrix does not say: those keys are missing. Throws
// costmodel::ConfigError where the text is no such matrix.
ImportedJob import_topology(const std::string& text, const std::string& file);

// `env | grep SLURM` as a scenario's cluster: devices, and devices of a node. Throws
// costmodel::ConfigError when it says neither nodes nor GPUs.
ImportedJob import_slurm(const std::string& text, const std::string& file);

}  // namespace planner
