#include "planner/accuracy/run_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;

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

RunFacts facts_of(const Scenario& s) {
  const auto& t = s.training;
  const auto& o = t.overlap;
  RunFacts facts;
  facts.stack = t.stack.name;
  facts.framework = t.stack.framework.empty() ? t.stack.name : framework_name(t.stack.framework);
  facts.device = device_names(s.cluster);
  facts.precision = to_string(t.precision);
  facts.devices = s.cluster.devices;
  facts.traits = traits_of(s);
  facts.setting = fmt::format("{}, {}, {}{}", facts.device, facts.framework, facts.traits.family,
                              facts.traits.experts ? " experts" : "");
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
      facts.precision, to_string(t.gradient_precision), to_string(t.optimizer), facts.stack,
      o.overlap_grad_reduce, o.overlap_param_gather, o.tp_comm_overlap, o.pp_overlap, o.async_tp,
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
