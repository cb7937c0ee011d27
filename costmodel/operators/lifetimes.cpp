#include "costmodel/operators/lifetimes.hpp"

#include <algorithm>
#include <cstdint>

#include "costmodel/plan/host_offload.hpp"

namespace costmodel {

namespace {

bool recomputes(const Node& node, Recomputed what) { return is_recomputed(node.region, what); }

// Its output is discarded after forward, though nodes outside the region save it.
bool is_discarded(const Node& node, Recomputed what) {
  constexpr unsigned discarding = 2 | 4 | 8;  // latent_up, expert_activation, norm
  const unsigned chosen = static_cast<unsigned>(node.region) & static_cast<unsigned>(what);
  return what != Recomputed::everything && (chosen & discarding) != 0;
}

using What = TensorEvent::What;

// Live bytes as tensors are allocated and freed, and their maximum.
struct Meter {
  Bytes now;
  Bytes peak;
  int node = -1;  // that runs
  int at = -1;    // that ran when the peak was reached
  void take(What, int, Bytes b) {
    now += b;
    if (now > peak) {
      peak = now;
      at = node;
    }
  }
  void drop(What, int, Bytes b) { now -= b; }
  void differentiated(const Node&) {}
};

// The same, written down. What is freed without having been taken is the layer's input.
struct Recorder {
  std::vector<TensorEvent> events;
  int node = -1;
  void take(What what, int id, Bytes b) { events.push_back({what, id, b, node}); }
  void drop(What what, int id, Bytes b) { events.push_back({what, id, Bytes(0) - b, node}); }
  void differentiated(const Node& own) {
    const double weights = own.frozen() ? 0 : weights_of(own.op);
    if (weights > 0) take(What::weight_gradient, node, Bytes(weights));
  }
};

// A tensor that is there for a moment.
template <class Meter>
void pass_through(Meter& meter, int id, Bytes bytes) {
  meter.take(What::temporary, id, bytes);
  meter.drop(What::temporary, id, bytes);
}

// An operator that is the identity in this pass (before a column-parallel product) returns its
// input.
bool in_place(const Node& node) {
  return std::ranges::find(node.inputs, node.output) != node.inputs.end();
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

// The fp32 copy of the logits for PyTorch's cross-entropy, and in backward its gradient; else 0.
Bytes wide_logits(const OpList& list, const Node& node) {
  const auto* loss = std::get_if<CrossEntropy>(&node.op);
  const bool copied = loss != nullptr && !node.saved.empty() && node.saved.front() == node.output;
  return copied ? list.tensors[static_cast<std::size_t>(node.output)].bytes() : Bytes(0);
}

// Runs `chosen` nodes forward. Tensors in `kept` stay allocated; the others are freed after their
// last reader.
template <class Chosen, class Meter>
void walk_forward(const OpList& list, const std::vector<bool>& kept, Chosen chosen, Meter& meter) {
  auto last = last_readers(list, chosen);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const Node& node = list.nodes[i];
    if (!chosen(node)) continue;
    meter.node = static_cast<int>(i);
    const auto out = static_cast<std::size_t>(node.output);
    const Bytes copy = wide_logits(list, node);
    if (copy > Bytes(0)) meter.take(What::temporary, node.inputs.front(), copy);
    if (!in_place(node)) meter.take(What::tensor, node.output, list.tensors[out].bytes());
    if (copy > Bytes(0)) meter.drop(What::temporary, node.inputs.front(), copy);
    for (const TensorId id :
         node.saved) {  // masks and statistics are made here, not read from another node
      if (list.tensors[static_cast<std::size_t>(id)].role != TensorRole::activation &&
          !is_shared(list, id)) {
        const Bytes bytes = list.tensors[static_cast<std::size_t>(id)].bytes();
        meter.take(What::tensor, id, bytes);
        if (!kept[static_cast<std::size_t>(id)]) meter.drop(What::tensor, id, bytes);
      }
    }
    for (const TensorId id : node.inputs) {
      const auto t = static_cast<std::size_t>(id);
      if (last[t] != static_cast<int>(i) || kept[t] || is_shared(list, id)) continue;
      last[t] = -1;  // a node may read a tensor twice
      meter.drop(What::tensor, id, list.tensors[t].bytes());
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
template <class Meter>
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
      meter.drop(What::tensor, node.saved.front(), bytes(node.saved.front()));
    }
    if (const Bytes copy = wide_logits(list, node); copy > Bytes(0))
      pass_through(meter, node.inputs.front(), copy);
    for (const TensorId id : node.inputs) {
      const TensorInfo& info = list.tensors[static_cast<std::size_t>(id)];
      const bool has_one = info.role == TensorRole::activation || info.role == TensorRole::shared;
      if (gradient[static_cast<std::size_t>(id)] || !has_one) continue;
      gradient[static_cast<std::size_t>(id)] = true;
      meter.take(What::gradient, id, bytes(id));
    }
    for (const TensorId id : node.inputs) {
      if (list.tensors[static_cast<std::size_t>(id)].role != TensorRole::weight) continue;
      pass_through(meter, id, bytes(id));  // dequantised again
    }
    if (const auto* linear = std::get_if<Linear>(&node.op); linear != nullptr && linear->regather)
      pass_through(meter, node.inputs.front(), bytes(node.inputs.front()));
    if (loss != nullptr && loss->kernel == LossKernel::native)  // works on a copy
      pass_through(meter, node.saved.front(), bytes(node.saved.front()));
    // Keys and values of other ranks are received again.
    const auto* flash = std::get_if<FlashAttention>(&node.op);
    if (flash != nullptr && !flash->cross && node.inputs.size() > 1)
      pass_through(meter, node.inputs.back(), bytes(node.inputs.back()));
    meter.differentiated(node);
    if (!in_place(node) && gradient[static_cast<std::size_t>(node.output)])
      meter.drop(What::gradient, node.output, bytes(node.output));
    for (const TensorId id : node.saved) {
      const auto t = static_cast<std::size_t>(id);
      if (!held[t] || first_saver[t] != static_cast<int>(i)) continue;
      held[t] = false;
      meter.drop(What::tensor, id, list.tensors[t].bytes());
    }
  }
}

}  // namespace

std::vector<TensorId> kept_tensors(const OpList& list, Recomputed what) {
  std::vector<bool> made_inside(list.tensors.size(), false);
  std::vector<bool> kept(list.tensors.size(), false), discarded(list.tensors.size(), false);
  for (const Node& node : list.nodes) {
    if (!recomputes(node, what) || in_place(node)) continue;
    made_inside[static_cast<std::size_t>(node.output)] = true;
    discarded[static_cast<std::size_t>(node.output)] = is_discarded(node, what);
  }
  for (std::size_t t = 0; t < discarded.size(); ++t) {
    const int source = list.tensors[t].cast_of;
    if (source >= 0 && discarded[static_cast<std::size_t>(source)]) discarded[t] = true;
  }
  for (const Node& node : list.nodes) {
    if (recomputes(node, what)) {
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

// torchtitan counts a layer's products as PyTorch sees them, q, k, v, and gate and up each, and
// saves the first, third, fifth (distributed/activation_checkpoint.py, _save_list; w2(silu(w1(x)) *
// w3(x))), and what experts are sent and send back (since September 2025).
std::vector<std::pair<TensorId, Bytes>> alternate_tensors(const OpList& list) {
  std::vector<std::pair<TensorId, Bytes>> kept;
  int products = 0;
  const auto count = [&](TensorId id, double rows, double cols, double element) {
    if (++products % 2 == 1) kept.emplace_back(id, Bytes(rows * cols * element));
  };
  const FlashAttention* attention = nullptr;
  for (const Node& node : list.nodes) {
    if (const auto* own = std::get_if<FlashAttention>(&node.op)) attention = own;
  }
  for (const Node& node : list.nodes) {
    const TensorInfo& out = list.tensors[static_cast<std::size_t>(node.output)];
    if (std::holds_alternative<FlashAttention>(node.op))
      kept.emplace_back(node.output, out.bytes());
    const auto* exchange = std::get_if<Collective>(&node.op);
    if (exchange != nullptr && exchange->forward == CollectiveKind::all_to_all)
      kept.emplace_back(node.output, out.bytes());
    const auto* product = std::get_if<Linear>(&node.op);
    if (product == nullptr) continue;
    const auto rows = static_cast<double>(product->m), n = static_cast<double>(product->n);
    if (node.site == Site::qkv && attention != nullptr) {
      const auto of = [](std::int64_t heads, std::int64_t size) {
        return static_cast<double>(heads * size);
      };
      const double keys = of(attention->kv_heads, attention->head_dim),
                   all = of(attention->kv_heads, attention->value_dim());
      const bool joint = n < of(attention->heads, attention->head_dim) + keys + all;
      const double values = joint ? 0 : all;  // they are the keys
      for (const double cols : {n - keys - values, keys, values})
        count(node.output, rows, cols, out.element_bytes);
    } else if (node.site == Site::mlp_gate_and_up) {
      for (int half = 0; half < 2; ++half) count(node.output, rows, n / 2, out.element_bytes);
    } else {
      count(node.output, rows, n, out.element_bytes);
    }
  }
  return kept;
}

namespace {

constexpr unsigned no_module = 1U << 31;

// qkv_linear has all that makes queries, keys and values of hidden states
// (multi_latent_attention.py), moe_act what is between the experts' products.
unsigned module_of(const Node& node) {
  if (recomputes(node, Recomputed::attention_core)) return bit_of(OffloadModule::core_attn);
  struct Part {
    OffloadModule module;
    std::vector<Site> sites;
  };
  static const std::vector<Part> parts{
      {OffloadModule::attn_norm, {Site::attention_norm}},
      {OffloadModule::qkv_linear,
       {Site::qkv, Site::qk_norm, Site::q, Site::q_down, Site::kv, Site::kv_down,
        Site::latent_norm}},
      {OffloadModule::attn_proj, {Site::attention_projection}},
      {OffloadModule::mlp_norm, {Site::mlp_norm}},
      {OffloadModule::expert_fc1, {Site::expert_gate_and_up, Site::expert_up}},
      {OffloadModule::moe_act, {Site::expert_activation, Site::expert_clamp, Site::expert_bias}}};
  for (const Part& part : parts)
    if (std::ranges::find(part.sites, node.site) != part.sites.end()) return bit_of(part.module);
  return no_module;
}

}  // namespace

Bytes sent_tensors(const OpList& list, Recomputed what, unsigned modules) {
  constexpr std::int64_t least = 1 << 20;  // elements: min_offloaded_tensor_size
  std::vector<unsigned> savers(list.tensors.size(), 0);
  for (const Node& node : list.nodes) {
    for (const TensorId id : recomputes(node, what) ? node.inputs : node.saved)
      savers[static_cast<std::size_t>(id)] |= module_of(node);
  }
  Bytes sent;
  for (const TensorId id : kept_tensors(list, what)) {
    const unsigned by = savers[static_cast<std::size_t>(id)];
    const TensorInfo& info = list.tensors[static_cast<std::size_t>(id)];
    if (by != 0 && (by & ~modules) == 0 && info.rows * info.cols >= least) sent += info.bytes();
  }
  return sent;
}

Footprint footprint(const OpList& list, Recomputed what) {
  Footprint result;
  const auto ids = kept_tensors(list, what);
  const auto kept = flags_of(list, ids);
  for (const TensorId id : ids) {
    const TensorInfo& info = list.tensors[static_cast<std::size_t>(id)];
    result.kept += info.bytes();
    if (info.role != TensorRole::statistics) result.kept_activations += info.bytes();
  }
  if (what == Recomputed::everything) {
    result.kept_alternate = result.kept;
    for (const auto& [id, bytes] : alternate_tensors(list)) result.kept_alternate += bytes;
  }
  result.kept_for_weights = kept_for_weights(list);
  const auto all = [](const Node&) { return true; };
  Meter forward;
  if (list.input >= 0) {
    forward.take(What::tensor, list.input,
                 list.tensors[static_cast<std::size_t>(list.input)].bytes());
  }
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
        list, standing, [what](const Node& node) { return recomputes(node, what); }, backward);
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

namespace {

// Frees what a pass has left, but for what `stays`.
void free_others(std::vector<TensorEvent>& events, const std::vector<bool>& stays,
                 TensorId output) {
  std::vector<Bytes> live(stays.size());
  for (const TensorEvent& event : events) {
    if (event.what == What::tensor) live[static_cast<std::size_t>(event.id)] += event.bytes;
  }
  for (std::size_t t = 0; t < live.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (live[t] > Bytes(0) && !stays[t] && id != output)
      events.push_back({What::tensor, id, Bytes(0) - live[t], -1});
  }
}

}  // namespace

LayerLifetimes lifetimes(const OpList& list, Recomputed what) {
  LayerLifetimes result;
  const auto kept = flags_of(list, kept_tensors(list, what));
  Recorder forward;
  walk_forward(
      list, kept, [](const Node&) { return true; }, forward);
  free_others(forward.events, kept, list.output);
  result.keeps_output = kept[static_cast<std::size_t>(list.output)];
  result.forward = std::move(forward.events);
  std::vector<bool> held = kept;
  Recorder backward;
  if (what != Recomputed::nothing) {
    const auto everything = flags_of(list, kept_tensors(list, Recomputed::nothing));
    for (std::size_t t = 0; t < held.size(); ++t) held[t] = held[t] || everything[t];
    walk_forward(
        list, held, [what](const Node& node) { return recomputes(node, what); }, backward);
    free_others(backward.events, held, -1);
  }
  walk_backward(list, held, backward);
  result.backward = std::move(backward.events);
  return result;
}

}  // namespace costmodel
