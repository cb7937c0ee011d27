// A GPU's streams and events. Stream 0, the compute stream, belongs to GpuMemory.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "runtime/backend/streams.hpp"
#include "runtime/cuda/gpu_memory.hpp"

namespace runtime::cuda {

class GpuStreams : public Streams {
 public:
  explicit GpuStreams(GpuMemory& memory) : memory_(memory) {}
  ~GpuStreams() override;
  GpuStreams(const GpuStreams&) = delete;
  GpuStreams& operator=(const GpuStreams&) = delete;

  GpuMemory& memory() { return memory_; }
  // Makes the GPU current for the calling thread.
  cudaStream_t stream(Stream stream) const;

  Stream make_stream() override;
  Event make_event() override;
  void record(Stream stream, Event event) override;
  void wait(Stream stream, Event event) override;
  void copy(Stream stream, const void* from, void* to, std::size_t bytes) override;
  bool passed(Event event) override;
  // Resolution: half a microsecond (CUDA's documentation).
  costmodel::Seconds time(Event since, Event event) override;
  void watch(std::function<void()> look) override { memory_.watch(std::move(look)); }

 private:
  cudaEvent_t at(Event event) const { return events_.at(static_cast<std::size_t>(event)); }

  GpuMemory& memory_;
  std::vector<cudaStream_t> streams_;  // all but the compute stream
  std::vector<cudaEvent_t> events_;
};

}  // namespace runtime::cuda
