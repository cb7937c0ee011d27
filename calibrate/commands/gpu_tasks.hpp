// The measurement tasks of a GPU: products over a grid of shapes, attention over sequence lengths
// and head dimensions, every operator of some models' layers in the shapes it has there, the
// optimizer, copies, and launches, alone and replayed from a graph.
#pragma once

#include <vector>

#include "calibrate/commands/cpu_tasks.hpp"
#include "costmodel/base/precision.hpp"
#include "runtime/backend/device.hpp"

namespace calibrate {

// The device that the tasks use; outlives them.
struct GpuBench {
  runtime::Device& device;
  costmodel::Precision precision;  // of the device: fp32, bf16 or fp16
  Clock clock;
  runtime::Number number() const { return runtime::format_of(precision); }
};

// The shapes of a calibration.
struct GpuShapes {
  std::vector<std::int64_t> rows, sides;         // of products: m; n and k
  std::vector<std::int64_t> lengths, head_dims;  // of attention
  std::vector<SmallModel> models;
  std::vector<std::int64_t> vectors;  // elements of copies and of optimizer steps
};
GpuShapes gpu_shapes(bool quick);

std::vector<Task> gpu_tasks(const GpuBench& bench, const GpuShapes& shapes);

}  // namespace calibrate
