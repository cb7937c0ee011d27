// Which stages and ranks of a plan share a price.
#include <doctest/doctest.h>

#include "costmodel/estimate/alike_stages.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace alike_stages_test {

using namespace costmodel;

ParallelPlan pipeline(int pp, int vpp) {
  ParallelPlan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.schedule = vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  return plan;
}

AlikeStages alike(const ParallelPlan& plan, std::int64_t layers) {
  return alike_stages(stage_mixes(plan, fixtures::gpt(layers, 1024, 16, 51200, 512)), plan);
}

TEST_CASE("of an even pipeline the first rank, the last and one between them are priced") {
  const AlikeStages a = alike(pipeline(8, 1), 24);
  CHECK(*a.row_of == std::vector<std::size_t>{0, 1, 1, 1, 1, 1, 1, 2});
  CHECK(a.kind_of == *a.row_of);
  REQUIRE(a.kinds.size() == 3);
  CHECK(a.kinds[2].rank == 7);
  CHECK(a.kinds[1].layers.number[0] == 3);
}

TEST_CASE("chunks with the same layers share them on ranks of any kind, and a row on one kind") {
  const AlikeStages a = alike(pipeline(4, 2), 24);
  CHECK(*a.row_of == std::vector<std::size_t>{0, 1, 1, 2, 3, 1, 1, 4});
  CHECK(a.rows[2].layers == 1);  // between the ends, as the second stage
  CHECK(a.rows[3].layers == 2);
  CHECK(a.rows[4].layers == 4);  // the last stage is like no other
  CHECK(a.kinds[0].layers.number[0] == 6);
}

TEST_CASE("stages with other layers are not alike, and those that follow may be again") {
  ParallelPlan plan = pipeline(6, 1);
  plan.stage_layers = {3, 5, 3, 5, 3, 5};
  const AlikeStages a = alike(plan, 24);
  CHECK(*a.row_of == std::vector<std::size_t>{0, 1, 2, 1, 2, 3});
  CHECK(a.rows[2].stage == 2);
}

TEST_CASE("one stage is first and last at once") {
  const AlikeStages a = alike(pipeline(1, 1), 24);
  CHECK(a.rows.size() == 1);
  CHECK(a.kinds.front().layers.number[0] == 24);
}

TEST_CASE("a rank has all layers of its chunks, of every kind") {
  LayerMix one;
  one.number = {3, 1}, one.again = {0, 0, 2}, one.decoder_starts = true;
  LayerMix other;
  other.number = {4, 0, 5, 0, 0, 0, 0, 6};
  const LayerMix all = alike_stages({one, other}, pipeline(1, 2)).kinds.front().layers;
  CHECK(all.layers() == one.layers() + other.layers());
  CHECK(all.number == std::array{7, 1, 5, 0, 0, 0, 0, 6});
  CHECK(all.again == std::array{0, 0, 2, 0, 0, 0, 0, 0});
  CHECK(all.decoder_starts);
}

TEST_CASE("in a V the first rank has both ends") {
  ParallelPlan plan = pipeline(4, 2);
  plan.schedule = ScheduleKind::zero_bubble_v;
  const AlikeStages a = alike(plan, 24);
  CHECK(a.kind_of == std::vector<std::size_t>{0, 1, 1, 1});
  CHECK(a.rows.size() == 3);
}

}  // namespace alike_stages_test
