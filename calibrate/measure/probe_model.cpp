#include "calibrate/measure/probe_model.hpp"
#include "costmodel/estimate/evaluator.hpp"

#include <fmt/format.h>

namespace calibrate {

using namespace costmodel;

namespace {

ModelSpec spec_of(const SmallModel& m) {
  ModelSpec spec;
  spec.name = spec.title = m.name();
  spec.kind = m.llama ? ModelKind::llama : ModelKind::gpt;
  spec.layers = m.layers;
  spec.hidden = m.hidden;
  spec.heads = m.heads;
  spec.kv_heads = m.llama ? m.kv_heads : m.heads;
  spec.head_dim = m.hidden / m.heads;
  spec.ffn_hidden = m.ffn;
  spec.vocab = m.vocab;
  spec.max_positions = m.sequence;
  spec.dropout = m.llama ? 0 : m.dropout;
  if (!m.llama) return spec;
  spec.gated_mlp = true;
  spec.activation = ActivationFunction::silu;
  spec.tie_embeddings = false;
  spec.positions = Positions::rotary;
  spec.normalization = Normalization::rmsnorm;
  spec.linear_bias = spec.qkv_bias = false;
  return spec;
}

// The same as configs/stacks/shardplan-cpu.yaml.
StackSpec own_stack(bool flash) {
  StackSpec stack;
  stack.name = "shardplan-cpu";
  stack.kernels.attention = flash ? AttentionKernel::flash : AttentionKernel::unfused;
  stack.kernels.fused_bias_activation = false;
  stack.kernels.loss = LossKernel::flash;
  stack.memory.master_weights = false;
  stack.collectives.scatter_gather = false;
  stack.overlap.pp_overlap = true;
  return stack;
}

}  // namespace

std::string SmallModel::name() const {
  return fmt::format("{}{}{} h {} a {} f {} s {} b {}", llama ? "llama" : "gpt",
                     dropout > 0 ? " with dropout" : "", flash ? "" : " unfused", hidden, heads,
                     ffn, sequence, micro_batch);
}

Evaluator evaluator_of(const SmallModel& model, const DeviceSpec& device, Precision precision) {
  ClusterSpec cluster;
  cluster.name = "this machine";
  cluster.device = device;
  cluster.devices = cluster.devices_per_node = 1;
  Tier tier;
  tier.devices = 1;
  tier.bandwidth = BytesPerSecond(1e9);
  cluster.tiers = {tier};
  TrainingSpec training;
  training.global_batch = model.micro_batch;
  training.sequence = model.sequence;
  training.precision = precision;
  training.gradient_precision = Precision::fp32;
  training.stack = own_stack(model.flash);
  training.stack.memory.master_weights = precision != Precision::fp32;
  training.overlap = training.stack.overlap;
  return {spec_of(model), cluster, training};
}

ParallelPlan plan_of(const SmallModel& model) {
  ParallelPlan plan;
  plan.micro_batch = model.micro_batch;
  return plan;
}

}  // namespace calibrate
