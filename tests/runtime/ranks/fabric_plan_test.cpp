// Which communicators a plan wants: who is in them, and that all ranks can make them in one order.
#include "runtime/ranks/fabric_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"
#include "runtime/training/training_run.hpp"

namespace fabric_plan_test {

using costmodel::Action;
using costmodel::ActionKind;
using costmodel::ParallelPlan;
using costmodel::ScheduleKind;
using runtime::FabricPlan;
using runtime::FabricUse;

namespace {

using Groups = std::vector<std::vector<int>>;

FabricPlan plan_of(const ParallelPlan& plan, bool tied = false, std::int64_t micro_batches = 8) {
  return {plan, runtime::lowered_schedule(plan, micro_batches), tied};
}

Groups groups_of(const FabricPlan& plan, FabricUse use) {
  const int round = plan.round_of(use);
  return round < 0 ? Groups{} : plan.rounds()[static_cast<std::size_t>(round)].groups;
}

// Rounds can be made in order by all ranks: no rank stands twice in one.
void check_rounds(const FabricPlan& plan) {
  for (const auto& round : plan.rounds()) {
    std::set<int> seen;
    for (const auto& group : round.groups) {
      CHECK(group.size() >= 2);
      for (const int rank : group) {
        CHECK(seen.insert(rank).second);
        CHECK(rank >= 0);
        CHECK(rank < plan.ranks());
        CHECK(round.groups[static_cast<std::size_t>(round.group_of(rank))] == group);
      }
    }
  }
}

// Plays a lowered schedule over channels that hold nothing: a send is over when it is received, in
// the order of its channel, yet the sender goes on. Messages that come in another order than they
// are wanted would be mixed up. Of two replicas (dp 2), the first's. Returns how many came.
int play(const costmodel::Schedule& lowered, const FabricPlan& plan) {
  std::vector<std::size_t> next(lowered.actions.size());
  std::map<std::pair<int, std::pair<int, int>>, std::vector<int>> waiting;
  int received = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < next.size(); ++r) {
      const int me = static_cast<int>(r);
      while (next[r] < lowered.actions[r].size()) {
        const Action& a = lowered.actions[r][next[r]];
        const bool back =
            a.kind == ActionKind::send_backward || a.kind == ActionKind::recv_backward;
        const int tag = back ? runtime::backward_tag(a.stage, a.micro_batch)
                             : runtime::forward_tag(a.stage, a.micro_batch);
        if (a.kind == ActionKind::send_forward || a.kind == ActionKind::send_backward) {
          const int to = lowered.home_of(back ? a.stage - 1 : a.stage + 1, a.micro_batch);
          waiting[{plan.round_of_message(2 * me, 2 * to, tag), {me, to}}].push_back(tag);
        } else if (a.kind == ActionKind::recv_forward || a.kind == ActionKind::recv_backward) {
          const int from = lowered.home_of(a.stage, a.micro_batch);
          auto& line = waiting[{plan.round_of_message(2 * from, 2 * me, tag), {from, me}}];
          if (line.empty()) break;
          CHECK(line.front() == tag);
          line.erase(line.begin());
          ++received;
        }
        ++next[r];
        moved = true;
      }
    }
  }
  for (std::size_t r = 0; r < next.size(); ++r) CHECK(next[r] == lowered.actions[r].size());
  for (const auto& [channel, line] : waiting) CHECK(line.empty());
  return received;
}

}  // namespace

TEST_CASE("one rank wants no communicator") {
  CHECK(plan_of({}).rounds().empty());
  CHECK(plan_of({}, true).rounds().empty());
}

TEST_CASE("the groups are the mesh's, in its order") {
  ParallelPlan plan{.tp = 2, .pp = 2, .dp = 2};
  const FabricPlan fabric = plan_of(plan, true);
  check_rounds(fabric);
  CHECK(groups_of(fabric, FabricUse::tensor) == Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(groups_of(fabric, FabricUse::replicas) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(groups_of(fabric, FabricUse::ends) == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups_of(fabric, FabricUse::context).empty());
  CHECK(groups_of(fabric, FabricUse::expert).empty());
  // tensor, replicas, ends, and a channel each way.
  REQUIRE(fabric.rounds().size() == 5);
  CHECK(fabric.rounds()[3].groups == Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(fabric.rounds()[4].groups == Groups{{4, 0}, {5, 1}, {6, 2}, {7, 3}});
  CHECK(fabric.rounds()[0].name_for(5) == "the tensor group of ranks 4, 5");
  CHECK(fabric.round_of_message(1, 5, runtime::forward_tag(0, 7)) == 3);
  CHECK(fabric.round_of_message(5, 1, runtime::backward_tag(1, 2)) == 4);
  CHECK_THROWS_AS(fabric.round_of_message(1, 5, runtime::backward_tag(0, 7)),
                  costmodel::InternalError);
}

TEST_CASE("another order of ranks gives other groups") {
  ParallelPlan plan{.tp = 2, .pp = 2};
  plan.rank_order = "pp-tp-cp-ep-dp";
  CHECK(groups_of(plan_of(plan), FabricUse::tensor) == Groups{{0, 2}, {1, 3}});
}

TEST_CASE("contexts and experts have groups of their own, and contexts hold the same weights") {
  const ParallelPlan plan{.tp = 2, .dp = 2, .cp = 2, .ep = 2};
  const FabricPlan fabric = plan_of(plan);
  check_rounds(fabric);
  CHECK(groups_of(fabric, FabricUse::context) == Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(groups_of(fabric, FabricUse::replicas) == Groups{{0, 2, 4, 6}, {1, 3, 5, 7}});
  const auto mesh = costmodel::expert_mesh(plan);
  for (const auto& group : groups_of(fabric, FabricUse::expert)) {
    const auto same = mesh.group(costmodel::Axis::expert, group.front());
    CHECK(group == std::vector<int>(same.begin(), same.end()));
  }
  CHECK_FALSE(groups_of(fabric, FabricUse::expert).empty());
}

TEST_CASE("channels give every message out in the order in which it is wanted") {
  for (const auto kind : {ScheduleKind::serial, ScheduleKind::gpipe, ScheduleKind::one_f_one_b,
                          ScheduleKind::interleaved}) {
    for (const int pp : {2, 3, 4, 8}) {
      for (const int vpp : {1, 2, 3}) {
        if ((kind == ScheduleKind::interleaved) != (vpp > 1)) continue;
        for (const int rounds : {1, 2, 5}) {
          ParallelPlan plan{.pp = pp, .dp = 2};
          plan.vpp = vpp;
          plan.schedule = kind;
          CAPTURE(static_cast<int>(kind));
          CAPTURE(pp);
          CAPTURE(vpp);
          CAPTURE(rounds);
          const auto lowered = runtime::lowered_schedule(plan, std::int64_t{rounds} * pp);
          const FabricPlan fabric(plan, lowered, false);
          check_rounds(fabric);
          // Each of so many boundaries between stages is crossed forward and back.
          CHECK(play(lowered, fabric) == 2 * (pp * vpp - 1) * rounds * pp);
        }
      }
    }
  }
}

TEST_CASE("a rank of 1F1B has four channels at most, whatever the pipeline") {
  const FabricPlan fabric = plan_of({.pp = 16}, false, 32);
  for (int rank = 0; rank < 16; ++rank) {
    const auto own = std::ranges::count_if(
        fabric.rounds(), [&](const auto& round) { return round.group_of(rank) >= 0; });
    CHECK(own == (rank == 0 || rank == 15 ? 2 : 4));
  }
}

}  // namespace fabric_plan_test
