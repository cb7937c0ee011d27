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

// Its output is discarded after forward, though nodes outside the region save it.
bool is_discarded(const Node& node, Recomputed what) {
  constexpr unsigned discarding = 2 | 4 | 8;  // latent_up, expert_activation, norm
  const unsigned chosen = static_cast<unsigned>(node.region) & static_cast<unsigned>(what);
  return what != Recomputed::everything && (chosen & discarding) != 0;
}

// Live bytes as tensors are allocated and freed, and their maximum.
struct Meter {
  Bytes now;
  Bytes peak;
  int node = -1;  // that runs
  int at = -1;    // that ran when the peak was reached
  void take(Bytes b) {
    now += b;
    if (now > peak) {
      peak = now;
      at = node;
    }
  }
  void drop(Bytes b) { now -= b; }
};

// An operator that is the identity in this pass (before a column-parallel product) returns its
// input.
bool in_place(const Node& node) {
  return std::find(node.inputs.begin(), node.inputs.end(), node.output) != node.inputs.end();
}

// For every tensor, the index of the last node satisfying `chosen` that reads it; -1: none.
template <class Chosen>
std::vector<int> last_readers(const OpList& list, Chosen chosen) {
  std::vector<int> last(list.tensors.size(), -1);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    if (!chosen(list.nodes[i])) continue;
    for (const TensorId id : list.nodes[i].inputs)
      last[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  return last;
}

bool is_shared(const OpList& list, TensorId id) {
  return list.tensors[static_cast<std::size_t>(id)].role == TensorRole::shared;
}

// Runs `chosen` nodes forward. Tensors in `kept` stay allocated; the others are freed after their
// last reader.
template <class Chosen>
void walk_forward(const OpList& list, const std::vector<bool>& kept, Chosen chosen, Meter& meter) {
  const auto last = last_readers(list, chosen);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const Node& node = list.nodes[i];
    if (!chosen(node)) continue;
    meter.node = static_cast<int>(i);
    const auto out = static_cast<std::size_t>(node.output);
    if (!in_place(node)) meter.take(list.tensors[out].bytes());
    for (const TensorId id :
         node.saved) {  // masks and statistics are made here, not read from another node
      if (list.tensors[static_cast<std::size_t>(id)].role != TensorRole::activation &&
          !is_shared(list, id)) {
        meter.take(list.tensors[static_cast<std::size_t>(id)].bytes());
        if (!kept[static_cast<std::size_t>(id)])
          meter.drop(list.tensors[static_cast<std::size_t>(id)].bytes());
      }
    }
    for (std::size_t t = 0; t < list.tensors.size(); ++t) {
      const bool mine = !is_shared(list, static_cast<TensorId>(t)) &&
                        std::find(node.inputs.begin(), node.inputs.end(),
                                  static_cast<TensorId>(t)) != node.inputs.end();
      if (mine && last[t] == static_cast<int>(i) && !kept[t]) meter.drop(list.tensors[t].bytes());
    }
  }
}

std::vector<bool> flags_of(const OpList& list, const std::vector<TensorId>& ids) {
  std::vector<bool> flags(list.tensors.size(), false);
  for (const TensorId id : ids) flags[static_cast<std::size_t>(id)] = true;
  return flags;
}

// Runs backward over all nodes; everything in `held` (kept or recomputed) and the output's gradient
// are allocated. Differentiating a node allocates the gradients of its inputs and frees that of its
// output; a held tensor is freed when no earlier node saved it.
void walk_backward(const OpList& list, std::vector<bool> held, Meter& meter) {
  std::vector<bool> gradient(list.tensors.size(), false);
  const auto bytes = [&](TensorId id) {
    return list.tensors[static_cast<std::size_t>(id)].bytes();
  };
  gradient[static_cast<std::size_t>(list.output)] = true;
  std::vector<int> first_saver(list.tensors.size(), -1);
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    for (const TensorId id : list.nodes[i].saved)
      first_saver[static_cast<std::size_t>(id)] = static_cast<int>(i);
  }
  const std::vector<bool> computed = with_gradient(list);
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    const Node& node = list.nodes[i];
    if (!computed[static_cast<std::size_t>(node.output)]) continue;
    meter.node = static_cast<int>(i);
    const auto* loss = std::get_if<CrossEntropy>(&node.op);
    if (loss != nullptr && loss->kernel == LossKernel::te) {  // the gradient is what was kept
      held[static_cast<std::size_t>(node.saved.front())] = false;
      meter.drop(bytes(node.saved.front()));
    }
    for (const TensorId id : node.inputs) {
      const TensorInfo& info = list.tensors[static_cast<std::size_t>(id)];
      const bool has_one = info.role == TensorRole::activation || info.role == TensorRole::shared;
      if (gradient[static_cast<std::size_t>(id)] || !has_one) continue;
      gradient[static_cast<std::size_t>(id)] = true;
      meter.take(bytes(id));
    }
    for (const TensorId id : node.inputs) {
      if (list.tensors[static_cast<std::size_t>(id)].role != TensorRole::weight) continue;
      meter.take(bytes(id));  // dequantised again
      meter.drop(bytes(id));
    }
    if (const auto* linear = std::get_if<Linear>(&node.op); linear != nullptr && linear->regather) {
      const Bytes gathered = bytes(node.inputs.front());
      meter.take(gathered);
      meter.drop(gathered);
    }
    if (loss != nullptr && loss->kernel == LossKernel::native) {  // works on a copy
      meter.take(bytes(node.saved.front()));
      meter.drop(bytes(node.saved.front()));
    }
    // Keys and values of other ranks are received again.
    const auto* flash = std::get_if<FlashAttention>(&node.op);
    if (flash != nullptr && !flash->cross && node.inputs.size() > 1) {
      meter.take(bytes(node.inputs.back()));
      meter.drop(bytes(node.inputs.back()));
    }
    if (!in_place(node) && gradient[static_cast<std::size_t>(node.output)])
      meter.drop(bytes(node.output));
    for (std::size_t t = 0; t < list.tensors.size(); ++t) {
      if (held[t] && first_saver[t] == static_cast<int>(i)) {
        held[t] = false;
        meter.drop(list.tensors[t].bytes());
      }
    }
  }
}

}  // namespace

namespace {

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
  return std::any_of(inputs.begin(), inputs.end(), [&](TensorId id) {
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
    const bool makes = std::any_of(node.saved.begin(), node.saved.end(), [&](TensorId id) {
      const TensorRole role = list.tensors[static_cast<std::size_t>(id)].role;
      return role == TensorRole::mask || role == TensorRole::statistics ||
             role == TensorRole::beside;
    });
    if (makes || needed[static_cast<std::size_t>(node.output)]) last = steps.size();
  }
  if (stops) steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(last), steps.end());
  return steps;
}

std::vector<TensorId> kept_tensors(const OpList& list, Recomputed what) {
  std::vector<bool> made_inside(list.tensors.size(), false);
  std::vector<bool> kept(list.tensors.size(), false), discarded(list.tensors.size(), false);
  for (const Node& node : list.nodes) {
    if (!in_region(node, what) || in_place(node)) continue;
    made_inside[static_cast<std::size_t>(node.output)] = true;
    discarded[static_cast<std::size_t>(node.output)] = is_discarded(node, what);
  }
  for (std::size_t t = 0; t < discarded.size(); ++t) {
    const int source = list.tensors[t].cast_of;
    if (source >= 0 && discarded[static_cast<std::size_t>(source)]) discarded[t] = true;
  }
  for (const Node& node : list.nodes) {
    if (in_region(node, what)) {
      for (const TensorId id : node.inputs) {
        if (!made_inside[static_cast<std::size_t>(id)]) kept[static_cast<std::size_t>(id)] = true;
      }
    } else {
      for (const TensorId id : node.saved) kept[static_cast<std::size_t>(id)] = true;
    }
  }
  std::vector<TensorId> ids;
  for (std::size_t t = 0; t < kept.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (kept[t] && !discarded[t] && !is_shared(list, id)) ids.push_back(id);
  }
  return ids;
}

namespace {

Bytes kept_for_weights(const OpList& list) {
  std::vector<bool> input(list.tensors.size(), false), output_gradient(list.tensors.size(), false);
  for (const Node& node : list.nodes) {
    if (!has_pass(node, Pass::weight_gradient)) continue;
    for (const TensorId id : node.saved) input[static_cast<std::size_t>(id)] = !is_shared(list, id);
    output_gradient[static_cast<std::size_t>(node.output)] = true;
  }
  Bytes kept;
  for (std::size_t t = 0; t < list.tensors.size(); ++t) {
    if (input[t]) kept += list.tensors[t].bytes();
    if (output_gradient[t]) kept += list.tensors[t].bytes();
  }
  return kept;
}

}  // namespace

Footprint footprint(const OpList& list, Recomputed what) {
  Footprint result;
  const auto ids = kept_tensors(list, what);
  const auto kept = flags_of(list, ids);
  for (const TensorId id : ids) {
    const TensorInfo& info = list.tensors[static_cast<std::size_t>(id)];
    result.kept += info.bytes();
    if (info.role != TensorRole::statistics) result.kept_activations += info.bytes();
  }
  result.kept_for_weights = kept_for_weights(list);
  const auto all = [](const Node&) { return true; };
  Meter forward;
  if (list.input >= 0) forward.take(list.tensors[static_cast<std::size_t>(list.input)].bytes());
  walk_forward(list, kept, all, forward);
  result.forward_transient = max(Bytes(0), forward.peak - result.kept);
  result.forward_at = forward.at;

  // The output's gradient arrives; recomputation restores what its region saves; backward then
  // consumes everything.
  std::vector<bool> held = kept;
  const Bytes incoming = list.tensors[static_cast<std::size_t>(list.output)].bytes();
  Meter backward{result.kept + incoming, result.kept + incoming};
  if (what != Recomputed::nothing) {
    const auto everything = flags_of(list, kept_tensors(list, Recomputed::nothing));
    for (std::size_t t = 0; t < held.size(); ++t) held[t] = held[t] || everything[t];
    std::vector<bool> standing = held;
    walk_forward(
        list, standing, [what](const Node& node) { return in_region(node, what); }, backward);
    backward.now = incoming;  // plus the recomputed tensors: exactly the held tensors
    for (std::size_t t = 0; t < held.size(); ++t) {
      if (held[t]) backward.now += list.tensors[t].bytes();
    }
    backward.peak = max(backward.peak, backward.now);
  }
  const Bytes recomputed = backward.peak;
  walk_backward(list, held, backward);
  result.backward_at = backward.at;
  result.in_recomputation = what != Recomputed::nothing && backward.peak == recomputed;
  result.backward_transient = backward.peak - result.kept;
  return result;
}

}  // namespace costmodel
