#include "costmodel/plan/host_offload.hpp"

#include <fmt/format.h>

#include <string>

#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/plan/plan_rules.hpp"

namespace costmodel {

namespace {

// Megatron-LM's rules of --cpu-offloading-num-layers (core/transformer/transformer_config.py): one
// pipeline stage, nothing recomputed, and the last layer stays.
void check_activations(const ParallelPlan& p, const ModelSpec& model, Rules& rules) {
  const auto text = [](const char* words) { return [words] { return std::string(words); }; };
  rules.require(p.pp == 1, "offload", text("activations in host memory with pp > 1"),
                text("set pp: 1, or leave activations out"));
  rules.require(p.recompute.granularity == Recomputation::none, "offload",
                text("activations in host memory, and recomputed"),
                text("set recompute: none, or leave activations out"));
  rules.require(
      p.offload.activation_layers < model.layers && !model.mixes_layers(), "offload",
      [&] {
        return fmt::format("activations of {} of {} layers in host memory{}",
                           p.offload.activation_layers, model.layers,
                           model.mixes_layers() ? " of a model with layers of several kinds" : "");
      },
      [&] {
        return model.mixes_layers() ? std::string("leave activations out")
                                    : fmt::format("set layers: {} or fewer: those of the last stay",
                                                  model.layers - 1);
      });
}

// Megatron-LM's rules of --offload-modules (the same file).
void check_modules(const ParallelPlan& p, const ModelSpec& model, const TrainingSpec& training,
                   Rules& rules) {
  const auto text = [](const char* words) { return [words] { return std::string(words); }; };
  const unsigned own = p.offload.modules;
  const auto has = [own](OffloadModule module) { return (own & bit_of(module)) != 0; };
  const bool of_experts = has(OffloadModule::expert_fc1) || has(OffloadModule::moe_act),
             of_norms = has(OffloadModule::attn_norm) || has(OffloadModule::mlp_norm);
  rules.require(p.offload.activation_layers == 0, "offload",
                text("activations in host memory by layer and by module"),
                text("set one of activations: {layers} and {modules}"));
  rules.require(p.recompute.granularity != Recomputation::full, "offload",
                text("activations of modules in host memory, and all of them recomputed"),
                text("set recompute: none, or recompute: {modules: [...]}"));
  rules.require(!has(OffloadModule::attn_proj) || has(OffloadModule::core_attn), "offload",
                text("attn_proj in host memory without core_attn, which reads the same tensor"),
                text("add core_attn to activations.modules"));
  rules.require(!of_experts || model.experts > 0, "offload",
                text("modules of experts, in a model without"),
                text("leave expert_fc1 and moe_act out"));
  rules.require(!of_experts || (p.recompute.modules & bit_of(RecomputeModule::moe)) == 0, "offload",
                text("modules of experts in host memory, which moe recomputes"),
                text("leave expert_fc1 and moe_act out, or moe out of recompute.modules"));
  const Overlap& o = training.overlap;
  rules.require(!of_norms || !(o.cuda_graph || o.graphs_parts()), "offload",
                text("norms in host memory, which CUDA graphs pass on"),
                text("leave attn_norm and mlp_norm out, or set overlap.cuda_graph: false"));
  rules.require(
      !splits_backward(p.schedule) && p.ways() == 1 && p.listed == nullptr &&
          !model.encoder_decoder(),
      "offload",
      text("activations of modules in host memory are modelled for 1f1b and interleaved "
           "pipelines of decoders"),
      text(model.encoder_decoder() ? "leave them out" : "set schedule: 1f1b, or leave them out"));
}

}  // namespace

void check_offload(const ParallelPlan& p, const ModelSpec& model, const ClusterSpec& cluster,
                   const TrainingSpec& training, Rules& rules) {
  const HostOffload& own = p.offload;
  const auto text = [](const char* words) { return [words] { return std::string(words); }; };
  rules.require(p.even() && cluster.groups.empty(), "offload",
                text("host memory of stages or replicas with sizes of their own is not modelled"),
                text("leave offload out, or make all stages equal"));
  rules.require(
      cluster.device.host_bandwidth.value > 0, "offload",
      [&] { return fmt::format("the link of {} to its host is not known", cluster.device.name); },
      text("write host: {bandwidth_bytes_per_s: 25 GB/s, source: ...} in the device"));
  rules.require(own.parameters == 0 || p.zero == 3, "offload",
                text("parameters in host memory are sharded ones"),
                text("set zero: 3, or offload: optimizer"));
  rules.require(own.parameters == 0 || own.optimizer == 1, "offload",
                text("parameters in host memory are updated there"),
                text("set optimizer: 1 as well"));
  rules.require(own.parameters == 0 || !p.zero_plus_plus.any(), "offload",
                text("parameters in host memory with ZeRO++ are not modelled"),
                text("leave one of them out"));
  rules.require(
      own.optimizer == 0 || keeps_alike(training.optimizer), "offload",
      [&] { return fmt::format("{} runs on the device alone", to_string(training.optimizer)); },
      text("set training.optimizer: adam, or leave offload out"));
  rules.require(own.on_drives() || !own.names_drives(), "offload",
                text("drives are named, and no states are kept there"),
                text("set optimizer: 1 (and parameters: 1), or leave to and parameters_to out"));
  rules.require(!own.on_drives() || p.zero == 3, "offload",
                text("states on NVMe drives are sharded ones"),
                text("set zero: 3, or offload.to: host"));
  rules.require(!own.optimizer_on_drives() || own.optimizer == 1, "offload",
                text("a share of the optimizer's states on NVMe drives"),
                text("set optimizer: 1, or to: host"));
  if (own.activation_layers > 0) check_activations(p, model, rules);
  if (own.modules != 0) check_modules(p, model, training, rules);
  check_offload_offered(p, training.stack, rules);
}

void check_offload_offered(const ParallelPlan& p, const StackSpec& stack, Rules& rules) {
  const auto offered = [&](bool holds, const char* what, const char* instead) {
    rules.require(
        holds, "offload",
        [&, what] { return fmt::format("stack {} keeps no {} in host memory", stack.name, what); },
        [instead] { return std::string(instead); });
  };
  const char* const other =
      "leave it out, or choose another training.stack: deepspeed, peft, torchtitan";
  offered(p.offload.optimizer == 0 || stack.offers.optimizer_offload, "optimizer states", other);
  offered(p.offload.parameters == 0 || stack.offers.parameter_offload, "parameters", other);
  rules.require(
      !p.offload.on_drives() || stack.offers.drive_offload, "offload",
      [&] { return fmt::format("stack {} keeps nothing on NVMe drives", stack.name); },
      [] {
        return std::string(
            "set offload.to: host, or choose another training.stack: "
            "deepspeed, peft");
      });
  offered(p.offload.modules == 0 || stack.offers.module_offload, "activations of modules",
          "leave them out, or choose another training.stack: megatron-core-2026, megatron-bridge");
  offered(p.offload.activation_layers == 0 || stack.offers.layer_offload, "activations",
          "leave it out, or choose another training.stack: megatron-core-2024 or later");
}

}  // namespace costmodel
