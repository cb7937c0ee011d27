#include "costmodel/schedule/simulator.hpp"

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"

namespace costmodel {

namespace {

// Sorts the items by the step at which they would run if all took equally long. Neighbours are then
// on different ranks and do not wait for one another, so that a processor works on several at once;
// in the order in which they are found, each waits for the one before. A rank's own order stays.
void sort_by_step(SimulationProgram& program) {
  const std::size_t n = program.items.size();
  std::vector<std::int32_t> step(n), next(static_cast<std::size_t>(program.ranks), 0), place;
  for (std::size_t i = 0; i < n; ++i) {
    const auto& item = program.items[i];
    std::int32_t& at = next[static_cast<std::size_t>(item.rank)];
    if (item.dependency >= 0)
      at = std::max(at, step[static_cast<std::size_t>(item.dependency)] + 1);
    step[i] = at++;
    if (place.size() < static_cast<std::size_t>(at) + 1)
      place.resize(static_cast<std::size_t>(at) + 1);
    ++place[static_cast<std::size_t>(at)];
  }
  for (std::size_t k = 1; k < place.size(); ++k) place[k] += place[k - 1];
  auto items = program.items;
  auto micro_batch = program.micro_batch;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t to = place[static_cast<std::size_t>(step[i])]++;
    step[i] = to;  // from here on the item's place: what it depends on stands before it
    items[static_cast<std::size_t>(to)] = program.items[i];
    micro_batch[static_cast<std::size_t>(to)] = program.micro_batch[i];
  }
  for (auto& item : items)
    if (item.dependency >= 0) item.dependency = step[static_cast<std::size_t>(item.dependency)];
  program.items = std::move(items);
  program.micro_batch = std::move(micro_batch);
}

std::vector<SimulationProgram::Rank> ranks_of(const SimulationProgram& program) {
  std::vector<SimulationProgram::Rank> ranks(static_cast<std::size_t>(program.ranks));
  for (std::size_t i = 0; i < program.items.size(); ++i) {
    auto& rank = ranks[static_cast<std::size_t>(program.items[i].rank)];
    const auto index = static_cast<std::int32_t>(i);
    if (rank.first < 0) rank.first = index;
    if (program.items[i].duration % 3 == 1) {
      rank.last_backward = index;
      rank.before = rank.last;
    }
    rank.last = index;
  }
  return ranks;
}

}  // namespace

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
  const bool joined = s.has_cells();
  if (joined) program.cells.reserve(total);
  const auto add = [&](const OrderedAction& made, SimulationProgram::Item item) {
    program.items.push_back(item);
    program.micro_batch.push_back(made.action.micro_batch);
    if (!joined) return;
    program.cells.push_back(made.action.beside ? 0 : 1);
    if (!made.action.beside) return;
    auto first = program.cells.rbegin();
    while (*first == 0) ++first;
    ++*first;
  };
  const bool free_running = !row_of(s.kind).waits;
  const int last = program.stages - 1;
  for (const auto& ordered : execution_order(s)) {
    const auto& [rank, a] = ordered;
    if (a.kind == ActionKind::weight_gradient) {  // its own backward stands before it on this rank
      add(ordered, {-1, rank, 3 * a.stage + 2, 0, 0});
      continue;
    }
    const int direction = a.kind == ActionKind::backward ? 1 : 0;
    const int from = direction == 0 ? a.stage - 1 : a.stage + 1;
    const int to = direction == 0 ? a.stage + 1 : a.stage - 1;
    const auto elsewhere = [&, at = rank, &a = a](int stage) {
      return s.ranks > 1 && stage >= 0 && stage <= last && s.home_of(stage, a.micro_batch) != at;
    };
    std::int32_t dependency = -1;
    if (from >= 0 && from <= last && !free_running)
      dependency = made_by[slot(from, direction, a.micro_batch)];
    made_by[slot(a.stage, direction, a.micro_batch)] =
        static_cast<std::int32_t>(program.items.size());
    add(ordered, {dependency, rank, 3 * a.stage + direction,
                  static_cast<std::int16_t>(dependency >= 0 && elsewhere(from)),
                  static_cast<std::int16_t>(!free_running && elsewhere(to))});
  }
  SHARDPLAN_CHECK(program.items.size() == total);
  if (!joined) sort_by_step(program);
  program.by_rank = ranks_of(program);
  return program;
}

Seconds cell_time(std::span<const Action> cell, const PipelineTimes& times) {
  Seconds sum;
  for (const Action& action : cell) {
    const auto k = static_cast<std::size_t>(action.stage);
    if (action.kind == ActionKind::forward && cell.size() > 1 && !times.together.empty())
      return times.together[k];
    sum += action.kind == ActionKind::forward    ? times.forward[k]
           : action.kind == ActionKind::backward ? times.backward[k]
           : times.weight_gradient.empty()       ? Seconds(0)
                                                 : times.weight_gradient[k];
  }
  return sum;
}

namespace {

using Item = SimulationProgram::Item;

// The transfer times of an item's input and result, and how long the rank waits for the latter.
struct AlikeTransfers {
  explicit AlikeTransfers(const PipelineTimes& times)
      : delay{0.0, times.transfer.value}, hold{0.0, times.blocking ? times.transfer.value : 0.0} {}
  double in(const Item& item) const { return delay[item.remote]; }
  double out(const Item& item) const { return delay[item.sends]; }
  double held(const Item& item) const { return hold[item.sends]; }
  double delay[2], hold[2];
};

// The same with transfer times per boundary, indexed by `Item::duration`.
struct OwnTransfers {
  explicit OwnTransfers(const PipelineTimes& times)
      : from(3 * times.forward.size()), to(3 * times.forward.size()), blocking(times.blocking) {
    for (std::size_t k = 0; k < times.forward_transfer.size(); ++k) {
      to[3 * k] = from[3 * (k + 1)] = times.forward_transfer[k].value;
      to[3 * (k + 1) + 1] = from[3 * k + 1] = times.backward_transfer[k].value;
    }
  }
  double in(const Item& item) const { return item.remote ? at(from, item) : 0.0; }
  double out(const Item& item) const { return item.sends ? at(to, item) : 0.0; }
  double held(const Item& item) const { return blocking ? out(item) : 0.0; }
  static double at(const std::vector<double>& list, const Item& item) {
    return list[static_cast<std::size_t>(item.duration)];
  }
  std::vector<double> from, to;
  bool blocking;
};

// A replay's visit(index, start, end, made, transfers) sees every item: when it runs, and when its
// result is there to be sent.

// The replay of a program whose items run together in cells. A blocking sender sends the results of
// a cell one after the other: a later result counts as made when the one before has been sent.
template <class Transfers, class Visit>
void replay_cells(const SimulationProgram& program, const PipelineTimes& times,
                  const Transfers& transfers, const double* duration, double* end, double* free_at,
                  Visit visit) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < program.items.size(); i = next) {
    next = i + static_cast<std::size_t>(program.cells[i]);
    double& free = free_at[program.items[i].rank];
    double start = free, sum = 0;
    const double* together = nullptr;
    for (std::size_t k = i; k < next; ++k) {
      const Item& item = program.items[k];
      if (item.dependency >= 0) start = std::max(start, end[item.dependency] + transfers.in(item));
      sum += duration[item.duration];
      if (item.duration % 3 == 0 && next > i + 1 && !times.together.empty())
        together = &times.together[static_cast<std::size_t>(item.duration / 3)].value;
    }
    const double length = together != nullptr ? *together : sum;
    const double stop = start + length;
    free = stop;
    for (std::size_t k = i; k < next; ++k) {
      end[k] = free;
      free += transfers.held(program.items[k]);
      visit(k, start, stop, end[k], transfers);
    }
  }
}

// The replay.
template <class Transfers, class Visit>
double replay(const SimulationProgram& program, const PipelineTimes& times,
              std::vector<double>& scratch, const Transfers& transfers, Visit visit) {
  const std::size_t n = program.items.size();
  const auto stages = static_cast<std::size_t>(program.stages);
  const auto ranks = static_cast<std::size_t>(program.ranks);
  if (scratch.size() < n + 3 * stages + ranks) scratch.resize(n + 3 * stages + ranks);
  double* const end = scratch.data();  // every item's is written before it is read
  double* const duration = end + n;
  double* const free_at = duration + 3 * stages;
  std::fill(duration, free_at + ranks, 0.0);
  for (std::size_t k = 0; k < stages; ++k) {
    duration[3 * k] = times.forward[k].value;
    duration[3 * k + 1] = times.backward[k].value;
    if (!times.weight_gradient.empty()) duration[3 * k + 2] = times.weight_gradient[k].value;
  }
  if (!program.cells.empty()) {
    replay_cells(program, times, transfers, duration, end, free_at, visit);
    return *std::max_element(free_at, free_at + ranks);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto& item = program.items[i];
    double start = free_at[item.rank];
    if (item.dependency >= 0) start = std::max(start, end[item.dependency] + transfers.in(item));
    const double stop = start + duration[item.duration];
    end[i] = stop;
    free_at[item.rank] = stop + transfers.held(item);
    visit(i, start, stop, stop, transfers);
  }
  return *std::max_element(free_at, free_at + ranks);
}

constexpr auto no_visit = [](std::size_t, double, double, double, const auto&) {};

template <class Run>
auto with_transfers(const PipelineTimes& times, Run run) {
  if (times.forward_transfer.empty()) return run(AlikeTransfers(times));
  return run(OwnTransfers(times));
}

}  // namespace

Seconds simulate_makespan(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch) {
  return with_transfers(times, [&](const auto& transfers) {
    return Seconds(replay(program, times, scratch, transfers, no_visit));
  });
}

namespace {

// The result of a replay whose cells are visited: starts of items do not follow from their ends.
template <class Transfers>
void simulate_cells(const SimulationProgram& program, const PipelineTimes& times,
                    std::vector<double>& scratch, const Transfers& transfers,
                    SimulationResult& result) {
  const auto visit = [&](std::size_t i, double start, double /*end*/, double made, const auto&) {
    const auto& item = program.items[i];
    const auto rank = static_cast<std::size_t>(item.rank);
    result.finish[rank] = Seconds(made + transfers.held(item));
    if (result.begin[rank].value < 0) result.begin[rank] = Seconds(start);
    if (item.duration % 3 == 1) result.last_backward_start[rank] = Seconds(start);
  };
  result.makespan = Seconds(replay(program, times, scratch, transfers, visit));
}

// The replay of single items is the search's inner loop: it visits none, and the few times that are
// asked for follow from the ends that it writes.
template <class Transfers>
void simulate_items(const SimulationProgram& program, const PipelineTimes& times,
                    std::vector<double>& scratch, const Transfers& transfers,
                    SimulationResult& result) {
  result.makespan = Seconds(replay(program, times, scratch, transfers, no_visit));
  const double* const end = scratch.data();
  const auto end_of = [&](std::int32_t i) { return end[static_cast<std::size_t>(i)]; };
  const auto item_at = [&](std::int32_t i) { return program.items[static_cast<std::size_t>(i)]; };
  const auto free_after = [&](std::int32_t i) {
    return i < 0 ? 0.0 : end_of(i) + transfers.held(item_at(i));
  };
  const auto start_of = [&](std::int32_t i, std::int32_t before) {
    const Item item = item_at(i);
    const double free = free_after(before);
    return Seconds(
        item.dependency < 0 ? free : std::max(free, end_of(item.dependency) + transfers.in(item)));
  };
  for (std::size_t r = 0; r < program.by_rank.size(); ++r) {
    const SimulationProgram::Rank& rank = program.by_rank[r];
    if (rank.first >= 0) result.begin[r] = start_of(rank.first, -1);
    if (rank.last_backward >= 0)
      result.last_backward_start[r] = start_of(rank.last_backward, rank.before);
    result.finish[r] = Seconds(free_after(rank.last));
  }
}

}  // namespace

SimulationResult simulate(const SimulationProgram& program, const PipelineTimes& times,
                          std::vector<double>& scratch) {
  SimulationResult result;
  result.finish.resize(static_cast<std::size_t>(program.ranks));
  result.begin.resize(static_cast<std::size_t>(program.ranks), Seconds(-1));
  result.last_backward_start.resize(static_cast<std::size_t>(program.ranks));
  with_transfers(times, [&](const auto& transfers) {
    if (program.cells.empty()) {
      simulate_items(program, times, scratch, transfers, result);
    } else {
      simulate_cells(program, times, scratch, transfers, result);
    }
  });
  return result;
}

Timeline simulate_timeline(const SimulationProgram& program, const PipelineTimes& times) {
  Timeline timeline;
  timeline.ranks = program.ranks;
  std::vector<double> scratch;
  std::size_t cell = 0;  // the event of the cell that is visited
  const auto visit = [&](std::size_t i, double start, double end, double made,
                         const auto& transfers) {
    const auto& item = program.items[i];
    static constexpr std::array<ActionKind, 3> kinds{ActionKind::forward, ActionKind::backward,
                                                     ActionKind::weight_gradient};
    const Action action{kinds[static_cast<std::size_t>(item.duration % 3)], item.duration / 3,
                        program.micro_batch[i]};
    const bool backward = action.kind == ActionKind::backward;
    if (!program.cells.empty() && program.cells[i] == 0) {
      timeline.events[cell].name += "+" + to_text(action);
    } else {
      cell = timeline.events.size();
      timeline.events.push_back(
          {item.rank, Stream::compute, to_text(action), Seconds(start), Seconds(end)});
    }
    const Seconds transfer(transfers.out(item));
    if (item.sends && transfer.value > 0) {
      const Action send{backward ? ActionKind::send_backward : ActionKind::send_forward,
                        action.stage, action.micro_batch};
      timeline.events.push_back({item.rank, Stream::pipeline_transfer, to_text(send), Seconds(made),
                                 Seconds(made) + transfer});
    }
  };
  with_transfers(times,
                 [&](const auto& transfers) { replay(program, times, scratch, transfers, visit); });
  std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
    if (a.rank != b.rank) return a.rank < b.rank;
    return a.start < b.start;
  });
  return timeline;
}

}  // namespace costmodel
