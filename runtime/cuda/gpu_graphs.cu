#include "runtime/cuda/check.hpp"
#include "runtime/cuda/gpu_graphs.hpp"

namespace runtime::cuda {

namespace {

// The graph captured on the stream, owned by the caller.
cudaGraph_t captured(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

GpuGraphs::~GpuGraphs() {
  for (const auto& [graph, made] : made_) cudaGraphExecDestroy(made);
}

// Thread-local mode: other threads of this process are other ranks, which may allocate
// concurrently.
void GpuGraphs::begin() {
  check(cudaStreamBeginCapture(memory_.stream(), cudaStreamCaptureModeThreadLocal));
  recording_ = true;
}

GraphRecorder::Graph GpuGraphs::end() {
  recording_ = false;
  const cudaGraph_t graph = captured(memory_.stream());
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(status);
  made_[next_] = made;
  return next_++;
}

void GpuGraphs::cancel() noexcept {
  recording_ = false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaStream_t stream = memory_.stream();
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
      status != cudaStreamCaptureStatusNone) {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaGetLastError();  // reported already; clears the error for later calls
}

void GpuGraphs::start(Graph graph) { check(cudaGraphLaunch(made_.at(graph), memory_.stream())); }

// The driver frees a running graph only after it has ended.
void GpuGraphs::forget(Graph graph) noexcept {
  const auto found = made_.find(graph);
  if (found == made_.end()) return;
  cudaGraphExecDestroy(found->second);
  made_.erase(found);
}

}  // namespace runtime::cuda
