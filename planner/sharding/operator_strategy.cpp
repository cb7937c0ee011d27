#include "planner/sharding/operator_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/cost/device_time.hpp"
#include "costmodel/cost/layer_cost.hpp"
#include "costmodel/estimate/iteration_end.hpp"
#include "planner/sharding/exposure.hpp"

namespace planner {

using namespace costmodel;

namespace {

Cut input_cut(Split split) {
  switch (split) {
    case Split::whole:
    case Split::columns: return Cut::whole;
    case Split::rows:
    case Split::ring:
    case Split::gathered_columns: return Cut::rows;
    case Split::channels:
    case Split::inner:
    case Split::inner_scattered: return Cut::columns;
    case Split::experts: return Cut::experts;
  }
  return Cut::whole;
}

Cut output_cut(Split split, const Op& op) {
  switch (split) {
    case Split::whole:
    case Split::inner: return Cut::whole;
    case Split::rows:
    case Split::ring:
    case Split::inner_scattered: return Cut::rows;
    case Split::channels:  // a row's loss is a number
      return std::holds_alternative<CrossEntropy>(op) ? Cut::whole : Cut::columns;
    case Split::columns:
    case Split::gathered_columns: return Cut::columns;
    case Split::experts: return Cut::experts;
  }
  return Cut::whole;
}

bool offers(const Op& op, Split split) {
  // A table has no input to gather.
  return split != Split::gathered_columns || std::holds_alternative<Linear>(op);
}

// The layout with `to` on the axes that have this split.
TensorLayout with(const TensorLayout& layout, const std::array<Split, 2>& split, Split which,
                  Cut to) {
  TensorLayout result = layout;
  for (std::size_t a = 0; a < 2; ++a) {
    if (split[a] == which) result[a] = to;
  }
  return result;
}

void append(std::vector<Exchange>& to, const std::vector<Exchange>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// The device time of a product's pass, beside which its collectives may run; 0 for other operators.
Seconds window_of(const LocalOp& local, Pass pass, const StagePrices& prices) {
  if (!std::holds_alternative<Linear>(local.op)) return Seconds(0);
  return device_time(local.op, pass, prices.pricing.cluster->device, prices.pricing.precision);
}

// The operator's own communication in one micro-batch: what it exchanges and, of that, the exposed
// seconds of each pass.
class OwnExchanges {
 public:
  OwnExchanges(const OperatorSite& site, const LocalOp& local, const StagePrices& prices,
               OperatorStrategy& strategy)
      : local_(local), prices_(prices), s_(strategy) {
    const Bytes in = site.inputs.empty() ? Bytes(0) : site.inputs.front();
    const MeshPrices& mesh = prices.mesh;
    const auto gathered = with(s_.input, s_.split, Split::gathered_columns, Cut::whole);
    const auto again = resharding(in, s_.input, gathered, mesh);
    auto sums = with(s_.output, s_.split, Split::inner, Cut::partial);
    sums = with(sums, s_.split, Split::inner_scattered, Cut::partial);
    const auto whole = with(s_.output, s_.split, Split::inner_scattered, Cut::whole);
    const auto partial = with(s_.input, s_.split, Split::gathered_columns, Cut::partial);
    forward_with(again);
    forward_with(resharding(site.output, sums, s_.output, mesh));
    add_loss();
    add_ring();
    backward_with(resharding(site.output, s_.output, whole, mesh), Pass::input_gradient, false);
    backward_with(again, Pass::input_gradient, true);  // for the weight gradient
    backward_with(resharding(in, partial, s_.input, mesh), Pass::weight_gradient, true);
  }
  Seconds forward() const { return forward_; }
  Seconds backward() const { return backward_; }

 private:
  void forward_with(const std::vector<Exchange>& exchanges) {
    append(s_.forward, exchanges);
    const Seconds window = window_of(local_, Pass::forward, prices_);
    forward_ += exposed_by_product(exchanges, window, false, prices_);
  }
  void backward_with(const std::vector<Exchange>& exchanges, Pass beside, bool independent) {
    append(s_.backward, exchanges);
    const Seconds window = window_of(local_, beside, prices_);
    backward_ += exposed_by_product(exchanges, window, independent, prices_);
  }
  // A row's maximum, its exponential sum, and the logit of its target.
  void add_loss() {
    const auto* loss = std::get_if<CrossEntropy>(&local_.op);
    if (loss == nullptr) return;
    for (int a = 0; a < 2; ++a) {
      if (s_.split[static_cast<std::size_t>(a)] != Split::channels) continue;
      const Bytes row(static_cast<double>(loss->rows) * 4);
      forward_with(std::vector<Exchange>(3, {CollectiveKind::all_reduce, a, row}));
    }
  }
  // Keys and values of all ranks pass by; backward their gradients too.
  void add_ring() {
    const auto* attention = std::get_if<FlashAttention>(&local_.op);
    for (int a = 0; attention != nullptr && a < 2; ++a) {
      if (s_.split[static_cast<std::size_t>(a)] != Split::ring) continue;
      const auto rows = static_cast<double>(attention->sequences * attention->key_count());
      const auto columns =
          static_cast<double>(attention->kv_heads * (attention->head_dim + attention->value_dim()));
      const double element = storage_bytes(prices_.pricing.precision);
      const auto pass = [&](double times, Pass which) {
        const Exchange ring{CollectiveKind::ring, a, Bytes(rows * columns * element * times)};
        (which == Pass::forward ? s_.forward : s_.backward).push_back(ring);
        const Seconds window = device_time(local_.op, which, prices_.pricing.cluster->device,
                                           prices_.pricing.precision);
        return exposed_by_ring(ring, window, prices_);
      };
      forward_ += pass(1, Pass::forward);
      backward_ += pass(2, Pass::input_gradient);
    }
  }

  const LocalOp& local_;
  const StagePrices& prices_;
  OperatorStrategy& s_;
  Seconds forward_, backward_;
};

// Device time of one micro-batch.
Seconds compute_time(const OperatorSite& site, const LocalOp& local, const OperatorStrategy& s,
                     const StagePrices& prices) {
  const OpList none;
  const auto& pricing = s.zero == 3 ? prices.pricing_zero3 : prices.pricing;
  const auto passes = [&](const Op& op) {
    const costmodel::Node node{site.node.site, op, {}, -1, {}, Region::rest};
    std::vector<costmodel::Step> steps{{&node, Pass::forward}, {&node, Pass::input_gradient}};
    if (site.again) steps.push_back({&node, Pass::forward});
    if (has_pass(op, Pass::weight_gradient)) steps.push_back({&node, Pass::weight_gradient});
    return price(steps, none, pricing).compute;
  };
  Seconds time = passes(local.op);
  const auto* experts = std::get_if<GroupedLinear>(&local.op);
  const bool dealt_out = std::ranges::count(s.split, Split::experts) > 0;
  if (experts != nullptr && dealt_out && experts->experts > 1 && site.sorted_columns > 0)
    time += passes(Permute{experts->m, site.sorted_columns, 1});
  return time * prices.slowdown;
}

struct Sharing {  // of weights, over the axes that cut rows
  int axis = -1;  // as in Exchange; -1: none
  int ranks = 1;
};

Sharing sharing_of(const std::array<Split, 2>& split, const DeviceMesh& mesh) {
  Sharing sharing;
  for (int a = 0; a < 2; ++a) {
    if (split[static_cast<std::size_t>(a)] != Split::rows) continue;
    sharing.axis = sharing.axis < 0 ? a : 2;
    sharing.ranks *= mesh.size(a);
  }
  return sharing;
}

// An operator's share of what is exposed of a message with the weights of `operators` operators.
Seconds shared_time(const Exchange& own, int zero, double operators, const StagePrices& p) {
  if (own.message.value <= 0) return Seconds(0);
  const Seconds alone = p.mesh.time({own.kind, own.axis, own.message * operators});
  return exposed_by_passes(own.kind, zero, alone, p) / operators;
}

// Weights, gradients and optimizer states: their bytes, their collectives, the optimizer's time.
void add_weights(const LocalOp& local, OperatorStrategy& s, const StagePrices& p) {
  const double n = weights_of(local.op);
  if (n == 0) return;
  const TrainingSpec& training = *p.training;
  const Bytes weights(n * weight_bytes_per_parameter(training));
  const Bytes gradients(n * gradient_bytes_per_parameter(training));
  const Bytes optimizer(n * optimizer_bytes_per_parameter(training));
  const Sharing sharing = sharing_of(s.split, p.mesh.mesh);
  const auto kept = [&](int stage) { return s.zero >= stage ? 1.0 / sharing.ranks : 1.0; };
  s.states = weights * kept(3) + gradients * kept(2) + optimizer * kept(1);
  s.optimizer = streaming_time(optimizer_traffic(n * kept(1), n * kept(2), training), 0,
                               p.pricing.cluster->device) *
                p.slowdown;
  if (sharing.axis < 0) return;
  const auto m = static_cast<double>(p.micro_batches);
  const auto add = [&](CollectiveKind kind, Bytes bytes, double times, double operators) {
    s.ending.push_back({kind, sharing.axis, bytes});
    s.communication += shared_time(s.ending.back(), s.zero, operators, p) * times;
  };
  const auto gather = CollectiveKind::all_gather, scatter = CollectiveKind::reduce_scatter;
  switch (s.zero) {
    case 0: return add(CollectiveKind::all_reduce, gradients, 1, p.stage_operators);
    case 1: add(scatter, gradients, 1, p.stage_operators); break;
    default: add(scatter, gradients, m, p.layer_operators); break;
  }
  if (s.zero == 3) return add(gather, weights, 2 * m, p.layer_operators);
  add(gather, weights, 1, p.stage_operators);
}

OperatorStrategy strategy_of(const OperatorSite& site, const LocalOp& local,
                             const std::array<Split, 2>& split, int zero, const StagePrices& p) {
  OperatorStrategy s;
  s.split = split;
  s.zero = zero;
  for (std::size_t a = 0; a < 2; ++a) {
    s.input[a] = s.gradient[a] = input_cut(split[a]);
    s.output[a] = output_cut(split[a], local.op);
    if (split[a] == Split::columns) s.gradient[a] = Cut::partial;
  }
  const OwnExchanges own(site, local, p, s);
  s.weight_gradient = window_of(local, Pass::weight_gradient, p);
  const auto m = static_cast<double>(p.micro_batches);
  s.compute = compute_time(site, local, s, p) * m;
  s.communication = (own.forward() * (site.again ? 2 : 1) + own.backward()) * m;
  add_weights(local, s, p);
  for (const KeptTensor& kept : site.kept) {
    const TensorLayout layout = kept.input < 0 ? s.output : input_layout(site, s, kept.input);
    s.activations += kept.bytes * (local_share(layout, p.mesh.mesh) * p.in_flight);
  }
  return s;
}

}  // namespace

std::vector<OperatorStrategy> strategies_of(const OperatorSite& site, const StagePrices& prices) {
  std::vector<OperatorStrategy> found;
  const DeviceMesh& mesh = prices.mesh.mesh;
  for (const Split outer : all_splits) {
    if (mesh.size(0) == 1 && outer != Split::whole) continue;
    const auto half = cut(site.op, outer, mesh.size(0));
    if (!half || !offers(site.op.op, outer)) continue;
    for (const Split inner : all_splits) {
      if (mesh.size(1) == 1 && inner != Split::whole) continue;
      const auto local = cut(*half, inner, mesh.size(1));
      if (!local || !offers(site.op.op, inner)) continue;
      const bool shared = sharing_of({outer, inner}, mesh).axis >= 0 && has_matrix(local->op);
      for (int zero = 0; zero <= (shared ? 3 : 0); ++zero)
        found.push_back(strategy_of(site, *local, {outer, inner}, zero, prices));
    }
  }
  return found;
}

namespace {

// The third input of latent attention's rotary is not split by heads.
bool shared_by_heads(const OperatorSite& site, int input) {
  return input == 2 && std::holds_alternative<Rotary>(site.node.op);
}

}  // namespace

TensorLayout input_layout(const OperatorSite& site, const OperatorStrategy& s, int input) {
  return shared_by_heads(site, input) ? with(s.input, s.split, Split::channels, Cut::whole)
                                      : s.input;
}

TensorLayout gradient_layout(const OperatorSite& site, const OperatorStrategy& s, int input) {
  return shared_by_heads(site, input) ? with(s.gradient, s.split, Split::channels, Cut::partial)
                                      : s.gradient;
}

std::string to_string(const OperatorStrategy& s, const DeviceMesh& mesh) {
  std::string text;
  for (const int a : {1, 0}) {
    const Split split = s.split[static_cast<std::size_t>(a)];
    if (mesh.size(a) == 1 || split == Split::whole) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} over axis {}", split_names[static_cast<std::size_t>(split)], a);
  }
  if (text.empty()) return "replicated";
  return s.zero > 0 ? fmt::format("{}; ZeRO-{}", text, s.zero) : text;
}

}  // namespace planner
