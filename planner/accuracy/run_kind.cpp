#include "planner/accuracy/run_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using costmodel::format_integer;
using costmodel::ParallelPlan;
using costmodel::Scenario;
using costmodel::Value;

namespace {

// All values of a model or a plan, except where it was published.
std::string in_full(const Value& map) {
  std::string text;
  for (const auto& entry : map.entries) {
    if (entry.key == "source") continue;
    text += entry.key + "=" + entry.value.text;
    for (const auto& item : entry.value.items) text += "," + item.text;
    for (const auto& inner : entry.value.entries) text += "," + inner.key + "=" + inner.value.text;
    text += ";";
  }
  return text;
}

std::string framework_name(const std::string& framework) {
  return framework.substr(0, std::min(framework.find(','), framework.find(" (")));
}

}  // namespace

std::string family_of(const costmodel::ModelSpec& m) {
  using costmodel::Positions;
  constexpr std::int64_t llama_3_vocabulary = 128'000;  // Llama 2 and before: 32,000
  if (m.encoder_decoder()) return "t5";
  if (m.state_size > 0) return "mamba";
  if (m.latent_attention()) return "deepseek";
  if (m.gated_mlp && (m.qk_norm || m.qkv_bias)) return "qwen";
  if (m.experts > 0) return m.gated_mlp ? "mixtral" : "gpt-experts";
  if (m.gated_mlp) return m.vocab >= llama_3_vocabulary ? "llama-3" : "llama-2";
  if (m.activation == costmodel::ActivationFunction::squared_relu) return "nemotron";
  if (m.positions == Positions::alibi) return m.embedding_norm ? "bloom" : "mpt";
  return "gpt";
}

RunFacts facts_of(const Scenario& s) {
  const auto& t = s.training;
  const auto& o = t.overlap;
  RunFacts facts;
  facts.stack = t.stack.name;
  facts.framework = t.stack.framework.empty() ? t.stack.name : framework_name(t.stack.framework);
  facts.device = device_names(s.cluster);
  facts.precision = to_string(t.precision);
  facts.devices = s.cluster.devices;
  facts.family = family_of(s.model);
  facts.experts = s.model.experts > 0;
  facts.plan_assumed = !s.plan.automatic.empty();
  facts.pair_spread = t.error_band.pair_spread;
  facts.workload = fmt::format("l{} h{} on {} x {}, batch {} x {}", s.model.layers, s.model.hidden,
                               format_integer(s.cluster.devices), facts.device,
                               format_integer(t.global_batch), format_integer(t.sequence));
  facts.workload_key = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", in_full(to_value(s.model)),
      s.cluster.name, facts.device, s.cluster.devices, s.cluster.devices_per_node, t.global_batch,
      t.decoder_sequence > 0 ? fmt::format("{}+{}", t.sequence, t.decoder_sequence)
                             : fmt::format("{}", t.sequence),
      facts.precision, to_string(t.gradient_precision), t.sgd, facts.stack, o.overlap_grad_reduce,
      o.overlap_param_gather, o.tp_comm_overlap, o.pp_overlap, o.async_tp,
      fmt::format("{}{}", o.compile, o.cuda_graph));
  return facts;
}

std::string parallelism_of(const ParallelPlan& plan) {
  const std::vector<std::pair<const char*, int>> axes{{"tp", plan.tp},
                                                      {"cp", plan.cp},
                                                      {"ep", plan.ep},
                                                      {"pp", plan.pp},
                                                      {plan.zero == 3 ? "fsdp" : "dp", plan.dp}};
  std::string text;
  for (const auto& [name, size] : axes) {
    if (size > 1) text += (text.empty() ? "" : "+") + std::string(name);
  }
  return text.empty() ? "1 device" : text;
}

void add_plan(RunFacts& facts, const ParallelPlan& plan) {
  facts.parallelism = parallelism_of(plan);
  facts.plan = in_full(to_value(plan));
  facts.plan_text = to_string(plan);
}

}  // namespace planner
