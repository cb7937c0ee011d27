// What is measured of a GPU: products over a grid, attention over sequences and head sizes, every
// operator of some models' layers in the shapes it has there, the optimizer, copies, and calls,
// each alone and replayed from a graph.
#pragma once

#include <vector>

#include "calibrate/commands/cpu_tasks.hpp"
#include "costmodel/base/precision.hpp"
#include "runtime/backend/device.hpp"

namespace calibrate {

// What the tasks run on, as long as they do.
struct GpuBench {
  runtime::Device& device;
  costmodel::Precision precision;  // fp32, bf16 or fp16: the device's
  Clock clock;
  runtime::Number number() const { return runtime::format_of(precision); }
};

// The shapes of a calibration.
struct GpuShapes {
  std::vector<std::int64_t> rows, sides;         // of products: m; n and k
  std::vector<std::int64_t> lengths, head_dims;  // of attention
  std::vector<SmallModel> models;
  std::vector<std::int64_t> vectors;  // elements copied, and stepped by the optimizer
};
GpuShapes gpu_shapes(bool quick);

std::vector<Task> gpu_tasks(const GpuBench& bench, const GpuShapes& shapes);

}  // namespace calibrate
