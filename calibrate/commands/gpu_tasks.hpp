// The measurement tasks of a GPU: attention over sequence lengths and head dimensions, every
// operator of some models' layers in the shapes it has there, products over a grid of shapes, the
// optimizer, copies, launches, alone and replayed from a graph, and products in other precisions.
#pragma once

#include <span>
#include <vector>

#include "calibrate/commands/for_command.hpp"
#include "calibrate/measure/device_timer.hpp"
#include "calibrate/measure/random_block.hpp"
#include "calibrate/measure/settling.hpp"
#include "costmodel/base/precision.hpp"
#include "runtime/backend/device.hpp"

namespace calibrate {

// A device in one precision, with what its tasks share in its memory. `device` outlives this.
struct GpuBench {
  GpuBench(runtime::Device& on, costmodel::Precision in, const Clock& clock,
           std::size_t flushed = DeviceTimer::usual, std::size_t numbers = RandomBlock::usual)
      : device(on), precision(in), timer(on, clock, flushed), block(on.memory(), numbers) {}

  runtime::Device& device;
  const costmodel::Precision precision;  // any but mxfp8 and nvfp4
  DeviceTimer timer;
  RandomBlock block;

  runtime::Number number() const { return runtime::format_of(precision); }
};

// The shapes of a calibration.
struct GpuShapes {
  std::vector<std::int64_t> lengths, head_dims;  // of attention
  std::vector<SmallModel> models;
  std::vector<std::int64_t> rows, sides;              // of products: m; n and k
  std::vector<std::int64_t> vectors;                  // elements of copies and optimizer steps
  std::vector<std::int64_t> other_rows, other_sides;  // of products in other precisions
};
GpuShapes gpu_shapes(bool quick);

// What a layer consists of comes first: a calibration that is ended early has measured that. The
// tasks refer to the benches: the first measures everything, the others only products.
std::vector<Task> gpu_tasks(std::span<GpuBench* const> benches, const GpuShapes& shapes);

// A task a node of the subject's layers of which the device lacks a shape. All arguments outlive
// the tasks; the bench is in the subject's precision.
std::vector<Task> gpu_shape_tasks(GpuBench& bench, const Subject& subject,
                                  const costmodel::DeviceSpec& device);

// Multiplies matrices of `side` squared until the GPU's clocks have settled.
Settled settle_clocks(GpuBench& bench, std::int64_t side = 8192, const Settling& rule = {});

// The wall time that the benches have spent measuring; filling tensors is not in it.
Clock measuring_clock(std::span<GpuBench* const> benches);

}  // namespace calibrate
