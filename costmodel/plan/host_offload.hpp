// What of a plan's model states and activations waits in the memory of the host.
#pragma once

namespace costmodel {

struct ClusterSpec;
struct ModelSpec;
struct ParallelPlan;
struct StackSpec;
struct TrainingSpec;
class Rules;

// Optimizer states that are kept and updated there: ZeRO-Offload (Ren et al. 2021,
// arXiv:2101.06840; DeepSpeed's offload_optimizer) and Megatron-LM's --optimizer-cpu-offload with
// --optimizer-offload-fraction. Parameters that are sharded there and fetched for each pass:
// ZeRO-Infinity (Rajbhandari et al. 2021, arXiv:2104.07857; DeepSpeed's offload_param), FSDP's
// CPUOffloadPolicy. Activations of layers: Transformer Engine's get_cpu_offload_context.
struct HostOffload {
  double optimizer = 0;       // share of a rank's optimizer states
  double parameters = 0;      // share of a rank's parameters, frozen ones as well
  int activation_layers = 0;  // layers whose activations are sent there until backward
  // Whether any of the model's states are there.
  bool states() const { return optimizer > 0 || parameters > 0; }
  bool any() const { return states() || activation_layers > 0; }
  bool operator==(const HostOffload&) const = default;
};

// What a plan that keeps something there needs of its other keys, the model and the devices.
void check_offload(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training, Rules& rules);
void check_offload_offered(const ParallelPlan& plan, const StackSpec& stack, Rules& rules);

}  // namespace costmodel
