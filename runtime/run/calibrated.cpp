#include "runtime/run/calibrated.hpp"

#include <fmt/format.h>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/device_reader.hpp"

namespace runtime {

using namespace costmodel;

namespace {

// Removes the framework's overheads, and the overlaps that this runtime has not; the operators that
// a stack chooses stay.
void without_framework(TrainingSpec& training) {
  auto& stack = training.stack;
  stack.kernels.elementwise_factor = stack.experts.permute_factor = stack.kernels.attention_factor =
      1;
  stack.kernels.eager = stack.kernels.compiled = stack.kernels.adapters = {};
  stack.host.kernel_launch = stack.host.collective_wait = {};
  stack.host.micro_batch = stack.host.iteration = {};
  stack.collectives.backward_tp_overlap = stack.zero.prefetch = false;
  const Overlap asked = training.overlap;
  training.overlap = {.overlap_grad_reduce = asked.overlap_grad_reduce,
                      .pp_overlap = true,
                      .cuda_graph = asked.cuda_graph};
}

}  // namespace

void use_calibrated(Scenario& scenario, const std::string& profile, const ConfigPath& path,
                    Precision computed_in) {
  const Mark mark{"--calibrated", 0, 0};
  if (!path_exists(profile)) {
    throw ConfigError(
        {}, fmt::format("shardplan run: there is no profile {}", quote(profile)),
        fmt::format("first run shardplan calibrate --backend cpu --out {}", shell_word(profile)));
  }
  const auto file = absolute_path(profile);
  const auto given = resolve_config(path, "devices", scalar_value(file, mark));
  auto& cluster = scenario.cluster;
  if (given.value.find("tiers") == nullptr) {
    cluster.device = read_device(given.value, given.name);
  } else {
    const auto* key = given.value.find("device");
    if (key == nullptr) {
      throw ConfigError(given.value.mark, "the profile lacks the key 'device'",
                        "write it with shardplan calibrate --cluster-out");
    }
    const auto device = resolve_config(path, "devices", *key);
    const auto machine =
        read_cluster(given.value, given.name, read_device(device.value, device.name));
    const auto devices = cluster.devices;
    cluster = resized(machine, devices);
    cluster.devices_per_node = devices;  // they are all on this machine
    scenario.cluster_text = given.name;
  }
  require_precision(cluster, computed_in, mark, ", or leave --calibrated out");
  without_framework(scenario.training);
}

}  // namespace runtime
