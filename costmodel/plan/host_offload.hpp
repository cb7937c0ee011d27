// What of a plan's model states and activations waits in the memory of the host, or on its drives.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace costmodel {

struct ClusterSpec;
struct ModelSpec;
struct ParallelPlan;
struct StackSpec;
struct TrainingSpec;
class Rules;

enum class OffloadTo { host, nvme };
inline constexpr std::array<std::string_view, 2> offload_to_names{"host", "nvme"};

// The parts of a layer whose saved tensors may wait there (Megatron-LM, offload_modules of
// core/transformer/transformer_config.py).
enum class OffloadModule {
  attn_norm,
  qkv_linear,
  core_attn,
  attn_proj,
  mlp_norm,
  expert_fc1,
  moe_act
};
inline constexpr std::array<std::string_view, 7> offload_module_names{
    "attn_norm", "qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act"};
constexpr unsigned bit_of(OffloadModule module) { return 1U << static_cast<unsigned>(module); }

// Optimizer states that are kept and updated there: ZeRO-Offload (Ren et al. 2021,
// arXiv:2101.06840; DeepSpeed's offload_optimizer) and Megatron-LM's --optimizer-cpu-offload with
// --optimizer-offload-fraction. Parameters that are sharded there and fetched for each pass:
// ZeRO-Infinity (Rajbhandari et al. 2021, arXiv:2104.07857; DeepSpeed's offload_param), FSDP's
// CPUOffloadPolicy. Activations of layers: Transformer Engine's get_cpu_offload_context. States on
// NVMe drives of the node, of which the host's memory holds what is at work: ZeRO-Infinity.
struct HostOffload {
  double optimizer = 0;       // share of a rank's optimizer states
  double parameters = 0;      // share of a rank's parameters, frozen ones as well
  int activation_layers = 0;  // layers whose activations are sent there until backward
  unsigned modules = 0;       // bits of OffloadModule: of every layer, what these save for backward
  OffloadTo to = OffloadTo::host;               // where states are
  std::optional<OffloadTo> parameters_to = {};  // ... of which parameters may be elsewhere
  // Whether any of the model's states are there.
  bool states() const { return optimizer > 0 || parameters > 0; }
  bool activations() const { return activation_layers > 0 || modules != 0; }
  bool any() const { return states() || activations(); }
  bool optimizer_on_drives() const { return optimizer > 0 && to == OffloadTo::nvme; }
  bool parameters_on_drives() const {
    return parameters > 0 && parameters_to.value_or(to) == OffloadTo::nvme;
  }
  bool names_drives() const { return to == OffloadTo::nvme || parameters_to == OffloadTo::nvme; }
  bool on_drives() const { return optimizer_on_drives() || parameters_on_drives(); }
  bool operator==(const HostOffload&) const = default;
};

// What a plan that keeps something there needs of its other keys, the model and the devices.
void check_offload(const ParallelPlan& plan, const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training, Rules& rules);
void check_offload_offered(const ParallelPlan& plan, const StackSpec& stack, Rules& rules);

}  // namespace costmodel
