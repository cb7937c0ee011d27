#include "runtime/cuda/gpu_streams.hpp"

#include "runtime/cuda/check.hpp"

namespace runtime::cuda {

GpuStreams::~GpuStreams() {
  for (const cudaStream_t stream : streams_) {
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
  }
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
}

cudaStream_t GpuStreams::stream(Stream stream) const {
  const cudaStream_t computing = memory_.stream();
  return stream == compute ? computing : streams_.at(static_cast<std::size_t>(stream - 1));
}

Streams::Stream GpuStreams::make_stream() {
  streams_.push_back(memory_.new_stream());
  return static_cast<Stream>(streams_.size());
}

Streams::Event GpuStreams::make_event() {
  memory_.stream();
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event));
  events_.push_back(event);
  return static_cast<Event>(events_.size() - 1);
}

void GpuStreams::record(Stream stream, Event event) {
  check(cudaEventRecord(at(event), this->stream(stream)));
}

void GpuStreams::wait(Stream stream, Event event) {
  check(cudaStreamWaitEvent(this->stream(stream), at(event), 0));
}

void GpuStreams::copy(Stream stream, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, this->stream(stream)));
}

bool GpuStreams::passed(Event event) {
  const cudaError_t status = cudaEventQuery(at(event));
  if (status == cudaErrorNotReady) return false;
  check(status);
  return true;
}

costmodel::Seconds GpuStreams::time(Event since, Event event) {
  memory_.wait_until([&] { return passed(since) && passed(event); });
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, at(since), at(event)));
  return costmodel::Seconds(static_cast<double>(milliseconds) * 1e-3);
}

}  // namespace runtime::cuda
