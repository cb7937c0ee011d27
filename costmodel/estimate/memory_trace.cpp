#include "costmodel/estimate/memory_trace.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "costmodel/estimate/backward_memory.hpp"
#include "costmodel/estimate/caching_allocator.hpp"
#include "costmodel/estimate/memory.hpp"
#include "costmodel/estimate/stage_cost.hpp"
#include "costmodel/operators/lifetimes.hpp"
#include "costmodel/schedule/schedule.hpp"

namespace costmodel {

namespace {

using What = TensorEvent::What;

constexpr std::int64_t most_followed = 2'000;  // layers times micro-batches: some 0.6 s

enum Pool { computing, gathering, reducing };

struct Allocation {
  CachingAllocator::Handle handle = 0;
  Bytes bytes;
  MemoryKind kind = MemoryKind::buffers;
};

// The device's memory: what is allocated of each kind, and what that makes the allocator reserve.
class Device {
 public:
  explicit Device(bool expandable) : heap(expandable) {}
  Allocation take(MemoryKind kind, Bytes bytes, Pool stream = computing) {
    held[static_cast<std::size_t>(kind)] += bytes;
    return {heap.allocate(bytes, stream), bytes, kind};
  }
  void drop(const Allocation& own) {
    held[static_cast<std::size_t>(own.kind)] -= own.bytes;
    heap.free(own.handle);
  }
  void drop(std::vector<Allocation>& all) {
    for (const Allocation& own : all) drop(own);
    all.clear();
  }
  std::array<Bytes, memory_kind_names.size()> held;
  CachingAllocator heap;
};

// A tensor of trained parameters, or several of a size: TransformerEngine's products in groups have
// one an expert.
struct Parameters {
  double elements;  // of each
  bool experts = false;
  std::int64_t number = 1;
  double all() const { return elements * static_cast<double>(number); }
};

// A layer of the rank: its operators with their lifetimes, and its parameters.
struct Layer {
  LayerKind kind;
  OpList list;
  LayerLifetimes life;
  const LayerCost* cost;
  std::vector<Parameters> parameters;  // by operator that trains some
  double own = 0;                      // their sum
  Bytes saved;                         // of products that a recomputation leaves out
  bool tied = false;  // an embedding whose table is the head's, which the rank has as well
  bool end = false;   // of the stage: embedding or head, one unit of FSDP
};

// The tensors of a layer and a micro-batch that exist.
using Live = std::map<std::pair<What, int>, Allocation>;

class Rank {
 public:
  Rank(const PlanInputs& in, const PlanCost& cost)
      : in_(in),
        row_(cost.ranks[cost.fullest]),
        rank_(cost.fullest),
        appear_(frees_gradients(in)),
        sharded_(in.plan.zero == 3),
        weight_(weight_bytes_per_parameter(in.on.training)),
        gradient_(gradient_bytes_per_parameter(in.on.training)),
        device_(in.on.training.stack.memory.expandable_segments) {
    for (int v = 0; v < in.plan.chunks(); ++v) add_stage(in.stage_of(v, rank_));
    for (const std::vector<Layer>& chunk : chunks_) {
      for (const Layer& layer : chunk) {
        all_ += layer.own;
        for (const Parameters& own : layer.parameters)
          if (own.experts) experts_ += own.all();
      }
    }
    set_up();
  }

  MemoryTrace run(const Actions& actions) {
    constexpr int iterations = 3;  // the first makes the states, the second finds their place taken
    for (int i = 0; i < iterations; ++i) {
      trace_.samples.clear();
      now_ = Seconds(0);
      for (const Action& action : actions) {
        const int chunk = action.stage / in_.plan.pp;
        if (action.kind == ActionKind::forward) forward(chunk, action);
        if (action.kind == ActionKind::backward) backward(chunk, action);
      }
      step(i == 0);
    }
    for (std::size_t s = 0; s < trace_.samples.size(); ++s) {
      if (trace_.samples[s].allocated > trace_.samples[trace_.peak].allocated) trace_.peak = s;
      trace_.allocated = max(trace_.allocated, trace_.samples[s].allocated);
    }
    trace_.reserved = device_.heap.reserved();
    return std::move(trace_);
  }

 private:
  void add_layer(std::vector<Layer>& chunk, LayerKind kind, const LayerCost& cost, bool again,
                 int count, double tied) {
    Layer layer{.kind = kind,
                .list = build_layer(kind, in_.on.model, context_of(in_.plan, in_.on)),
                .life = {},
                .cost = &cost,
                .parameters = {}};
    layer.life = lifetimes(layer.list, again ? region_of(in_.plan.recompute) : Recomputed::nothing);
    for (const Node& node : layer.list.nodes) {
      const double own = node.frozen() ? 0 : weights_of(node.op);
      if (own > 0) layer.parameters.push_back(parameters_of(node.op, own));
    }
    if (tied > 0)
      std::erase_if(layer.parameters, [tied](const Parameters& own) { return own.all() >= tied; });
    for (const Parameters& own : layer.parameters) layer.own += own.all();
    layer.end = kind == LayerKind::head || kind == LayerKind::embedding;
    if (again && keeps_alternate(in_))
      layer.saved = cost.footprint.kept_alternate - cost.footprint.kept;
    for (int i = 0; i < count; ++i) chunk.push_back(layer);
  }

  Parameters parameters_of(const Op& op, double own) const {
    const auto* grouped = std::get_if<GroupedLinear>(&op);
    if (grouped == nullptr || !in_.on.training.stack.memory.dummy_gradients)
      return {own, is_expert(op)};
    return {own / static_cast<double>(grouped->experts), true, grouped->experts};
  }

  void add_stage(std::size_t k) {
    std::vector<Layer>& chunk = chunks_.emplace_back();
    const double table = shared_table(in_, k);
    each_layer(in_, k, [&](LayerKind kind, const LayerCost& cost, bool again, int count) {
      add_layer(chunk, kind, cost, again, count, kind == LayerKind::head ? table : 0);
    });
    std::ranges::reverse(chunk);  // forwards
    if (table > 0) chunk.front().tied = true;
  }

  // Shares of what memory.hpp has for all parameters: what exists from the start.
  void set_up() {
    const StageMemory& memory = row_.memory;
    const double master = master_bytes_per_parameter(in_.on.training),
                 states = optimizer_bytes_per_parameter(in_.on.training);
    const bool fp32 = sharded_ && in_.on.training.stack.memory.fp32_shards;
    masters_ = states > 0 && !fp32 ? master / states : 0;
    device_.take(MemoryKind::weights, frozen());
    const Bytes trained = memory.weights - frozen();
    for (const std::vector<Layer>& chunk : chunks_) {
      for (const Layer& layer : chunk) {
        for (const Parameters& own : layer.parameters)
          device_.take(MemoryKind::weights, trained * (own.all() / all_));
      }
    }
    if (masters_ > 0) take_states(MemoryKind::optimizer, memory.optimizer * masters_);
    if (!appear_) device_.take(MemoryKind::gradients, memory.gradients);
    device_.take(MemoryKind::buffers, dummy_gradients(in_, rank_));
    const Workload& on = in_.on;
    device_.take(MemoryKind::buffers,
                 workspaces(on.model, on.cluster.device, on.training.stack.memory));
  }

  Bytes frozen() const {
    return min(row_.memory.weights, row_.weights.frozen * (in_.plan.zero == 3 ? 0.0 : 1.0));
  }

  // A tensor of `bytes` for each parameter of the rank's shard: a state of the optimizer.
  std::vector<Allocation> take_states(MemoryKind kind, Bytes bytes) {
    std::vector<Allocation> taken;
    const double all = states_of(all_, experts_);
    for (const std::vector<Layer>& chunk : chunks_) {
      for (const Layer& layer : chunk) {
        for (const Parameters& own : layer.parameters) {
          const double part = states_of(own.elements, own.experts ? own.elements : 0) / all;
          for (std::int64_t i = 0; i < own.number; ++i)
            taken.push_back(device_.take(kind, bytes * part));
        }
      }
    }
    return taken;
  }
  double states_of(double parameters, double experts) const {
    return in_.plan.zero < 1 ? parameters : sharded_states(parameters, experts, in_.plan);
  }

  // --- sharded parameters

  bool by_unit(const Layer& layer) const { return gathers_by_unit(in_) && layer.end; }

  // A gather: one buffer, of which several ranks copy each parameter out.
  void gather(const Layer& layer, std::vector<Allocation>& to) {
    if (!sharded_) return;
    const Bytes frozen = layer.cost->frozen;
    const Bytes bytes = Bytes(layer.own * weight_) + frozen;
    const Allocation buffer = device_.take(MemoryKind::buffers, bytes, gathering);
    if (in_.plan.shards() == 1) return to.push_back(buffer);
    if (frozen > Bytes(0)) to.push_back(device_.take(MemoryKind::buffers, frozen));
    for (const Parameters& own : layer.parameters)
      to.push_back(device_.take(MemoryKind::buffers, Bytes(own.all() * weight_)));
    device_.drop(buffer);
  }

  void gather_ends(const std::vector<Layer>& chunk) {
    if (!ends_.empty()) return;
    for (const Layer& layer : chunk)
      if (by_unit(layer)) gather(layer, ends_);
  }

  // What a layer's backward leaves: its gradients are widened, sent and kept in parts.
  struct Trained {
    double all, experts;
  };
  void reduce(Trained trained, std::vector<Allocation>& gradients,
              std::vector<Allocation>& parameters) {
    const double own = trained.all;
    device_.drop(parameters);
    if (in_.plan.zero < 2 || own <= 0) return keep(gradients);
    device_.drop(sent_);
    if (gathers_by_unit(in_))
      sent_.push_back(device_.take(MemoryKind::buffers, Bytes(own * gradient_)));
    device_.drop(gradients);
    if (!appear_) return;
    const Allocation part =
        device_.take(MemoryKind::gradients,
                     Bytes(sharded(own, trained.experts, in_.plan) * gradient_), reducing);
    if (added_) {
      device_.drop(part);
    } else {
      made_.push_back(part);
    }
  }

  // Unsharded gradients stay as they are, where nothing else holds them.
  void keep(std::vector<Allocation>& gradients) {
    if (!appear_ || added_) return device_.drop(gradients);
    made_.insert(made_.end(), gradients.begin(), gradients.end());
    gradients.clear();
  }

  // --- passes

  void sample(MemorySample at, std::string_view op) {
    at.op = op;
    at.held = device_.held;
    at.allocated = device_.heap.allocated();
    at.reserved = device_.heap.reserved();
    if (trace_.samples.empty() || !open_) {
      trace_.samples.push_back(at);
      open_ = true;
    } else if (at.allocated > trace_.samples.back().allocated) {
      trace_.samples.back() = at;
    }
  }

  void play(const std::vector<TensorEvent>& events, const Layer& layer, Live& live,
            std::vector<Allocation>& gradients, const MemorySample& at) {
    for (const TensorEvent& event : events) {
      if (event.what == What::weight_gradient) {
        if (!appear_ && in_.plan.zero < 2) continue;  // added to its buffer by the product
        if (layer.tied) {                             // its table's gradient is added to the head's
          device_.drop(device_.take(MemoryKind::buffers, event.bytes * weight_));
          continue;
        }
        const bool own = in_.plan.zero < 2, narrow = !own && gathers_by_unit(in_);
        gradients.push_back(device_.take(own ? MemoryKind::gradients : MemoryKind::buffers,
                                         event.bytes * (narrow ? weight_ : gradient_)));
      } else if (event.bytes > Bytes(0)) {
        const auto [place, made] = live.try_emplace({event.what, event.id});
        if (made) place->second = device_.take(MemoryKind::activations, event.bytes);
      } else if (const auto own = live.find({event.what, event.id}); own != live.end()) {
        device_.drop(own->second);
        live.erase(own);
      }
      const bool known = event.node >= 0;
      sample(at, known ? layer.list.nodes[static_cast<std::size_t>(event.node)].name() : "");
    }
  }

  static void move(Live& from, std::pair<What, int> key, std::vector<Allocation>& to) {
    const auto own = from.find(key);
    if (own == from.end()) return;
    to.push_back(own->second);
    from.erase(own);
  }
  static void move(std::vector<Allocation>& from, Live& to, std::pair<What, int> key) {
    if (from.empty()) return;
    to[key] = from.back();
    from.pop_back();
  }

  static Bytes size_of(const OpList& list, TensorId id) {
    return id < 0 ? Bytes(0) : list.tensors[static_cast<std::size_t>(id)].bytes();
  }

  MemorySample pass_of(MemorySample::Pass pass, const Layer& layer, const Action& action,
                       std::size_t number) {
    MemorySample at;
    at.pass = pass;
    at.layer = layer.kind;
    at.stage = action.stage;
    at.micro_batch = action.micro_batch;
    at.number = static_cast<int>(number);
    at.begin = now_;
    now_ += pass == MemorySample::Pass::forward
                ? layer.cost->forward.time()
                : layer.cost->backward.time() + layer.cost->recompute.time();
    at.end = now_;
    open_ = false;
    return at;
  }

  void forward(int v, const Action& action) {
    std::vector<Layer>& chunk = chunks_[static_cast<std::size_t>(v)];
    std::vector<Live>& live = live_[{v, action.micro_batch}];
    live.resize(chunk.size());
    if (chunk.empty()) return;                  // it passes on what it receives
    std::vector<Allocation> passed, gradients;  // hidden states
    gather_ends(chunk);
    if (chunk.front().kind != LayerKind::embedding) {
      passed.push_back(device_.take(MemoryKind::activations,
                                    size_of(chunk.front().list, chunk.front().list.input)));
    }
    for (std::size_t l = 0; l < chunk.size(); ++l) {
      const Layer& layer = chunk[l];
      const MemorySample at = pass_of(MemorySample::Pass::forward, layer, action, l);
      std::vector<Allocation> parameters;
      if (!by_unit(layer)) gather(layer, parameters);
      if (layer.list.input >= 0) move(passed, live[l], {What::tensor, layer.list.input});
      play(layer.life.forward, layer, live[l], gradients, at);
      if (layer.saved > Bytes(0)) {
        live[l][{What::temporary, -1}] = device_.take(MemoryKind::activations, layer.saved);
      }
      if (!layer.life.keeps_output) move(live[l], {What::tensor, layer.list.output}, passed);
      device_.drop(parameters);
    }
    device_.drop(passed);  // sent, or the loss
  }

  void backward(int v, const Action& action) {
    std::vector<Layer>& chunk = chunks_[static_cast<std::size_t>(v)];
    const auto found = live_.find({v, action.micro_batch});
    if (found == live_.end() || chunk.empty()) return;
    std::vector<Live>& live = found->second;
    gather_ends(chunk);
    std::vector<Allocation> passed, ends, next;  // gradients of hidden states, and of the ends
    passed.push_back(device_.take(MemoryKind::activations,
                                  size_of(chunk.back().list, chunk.back().list.output)));
    double of_ends = 0;
    for (std::size_t l = chunk.size(); l-- > 0;) {
      const Layer& layer = chunk[l];
      const MemorySample at = pass_of(MemorySample::Pass::backward, layer, action, l);
      const bool unit = by_unit(layer);
      std::vector<Allocation> parameters = std::exchange(next, {}), gradients;
      if (!unit && parameters.empty()) gather(layer, parameters);
      if (!unit && l > 0 && !by_unit(chunk[l - 1]) && in_.on.training.stack.zero.prefetch)
        gather(chunk[l - 1], next);
      move(passed, live[l], {What::gradient, layer.list.output});
      std::vector<Allocation> saved;  // computed again in its place
      move(live[l], {What::temporary, -1}, saved);
      device_.drop(saved);
      play(layer.life.backward, layer, live[l], unit ? ends : gradients, at);
      if (layer.list.input >= 0) move(live[l], {What::gradient, layer.list.input}, passed);
      for (auto& [key, own] : live[l]) device_.drop(own);
      if (unit) {
        of_ends += layer.own;
      } else {
        reduce({layer.own, std::min(layer.own, layer.cost->expert_weights)}, gradients, parameters);
        sample(at, "");
      }
    }
    device_.drop(passed);
    if (of_ends > 0) {
      reduce({of_ends, 0}, ends, ends_);
      sample(trace_.samples.back(), "");
    }
    device_.drop(ends_);  // where nothing of them is trained
    device_.drop(sent_);
    live_.erase(found);
    added_ = true;
  }

  void step(bool first) {
    if (row_.memory.widened > Bytes(0))
      made_ = take_states(MemoryKind::gradients, row_.memory.widened);
    if (first) {
      const Bytes moments = row_.memory.optimizer * (1 - masters_);
      for (int i = 0; i < 2; ++i) take_states(MemoryKind::optimizer, moments * 0.5);
    }
    MemorySample at;
    at.pass = MemorySample::Pass::step;
    at.begin = now_;
    now_ += row_.after.optimizer;
    at.end = now_;
    open_ = false;
    sample(at, "");
    device_.drop(made_);
    added_ = false;
  }

  const PlanInputs& in_;
  const RankRow& row_;
  std::size_t rank_;
  bool appear_, sharded_;
  double weight_, gradient_;
  double all_ = 0;      // parameters
  double experts_ = 0;  // of them
  double masters_ = 0;  // their part of the optimizer's states
  std::vector<std::vector<Layer>> chunks_;
  std::map<std::pair<int, int>, std::vector<Live>> live_;  // by chunk and micro-batch; a layer each
  std::vector<Allocation> ends_, sent_, made_;
  bool added_ = false;  // gradients exist, and further ones are added
  bool open_ = false;   // the last sample is of the pass that runs
  Seconds now_;
  Device device_;
  MemoryTrace trace_;
};

}  // namespace

MemoryTrace memory_trace(const PlanInputs& in, const PlanCost& cost) {
  const ParallelPlan& plan = in.plan;
  if (splits_backward(plan.schedule) || plan.ways() > 1 || plan.listed != nullptr ||
      in.on.model.encoder_decoder() || in.on.model.mtp_layers > 0 ||
      in.on.model.towers != nullptr || plan.offload.any() || cost.offload.layers > 0)
    return {};
  // One that holds more than two periods, as GPipe does, is followed to its end.
  const std::int64_t period = std::lcm<std::int64_t>(plan.pp, std::max(1, plan.choices.group));
  const double held = cost.ranks[cost.fullest].memory.in_flight_micro_batches;
  const std::int64_t shown = static_cast<double>(2 * period) < held
                                 ? in.micro_batches
                                 : std::min(in.micro_batches, 2 * period);
  if (shown * std::max<std::int64_t>(1, in.on.model.layers / plan.pp) > most_followed) return {};
  const Schedule schedule =
      generate(plan.schedule, plan.pp, plan.vpp, static_cast<int>(shown), plan.choices);
  return Rank(in, cost).run(schedule.actions[cost.fullest]);
}

}  // namespace costmodel
