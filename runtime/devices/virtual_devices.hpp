// One GPU as several devices: how its multiprocessors are dealt out, and which rank computes where.
// Needs no device.
#pragma once

#include <cstdint>
#include <string>

namespace runtime {

// What a GPU's multiprocessors can be cut into.
struct SmRule {
  int multiprocessors = 0;
  int least = 1;     // of one part
  int multiple = 1;  // that a part's count is of
};

// By compute capability, as the CUDA driver API says it of cuDevSmResourceSplitByCount.
SmRule sm_rule(int compute_major, int multiprocessors);

struct SmSplit {
  int devices = 0;
  int each = 0;         // multiprocessors of one
  int left = 0;         // of none
  std::string refused;  // why it cannot be; "" where it can
};

// Into so many parts of one size, as large as can be.
SmSplit split_multiprocessors(const SmRule& rule, int devices);

// Which GPU of a machine, and which of its virtual devices, a rank of that machine computes on.
struct VirtualPlace {
  int gpu = 0;
  int part = 0;
};

// The first ranks fill the first GPU. With one device a GPU, ranks take the GPUs in turn.
VirtualPlace virtual_place(int local_rank, int gpus, int devices_a_gpu);

// Why so many ranks of a machine cannot have a virtual device each; "" where they can.
std::string too_many_ranks(std::int64_t ranks, int gpus, int devices_a_gpu);

}  // namespace runtime
