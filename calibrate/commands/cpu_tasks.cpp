#include "calibrate/commands/cpu_tasks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "calibrate/measure/op_bench.hpp"
#include "calibrate/measure/stage_probe.hpp"
#include "calibrate/profile/measured_tables.hpp"
#include "costmodel/cost/measured_time.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"

namespace calibrate {

using namespace costmodel;

namespace {

using Sizes = std::vector<std::int64_t>;

constexpr double kB = 1024, MB = 1024 * kB;

Record record_of(const std::string& task, const Op& op, Pass pass, const Timing& time) {
  const auto work = measured_work(op, pass, Precision::fp32);
  return {task, std::string(measured_name(op)), pass, work.point, work.amount, time};
}

Record streamed(const std::string& task, const char* what, Pass pass, double bytes,
                const Timing& time) {
  return {task, what, pass, {bytes}, bytes, time};
}

void add_op(std::vector<Task>& tasks, const std::string& name, const Op& op,
            const std::vector<Pass>& passes) {
  // One nanosecond per hundred operations and pass, plus a constant per task.
  const double share = 1e-2 + 1e-11 * work_of(op, Pass::forward, 4).executed.value *
                                  static_cast<double>(passes.size());
  tasks.push_back({name, share, [=](const StopRule& rule) {
                     StopRule each = rule;
                     each.longest *= 1 / static_cast<double>(passes.size());
                     std::vector<Record> records;
                     for (const Pass pass : passes)
                       records.push_back(record_of(name, op, pass, time_op(op, pass, each)));
                     return records;
                   }});
}

// The grid on which one pass of products is measured.
struct Grid {
  Pass pass;
  Sizes rows, outputs, inputs;
};

// A forward product's rate hardly depends on its depth, but on its rows, and on whether its outputs
// are a multiple of 512, whose rows collide in the caches: such widths are measured next to their
// neighbours.
std::vector<Grid> product_grids(bool quick) {
  if (quick) {
    const Sizes rows{64, 512}, sides{128, 512, 2048};
    return {{Pass::forward, rows, sides, sides},
            {Pass::input_gradient, rows, sides, sides},
            {Pass::weight_gradient, rows, sides, sides}};
  }
  const Sizes rows{32, 96, 256, 1024}, deep{128, 384, 1024, 2560};
  const Sizes wide{128,  256,  384,  448,  512,  576,  768,  960,  1024, 1088, 1472,
                   1536, 1600, 1984, 2048, 2112, 2496, 2560, 2624, 3072, 3200};
  const Sizes sides{128, 256, 384, 512, 768, 960, 1024, 1536, 2560};
  return {{Pass::forward, {32, 96, 256, 512, 1024}, wide, deep},
          {Pass::input_gradient, rows, {128, 256, 512, 1024, 1536, 2560}, deep},
          {Pass::weight_gradient, rows, sides, sides}};
}

void add_products(std::vector<Task>& tasks, bool quick) {
  std::map<std::array<std::int64_t, 3>, std::vector<Pass>> all;
  for (const Grid& grid : product_grids(quick)) {
    for (const auto m : grid.rows) {
      for (const auto n : grid.outputs)
        for (const auto k : grid.inputs) all[{m, n, k}].push_back(grid.pass);
    }
  }
  for (const auto& [shape, passes] : all) {
    const auto& [m, n, k] = shape;
    add_op(tasks, fmt::format("product {} x {} x {}", m, n, k), Linear{m, n, k, false, false},
           passes);
  }
}

void add_attention(std::vector<Task>& tasks, bool quick) {
  const std::vector<Pass> passes{Pass::forward, Pass::input_gradient};
  const Sizes lengths = quick ? Sizes{128, 512} : Sizes{32, 64, 128, 256, 512, 1024};
  const Sizes heads = quick ? Sizes{64} : Sizes{32, 64, 128};
  constexpr std::int64_t together = 4;  // heads
  for (const auto s : lengths) {
    for (const auto d : heads) {
      add_op(tasks, fmt::format("flash attention {} x {}", s, d),
             FlashAttention{1, s, together, together, d, true}, passes);
      add_op(tasks, fmt::format("attention scores {} x {}", s, d), AttentionScores{together, s, d},
             passes);
      add_op(tasks, fmt::format("attention context {} x {}", s, d),
             AttentionContext{together, s, d}, passes);
    }
  }
}

void add_biases(std::vector<Task>& tasks, bool quick) {
  const Sizes rows = quick ? Sizes{64, 1024} : Sizes{16, 64, 256, 1024, 2048};
  for (const auto m : rows) {
    const std::int64_t n = m < 256 ? 512 : 2048;
    const std::string name = fmt::format("bias {} x {}", m, n);
    tasks.push_back({name, 0.02, [=](const StopRule& rule) {
                       const double bytes = 4.0 * static_cast<double>(m) * static_cast<double>(n);
                       std::vector<Record> records;
                       for (const Pass pass : {Pass::forward, Pass::weight_gradient}) {
                         const Timing time = time_bias(m, n, pass, rule);
                         records.push_back(streamed(name, "bias", pass, bytes, time));
                       }
                       return records;
                     }});
  }
}

void add_memory(std::vector<Task>& tasks, bool quick) {
  for (const double bytes : quick ? std::vector<double>{64 * kB, 64 * MB}
                                  : std::vector<double>{64 * kB, MB, 16 * MB, 128 * MB}) {
    const std::string name = fmt::format("memory {:.0f} kB", bytes / kB);
    tasks.push_back(
        {name, 0.05, [=](const StopRule& rule) {
           const auto size = static_cast<std::int64_t>(bytes);
           return std::vector{
               streamed(name, "copy", Pass::forward, 2 * bytes, time_copy(size, rule)),
               streamed(name, "triad", Pass::forward, 3 * bytes, time_triad(size, rule))};
         }});
  }
  const std::string call = "call";
  tasks.push_back(
      {call, 0.02, [=](const StopRule& rule) {
         const Timing time = time_op(Linear{1, 1, 1, false, false}, Pass::forward, rule);
         return std::vector{streamed(call, "call", Pass::forward, 1, time)};
       }});
}

// Ranks wake one another, so a few repetitions are not enough.
StopRule long_enough(StopRule rule) {
  rule.longest = max(rule.longest, Seconds(0.1));
  return rule;
}

void add_collectives(std::vector<Task>& tasks, bool quick, const Ranks& world) {
  const std::vector<double> sizes =
      quick ? std::vector<double>{4 * kB, 256 * kB, 4 * MB}
            : std::vector<double>{kB, 16 * kB, 64 * kB, 256 * kB, MB, 4 * MB, 16 * MB};
  for (const int ranks : {2, 4}) {
    if (ranks > world.count) continue;
    for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                            CollectiveKind::reduce_scatter, CollectiveKind::send}) {
      if (kind == CollectiveKind::send && ranks > 2) continue;
      const std::string what(collective_names[static_cast<std::size_t>(kind)]);
      for (const double bytes : sizes) {
        const std::string name = fmt::format("{} of {} ranks {:.0f} kB", what, ranks, bytes / kB);
        tasks.push_back(
            {name, 0.05, [=, timer = world.time](const StopRule& rule) {
               const auto time =
                   timer(kind, static_cast<std::int64_t>(bytes), ranks, long_enough(rule));
               return std::vector<Record>{
                   {name, what, Pass::forward, {bytes, static_cast<double>(ranks)}, bytes, time}};
             }});
      }
    }
  }
}

void add_together(std::vector<Task>& tasks, bool quick, int cores) {
  SmallModel model;
  model.hidden = quick ? 256 : 512;
  model.ffn = 4 * model.hidden;
  const std::string alone = "a rank at the reference's pace";
  tasks.push_back({alone, 2, [=](const StopRule& rule) {
                     const auto times = time_stage(evaluator_of(model, {}), plan_of(model), rule);
                     const PassTimes sum = by_ops(times);
                     const Timing both{sum.forward + sum.backward, sum.forward + sum.backward,
                                       times.forward.repeats, times.forward.relative_error};
                     return std::vector{streamed(alone, "alone", Pass::forward, 1, both)};
                   }});
  for (int ranks = 1; ranks <= cores;
       ranks = ranks < cores ? std::min(2 * ranks, cores) : ranks + 1) {
    const std::string name = fmt::format("{} ranks together", ranks);
    tasks.push_back({name, 2, [=](const StopRule& rule) {
                       const Together seen = time_together(model, ranks, rule);
                       const Timing passes{seen.passes, seen.passes, ranks, 0};
                       // The yardstick's mean time.
                       const Seconds stick = seen.pace * pace_reference();
                       return std::vector{streamed(name, "together", Pass::forward, ranks, passes),
                                          streamed(name, "yardstick together", Pass::forward, ranks,
                                                   {stick, stick, ranks, 0})};
                     }});
  }
}

// The first task: the reference of all other times.
Task pace_task() {
  const std::string name = "pace";
  return {name, 0.05, [=](const StopRule&) {
            const Seconds stick = pace_reference();
            return std::vector{streamed(name, "yardstick", Pass::forward, 1, {stick, stick, 1, 0})};
          }};
}

void add_probes(std::vector<Task>& tasks, bool quick) {
  for (const SmallModel& model : probed_models(quick)) {
    const auto tokens = static_cast<double>(model.sequence * model.micro_batch);
    const auto h = static_cast<double>(model.hidden);
    const double flops = 3 * 2 * tokens * h * (16 * h + static_cast<double>(model.vocab));
    tasks.push_back({model.name(), 0.1 + 1e-11 * flops * 6,
                     [model](const StopRule& rule) { return probe(model, rule); }});
  }
}

}  // namespace

std::vector<Record> probe(const SmallModel& model, const StopRule& rule) {
  const auto evaluator = evaluator_of(model, {});
  const StageTimes times = time_stage(evaluator, plan_of(model), rule);
  std::vector<Record> records;
  for (const auto& entry : times.ops) {
    const auto measured = measured_op(entry.op);
    if (!measured) continue;
    records.push_back(record_of(model.name(), entry.op, entry.pass, entry.timing()));
    if (keys_of(*measured).axes.size() > 1) records.back().op = in_a_layer(name_of(*measured));
  }
  const double parameters =
      4 * parameter_count(evaluator.model());  // vocabularies are not padded here
  records.push_back(
      streamed(model.name(), "optimizer", Pass::forward, parameters, times.optimizer));
  return records;
}

namespace {

std::vector<Task> one_round(bool quick, int cores, const Ranks& ranks) {
  std::vector<Task> tasks;
  add_memory(tasks, quick);
  add_together(tasks, quick, cores);
  add_collectives(tasks, quick, ranks);
  add_products(tasks, quick);
  add_attention(tasks, quick);
  add_biases(tasks, quick);
  add_probes(tasks, quick);
  return tasks;
}

}  // namespace

std::vector<Task> cpu_tasks(bool quick, int cores, const Ranks& ranks) {
  std::vector<Task> tasks{pace_task()};
  for (int round = 1; round <= (quick ? 2 : 3); ++round) {
    for (Task& task : one_round(quick, cores, ranks)) {
      task.name = fmt::format("{}, round {}", task.name, round);
      task.repeated = round > 1;
      task.run = [run = std::move(task.run), name = task.name](const StopRule& rule) {
        auto records = run(rule);
        for (Record& r : records) r.task = name;
        return records;
      };
      tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

}  // namespace calibrate
