// A small Chrome trace as torch.profiler writes it: operators of the host, the calls that launch
// kernels, and these.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace kineto {

struct Launch {
  std::string op, sizes, kernel;  // sizes: "[[8, 4], [4, 2]]"
  double microseconds = 0;
  std::string around;  // an operator or annotation that it runs within; empty: none
};

// Iterations of these launches, one after the other: kernels follow one another without a gap, the
// host launches one every `host` microseconds.
inline std::string trace(const std::vector<Launch>& launches, int iterations = 2, double host = 5) {
  std::vector<std::string> events;
  const auto event = [&](const char* category, const std::string& name, double start, double length,
                         int thread, const std::string& arguments) {
    events.push_back(fmt::format(
        R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}})",
        category, name, thread, start, length, arguments));
  };
  double at = 1000;
  int number = 1;
  for (int i = 0; i < iterations; ++i) {
    const double begin = at;
    double device = at + 1;
    for (const Launch& launch : launches) {
      if (!launch.around.empty()) event("user_annotation", launch.around, at, host - 0.2, 1, "");
      event("cpu_op", launch.op, at + 0.1, host - 0.5, 1,
            fmt::format(R"("External id": {}, "Input Dims": {})", number,
                        launch.sizes.empty() ? "[]" : launch.sizes));
      event("cuda_runtime", "cudaLaunchKernel", at + 0.2, 1, 1,
            fmt::format(R"("correlation": {})", 100 + number));
      device = std::max(device, at + 1);
      event("kernel", launch.kernel, device, launch.microseconds, 7,
            fmt::format(R"("External id": {0}, "correlation": {1}, "stream": 7)", number,
                        100 + number));
      device += launch.microseconds;
      at += host;
      ++number;
    }
    at = std::max(at, device);
    event("user_annotation", fmt::format("ProfilerStep#{}", i), begin, at - begin, 1, "");
  }
  return fmt::format(
      "{{\"schemaVersion\": 1, \"deviceProperties\": [{{\"id\": 0, \"name\": \"NVIDIA H100 80GB "
      "HBM3\"}}], \"distributedInfo\": {{\"rank\": 3, \"world_size\": 8}}, \"traceEvents\": "
      "[\n{}\n]}}\n",
      fmt::join(events, ",\n"));
}

}  // namespace kineto
