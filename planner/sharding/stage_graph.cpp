#include "planner/sharding/stage_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "planner/sharding/exposure.hpp"
#include "planner/solvers/tolerances.hpp"

namespace planner {

using namespace costmodel;

namespace {

// The last node that writes a tensor; -1: none.
int producer(const OpList& list, TensorId id) {
  for (std::size_t i = list.nodes.size(); i-- > 0;) {
    if (list.nodes[i].output == id) return static_cast<int>(i);
  }
  return -1;
}

int input_index(const costmodel::Node& node, TensorId id) {
  const auto found = std::ranges::find(node.inputs, id);
  return found == node.inputs.end() ? -1 : static_cast<int>(found - node.inputs.begin());
}

bool saves(const costmodel::Node& node, TensorId id) {
  return std::ranges::find(node.saved, id) != node.saved.end();
}

// The operator whose layout a kept tensor has: the first reader, preferably one that saves it; else
// the producer.
void keep(const OpList& list, TensorId id, std::vector<OperatorSite>& sites) {
  const Bytes bytes = list.tensors[at(id)].bytes();
  for (const bool saved : {true, false}) {
    for (std::size_t i = 0; i < list.nodes.size(); ++i) {
      const int input = input_index(list.nodes[i], id);
      if (input < 0 || (saved && !saves(list.nodes[i], id))) continue;
      sites[i].kept.push_back({input, bytes});
      return;
    }
  }
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    if (!saves(list.nodes[i], id)) continue;
    // Statistics and masks have the layout of their tokens, and these that of the input.
    sites[i].kept.push_back(
        {list.nodes[i].output == id || list.nodes[i].inputs.empty() ? -1 : 0, bytes});
    return;
  }
}

bool in_region(const costmodel::Node& node, Recomputed what) {
  return is_recomputed(node.region, what);
}

template <class Operator>
bool made_by(const OpList& list, TensorId id) {
  const int from = producer(list, id);
  return from >= 0 && std::holds_alternative<Operator>(list.nodes[at(from)].op);
}

// Columns of the rows that a product of experts exchanges with a permutation.
std::int64_t sorted_columns(const OpList& list, const costmodel::Node& node) {
  if (!std::holds_alternative<GroupedLinear>(node.op)) return 0;
  if (made_by<Permute>(list, node.inputs.front()))
    return list.tensors[at(node.inputs.front())].cols;
  for (const auto& reader : list.nodes) {
    if (std::holds_alternative<Permute>(reader.op) && input_index(reader, node.output) >= 0)
      return list.tensors[at(node.output)].cols;
  }
  return 0;
}

LayerOperators operators_of(const StageLayer& layer, const StageSpec& spec,
                            const Evaluator& evaluator, const StagePrices& prices) {
  ParallelPlan whole;
  whole.micro_batch = spec.micro_batch;
  LayerOperators kind{layer, evaluator.op_list(layer.kind, whole), {}, {}};
  const OpList& list = kind.list;
  for (const auto& node : list.nodes) {
    OperatorSite site;
    site.node = node;
    site.op = {node.op,
               spec.micro_batch,
               evaluator.model().heads,
               node.region == Region::attention_core,
               false,
               std::holds_alternative<Norm>(node.op) && node.inputs.size() > 1};
    if (!node.inputs.empty())
      site.op.of_experts = made_by<GroupedLinear>(list, node.inputs.front());
    for (const TensorId id : node.inputs) site.inputs.push_back(list.tensors[at(id)].bytes());
    site.output = list.tensors[at(node.output)].bytes();
    site.again = in_region(node, layer.again);
    site.sorted_columns = sorted_columns(list, node);
    kind.sites.push_back(std::move(site));
  }
  for (const TensorId id : kept_tensors(list, layer.again)) keep(list, id, kind.sites);
  for (const auto& site : kind.sites) kind.strategies.push_back(strategies_of(site, prices));
  return kind;
}

double weighted_operators(const OpList& list) {
  return static_cast<double>(
      std::ranges::count_if(list.nodes, [](const auto& node) { return weights_of(node.op) > 0; }));
}

StagePrices prices_of(const StageSpec& spec, const Evaluator& evaluator) {
  const auto& cluster = evaluator.cluster();
  ParallelPlan whole, sharded;
  whole.micro_batch = spec.micro_batch;
  sharded.zero = 3;
  StagePrices p{{&cluster, spec.mesh, evaluator.training().stack.host.collective_wait},
                &evaluator.training(),
                evaluator.pricing(whole),
                evaluator.pricing(sharded)};
  for (auto* pricing : {&p.pricing, &p.pricing_zero3})
    pricing->kernel_launch = pricing->blocked = Seconds(0);
  const auto together = std::min<std::int64_t>(spec.mesh.devices(), cluster.devices_per_node);
  if (!cluster.device.together.empty())
    p.slowdown = slowdown_together(cluster.device, static_cast<double>(together));
  p.micro_batches = spec.micro_batches;
  p.in_flight = spec.in_flight;
  p.layers = std::max(1.0, static_cast<double>(spec.layers.size()));
  p.forward = spec.forward;
  p.backward = spec.backward;
  double all = 0;
  for (const StageLayer& layer : spec.layers)
    all += weighted_operators(evaluator.op_list(layer.kind, whole));
  p.stage_operators = std::max(1.0, all);
  p.layer_operators = std::max(1.0, all / static_cast<double>(spec.layers.size()));
  return p;
}

// Whether it leaves the gradient of its input as partial sums: column-parallel.
bool sums_gradient(const OperatorStrategy& s) {
  return std::ranges::find(s.gradient, Cut::partial) != s.gradient.end();
}

class Builder {
 public:
  Builder(const StageSpec& spec, const Evaluator& evaluator) : prices_(prices_of(spec, evaluator)) {
    graph_.spec = spec;
    graph_.problem.memory_limit = spec.memory.value;
    std::map<StageLayer, int> known;
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const auto [found, fresh] =
          known.emplace(spec.layers[l], static_cast<int>(graph_.kinds.size()));
      if (fresh) graph_.kinds.push_back(operators_of(spec.layers[l], spec, evaluator, prices_));
      add_layer(found->second, static_cast<int>(l));
    }
  }

  StageGraph take() { return std::move(graph_); }

 private:
  struct Origin {  // of a tensor: a problem node, and the layouts of its strategies
    int node = -1;
    int kind = -1, site = -1;  // -1: the stage's input
  };

  void add_layer(int kind, int layer) {
    const LayerOperators& k = graph_.kinds[at(kind)];
    if (k.list.input >= 0 && layer == 0) add_input(k);
    const int first = static_cast<int>(graph_.problem.nodes.size());
    for (std::size_t i = 0; i < k.sites.size(); ++i) {
      auto& choices = graph_.problem.nodes.emplace_back();
      for (const OperatorStrategy& s : k.strategies[i]) choices.push_back(s.choice());
      graph_.nodes.push_back({kind, layer, static_cast<int>(i)});
    }
    for (std::size_t i = 0; i < k.sites.size(); ++i) {
      const auto& inputs = k.list.nodes[i].inputs;
      for (std::size_t n = 0; n < inputs.size(); ++n) {
        const int from = producer(k.list, inputs[n]);
        if (from >= 0 && at(from) < i) {
          add_edge({first + from, kind, from}, first, kind, static_cast<int>(i),
                   static_cast<int>(n));
        } else if (inputs[n] == k.list.input) {
          add_edge(before_, first, kind, static_cast<int>(i), static_cast<int>(n));
        }
      }
    }
    const int last = producer(k.list, k.list.output);
    before_ = {first + last, kind, last};
  }

  // The input from the previous stage may have any layout.
  void add_input(const LayerOperators& k) {
    const auto& tensor = k.list.tensors[at(k.list.input)];
    const LocalOp whole{Dropout{tensor.rows, tensor.cols}};
    auto& choices = graph_.problem.nodes.emplace_back();
    const DeviceMesh& mesh = graph_.spec.mesh;
    for (const Split outer : {Split::whole, Split::rows, Split::channels}) {
      for (const Split inner : {Split::whole, Split::rows, Split::channels}) {
        const bool idle = (outer != Split::whole && mesh.size(0) == 1) ||
                          (inner != Split::whole && mesh.size(1) == 1);
        if (idle) continue;
        const auto half = cut(whole, outer, mesh.size(0));
        if (!half || !cut(*half, inner, mesh.size(1))) continue;
        const auto as_cut = [](Split s) {
          return s == Split::whole ? Cut::whole : s == Split::rows ? Cut::rows : Cut::columns;
        };
        graph_.input_layouts.push_back({as_cut(outer), as_cut(inner)});
        choices.push_back({});
      }
    }
    graph_.has_input = true;
    before_ = {0, -1, -1};
  }

  std::vector<TensorLayout> layouts_of(const Origin& origin) const {
    if (origin.kind < 0) return graph_.input_layouts;
    std::vector<TensorLayout> layouts;
    for (const auto& s : graph_.kinds[at(origin.kind)].strategies[at(origin.site)])
      layouts.push_back(s.output);
    return layouts;
  }

  // Seconds per iteration for a triple of layouts: resharding the tensor, and its gradient back,
  // which may run beside `window` seconds of a weight gradient.
  double moving(Bytes bytes, const TensorLayout& from, const TensorLayout& to,
                const TensorLayout& gradient, bool again, Seconds window) {
    const auto key = std::tuple(bytes.value, from, to, gradient, again, window.value);
    const auto found = moved_.find(key);
    if (found != moved_.end()) return found->second;
    const auto there = prices_.mesh.time(resharding(bytes, from, to, prices_.mesh));
    const auto back = exposed_by_product(resharding(bytes, gradient, from, prices_.mesh), window,
                                         window.value > 0, prices_);
    const double seconds =
        (there * (again ? 2 : 1) + back).value * static_cast<double>(prices_.micro_batches);
    return moved_.emplace(key, seconds).first->second;
  }

  void add_edge(const Origin& from, int first, int kind, int site, int input) {
    const auto key = std::tuple(from.kind, from.site, kind, site, input);
    auto found = tables_.find(key);
    if (found == tables_.end()) {
      const LayerOperators& k = graph_.kinds[at(kind)];
      const OperatorSite& reader = k.sites[at(site)];
      std::vector<double> table;
      for (const TensorLayout& layout : layouts_of(from)) {
        for (const OperatorStrategy& s : k.strategies[at(site)]) {
          table.push_back(moving(reader.inputs[at(input)], layout, input_layout(reader, s, input),
                                 gradient_layout(reader, s, input), reader.again,
                                 sums_gradient(s) ? s.weight_gradient : Seconds(0)));
        }
      }
      found = tables_.emplace(key, std::move(table)).first;
    }
    graph_.problem.edges.push_back({from.node, first + site, found->second});
  }

  StagePrices prices_;
  StageGraph graph_;
  Origin before_;
  std::map<std::tuple<double, TensorLayout, TensorLayout, TensorLayout, bool, double>, double>
      moved_;
  std::map<std::tuple<int, int, int, int, int>, std::vector<double>> tables_;
};

}  // namespace

const OperatorSite& StageGraph::site(std::size_t node) const {
  return kinds[at(nodes[node].kind)].sites[at(nodes[node].site)];
}

const OperatorStrategy& StageGraph::strategy(std::size_t node,
                                             const std::vector<int>& choice) const {
  const int chosen = choice[node + (has_input ? 1 : 0)];
  return kinds[at(nodes[node].kind)].strategies[at(nodes[node].site)][at(chosen)];
}

StageGraph stage_graph(const StageSpec& spec, const Evaluator& evaluator) {
  return Builder(spec, evaluator).take();
}

StageSpec critical_stage(const Estimate& estimate, Bytes limit, Evaluator& evaluator) {
  const auto& plan = estimate.plan;
  const int rank = estimate.critical_rank;
  const auto region = region_of(plan.recompute);
  const auto others = plan.recompute.layers > 0 ? Recomputed::nothing : region;
  StageSpec spec;
  spec.mesh = device_mesh(plan, evaluator.cluster());
  spec.micro_batch = plan.micro_batch * plan.dp;
  spec.micro_batches = estimate.micro_batches;
  spec.in_flight = estimate.memory[at(rank)].in_flight_micro_batches;
  for (int v = 0; v < plan.chunks(); ++v) {
    const auto k = at(stage_of(plan.schedule, plan.pp, v, rank));
    spec.forward += estimate.stage_forward[k];
    spec.backward += estimate.stage_backward[k];
  }
  const StageRows stages = evaluator.cost(plan).stages;
  Bytes working;
  const auto add = [&](LayerKind kind, Recomputed what, int count) {
    if (count == 0) return;
    spec.layers.insert(spec.layers.end(), at(count), StageLayer{kind, what});
    const auto& own = evaluator.layer(kind, plan, what).footprint;
    working = max(working, max(own.forward_transient, own.backward_transient));
  };
  for (int v = 0; v < plan.chunks(); ++v) {
    const int k = stage_of(plan.schedule, plan.pp, v, rank);
    const auto& mix = stages[at(k)].layers;
    if (k == 0) add(LayerKind::embedding, Recomputed::nothing, 1);
    for (const LayerCount& own : layer_counts_of(evaluator.model(), mix)) {
      add(own.kind, region, own.again);
      add(own.kind, others, own.number - own.again);
    }
    if (k == plan.virtual_stages() - 1) add(LayerKind::head, Recomputed::nothing, 1);
  }
  const StackMemory& memory = evaluator.training().stack.memory;
  spec.memory = (limit - memory.context) / (1 + memory.fragmentation) - working;
  return spec;
}

}  // namespace planner
