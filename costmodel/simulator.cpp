#include "costmodel/simulator.hpp"

#include <algorithm>

#include "costmodel/error.hpp"

namespace costmodel {

SimulationProgram compile(const Schedule& s) {
  SimulationProgram program;
  program.ranks = s.ranks;
  program.stages = s.stages();
  std::size_t total = 0;
  for (const auto& list : s.actions) total += list.size();
  program.items.reserve(total);
  program.micro_batch.reserve(total);
  const auto m = static_cast<std::size_t>(s.micro_batches);
  std::vector<std::int32_t> made_by(2 * static_cast<std::size_t>(program.stages) * m, -1);
  const auto slot = [m](int stage, int direction, int micro_batch) {
    return static_cast<std::size_t>(2 * stage + direction) * m +
           static_cast<std::size_t>(micro_batch);
  };
  const bool free_running = s.kind == ScheduleKind::ideal;
  const int last = program.stages - 1;
  for (const auto& [rank, a] : execution_order(s)) {
    const int direction = a.kind == ActionKind::backward ? 1 : 0;
    const int from = direction == 0 ? a.stage - 1 : a.stage + 1;
    std::int32_t dependency = -1;
    if (from >= 0 && from <= last && !free_running)
      dependency = made_by[slot(from, direction, a.micro_batch)];
    const bool sends = direction == 0 ? a.stage < last : a.stage > 0;
    const bool remote = s.ranks > 1;
    made_by[slot(a.stage, direction, a.micro_batch)] =
        static_cast<std::int32_t>(program.items.size());
    program.items.push_back({dependency, rank, 2 * a.stage + direction,
                             static_cast<std::int16_t>(remote && dependency >= 0),
                             static_cast<std::int16_t>(remote && sends && !free_running)});
    program.micro_batch.push_back(a.micro_batch);
  }
  SHARDPLAN_CHECK(program.items.size() == total);
  return program;
}

namespace {

// The replay. `visit(index, start, end)` sees every item.
template <class Visit>
double replay(const SimulationProgram& program, const PipelineTimes& times,
              std::vector<double>& scratch, Visit visit) {
  const std::size_t n = program.items.size();
  const auto stages = static_cast<std::size_t>(program.stages);
  const auto ranks = static_cast<std::size_t>(program.ranks);
  scratch.assign(n + 2 * stages + ranks, 0.0);
  double* const end = scratch.data();
  double* const duration = end + n;
  double* const free_at = duration + 2 * stages;
  for (std::size_t k = 0; k < stages; ++k) {
    duration[2 * k] = times.forward[k].value;
    duration[2 * k + 1] = times.backward[k].value;
  }
  const double delay[2] = {0.0, times.transfer.value};
  const double hold[2] = {0.0, times.blocking ? times.transfer.value : 0.0};
  for (std::size_t i = 0; i < n; ++i) {
    const auto& item = program.items[i];
    double start = free_at[item.rank];
    if (item.dependency >= 0) start = std::max(start, end[item.dependency] + delay[item.remote]);
    const double stop = start + duration[item.duration];
    end[i] = stop;
    free_at[item.rank] = stop + hold[item.sends];
    visit(i, start, stop);
  }
  return *std::max_element(free_at, free_at + ranks);
}

}  // namespace

Seconds simulate_makespan(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch) {
  return Seconds(replay(program, times, scratch, [](std::size_t, double, double) {}));
}

SimulationResult simulate(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch) {
  SimulationResult result;
  result.finish.resize(static_cast<std::size_t>(program.ranks));
  result.last_backward_start.resize(static_cast<std::size_t>(program.ranks));
  const double hold = times.blocking ? times.transfer.value : 0.0;
  result.makespan =
      Seconds(replay(program, times, scratch, [&](std::size_t i, double start, double end) {
        const auto& item = program.items[i];
        const auto rank = static_cast<std::size_t>(item.rank);
        result.finish[rank] = Seconds(end + (item.sends ? hold : 0.0));
        if (item.duration % 2 == 1) result.last_backward_start[rank] = Seconds(start);
      }));
  return result;
}

Timeline simulate_timeline(const SimulationProgram& program, const PipelineTimes& times) {
  Timeline timeline;
  timeline.ranks = program.ranks;
  std::vector<double> scratch;
  replay(program, times, scratch, [&](std::size_t i, double start, double end) {
    const auto& item = program.items[i];
    const bool backward = item.duration % 2 == 1;
    const Action action{backward ? ActionKind::backward : ActionKind::forward, item.duration / 2,
                        program.micro_batch[i]};
    timeline.events.push_back(
        {item.rank, Stream::compute, to_text(action), Seconds(start), Seconds(end)});
    if (item.sends && times.transfer.value > 0) {
      const Action send{backward ? ActionKind::send_backward : ActionKind::send_forward,
                        action.stage, action.micro_batch};
      timeline.events.push_back({item.rank, Stream::pipeline_transfer, to_text(send), Seconds(end),
                                 Seconds(end) + times.transfer});
    }
  });
  std::stable_sort(timeline.events.begin(), timeline.events.end(),
                   [](const Event& a, const Event& b) {
                     if (a.rank != b.rank) return a.rank < b.rank;
                     return a.start < b.start;
                   });
  return timeline;
}

}  // namespace costmodel
