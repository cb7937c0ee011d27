// A job on one device, and a trace of it whose kernels take a known factor of what is predicted.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "planner/accuracy/trace_fit.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/kineto.hpp"

namespace traced_job {

inline std::string job(const char* model, int sequence) {
  return fmt::format(
      "model: {{kind: llama, layers: 2, {}, vocab: 32000}}\ncluster: {{base: dgx-h100, devices: 1, "
      "devices_per_node: 1}}\ntraining: {{global_batch: 1, sequence: {}, precision: bf16, stack: "
      "torchtitan}}\nplan: {{micro_batch: 1, zero: 3}}\n",
      model, sequence);
}
// So large that the device sets the pace, and one whose sizes differ from one another.
inline std::string large(int sequence) {
  return job("hidden: 8192, heads: 64, kv_heads: 8, ffn_hidden: 28672", sequence);
}
inline const std::string yaml = large(8192);
inline const std::string small =
    job("hidden: 2048, heads: 16, kv_heads: 4, ffn_hidden: 8192", 4096);

inline costmodel::Scenario scenario() { return scenarios::read(yaml); }

inline planner::PredictedTimes predicted() {
  const costmodel::Scenario s = scenario();
  return planner::predicted_times(s, resolve_plan(s));
}

inline constexpr std::array<const char*, costmodel::kernel_kind_count> kernels{
    "nvjet_tst",   "flash_fwd_kernel", "flash_bwd_kernel",   "elementwise_kernel",
    "Memcpy DtoD", "log_softmax",      "multi_tensor_apply", "embedding_kernel"};

// `factor`: by kind of kernel. `between`: from one launch to the next, in microseconds.
inline std::string trace(const std::array<double, costmodel::kernel_kind_count>& factor,
                         double between = 5) {
  const auto times = predicted();
  std::vector<kineto::Launch> launches;
  for (std::size_t kind = 0; kind < factor.size(); ++kind) {
    // Attention runs forward once a layer.
    const bool attends = kind == static_cast<std::size_t>(costmodel::KernelKind::attention_forward);
    const int each = attends ? 2 : 1;
    const double all = 1e6 * factor[kind] * times.kinds[kind] / planner::rested[kind];
    for (int k = 0; k < each; ++k)
      launches.push_back({"aten::op", "[[4096, 2048], [2048, 8192]]", kernels[kind], all / each});
  }
  return kineto::trace(launches, 2, between);
}

}  // namespace traced_job
