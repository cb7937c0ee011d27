// One GPU as several virtual devices: how its multiprocessors (SMs) are split, and which rank uses
// which part. Needs no GPU.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

// The sizes of parts that a GPU allows.
struct SmRule {
  int multiprocessors = 0;
  int least = 1;     // minimum per part
  int multiple = 1;  // a part's count is a multiple of this
};

// By compute capability, from the CUDA driver API's documentation of cuDevSmResourceSplitByCount.
SmRule sm_rule(int compute_major, int multiprocessors);

struct SmSplit {
  int devices = 0;
  int each = 0;         // multiprocessors per device
  int left = 0;         // unused multiprocessors
  std::string refused;  // why the split is impossible; "" when it is possible
};

// Splits into `devices` equal parts, as large as possible.
SmSplit split_multiprocessors(const SmRule& rule, int devices);

// The GPU of a machine, and the virtual device on it, that one of the machine's ranks uses.
struct VirtualPlace {
  int gpu = 0;
  int part = 0;
};

// The first ranks fill the first GPU. With one device per GPU, ranks take the GPUs round robin.
VirtualPlace virtual_place(int local_rank, int gpus, int devices_a_gpu);

// Why there are more ranks on this machine than virtual devices; "" when there are not.
std::string too_many_ranks(std::int64_t ranks, int gpus, int devices_a_gpu);

}  // namespace runtime
