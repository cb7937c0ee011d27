// Time of PyTorch's product of experts, torch.nn.functional.grouped_mm, on Hopper.
#pragma once

#include "costmodel/machine/cluster_spec.hpp"

namespace costmodel {

// One kernel of all groups' products [rows, k] · [k, columns] in 16 bits. Its tiles are of 64 x 128
// where a group has 128 rows or columns at most, else of 128 x 256, and a cluster of two
// multiprocessors takes two, one above the other (pytorch, aten/src/ATen/native/cuda/GroupMM.cu).
// As many clusters as fit stay and take their tiles in turn, down a group's rows first (CUTLASS,
// gemm/kernel/sm90_tile_scheduler_group.hpp).
Seconds grouped_product_time(double groups, double rows, double columns, double k,
                             const DeviceSpec& device, Precision precision);

}  // namespace costmodel
