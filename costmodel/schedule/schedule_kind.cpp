#include "costmodel/schedule/schedule_kind.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "costmodel/schedule/building_block.hpp"
#include "costmodel/schedule/dualpipe.hpp"

namespace costmodel {

namespace {

constexpr int any_chunks = std::numeric_limits<int>::max();

// The work of a rank.
Seconds work(const EvenPipeline& e) {
  return e.micro_batches * e.chunks * (e.forward + e.backward + e.weight_gradient);
}

// A round trip through `depth` stages: `depth` forwards and backwards, and the transfers between
// them.
Seconds round_trip(double depth, const EvenPipeline& e) {
  return depth * (e.forward + e.backward) + 2 * (depth - 1) * e.transfer;
}

// Rank 0 starts micro-batch j + p when micro-batch j has returned. Full round trips, then one for
// the remainder.
Seconds one_f_one_b_time(const EvenPipeline& e) {
  const auto m = static_cast<long long>(e.micro_batches);
  const long long trips = (m - 1) / e.ranks;
  const auto rest = static_cast<double>((m - 1) % e.ranks);
  Seconds time = (static_cast<double>(trips) + 1) * round_trip(e.ranks, e);
  if (rest > 0) time += round_trip(rest, e);
  return time;
}

// The bubble of a zero-bubble schedule that hides `hidden` weight gradients in it (table 2 of
// arXiv:2401.10241).
Seconds split_bubble(double hidden, const EvenPipeline& e) {
  return (e.ranks - 1.0) * max(Seconds(0), e.forward + e.backward - hidden * e.weight_gradient);
}

// Weight gradients that zero-bubble-h2 hides, a rank: one less than may be in flight, and twice
// those of -h1 at most.
double hidden_by_h2(const EvenPipeline& e) {
  if (e.choices.in_flight == 0 || e.ranks == 1) return 2;
  return (std::clamp(e.choices.in_flight, e.ranks, 2 * e.ranks - 1) - 1.0) / (e.ranks - 1);
}

// (p - 1) / (v m), arXiv:2104.04473, section 2.2.
double flush_bubble(const EvenPipeline& e) { return (e.ranks - 1) / (e.chunks * e.micro_batches); }
double no_bubble(const EvenPipeline& /*even*/) { return 0; }

double down_to_one(int rank, const EvenPipeline& e) { return e.ranks - rank; }
double up_to_two_rounds(int /*rank*/, const EvenPipeline& e) { return 2.0 * e.ranks; }

// Where all times are equal, 6 units make a micro-batch and the bubble has so many.
Seconds units_of(double units, const EvenPipeline& e) {
  return units / 3 * (e.forward + e.backward + e.weight_gradient);
}

double one_round(int ranks) { return ranks; }
double two_rounds(int ranks) { return 2.0 * ranks; }

constexpr ScheduleRow listed_row(bool splits_backward, bool folded) {
  return {.name = "from a file",
          .splits_backward = splits_backward,
          .most_chunks = any_chunks,
          .folded = folded};
}

}  // namespace

// In the order of ScheduleKind.
constinit const ScheduleRow schedule_rows[] = {
    {.name = "ideal",  // the 1F1B order, whose dependencies the simulator ignores
     .waits = false,
     .forwards_first = down_to_one,
     .formula = "m (t_f + t_b)",
     .time = work,
     .bubble = no_bubble,
     .order = one_f_one_b_order},
    {.name = "serial",
     .forwards_first = [](int, const EvenPipeline&) { return 1.0; },
     .formula = "m p (t_f + t_b)",
     .time = [](const EvenPipeline& e) { return e.micro_batches * round_trip(e.ranks, e); },
     .bubble = [](const EvenPipeline& e) { return e.ranks - 1.0; },
     .order = serial_order},
    {.name = "gpipe",
     .forwards_first = [](int, const EvenPipeline& e) { return e.micro_batches; },
     .formula = "(m + p - 1)(t_f + t_b), arXiv:2104.04473 section 2.2",
     .time =
         [](const EvenPipeline& e) {
           return (e.micro_batches + e.ranks - 1) * (e.forward + e.backward) +
                  2.0 * (e.ranks - 1) * e.transfer;
         },
     .bubble = flush_bubble,
     .order = gpipe_order},
    {.name = "1f1b",
     .searched = true,
     .forwards_first = down_to_one,
     .formula = "(m + p - 1)(t_f + t_b), arXiv:2104.04473 section 2.2",
     .time = one_f_one_b_time,
     .bubble = flush_bubble,
     .order = one_f_one_b_order},
    {.name = "interleaved",
     .fewest_chunks = 2,
     .most_chunks = any_chunks,
     .whole_rounds = true,
     .searched = true,
     .forwards_first =
         [](int rank, const EvenPipeline& e) {
           return 1.0 + interleaved_warm_up(rank, e.ranks, e.chunks,
                                            static_cast<long long>(e.micro_batches),
                                            e.choices.group);
         },
     .formula = "(m v + p - 1)(t_f + t_b), arXiv:2104.04473 section 2.2",
     .time =
         [](const EvenPipeline& e) {
           return (e.micro_batches * e.chunks + e.ranks - 1) * (e.forward + e.backward);
         },
     .bubble = flush_bubble,
     .order = interleaved_order},
    {.name = "zero-bubble-h1",
     .splits_backward = true,
     .searched = true,
     .forwards_first = down_to_one,
     .held_limit = one_round,  // as 1F1B's first rank: "ZB-1p"
     .formula = "m (t_f + t_b) + (p - 1)(t_f + t_b - 2 t_w), arXiv:2401.10241 table 2",
     .time = [](const EvenPipeline& e) { return work(e) + split_bubble(1, e); },
     .bubble = [](const EvenPipeline& e) { return (e.ranks - 1) / (3 * e.micro_batches); },
     .order = handcrafted_order},
    {.name = "zero-bubble-h2",
     .splits_backward = true,
     .searched = true,
     .forwards_first = up_to_two_rounds,
     .held_limit = two_rounds,  // "ZB-2p"
     .formula = "m (t_f + t_b) + (p - 1)(t_f + t_b - 3 t_w), arXiv:2401.10241 table 2",
     .time = [](const EvenPipeline& e) { return work(e) + split_bubble(hidden_by_h2(e), e); },
     .bubble = no_bubble,
     .order = eager_order},
    {.name = "zero-bubble-v",
     .splits_backward = true,
     .fewest_chunks = 2,
     .most_chunks = 2,
     .folded = true,
     .searched = true,
     .forwards_first = up_to_two_rounds,
     .held_limit = one_round,
     .formula = "m v (t_f + t_b), arXiv:2405.15362",
     .time = work,
     .bubble = no_bubble,
     .order = v_order},
    {.name = "v-half",
     .splits_backward = true,
     .fewest_chunks = 2,
     .most_chunks = 2,
     .folded = true,
     .forwards_first = v_half_forwards_first,
     .held_limit = v_half_limit,
     .formula =
         "m v (t_f + t_b) + about half of 1F1B's bubble, arXiv:2405.15362; exact where t_f = "
         "t_w = t_b / 2",
     .time = [](const EvenPipeline& e) { return work(e) + units_of(v_half_units(e.ranks), e); },
     .bubble = [](const EvenPipeline& e) { return v_half_units(e.ranks) / (6 * e.micro_batches); },
     .order = v_half_order},
    {.name = "v-min",
     .splits_backward = true,
     .fewest_chunks = 2,
     .most_chunks = 2,
     .folded = true,
     .forwards_first = v_min_forwards_first,
     .held_limit = v_min_limit,
     .formula =
         "m v (t_f + t_b) + about two thirds of 1F1B's bubble, arXiv:2405.15362; exact where t_f = "
         "t_w = t_b / 2",
     .time = [](const EvenPipeline& e) { return work(e) + units_of(v_min_units(e.ranks), e); },
     .bubble = [](const EvenPipeline& e) { return v_min_units(e.ranks) / (6 * e.micro_batches); },
     .order = v_min_order},
    {.name = "dualpipe",
     .splits_backward = true,
     .two_way = true,
     .forwards_first = dualpipe_forwards_first,
     .joined = dualpipe_joined,
     .takes = takes_dualpipe,
     .formula = "work of the middle ranks + (p/2 - 1)(t_f&b + t_b - 3 t_w), arXiv:2412.19437 "
                "table 2",
     .time = dualpipe_time,
     .bubble = dualpipe_bubble,
     .order = dualpipe_order},
    {.name = "dualpipe-v",
     .splits_backward = true,
     .fewest_chunks = 2,
     .most_chunks = 2,
     .folded = true,
     .forwards_first = dualpipe_v_forwards_first,
     .joined = dualpipe_v_joined,
     .takes = takes_dualpipe_v,
     .formula = "work of the last rank + (p - 1)(t_f&b + t_b - 3 t_w), times of a chunk, "
                "deepseek-ai/DualPipe",
     .time = dualpipe_v_time,
     .bubble = dualpipe_v_bubble,
     .order = dualpipe_v_order},
    listed_row(false, false),
    listed_row(true, false),
    listed_row(false, true),
    listed_row(true, true),
};

std::span<const std::string_view> schedule_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list;
    for (const ScheduleRow& row : schedule_rows)
      if (row.order != nullptr) list.push_back(row.name);
    return list;
  }();
  return names;
}

ScheduleKind listed_kind(bool splits_backward, bool folded) {
  const int first = static_cast<int>(ScheduleKind::listed);
  return static_cast<ScheduleKind>(first + (splits_backward ? 1 : 0) + (folded ? 2 : 0));
}

ScheduleKind usual_schedule(int chunks) {
  return chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
}

}  // namespace costmodel
