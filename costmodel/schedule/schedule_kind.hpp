// The kinds of pipeline schedule: a row each with its name, what it splits, the chunks a rank has,
// its closed form, its generator and its bounds. Whatever other code asks of a kind is a question
// to its row, so a new schedule is an enumerator, a row and a generator.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "costmodel/base/units.hpp"
#include "costmodel/schedule/orders.hpp"

namespace costmodel {

enum class ScheduleKind {
  ideal,
  serial,
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble_h1,
  zero_bubble_h2,
  zero_bubble_v,
  v_half,
  v_min,
  dualpipe,
  dualpipe_v,
  // From a file (schedule_file.hpp), by what the file holds.
  listed,
  listed_split,
  listed_folded,
  listed_folded_split
};

struct ScheduleRow {
  std::string_view name;  // of plan.schedule
  // Input and weight gradient are separate actions (Qi et al. 2024, arXiv:2401.10241).
  bool splits_backward = false;
  int fewest_chunks = 1, most_chunks = 1;  // v
  // Chunks turn back at the last rank (the V of arXiv:2405.15362) instead of starting again at the
  // first.
  bool folded = false;
  // Every stage is on two ranks, r and p - 1 - r, with its parameters: half of the micro-batches go
  // from the last rank to the first (DualPipe, arXiv:2412.19437, section 3.2.1).
  bool two_way = false;
  bool waits = true;          // for what it needs: only the ideal one does not
  bool whole_rounds = false;  // micro-batches go p at a time through the chunks
  bool searched = false;      // `plan` tries it unless search.schedules says otherwise

  // Null in what follows: nothing is known of a schedule that is read from a file.
  // The most chunks that a rank forwards before its first backward.
  double (*forwards_first)(int rank, const EvenPipeline& even) = nullptr;
  // With split backward: the most micro-batches that a rank may hold at once, over all its chunks.
  // Null where the order itself has the weight gradients, and so says what is held.
  double (*held_limit)(int ranks) = nullptr;

  // Where forwards and whole backwards run together, one's communication beside the other's
  // computation: how many forwards of a rank's chunk do.
  double (*joined)(int rank, int chunk, const EvenPipeline& even) = nullptr;
  // Null: any number of micro-batches.
  bool (*takes)(int ranks, long long micro_batches) = nullptr;

  std::string_view formula{};  // of the time of an even pipeline, and its paper
  Seconds (*time)(const EvenPipeline& even) = nullptr;
  double (*bubble)(const EvenPipeline& even) = nullptr;  // idle over busy, at t_f = t_b = t_w
  ActionsByRank (*order)(const OrderRequest& request) = nullptr;
};

extern const ScheduleRow schedule_rows[];
inline const ScheduleRow& row_of(ScheduleKind kind) {
  return schedule_rows[static_cast<std::size_t>(kind)];
}

// Of the kinds that are generated, in their order.
std::span<const std::string_view> schedule_names();

inline std::string_view schedule_name(ScheduleKind kind) { return row_of(kind).name; }
inline bool splits_backward(ScheduleKind kind) { return row_of(kind).splits_backward; }
inline bool takes_chunks(ScheduleKind kind, int chunks) {
  return chunks >= row_of(kind).fewest_chunks && chunks <= row_of(kind).most_chunks;
}
inline bool is_listed(ScheduleKind kind) { return row_of(kind).order == nullptr; }
// The chunks of a rank of a plan with `vpp`: the two ways count as one each.
inline int chunks_held(ScheduleKind kind, int vpp) { return row_of(kind).two_way ? 2 : vpp; }
ScheduleKind listed_kind(bool splits_backward, bool folded);
// Whether forwards and backwards of the kind run together.
inline bool overlaps(ScheduleKind kind) { return row_of(kind).joined != nullptr; }
// Generated, one chunk a rank, backwards whole.
inline bool is_plain(ScheduleKind kind) {
  return row_of(kind).most_chunks == 1 && !splits_backward(kind);
}
// What frameworks run when only the chunks are given: 1F1B, or interleaved.
ScheduleKind usual_schedule(int chunks);

// rank_of: the pipeline rank of a virtual stage, going the first of two ways. stage_of: the virtual
// stage of a rank's chunk, or of its way.
inline int rank_of(ScheduleKind kind, int pp, int stage) {
  const int at = stage % pp;
  return row_of(kind).folded && stage / pp % 2 == 1 ? pp - 1 - at : at;
}
inline int stage_of(ScheduleKind kind, int pp, int chunk, int rank) {
  if (row_of(kind).two_way) return chunk == 0 ? rank : pp - 1 - rank;
  const bool back = row_of(kind).folded && chunk % 2 == 1;
  return chunk * pp + (back ? pp - 1 - rank : rank);
}

}  // namespace costmodel
