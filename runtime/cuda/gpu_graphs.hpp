// Captures sequences of operations on a GPU's compute stream as CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <map>

#include "runtime/backend/graph_recorder.hpp"
#include "runtime/cuda/gpu_memory.hpp"

namespace runtime::cuda {

class GpuGraphs : public GraphRecorder {
 public:
  explicit GpuGraphs(GpuMemory& memory) : memory_(memory) {}
  ~GpuGraphs() override;
  GpuGraphs(const GpuGraphs&) = delete;
  GpuGraphs& operator=(const GpuGraphs&) = delete;

  bool recording() const { return recording_; }
  // Call when the device's scratch memory has moved; it invalidates all graphs.
  void moved() { ++generation_; }

  void begin() override;
  Graph end() override;
  void cancel() noexcept override;
  void start(Graph graph) override;
  void forget(Graph graph) noexcept override;
  std::int64_t generation() const override { return generation_; }

 private:
  GpuMemory& memory_;
  bool recording_ = false;
  std::int64_t generation_ = 0;
  std::map<Graph, cudaGraphExec_t> made_;
  Graph next_ = 0;
};

}  // namespace runtime::cuda
