#include "runtime/cuda/check.hpp"
#include "runtime/cuda/gpu_graphs.hpp"

namespace runtime::cuda {

namespace {

// What the stream was given since the capture began; it is the caller's.
cudaGraph_t captured(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph));
  return graph;
}

}  // namespace

GpuGraphs::~GpuGraphs() {
  for (const auto& [graph, made] : made_) cudaGraphExecDestroy(made);
}

// Other threads of this process are other ranks, which may take memory meanwhile.
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
  cudaGetLastError();  // the reason has been told, and no later call is at fault
}

void GpuGraphs::start(Graph graph) { check(cudaGraphLaunch(made_.at(graph), memory_.stream())); }

// One that is under way ends first: the driver frees it then.
void GpuGraphs::forget(Graph graph) noexcept {
  const auto found = made_.find(graph);
  if (found == made_.end()) return;
  cudaGraphExecDestroy(found->second);
  made_.erase(found);
}

}  // namespace runtime::cuda
