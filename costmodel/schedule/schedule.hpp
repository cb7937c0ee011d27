// A pipeline schedule as data: one ordered list of actions per pipeline rank. Four functions work
// on it: generate, validate, lower (adds transfers and checks that the schedule cannot deadlock).
// The simulator and the engine execute it.
//
// Stages are virtual: stage k is chunk k / p of rank k mod p (Narayanan et al. 2021,
// arXiv:2104.04473, section 2.2); zero-bubble-v places them on its V instead. Text form: "2F0 1B3"
// means stage 2 forward of micro-batch 0, stage 1 backward of micro-batch 3 (PyTorch's letters).
// With a split backward, B is the input gradient and "1W3" the weight gradient.
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

// Whether input and weight gradients are separate actions (Qi et al. 2024, arXiv:2401.10241).
constexpr bool splits_backward(ScheduleKind kind) { return kind >= ScheduleKind::zero_bubble_h1; }

// rank_of: the pipeline rank of a virtual stage. stage_of: the virtual stage of a rank's chunk.
// Stages are assigned round-robin, except in zero-bubble-v, which turns back at the last rank (the
// V of arXiv:2405.15362).
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
  int stage;  // virtual stage that computes, or whose result is transferred
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
  int home_of(int stage) const { return rank_of(kind, ranks, stage); }  // the rank of a stage
};

// serial: one micro-batch runs through all stages and back before the next one starts. gpipe: all
// forwards, then all backwards (Huang et al. 2019). 1f1b: PipeDream-flush (Narayanan et al. 2021,
// section 2.2.1). interleaved: Megatron's (section 2.2.2); needs micro_batches % ranks == 0 and
// chunks > 1. ideal: the 1f1b order, whose dependencies the simulator ignores. Zero-bubble
// schedules depend on times: zero_bubble.hpp generates them.
Schedule generate(ScheduleKind kind, int ranks, int chunks, int micro_batches);

struct OrderedAction {
  int rank;
  Action action;
};

// All ranks' actions in one order that satisfies every dependency: a forward after the forward of
// the previous stage, a backward after its own forward and after the backward of the next stage, a
// weight gradient after its own backward. Shorter than the schedule when the schedule deadlocks.
std::vector<OrderedAction> execution_order(const Schedule& schedule);

struct ScheduleFault {
  int rank = 0;
  int step = 0;  // index in that rank's list; its length when an action is missing at the end
  std::string reason;
  std::string grid;  // the schedule as a grid rank x step, the faulty cell in brackets
};

// Checks that every stage runs forward and backward (and weight gradient, when the kind splits the
// backward) of every micro-batch exactly once, on its own rank and in this order, and that the
// schedule does not deadlock. Empty when valid.
std::optional<ScheduleFault> validate(const Schedule& schedule);

// The same lists with a send and a receive wherever neighbouring stages are on different ranks.
// Throws InternalError for a schedule that validate() rejects.
Schedule lower(const Schedule& schedule);

// "0F0 0F1 0B0 0B1", one line per rank.
std::string to_text(const Schedule& schedule);
std::string to_text(const Action& action);
// Parses the output of to_text. Throws ConfigError with the line and column of the bad cell.
Schedule parse_schedule(const std::string& text, ScheduleKind kind, int ranks, int chunks,
                        int micro_batches);

// The micro-batches in flight (forward done, backward not yet) at the peaks of each rank.
// `peaks[rank]` lists the maximal mixes; a mix counts the micro-batches in flight of each chunk
// (index: chunk). A micro-batch that waits for its weight gradient only is not counted.
struct InFlight {
  std::vector<std::vector<std::vector<int>>> peaks;
};
InFlight in_flight(const Schedule& schedule);

// The same for ranks with two or more chunks of which all but the first and the last need equal
// memory: a maximal mix is reduced to the counts over all chunks, the first and the last. There are
// few such mixes, for any number of chunks.
struct EndMix {
  int total, first, last;
};
std::vector<std::vector<EndMix>> end_mixes(const Schedule& schedule);

}  // namespace costmodel
