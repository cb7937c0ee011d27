#pragma once

#include <string>
#include <vector>

namespace runtime::cuda {

// a[i] = b[i] + s * c[i] with one rounding: a minimal kernel that shows that a device computes.
struct TriadResult {
  std::vector<float> a;
  std::string error;  // one sentence when the device failed, else empty
};

TriadResult triad_on_device(const std::vector<float>& b, const std::vector<float>& c, float s);
std::vector<float> triad_on_host(const std::vector<float>& b, const std::vector<float>& c, float s);

}  // namespace runtime::cuda
