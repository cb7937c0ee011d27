// The schedule of a plan: generated, or the one of its file, for which the plan must be made.
#include "costmodel/plan/plan_schedule.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "tests/costmodel/support/fixtures.hpp"

namespace plan_schedule_test {

using namespace costmodel;

namespace {

ParallelPlan listed_plan(const std::string& text) {
  ParallelPlan plan;
  plan.pp = 2;
  plan.listed = std::make_shared<const ListedSchedule>(parse_schedule_file(text, "my.csv"));
  plan.schedule = plan.listed->schedule.kind;
  return plan;
}

std::string fault(const ParallelPlan& plan, std::int64_t global_batch) {
  const auto found = violations(plan, fixtures::gpt(4, 64, 4, 512, 32), fixtures::cluster(2),
                                fixtures::training(global_batch, 32));
  return found.empty()
             ? ""
             : found.front().key + ": " + found.front().reason + "; " + found.front().remedy;
}

}  // namespace

TEST_CASE("generated, or what the file lists") {
  ParallelPlan plan;
  plan.pp = 2;
  CHECK(to_text(schedule_of(plan, 2, {}, {})) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  const ParallelPlan listed = listed_plan("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(to_text(schedule_of(listed, 2, {}, {})) == "0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK_FALSE(in_whole_rounds(listed));
}

TEST_CASE("a file is for its ranks, chunks and micro-batches") {
  ParallelPlan plan = listed_plan("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(fault(plan, 2).empty());
  CHECK(fault(plan, 4) ==
        "schedule: 'my.csv' is a schedule of 2 micro-batches, the plan has 4; set "
        "training.global_batch: 2 (dp x micro_batch x 2), or give another schedule");
  plan.vpp = 2;
  CHECK(fixtures::contains(fault(plan, 2), "1 stages a rank, the plan has 2; set vpp: 1"));
  plan.vpp = 1;
  plan.pp = 1;
  plan.dp = 2;
  CHECK(fixtures::contains(fault(plan, 4), "2 pipeline ranks, one a row, the plan has 1"));
  plan.listed = nullptr;
  CHECK(fixtures::contains(fault(plan, 2), "comes with the file"));
}

}  // namespace plan_schedule_test
