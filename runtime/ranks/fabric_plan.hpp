// The communicators that a plan needs for direct device-to-device transfers
// (runtime/backend/fabric.hpp), and the order in which they are created. Needs no device.
//
// All ranks create communicators in rounds. A round splits the world into disjoint groups, as
// ncclCommSplit does, so every rank takes part in every round, in the same order. A rank is in at
// most one group per round, so the round's index identifies its communicator.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "costmodel/schedule/schedule.hpp"
#include "runtime/backend/fabric.hpp"

namespace runtime {

// The purpose of a round's groups:
//   tensor, context, expert, expert_tensor: the axes of the mesh
//   replicas: ranks that hold the same weights, dp x cp
//   ends: first and last stage, which both hold the tied token table
//   channel: pipeline transfers from the first rank of each pair to the second
enum class FabricUse { tensor, context, replicas, expert, expert_tensor, ends, channel };
inline constexpr std::string_view fabric_use_names[]{
    "tensor", "context", "replicas", "expert", "expert-tensor", "ends", "channel"};

struct FabricRound {
  FabricUse use;
  std::vector<std::vector<int>> groups;  // of two ranks at least, in ring order
  // The index of the group of `rank`; -1: none.
  int group_of(int rank) const;
  // The name of the group of `rank`: "the tensor group of ranks 0, 1, 2, 3".
  std::string name_for(int rank) const;
};

// The messages of one channel between two pipeline ranks. A channel delivers in the order of
// sending, so its messages must be received in that order too.
struct FabricChannel {
  int from = 0, to = 0;  // pipeline ranks
  // -1 in `backward` or `stage` means all.
  int backward = -1;  // 0: activations, 1: gradients
  int stage = -1;     // the producing stage
  bool carries(const costmodel::Action& send) const;
};

// One channel per pair of ranks when all messages are received in the order sent; else one per
// direction (forward, backward); else one per stage.
std::vector<FabricChannel> channels_of(const costmodel::Schedule& lowered);

class FabricPlan {
 public:
  // `lowered`: the plan's schedule with its transfers; `tied`: two stages share one token table.
  FabricPlan(const costmodel::ParallelPlan& plan, const costmodel::Schedule& lowered, bool tied);

  int ranks() const { return ranks_; }
  const std::vector<FabricRound>& rounds() const { return rounds_; }
  // The rank's group and position in each round.
  std::vector<FabricSeat> seats(int rank) const;
  // The round of this use; -1 when its groups would have one rank each.
  int round_of(FabricUse use) const;
  // The round of the channel that carries the message with this tag (runtime/backend/tags.hpp)
  // between two ranks of the world. Throws InternalError for a message that the schedule does not
  // have.
  int round_of_message(int from, int to, int tag) const;

 private:
  void add_round(FabricRound round);  // unless it has no groups
  void add_axis(FabricUse use, const costmodel::Mesh& mesh, costmodel::Axis axis);
  void add_replicas();
  void add_ends(const costmodel::ParallelPlan& plan);
  void add_channels(const costmodel::Schedule& lowered);
  std::vector<int> along(const std::vector<int>& pipeline_ranks,
                         costmodel::Coordinates others) const;

  costmodel::Mesh mesh_;
  int ranks_;
  std::vector<FabricRound> rounds_;
  // By pipeline ranks, then tag (with micro-batch 0).
  std::map<std::pair<std::pair<int, int>, int>, int> messages_;
};

}  // namespace runtime
