#include "calibrate/commands/gpu_tasks.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "calibrate/measure/node_bench.hpp"
#include "calibrate/profile/measured_tables.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "runtime/training/layer_program.hpp"
#include "runtime/training/parameters.hpp"

namespace calibrate {

using namespace costmodel;
using runtime::Place;

namespace {

// A layer is to be predicted within 2 %: its operators are measured more accurately than that.
constexpr double accurate = 0.005;

StopRule part_of(const StopRule& rule, double share) {
  StopRule part = rule;
  part.longest *= share;
  part.relative_error = accurate;
  return part;
}

Record record_of(const GpuBench& bench, const std::string& task, const Op& op, Pass pass,
                 const Timing& time) {
  const auto work = measured_work(op, pass, bench.precision);
  return {task, std::string(measured_name(op)), pass, work.point, work.amount, time};
}

// One operator in some of its passes, with equal time.
std::vector<std::pair<Pass, Timing>> time_passes(GpuBench& bench, const OpList& list,
                                                 std::size_t node, const NodeWeights& weights,
                                                 const Place& place,
                                                 const std::vector<Pass>& passes,
                                                 const StopRule& rule) {
  NodeBench one(bench.device, bench.block, bench.number(), list, node, weights, place);
  std::vector<std::pair<Pass, Timing>> times;
  for (const Pass pass : passes) {
    times.emplace_back(
        pass, bench.timer.cold([&] { one.write_predecessor(pass); }, [&] { one.run(pass); },
                               part_of(rule, 1 / static_cast<double>(passes.size()))));
  }
  return times;
}

std::vector<Record> time_node(GpuBench& bench, const std::string& task, const OpList& list,
                              std::size_t node, const NodeWeights& weights, const Place& place,
                              const StopRule& rule) {
  const Op& op = list.nodes[node].op;
  std::vector<Pass> passes{Pass::forward};
  if (has_pass(op, Pass::input_gradient)) passes.push_back(Pass::input_gradient);
  if (std::holds_alternative<Linear>(op)) passes.push_back(Pass::weight_gradient);
  std::vector<Record> records;
  for (const auto& [pass, time] : time_passes(bench, list, node, weights, place, passes, rule))
    records.push_back(record_of(bench, task, op, pass, time));
  return records;
}

double element_of(const GpuBench& bench) { return storage_bytes(bench.precision); }

void add_products(std::vector<Task>& tasks, GpuBench& bench, const std::vector<std::int64_t>& rows,
                  const std::vector<std::int64_t>& sides, const std::string& op) {
  for (const auto m : rows) {
    for (const auto n : sides) {
      for (const auto k : sides) {
        const std::string name = fmt::format("{} {} x {} x {}", op, m, n, k);
        tasks.push_back({name, 1, [=, &bench](const StopRule& rule) {
                           const OpList list = product_list(m, n, k, element_of(bench));
                           auto records =
                               time_node(bench, name, list, 0, {.matrix = n * k}, Place{}, rule);
                           for (Record& record : records) record.op = op;
                           return records;
                         }});
      }
    }
  }
}

void add_attention(std::vector<Task>& tasks, GpuBench& bench, const GpuShapes& shapes) {
  constexpr std::int64_t together = 16;  // heads
  for (const auto s : shapes.lengths) {
    for (const auto d : shapes.head_dims) {
      const std::string name = fmt::format("flash attention {} x {}", s, d);
      const FlashAttention op{1, s, together, together, d, true};
      tasks.push_back({name, 2, [=, &bench](const StopRule& rule) {
                         const OpList list = attention_list(op, element_of(bench));
                         const Place place{.sequence = s,
                                           .heads = together,
                                           .kv_heads = together,
                                           .all_heads = together,
                                           .head_dim = d};
                         return time_node(bench, name, list, 0, {}, place, rule);
                       }});
    }
  }
}

// Of the first tensor rank.
Place place_of(const Evaluator& evaluator, const ParallelPlan& plan) {
  const ModelSpec& m = evaluator.model();
  const std::int64_t sequence = evaluator.training().sequence;
  return {.sequences = plan.micro_batch,
          .sequence = sequence,
          .heads = m.heads / plan.tp,
          .kv_heads = m.kv_heads / plan.tp,
          .all_heads = m.heads,
          .head_dim = m.head_dim,
          .vocab = m.vocab,
          .seed = 1,
          .dropout = m.dropout,
          .loss_scale = 1.0 / static_cast<double>(sequence * plan.micro_batch)};
}

// A layer as the runtime executes it on that rank.
struct Layer {
  runtime::LayerProgram program;
  runtime::LayerParameters layout;
};
Layer layer_of(const Evaluator& evaluator, LayerKind kind, const ParallelPlan& plan) {
  ParallelPlan unsharded = plan;
  unsharded.tp = 1;
  unsharded.sequence_parallel = false;
  Layer layer{runtime::layer_program(evaluator.op_list(kind, plan), Recomputed::nothing), {}};
  layer.layout =
      runtime::layer_parameters(layer.program.list, evaluator.op_list(kind, unsharded),
                                evaluator.model(), {.kind = kind}, plan.sequence_parallel);
  return layer;
}

// The parameters of a node; a tied table counts as its own here.
NodeWeights weights_of(const Layer& layer, std::size_t node) {
  const runtime::LayerProgram& program = layer.program;
  const auto& layout = layer.layout;
  const auto size = [&](int parameter) {
    return parameter < 0 ? 0
                         : static_cast<std::int64_t>(
                               layout.tensors[static_cast<std::size_t>(parameter)].size());
  };
  NodeWeights weights{size(layout.nodes[node].matrix), size(layout.nodes[node].bias),
                      program.list.nodes[node].site == Site::logits};
  const int of_product = program.bias_of[node];
  if (of_product == -2) weights.bias = 0;
  if (of_product >= 0) weights.bias = size(layout.nodes[static_cast<std::size_t>(of_product)].bias);
  return weights;
}

// Products and attention have tasks of their own.
bool is_timed_in_layers(const Node& node) {
  const auto measured = measured_op(node.op);
  return measured && keys_of(*measured).axes.size() == 1;
}

std::vector<Record> time_layers(GpuBench& bench, const SmallModel& model, const StopRule& rule) {
  const auto evaluator = evaluator_of(model, {}, bench.precision);
  const ParallelPlan plan = plan_of(model);
  const Place place = place_of(evaluator, plan);
  const std::string task = model.name();
  std::vector<Record> records;
  std::set<std::pair<std::string, double>> seen;  // operators of one size
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    const Layer layer = layer_of(evaluator, kind, plan);
    const OpList& list = layer.program.list;
    for (std::size_t i = 0; i < list.nodes.size(); ++i) {
      const Node& node = list.nodes[i];
      if (!is_timed_in_layers(node)) continue;
      const auto work = measured_work(node.op, Pass::forward, bench.precision);
      if (!seen.insert({std::string(measured_name(node.op)), work.amount}).second) continue;
      const StopRule each = part_of(rule, 0.1);  // a layer has about ten such operators
      for (auto& record : time_node(bench, task, list, i, weights_of(layer, i), place, each))
        records.push_back(std::move(record));
    }
  }
  return records;
}

// What an optimizer step reads and writes, on a device, owned by this.
class States {
 public:
  States(GpuBench& bench, std::int64_t elements) : memory_(bench.device.memory()) {
    for (std::span<float>& vector : vectors_) {
      const auto n = static_cast<std::size_t>(elements);
      vector = {static_cast<float*>(memory_.allocate(n * sizeof(float))), n};
    }
    for (std::size_t i = 0; i < 2; ++i) bench.block.fill(vectors_[i]);
    // The averages of gradients and of their squares, which the first step sets.
    for (std::size_t i = 2; i < 4; ++i) memory_.clear(vectors_[i].data(), vectors_[i].size_bytes());
  }
  ~States() {
    for (const auto& vector : vectors_) memory_.release(vector.data());
  }
  States(const States&) = delete;
  States& operator=(const States&) = delete;

  void copy() { memory_.copy(vectors_[0], vectors_[1]); }
  void step() {
    const runtime::cpu::AdamW how{.lr = 1e-3, .weight_decay = 0.1};
    memory_.adamw(vectors_[0], vectors_[1], vectors_[2], vectors_[3], how, 1, 1);
  }

 private:
  runtime::Memory& memory_;
  std::array<std::span<float>, 4> vectors_;  // parameters, gradients, averages
};

std::vector<Record> time_vectors(GpuBench& bench, const std::string& task, std::int64_t elements,
                                 const StopRule& rule) {
  States states(bench, elements);
  const auto timed = [&](const auto& run) {
    return bench.timer.cold([] {}, run, part_of(rule, 0.5));
  };
  const double bytes = 4.0 * static_cast<double>(elements);
  const Timing step = timed([&] { states.step(); });
  const Timing copy = timed([&] { states.copy(); });
  return {{task, "copy", Pass::forward, {bytes}, 2 * bytes, copy},
          {task, "optimizer", Pass::forward, {bytes}, bytes, step}};
}

// One kernel of many that wait for none but the one before.
std::vector<Record> time_call(GpuBench& bench, const std::string& task, const StopRule& rule) {
  States states(bench, 1);
  const Timing time = bench.timer.queued([&] { states.step(); }, part_of(rule, 1));
  return {{task, "call", Pass::forward, {1}, 1, time}};
}

// The same, `together` of them as one graph; the time is divided by their number.
std::vector<Record> time_graph(GpuBench& bench, const std::string& task, const StopRule& rule) {
  constexpr int together = 256;
  runtime::GraphRecorder& graphs = *bench.device.graphs();
  States states(bench, 1);
  states.step();
  bench.device.memory().wait();
  graphs.begin();
  for (int i = 0; i < together; ++i) states.step();
  const auto graph = graphs.end();
  Timing time = bench.timer.queued([&] { graphs.start(graph); }, part_of(rule, 1));
  graphs.forget(graph);
  time.least = time.least / static_cast<double>(together);
  time.median = time.median / static_cast<double>(together);
  return {{task, "graph call", Pass::forward, {1}, 1, time}};
}

void add_vectors(std::vector<Task>& tasks, GpuBench& bench, const GpuShapes& shapes) {
  for (const auto elements : shapes.vectors) {
    const std::string name = fmt::format("vectors of {}", elements);
    tasks.push_back({name, 0.5, [=, &bench](const StopRule& rule) {
                       return time_vectors(bench, name, elements, rule);
                     }});
  }
}

void add_calls(std::vector<Task>& tasks, GpuBench& bench) {
  const std::string call = "call";
  tasks.push_back(
      {call, 0.2, [=, &bench](const StopRule& rule) { return time_call(bench, call, rule); }});
  if (bench.device.graphs() == nullptr) return;
  const std::string replayed = "call in a graph";
  tasks.push_back({replayed, 0.2, [=, &bench](const StopRule& rule) {
                     return time_graph(bench, replayed, rule);
                   }});
}

void add_layers(std::vector<Task>& tasks, GpuBench& bench, const GpuShapes& shapes) {
  for (const SmallModel& model : shapes.models) {
    tasks.push_back({model.name(), 4, [&bench, model](const StopRule& rule) {
                       return time_layers(bench, model, rule);
                     }});
  }
}

SmallModel model_of(bool llama, std::int64_t hidden, std::int64_t sequence,
                    std::int64_t micro_batch) {
  SmallModel m;
  m.llama = llama;
  m.hidden = hidden;
  m.heads = hidden / 128;
  m.kv_heads = llama ? m.heads / 4 : m.heads;
  m.ffn = llama ? hidden * 7 / 2 : 4 * hidden;
  m.vocab = llama ? 128256 : 51200;
  m.sequence = sequence;
  m.micro_batch = micro_batch;
  m.dropout = 0.1;
  return m;
}

}  // namespace

GpuShapes gpu_shapes(bool quick) {
  GpuShapes shapes;
  for (const bool llama : {false, true}) {
    if (quick) {
      shapes.models.push_back(model_of(llama, 4096, 2048, 1));
      continue;
    }
    for (const std::int64_t hidden : {1024, 2048, 4096, 8192}) {
      for (const std::int64_t sequence : {1024, 4096})
        shapes.models.push_back(model_of(llama, hidden, sequence, 1));
    }
    SmallModel unfused = model_of(llama, 2048, 2048, 1);
    unfused.flash = false;
    shapes.models.push_back(unfused);
  }
  if (quick) {
    shapes.rows = {1024, 8192};
    shapes.sides = {1024, 4096, 16384};
    shapes.lengths = {1024, 4096};
    shapes.head_dims = {128};
    shapes.vectors = {1 << 14, 1 << 22, 1 << 28};
    shapes.other_rows = {1024, 8192};
    shapes.other_sides = {1024, 8192};
  } else {
    shapes.rows = {256, 1024, 4096, 16384};
    shapes.sides = {1024, 2048, 4096, 8192, 16384, 32768};
    shapes.lengths = {256, 1024, 2048, 4096, 8192, 16384};
    shapes.head_dims = {64, 128};
    shapes.vectors = {1 << 14, 1 << 18, 1 << 22, 1 << 25, 1 << 28};
    shapes.other_rows = {1024, 4096, 16384};
    shapes.other_sides = {1024, 8192};
  }
  return shapes;
}

std::vector<Task> gpu_tasks(std::span<GpuBench* const> benches, const GpuShapes& shapes) {
  std::vector<Task> tasks;
  GpuBench& bench = *benches.front();
  add_attention(tasks, bench, shapes);
  add_layers(tasks, bench, shapes);
  add_products(tasks, bench, shapes.rows, shapes.sides, "linear");
  add_vectors(tasks, bench, shapes);
  add_calls(tasks, bench);
  for (GpuBench* const other : benches.subspan(1)) {
    add_products(tasks, *other, shapes.other_rows, shapes.other_sides,
                 in_precision("linear", other->precision));
  }
  return tasks;
}

std::vector<Task> gpu_shape_tasks(GpuBench& bench, const Subject& subject,
                                  const DeviceSpec& device) {
  std::vector<Task> tasks;
  const auto all = lacking_shapes(subject, device);
  for (std::size_t i = 0; i < all.size();) {
    const LackingShape& first = all[i];
    std::vector<Pass> passes;
    for (; i < all.size() && all[i].kind == first.kind && all[i].node == first.node; ++i)
      passes.push_back(all[i].pass);
    const std::string name = shape_text(first.op, subject.precision());
    tasks.push_back({name, 1, [=, &bench, &subject, &device](const StopRule& rule) {
                       const Layer layer = layer_of(subject.evaluator, first.kind, subject.plan);
                       const Place place = place_of(subject.evaluator, subject.plan);
                       std::vector<Record> records;
                       for (const auto& [pass, time] :
                            time_passes(bench, layer.program.list, first.node,
                                        weights_of(layer, first.node), place, passes, rule)) {
                         records.push_back(
                             shape_record(name, first.op, pass, time, device, subject.precision()));
                       }
                       return records;
                     }});
  }
  return tasks;
}

Settled settle_clocks(GpuBench& bench, std::int64_t side, const Settling& rule) {
  constexpr int together = 16;
  const OpList list = product_list(side, side, side, element_of(bench));
  const Place place;
  NodeBench product(bench.device, bench.block, bench.number(), list, 0, {.matrix = side * side},
                    place);
  const auto some = [&] {
    for (int i = 0; i < together; ++i) product.run(Pass::forward);
  };
  bench.timer.once(some);  // loads what it needs
  return settle([&] { return bench.timer.once(some); }, rule, bench.timer.clock());
}

Clock measuring_clock(std::span<GpuBench* const> benches) {
  return [all = std::vector(benches.begin(), benches.end())] {
    Seconds sum;
    for (const GpuBench* bench : all) sum += bench->timer.measuring();
    return sum;
  };
}

}  // namespace calibrate
