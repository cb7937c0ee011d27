#include "costmodel/schedule/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "costmodel/base/error.hpp"

namespace costmodel {

bool Schedule::has_cells() const {
  const auto joined = [](const Actions& list) {
    return std::ranges::any_of(list, [](const Action& a) { return a.beside; });
  };
  return std::ranges::any_of(actions, joined);
}

namespace {

// Forward, backward, weight gradient: 0, 1, 2; transfers have none.
int direction_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward: return 0;
    case ActionKind::backward: return 1;
    case ActionKind::weight_gradient: return 2;
    case ActionKind::send_forward:
    case ActionKind::recv_forward:
    case ActionKind::send_backward:
    case ActionKind::recv_backward: return -1;
  }
  return -1;
}

int directions_of(ScheduleKind kind) { return splits_backward(kind) ? 3 : 2; }

// Index of (stage, micro-batch, direction) in a table of flags.
struct DoneTable {
  int micro_batches;
  std::vector<char> done;
  DoneTable(int stages, int m)
      : micro_batches(m), done(static_cast<std::size_t>(std::int64_t{3} * stages * m), 0) {}
  char& at(ActionKind kind, int stage, int micro_batch) {
    return done[static_cast<std::size_t>(
        (std::int64_t{3} * stage + direction_of(kind)) * micro_batches + micro_batch)];
  }
};

// Whether the action's dependencies on other stages (or its own forward) are done.
bool ready(const Action& action, int stages, DoneTable& done) {
  if (action.kind == ActionKind::forward) {
    return action.stage == 0 || done.at(ActionKind::forward, action.stage - 1, action.micro_batch);
  }
  if (action.kind == ActionKind::weight_gradient)
    return done.at(ActionKind::backward, action.stage, action.micro_batch);
  if (!done.at(ActionKind::forward, action.stage, action.micro_batch)) return false;
  return action.stage == stages - 1 ||
         done.at(ActionKind::backward, action.stage + 1, action.micro_batch);
}

std::string grid_of(const Schedule& schedule, int rank, int step) {
  constexpr int margin = 4;
  std::string text;
  const int from = std::max(0, step - margin), to = step + margin;
  for (int r = 0; r < schedule.ranks; ++r) {
    if (std::abs(r - rank) > margin) continue;
    text += fmt::format("rank {:>3}:", r);
    const auto& list = schedule.actions[static_cast<std::size_t>(r)];
    for (int i = from; i <= to; ++i) {
      const bool faulty = r == rank && i == step;
      const std::string cell = i < static_cast<int>(list.size())
                                   ? to_text(list[static_cast<std::size_t>(i)])
                                   : (faulty ? "nothing" : "");
      text += faulty ? fmt::format(" [{}]", cell) : fmt::format(" {:>6}", cell);
    }
    text += '\n';
  }
  return text;
}

ScheduleFault fault(const Schedule& schedule, int rank, int step, std::string reason,
                    std::string remedy) {
  return {rank, step, std::move(reason), std::move(remedy), grid_of(schedule, rank, step)};
}

// Whether a rank and the one across have their own stage and each other's: every stage is on two.
bool goes_both_ways(const Schedule& s, int rank, int stage) {
  if (s.chunks > 1 || row_of(s.kind).two_way || stage != s.ranks - 1 - rank) return false;
  const auto runs_stage_of_rank = [&](int on) {
    const auto& list = s.actions[static_cast<std::size_t>(on)];
    return std::ranges::find(list, rank, &Action::stage) != list.end();
  };
  return runs_stage_of_rank(rank) && runs_stage_of_rank(stage);
}

// What is wrong with an action where it stands, if anything: the reason and the remedy.
std::optional<std::pair<std::string, std::string>> wrong_at(const Schedule& s, int rank,
                                                            const Action& a, DoneTable& seen) {
  using Wrong = std::pair<std::string, std::string>;
  const auto behind = [&](ActionKind kind) {
    return fmt::format("move it behind {}", to_text({kind, a.stage, a.micro_batch}));
  };
  if (direction_of(a.kind) < 0) {
    return Wrong{"a transfer stands in a schedule that is not lowered",
                 "leave it out: transfers follow from the order"};
  }
  if (direction_of(a.kind) >= directions_of(s.kind))
    return Wrong{"a weight gradient stands in a schedule of whole backwards", "leave it out"};
  if (a.stage < 0 || a.stage >= s.stages()) {
    return Wrong{fmt::format("stage {} does not live on rank {}", a.stage, rank),
                 fmt::format("there are stages 0 to {}", s.stages() - 1)};
  }
  if (a.micro_batch < 0 || a.micro_batch >= s.micro_batches) {
    return Wrong{fmt::format("there is no micro-batch {}", a.micro_batch),
                 fmt::format("there are micro-batches 0 to {}", s.micro_batches - 1)};
  }
  if (s.home_of(a.stage, a.micro_batch) != rank) {
    if (goes_both_ways(s, rank, a.stage)) {
      return Wrong{fmt::format("stages {} and {} are both on rank {}, as in DualPipe, which a file "
                               "cannot say",
                               rank, a.stage, rank),
                   "set plan.schedule: dualpipe, or list an order of dualpipe-v, each stage on one "
                   "rank"};
    }
    return Wrong{fmt::format("stage {} does not live on rank {}", a.stage, rank),
                 fmt::format("move it to rank {}", s.home_of(a.stage, a.micro_batch))};
  }
  if (a.kind == ActionKind::backward && !seen.at(ActionKind::forward, a.stage, a.micro_batch))
    return Wrong{"backward stands before its forward", behind(ActionKind::forward)};
  if (a.kind == ActionKind::weight_gradient &&
      !seen.at(ActionKind::backward, a.stage, a.micro_batch)) {
    return Wrong{"weight gradient stands before its backward", behind(ActionKind::backward)};
  }
  if (std::exchange(seen.at(a.kind, a.stage, a.micro_batch), char{1}))
    return Wrong{"runs a second time", "leave it out"};
  return {};
}

// The first action of a rank that does not stand in its list.
std::string first_missing(const Schedule& s, int rank, DoneTable& seen) {
  constexpr ActionKind kinds[] = {ActionKind::forward, ActionKind::backward,
                                  ActionKind::weight_gradient};
  for (int j = 0; j < s.micro_batches; ++j) {
    for (int chunk = 0; chunk < s.chunks; ++chunk) {
      const int stage = stage_of(s.kind, s.ranks, s.goes_back(j) ? 1 : chunk, rank);
      for (int d = 0; d < directions_of(s.kind); ++d)
        if (!seen.at(kinds[d], stage, j)) return to_text({kinds[d], stage, j});
    }
  }
  return {};
}

// What cannot run together: the first action with none before it, a micro-batch's forward and
// backward, two forwards or two backwards.
std::optional<ScheduleFault> wrong_cell(const Actions& list) {
  for (std::size_t at = 0; at < list.size();) {
    const auto cell = cell_at(list, at);
    for (std::size_t i = 1; i < cell.size(); ++i) {
      const bool own_weights = cell[i].kind == ActionKind::weight_gradient;
      for (std::size_t before = 0; before < i && !own_weights; ++before) {
        const bool same_way = cell[before].kind == cell[i].kind;
        if (!same_way && cell[before].micro_batch != cell[i].micro_batch) continue;
        ScheduleFault wrong;
        wrong.step = static_cast<int>(at + i);
        wrong.reason =
            fmt::format("{} and {} cannot run together", to_text(cell[before]), to_text(cell[i]));
        wrong.remedy = "join a forward with a backward of another micro-batch";
        return wrong;
      }
    }
    at += cell.size();
  }
  if (list.empty() || !list.front().beside) return {};
  ScheduleFault wrong;
  wrong.reason = "nothing stands before it to run together with";
  wrong.remedy = "begin with an action alone";
  return wrong;
}

std::optional<ScheduleFault> check_lists(const Schedule& s) {
  DoneTable seen(s.stages(), s.micro_batches);
  for (int rank = 0; rank < s.ranks; ++rank) {
    const auto& list = s.actions[static_cast<std::size_t>(rank)];
    const int size = static_cast<int>(list.size());
    if (auto wrong = wrong_cell(list))
      return fault(s, rank, wrong->step, std::move(wrong->reason), std::move(wrong->remedy));
    for (int step = 0; step < size; ++step) {
      if (auto wrong = wrong_at(s, rank, list[static_cast<std::size_t>(step)], seen))
        return fault(s, rank, step, std::move(wrong->first), std::move(wrong->second));
    }
    const int expected = directions_of(s.kind) * s.chunks * s.micro_batches;
    if (size == expected) continue;
    const std::string first = first_missing(s, rank, seen);
    return fault(
        s, rank, size,
        fmt::format("{} actions are missing, {} the first of them", expected - size, first),
        "add " + first);
  }
  return {};
}

}  // namespace

Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches,
                  const OrderChoices& choices) {
  SHARDPLAN_CHECK(ranks >= 1 && micro_batches >= 1 && takes_chunks(kind, chunks));
  SHARDPLAN_CHECK(!row_of(kind).whole_rounds || choices.group > 0 || micro_batches % ranks == 0);
  return {kind, ranks, chunks, micro_batches,
          row_of(kind).order({ranks, chunks, micro_batches, nullptr, choices})};
}

namespace {

// Whether a cell can run: a weight gradient beside its backward waits for nothing else.
bool ready(std::span<const Action> cell, int stages, DoneTable& done) {
  return std::ranges::all_of(cell, [&](const Action& action) {
    return (action.beside && action.kind == ActionKind::weight_gradient) ||
           ready(action, stages, done);
  });
}

}  // namespace

std::vector<OrderedAction> execution_order(const Schedule& s) {
  DoneTable done(s.stages(), s.micro_batches);
  std::size_t total = 0;
  for (const Actions& list : s.actions) total += list.size();
  std::vector<OrderedAction> order;
  order.reserve(total);
  std::vector<std::size_t> at(static_cast<std::size_t>(s.ranks), 0);
  const auto advance = [&](std::size_t rank) {
    const auto& list = s.actions[rank];
    const std::size_t before = at[rank];
    while (at[rank] < list.size()) {
      const Action& first = list[at[rank]];
      if (at[rank] + 1 == list.size() || !list[at[rank] + 1].beside) {  // alone, as most are
        if (!ready(first, s.stages(), done)) break;
        done.at(first.kind, first.stage, first.micro_batch) = 1;
        order.push_back({static_cast<int>(rank), first});
        ++at[rank];
        continue;
      }
      const auto cell = cell_at(list, at[rank]);
      if (!ready(cell, s.stages(), done)) break;
      for (const Action& action : cell) {
        done.at(action.kind, action.stage, action.micro_batch) = 1;
        order.push_back({static_cast<int>(rank), action});
      }
      at[rank] += cell.size();
    }
    return at[rank] > before;
  };
  // Forwards flow up the ranks and backwards down: sweeping both ways moves each as far as it can
  // go.
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < at.size(); ++rank) progress |= advance(rank);
    for (std::size_t rank = at.size(); rank-- > 0;) progress |= advance(rank);
  }
  return order;
}

std::optional<ScheduleFault> validate(const Schedule& schedule) {
  if (static_cast<int>(schedule.actions.size()) != schedule.ranks) {
    return ScheduleFault{0, 0,
                         fmt::format("{} ranks have lists, {} are expected",
                                     schedule.actions.size(), schedule.ranks),
                         "write a list for every rank", ""};
  }
  if (auto found = check_lists(schedule)) return found;
  std::vector<std::size_t> ran(schedule.actions.size(), 0);
  for (const OrderedAction& action : execution_order(schedule))
    ++ran[static_cast<std::size_t>(action.rank)];
  for (std::size_t rank = 0; rank < ran.size(); ++rank) {
    if (ran[rank] < schedule.actions[rank].size()) {
      return fault(schedule, static_cast<int>(rank), static_cast<int>(ran[rank]),
                   "waits for ever: what it needs runs later on another rank",
                   "order the ranks' actions so that each can run after what it needs");
    }
  }
  return {};
}

Schedule lower(const Schedule& schedule) {
  const auto wrong = validate(schedule);
  if (wrong)
    throw InternalError("a faulty schedule was lowered: " + wrong->reason + "\n" + wrong->grid);
  Schedule lowered{schedule.kind, schedule.ranks, schedule.chunks, schedule.micro_batches, {}};
  const bool alone = schedule.ranks == 1 || !row_of(schedule.kind).waits;
  const int last = schedule.stages() - 1;
  const auto transfers = [&](const Action& a, bool sends, Actions& out) {
    if (alone || a.kind == ActionKind::weight_gradient) return;
    const bool forward = a.kind == ActionKind::forward;
    const int other = a.stage + (forward == sends ? 1 : -1);
    if (other < 0 || other > last) return;
    const int home = schedule.home_of(a.stage, a.micro_batch);
    if (schedule.home_of(other, a.micro_batch) == home) return;  // the V turns back
    const auto kind = sends ? (forward ? ActionKind::send_forward : ActionKind::send_backward)
                            : (forward ? ActionKind::recv_forward : ActionKind::recv_backward);
    out.push_back({kind, sends ? a.stage : other, a.micro_batch});
  };
  for (const auto& list : schedule.actions) {
    Actions out;
    for (std::size_t at = 0; at < list.size();) {
      const auto cell = cell_at(list, at);
      for (const Action& a : cell) transfers(a, false, out);
      out.insert(out.end(), cell.begin(), cell.end());
      for (const Action& a : cell) transfers(a, true, out);
      at += cell.size();
    }
    lowered.actions.push_back(std::move(out));
  }
  return lowered;
}

std::string to_text(const Schedule& schedule) {
  std::string text;
  for (const auto& list : schedule.actions) {
    for (std::size_t i = 0; i < list.size(); ++i)
      text += (i == 0 ? "" : list[i].beside ? "+" : " ") + to_text(list[i]);
    text += '\n';
  }
  return text;
}

InFlight in_flight(const Schedule& schedule) {
  InFlight result;
  for (const auto& list : schedule.actions) {
    std::vector<std::vector<int>> peaks;
    std::vector<int> held(static_cast<std::size_t>(chunks_held(schedule.kind, schedule.chunks)), 0);
    const auto covered = [&](const std::vector<int>& mix) {
      return std::equal(held.begin(), held.end(), mix.begin(), [](int a, int b) { return a <= b; });
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == ActionKind::weight_gradient) continue;
      int& count = held[static_cast<std::size_t>(schedule.chunk_of(list[i]))];
      count += list[i].kind == ActionKind::forward ? 1 : -1;
      const bool turning = i + 1 == list.size() || list[i + 1].kind != ActionKind::forward;
      if (list[i].kind != ActionKind::forward || !turning || std::ranges::any_of(peaks, covered))
        continue;
      std::erase_if(peaks, [&](const auto& mix) {
        return std::equal(mix.begin(), mix.end(), held.begin(),
                          [](int a, int b) { return a <= b; });
      });
      peaks.push_back(held);
    }
    result.peaks.push_back(std::move(peaks));
  }
  return result;
}

std::vector<std::vector<EndMix>> end_mixes(const Schedule& schedule) {
  const int chunks = chunks_held(schedule.kind, schedule.chunks);
  SHARDPLAN_CHECK(chunks > 1);
  const auto covers = [](const EndMix& a,
                         const EndMix& b) {  // in first, last and all others between
    return a.first >= b.first && a.last >= b.last &&
           a.total - a.first - a.last >= b.total - b.first - b.last;
  };
  std::vector<std::vector<EndMix>> result;
  for (const auto& list : schedule.actions) {
    std::vector<EndMix> mixes;
    EndMix held{0, 0, 0};
    bool more = false;  // than before the actions since the last backward
    const auto keep = [&] {
      const auto covered = [&](const EndMix& mix) { return covers(mix, held); };
      if (!std::exchange(more, false) || std::ranges::any_of(mixes, covered)) return;
      std::erase_if(mixes, [&](const EndMix& mix) { return covers(held, mix); });
      mixes.push_back(held);
    };
    for (const Action& action : list) {
      if (action.kind == ActionKind::weight_gradient) continue;
      const bool forward = action.kind == ActionKind::forward;
      if (!forward) keep();  // a forward after a forward only adds to what is held
      const int step = forward ? 1 : -1;
      const int chunk = schedule.chunk_of(action);
      held.total += step;
      if (chunk == 0) held.first += step;
      if (chunk == chunks - 1) held.last += step;
      more = forward;
    }
    keep();
    result.push_back(std::move(mixes));
  }
  return result;
}

}  // namespace costmodel
