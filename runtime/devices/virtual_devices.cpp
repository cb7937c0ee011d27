#include "runtime/devices/virtual_devices.hpp"

#include <fmt/format.h>

namespace runtime {

// cuda.h of CUDA 13.0, "Green Contexts": 6.x and 7.x 2 and 2, 8.x 4 and 2, 9.0 and later 8 and 8.
SmRule sm_rule(int compute_major, int multiprocessors) {
  if (compute_major >= 9) return {multiprocessors, 8, 8};
  return {multiprocessors, compute_major == 8 ? 4 : 2, 2};
}

SmSplit split_multiprocessors(const SmRule& rule, int devices) {
  SmSplit split{.devices = devices};
  if (devices < 1) {
    split.refused = fmt::format("{} virtual devices cannot be: one at least", devices);
    return split;
  }
  if (devices == 1) {
    split.each = rule.multiprocessors;
    return split;
  }
  split.each = rule.multiprocessors / devices / rule.multiple * rule.multiple;
  split.left = rule.multiprocessors - devices * split.each;
  if (split.each >= rule.least) return split;
  split.refused = fmt::format(
      "{} virtual devices of {} multiprocessors cannot be: each takes {} at least, in "
      "multiples of {}, so that there are {} at most",
      devices, rule.multiprocessors, rule.least, rule.multiple, rule.multiprocessors / rule.least);
  split.each = split.left = 0;
  return split;
}

VirtualPlace virtual_place(int local_rank, int gpus, int devices_a_gpu) {
  if (devices_a_gpu <= 1) return {local_rank % gpus, 0};
  return {local_rank / devices_a_gpu % gpus, local_rank % devices_a_gpu};
}

std::string too_many_ranks(std::int64_t ranks, int gpus, int devices_a_gpu) {
  const std::int64_t there = std::int64_t{gpus} * devices_a_gpu;
  if (devices_a_gpu <= 1 || ranks <= there) return "";
  return fmt::format("{} ranks want a virtual device each, and {} GPUs of {} have {}", ranks, gpus,
                     devices_a_gpu, there);
}

}  // namespace runtime
