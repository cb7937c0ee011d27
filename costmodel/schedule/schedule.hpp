// A pipeline schedule is data: for each pipeline rank the ordered list of its actions. Four
// functions: generate, validate, lower (transfers added, progress proved); executing is the
// simulator's and the engine's.
//
// Stages are virtual: stage k is chunk k / p of rank k mod p (Narayanan et al. 2021,
// arXiv:2104.04473, section 2.2), or of the rank where the V of zero-bubble-v puts it. Text form:
// "2F0 1B3" = stage 2 forward of micro-batch 0, stage 1 backward of micro-batch 3 (PyTorch's
// letters). Where a schedule splits the backward, B is the input gradient and "1W3" the weight
// gradient.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace costmodel {

enum class ScheduleKind {
  ideal,
  serial,
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble_h1,
  zero_bubble_h2,
  zero_bubble_v
};
inline constexpr std::array<std::string_view, 8> schedule_names{
    "ideal",       "serial",         "gpipe",          "1f1b",
    "interleaved", "zero-bubble-h1", "zero-bubble-h2", "zero-bubble-v"};

// Whether input and weight gradients are actions of their own (Qi et al. 2024, arXiv:2401.10241).
constexpr bool splits_backward(ScheduleKind kind) { return kind >= ScheduleKind::zero_bubble_h1; }

// The pipeline rank that holds a virtual stage, and the stage that is a rank's chunk. Stages go
// round the ranks, but zero-bubble-v turns back at the last rank (the V of arXiv:2405.15362).
constexpr int rank_of(ScheduleKind kind, int pp, int stage) {
  const int at = stage % pp;
  return kind == ScheduleKind::zero_bubble_v && stage / pp % 2 == 1 ? pp - 1 - at : at;
}
constexpr int stage_of(ScheduleKind kind, int pp, int chunk, int rank) {
  const bool back = kind == ScheduleKind::zero_bubble_v && chunk % 2 == 1;
  return chunk * pp + (back ? pp - 1 - rank : rank);
}

enum class ActionKind : std::uint8_t {
  forward,
  backward,
  send_forward,
  recv_forward,
  send_backward,
  recv_backward,
  weight_gradient
};

struct Action {
  ActionKind kind;
  int stage;  // virtual stage whose forward or backward it is, or whose result travels
  int micro_batch;
  bool operator==(const Action&) const = default;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  int ranks = 1;                             // p
  int chunks = 1;                            // v
  int micro_batches = 1;                     // m
  std::vector<std::vector<Action>> actions;  // by rank
  int stages() const { return ranks * chunks; }
  int home_of(int stage) const { return rank_of(kind, ranks, stage); }  // its rank
};

// serial: one micro-batch through all stages and back before the next. gpipe: all forwards, then
// all backwards (Huang et al. 2019). 1f1b: PipeDream-flush (Narayanan et al. 2021, section 2.2.1).
// interleaved: Megatron's, section 2.2.2; needs micro_batches % ranks == 0 and chunks > 1. ideal:
// 1f1b order whose dependencies the simulator ignores. The zero-bubble schedules depend on times:
// split_schedule.hpp generates them.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches);

struct OrderedAction {
  int rank;
  Action action;
};

// All ranks' actions in one order that respects every dependency: forward after the stage before,
// backward after the stage behind and after its own forward, weight gradient after its own
// backward. Shorter than the schedule when that cannot run to its end.
std::vector<OrderedAction> execution_order(const Schedule& schedule);

struct ScheduleFault {
  int rank = 0;
  int step = 0;  // index in that rank's list; its length when something is missing at the end
  std::string reason;
  std::string grid;  // rank x step, the faulty cell in brackets
};

// Every stage runs forward and backward (and, where the kind splits it, weight gradient) of every
// micro-batch exactly once, on its own rank, in this order, and all ranks together can run to the
// end.
std::optional<ScheduleFault> validate(const Schedule& schedule);

// The same lists with sends and receives where a neighbouring stage lives on another rank. Throws
// InternalError on a schedule that validate() faults.
Schedule lower(const Schedule& schedule);

// "0F0 0F1 0B0 0B1", one line a rank.
std::string to_text(const Schedule& schedule);
std::string to_text(const Action& action);
// Reads to_text's form back. Throws ConfigError with the line and column of the bad cell.
Schedule parse_schedule(const std::string& text, ScheduleKind kind, int ranks, int chunks,
                        int micro_batches);

// Micro-batch forwards held at the same time: the most of each chunk mix the rank ever holds.
// `peaks[rank]` lists the maximal mixes, each counting the chunks (index: chunk) in flight. What
// waits for its weight gradient alone is not counted.
struct InFlight {
  std::vector<std::vector<std::vector<int>>> peaks;
};
InFlight in_flight(const Schedule& schedule);

// The same for two chunks or more that all weigh alike but a rank's first and last: the maximal
// mixes as counts of all chunks, of the first and of the last. Few, however many chunks there are.
struct EndMix {
  int total, first, last;
};
std::vector<std::vector<EndMix>> end_mixes(const Schedule& schedule);

}  // namespace costmodel
