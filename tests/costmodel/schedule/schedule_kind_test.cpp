// The rows of the kinds: complete, in the order of the enumerators, and true of what is generated.
#include "costmodel/schedule/schedule_kind.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/schedule/schedule.hpp"

namespace schedule_kind_test {

using namespace costmodel;

TEST_CASE("rows stand in the order of the enumerators, and each is complete") {
  CHECK(schedule_name(ScheduleKind::ideal) == "ideal");
  CHECK(schedule_name(ScheduleKind::serial) == "serial");
  CHECK(schedule_name(ScheduleKind::gpipe) == "gpipe");
  CHECK(schedule_name(ScheduleKind::one_f_one_b) == "1f1b");
  CHECK(schedule_name(ScheduleKind::interleaved) == "interleaved");
  CHECK(schedule_name(ScheduleKind::zero_bubble_h1) == "zero-bubble-h1");
  CHECK(schedule_name(ScheduleKind::zero_bubble_h2) == "zero-bubble-h2");
  CHECK(schedule_name(ScheduleKind::zero_bubble_v) == "zero-bubble-v");
  CHECK(schedule_name(ScheduleKind::v_half) == "v-half");
  CHECK(schedule_name(ScheduleKind::v_min) == "v-min");
  CHECK(schedule_name(ScheduleKind::dualpipe) == "dualpipe");
  CHECK(schedule_name(ScheduleKind::dualpipe_v) == "dualpipe-v");
  for (const bool splits : {false, true}) {
    for (const bool folded : {false, true}) {
      const ScheduleKind kind = listed_kind(splits, folded);
      CHECK(is_listed(kind));
      CHECK(row_of(kind).splits_backward == splits);
      CHECK(row_of(kind).folded == folded);
    }
  }
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const ScheduleRow& row = row_of(static_cast<ScheduleKind>(i));
    CAPTURE(row.name);
    CHECK(row.name == schedule_names()[i]);
    CHECK(row.fewest_chunks >= 1);
    CHECK(row.most_chunks >= row.fewest_chunks);
    CHECK(bool(row.forwards_first != nullptr));
    CHECK(row.splits_backward == (row.held_limit != nullptr || row.joined != nullptr));
    CHECK(bool(row.time != nullptr));
    CHECK(bool(row.bubble != nullptr));
    CHECK(bool(row.order != nullptr));
    CHECK_FALSE(row.formula.empty());
  }
}

TEST_CASE("a stage's rank and chunk are each other's inverse, and every rank holds v stages") {
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    CAPTURE(schedule_name(kind));
    for (int p = 1; p <= 5; ++p) {
      for (int v = row_of(kind).fewest_chunks; v <= 4 && takes_chunks(kind, v); ++v) {
        for (int rank = 0; rank < p; ++rank) {
          for (int chunk = 0; chunk < v; ++chunk) {
            const int stage = stage_of(kind, p, chunk, rank);
            CHECK(stage / p == chunk);
            CHECK(rank_of(kind, p, stage) == rank);
          }
        }
        if (v == 2) CHECK(rank_of(kind, p, 2 * p - 1) == (row_of(kind).folded ? 0 : p - 1));
      }
    }
  }
}

TEST_CASE("no rank forwards more before its first backward than its row says") {
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    CAPTURE(schedule_name(kind));
    if (kind == ScheduleKind::zero_bubble_h2) continue;  // its order depends on times
    for (int p = 1; p <= 6; ++p) {
      for (int m = p; m <= 4 * p; m += p) {
        const int v = row_of(kind).fewest_chunks;
        if (row_of(kind).takes != nullptr && !row_of(kind).takes(p, m)) continue;
        const Schedule schedule = generate(kind, p, v, m);
        for (int rank = 0; rank < p; ++rank) {
          const auto& list = schedule.actions[static_cast<std::size_t>(rank)];
          int first = 0;
          while (list[static_cast<std::size_t>(first)].kind == ActionKind::forward) ++first;
          CHECK(first <=
                row_of(kind).forwards_first(rank, {p, v, static_cast<double>(m), {}, {}, {}, {}}));
        }
      }
    }
  }
}

TEST_CASE("questions that other code asks") {
  CHECK(usual_schedule(1) == ScheduleKind::one_f_one_b);
  CHECK(usual_schedule(3) == ScheduleKind::interleaved);
  CHECK(takes_chunks(ScheduleKind::interleaved, 7));
  CHECK_FALSE(takes_chunks(ScheduleKind::interleaved, 1));
  CHECK_FALSE(takes_chunks(ScheduleKind::zero_bubble_v, 3));
  CHECK(is_plain(ScheduleKind::serial));
  CHECK_FALSE(is_plain(ScheduleKind::zero_bubble_h1));
  CHECK_FALSE(is_plain(ScheduleKind::interleaved));
}

}  // namespace schedule_kind_test
