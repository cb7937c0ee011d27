#include "costmodel/operators/op_list.hpp"

#include <algorithm>

namespace costmodel {

namespace {

CollectiveKind collective_of(const Node& node, Pass pass) {
  const auto* collective = std::get_if<Collective>(&node.op);
  if (collective == nullptr) return CollectiveKind::none;
  return pass == Pass::forward ? collective->forward : collective->backward;
}

bool in_region(const Node& node, Recomputed what) { return is_recomputed(node.region, what); }

bool is_linear(const OpList& list, std::size_t i) {
  return i < list.nodes.size() && std::holds_alternative<Linear>(list.nodes[i].op);
}

// A ring overlaps with the attention that it feeds; other context-parallel collectives do not
// overlap.
bool off_tensor_axis(const OpList& list, std::size_t i, Step& step) {
  const auto& collective = std::get<Collective>(list.nodes[i].op);
  if (collective.axis == Axis::tensor) return false;
  if (step.collective == CollectiveKind::ring) {
    step.partner = &list.nodes[i + 1];
    step.partner_pass = step.pass;
  }
  return true;
}

// Forward: a collective feeds the next product, or drains the previous one.
Step forward_step(const OpList& list, std::size_t i) {
  Step step{&list.nodes[i], Pass::forward, collective_of(list.nodes[i], Pass::forward)};
  if (step.collective == CollectiveKind::none || off_tensor_axis(list, i, step)) return step;
  if (is_linear(list, i + 1)) {
    step.partner = &list.nodes[i + 1];
  } else if (i > 0 && is_linear(list, i - 1)) {
    step.partner = &list.nodes[i - 1];
  }
  return step;
}

// Backward: the collective after an input gradient overlaps with the weight gradient of the same
// product; the one before an input gradient feeds it.
Step backward_collective(const OpList& list, std::size_t i) {
  Step step{&list.nodes[i], Pass::input_gradient,
            collective_of(list.nodes[i], Pass::input_gradient)};
  if (step.collective == CollectiveKind::none || off_tensor_axis(list, i, step)) return step;
  if (is_linear(list, i + 1) && !list.nodes[i + 1].frozen()) {
    step.partner = &list.nodes[i + 1];
    step.partner_pass = Pass::weight_gradient;
    step.partner_independent = true;
  } else if (i > 0 && is_linear(list, i - 1)) {
    step.partner = &list.nodes[i - 1];
    step.partner_pass = Pass::input_gradient;
  }
  return step;
}

}  // namespace

bool is_recomputed(Region region, Recomputed what) {
  if (what == Recomputed::everything) return true;
  return (static_cast<unsigned>(region) & static_cast<unsigned>(what)) != 0;
}

std::vector<bool> with_gradient(const OpList& list) {
  if (!list.adapted) return std::vector<bool>(list.tensors.size(), true);
  std::vector<bool> computed(list.tensors.size(), false);
  if (list.input >= 0) computed[static_cast<std::size_t>(list.input)] = list.input_trained;
  for (const Node& node : list.nodes) {
    bool any = !node.frozen() && weights_of(node.op) > 0;
    for (const TensorId id : node.inputs) any = any || computed[static_cast<std::size_t>(id)];
    if (any) computed[static_cast<std::size_t>(node.output)] = true;
  }
  return computed;
}

bool has_pass(const Node& node, Pass pass) {
  return has_pass(node.op, pass) && !(pass == Pass::weight_gradient && node.frozen());
}

Bytes frozen_weights(const Node& node, double element) {
  const double all = weights_of(node.op);
  const double plain =
      std::visit(Visitor{[](const Linear& o) { return o.bias ? static_cast<double>(o.n) : 0.0; },
                         [](const GroupedLinear& o) {
                           return o.bias ? static_cast<double>(o.n * o.experts) : 0.0;
                         },
                         [all](const auto&) { return all; }},
                 node.op);
  return Bytes((all - plain) * node.frozen_bytes + plain * element);
}

namespace {

// Whether backward does anything for the inputs of node i: a weight is dequantised again for the
// product after it.
bool passes_gradient(const OpList& list, std::size_t i, const std::vector<bool>& computed) {
  if (!list.adapted) return true;
  if (std::holds_alternative<Dequantise>(list.nodes[i].op)) ++i;
  const std::vector<TensorId>& inputs = list.nodes[i].inputs;
  return std::ranges::any_of(inputs, [&](TensorId id) {
    return static_cast<bool>(computed[static_cast<std::size_t>(id)]);
  });
}

}  // namespace

std::vector<Step> forward_steps(const OpList& list) {
  std::vector<Step> steps;
  steps.reserve(list.nodes.size());
  for (std::size_t i = 0; i < list.nodes.size(); ++i) steps.push_back(forward_step(list, i));
  return steps;
}

std::vector<Step> backward_steps(const OpList& list) {
  std::vector<Step> steps;
  steps.reserve(2 * list.nodes.size());
  const std::vector<bool> computed = with_gradient(list);
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    const Node& node = list.nodes[i];
    if (passes_gradient(list, i, computed)) steps.push_back(backward_collective(list, i));
    if (!has_pass(node, Pass::weight_gradient)) continue;
    const auto* linear = std::get_if<Linear>(&node.op);
    if (linear != nullptr &&
        linear->regather) {  // overlaps with the input gradient, which does not need it
      steps.push_back({&node, Pass::weight_gradient, CollectiveKind::all_gather, &node,
                       Pass::input_gradient, true});
    } else {
      steps.push_back({&node, Pass::weight_gradient});
    }
  }
  return steps;
}

namespace {

std::vector<Step> backward_part(const OpList& list, bool weights) {
  std::vector<Step> steps = backward_steps(list);
  const auto belongs = [weights](Pass pass) { return (pass == Pass::weight_gradient) == weights; };
  std::erase_if(steps, [&](const Step& step) { return !belongs(step.pass); });
  for (Step& step : steps) {
    if (!belongs(step.partner_pass)) step.partner = nullptr;
  }
  return steps;
}

}  // namespace

std::vector<Step> input_gradient_steps(const OpList& list) { return backward_part(list, false); }

std::vector<Step> weight_gradient_steps(const OpList& list) { return backward_part(list, true); }

std::vector<Step> recompute_steps(const OpList& list, Recomputed what, bool stops) {
  std::vector<bool> needed(list.tensors.size(), false);
  for (const Node& node : list.nodes)
    for (const TensorId id : node.saved) needed[static_cast<std::size_t>(id)] = true;
  std::vector<Step> steps;
  std::size_t last = 0;  // steps up to the last tensor that is needed
  for (const Node& node : list.nodes) {
    if (!in_region(node, what)) continue;
    steps.push_back(forward_step(list, static_cast<std::size_t>(&node - list.nodes.data())));
    // What it saves of its own making, masks and statistics, it makes as it runs.
    const bool makes = std::ranges::any_of(node.saved, [&](TensorId id) {
      const TensorRole role = list.tensors[static_cast<std::size_t>(id)].role;
      return role == TensorRole::mask || role == TensorRole::statistics ||
             role == TensorRole::beside;
    });
    if (makes || needed[static_cast<std::size_t>(node.output)]) last = steps.size();
  }
  if (stops) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(last), steps.end());
  return steps;
}

}  // namespace costmodel
