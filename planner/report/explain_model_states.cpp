#include "planner/report/explain_model_states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/plan_inputs.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "planner/report/explain_operators.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double buffer_factor = 1.5;

double largest_module(const Scenario& s, const ParallelPlan& plan, Evaluator& evaluator) {
  double most = 0;
  for (const auto kind : layer_kinds(s.model)) {
    most =
        std::max(most, evaluator.layer(kind, plan, costmodel::Recomputed::nothing).largest_weights);
  }
  return most;
}

std::string of_host(Bytes bytes, const Scenario& s) {
  if (s.cluster.host_memory.value <= 0) return "";
  return fmt::format(", of {} a node{}", format_bytes(s.cluster.host_memory),
                     bytes > s.cluster.host_memory ? ": too much" : "");
}

const char* device_formula(const ModelStatesAsked& a) {
  if (a.zero == 2) {
    return a.optimizer_on_host
               ? "2 psi: weights"
               : "2 psi + 18 psi / N: gradients in 16 bits and in fp32 (these exist in the "
                 "optimizer's step alone, without activations: left out here)";
  }
  if (a.parameters_on_host) return "4 bytes of each value of the largest module";
  return a.optimizer_on_host ? "2 psi / N, and 4 bytes of each value of the largest module"
                             : "18 psi / N, and 4 bytes of each value of the largest module";
}

}  // namespace

ModelStatesNeeded deepspeed_estimate(const ModelStatesAsked& a) {
  const double psi = a.parameters, on_node = a.devices_per_node, all = on_node * a.nodes;
  if (a.zero == 2) {
    return a.optimizer_on_host
               ? ModelStatesNeeded{Bytes(2 * psi),
                                   Bytes(psi * std::max(4 * all, 16.0) * buffer_factor)}
               : ModelStatesNeeded{Bytes(2 * psi + 18 * psi / all),
                                   Bytes(4 * psi * on_node * buffer_factor)};
  }
  const double largest = 4 * a.largest_module, part = 1.0 / a.nodes;
  const double kept = a.parameters_on_host ? 18 : 16;
  if (!a.optimizer_on_host) {
    const double read = a.sharded_from_start ? a.largest_module : psi;
    return {Bytes(largest + 18 * psi / all), Bytes(4 * read * on_node * buffer_factor)};
  }
  const double host = a.sharded_from_start ? kept * part : std::max(4 * on_node, kept * part);
  return {Bytes(largest + (a.parameters_on_host ? 0 : 2 * psi / all)),
          Bytes(psi * host * buffer_factor)};
}

std::vector<Explained> explained_model_states(const Estimate& e, const Scenario& s,
                                              Evaluator& evaluator) {
  const ParallelPlan& p = e.plan;
  if (p.zero < 2 || p.tp * p.pp * p.cp * p.ep > 1 || !s.training.stack.offers.parameter_offload ||
      s.training.fine_tuning.adapts())
    return {};
  const int on_node = static_cast<int>(ranks_on_a_node(s.cluster));
  ModelStatesAsked asked{.parameters = parameter_count(s.model),
                         .largest_module = largest_module(s, p, evaluator),
                         .zero = p.zero,
                         .devices_per_node = on_node,
                         .nodes = std::max(1, static_cast<int>(s.cluster.devices) / on_node),
                         .optimizer_on_host = p.offload.optimizer > 0,
                         .parameters_on_host = p.offload.parameters > 0};
  const costmodel::StageMemory& own = e.memory.front();
  const ModelStatesNeeded theirs = deepspeed_estimate(asked);
  asked.sharded_from_start = false;
  const ModelStatesNeeded read = deepspeed_estimate(asked);
  const std::string estimator = p.zero == 2 ? "zero2" : "zero3";
  Explanation all{"model states"};
  const auto add = [&](const char* symbol, Bytes bytes, const std::string& from) {
    all.add(symbol, format_bytes(bytes), from);
  };
  add("a device", own.weights + own.gradients + own.optimizer,
      "weights, gradients and optimizer states as priced here, between iterations");
  add("DeepSpeed", theirs.device,
      fmt::format("estimate_{}_model_states_mem_needs: {}", estimator, device_formula(asked)));
  if (asked.optimizer_on_host) {
    add("host", e.host, "of a node, as priced here" + of_host(e.host, s));
    add("DeepSpeed, host", theirs.host, "the same by its estimator, buffers of a half included");
  }
  add("reading", read.host,
      fmt::format("of a node's host where every process reads the model before it is sharded: 4 "
                  "psi for each of {}, buffers included{}",
                  on_node, of_host(read.host, s)));
  if (p.zero == 3 && !asked.optimizer_on_host) {
    add("zero.Init", theirs.host,
        "the same where no process ever holds the model (zero.Init, the meta device): the largest "
        "module each");
  }
  return all.rows;
}

}  // namespace planner
