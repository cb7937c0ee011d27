// Which ranks move tensors with one another without the host (runtime/backend/fabric.hpp), and in
// which order the communicators for that are made. Needs no device.
//
// All ranks make communicators in rounds: a round splits the world into groups that have no rank in
// common, as ncclCommSplit does, so that every rank takes part in every round, in the same order. A
// rank is in one group of a round at most, so that the round's index names its communicator.
#pragma once

#include <cstdint>
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

// What the groups of a round are for.
//   tensor, context, expert, expert_tensor: the axes of the mesh
//   replicas: ranks that hold the same weights, dp x cp
//   ends: first and last stage, which hold the tied token table both
//   channel: from the first rank of each pair to the second, results and gradients of stages
enum class FabricUse { tensor, context, replicas, expert, expert_tensor, ends, channel };
inline constexpr std::string_view fabric_use_names[]{
    "tensor", "context", "replicas", "expert", "expert-tensor", "ends", "channel"};

struct FabricRound {
  FabricUse use;
  std::vector<std::vector<int>> groups;  // of two ranks at least, in ring order
  // The group that `rank` is in, by index; -1 where it is in none.
  int group_of(int rank) const;
  // "the tensor group of ranks 0, 1, 2, 3", of the one that `rank` is in.
  std::string name_for(int rank) const;
};

// What travels over one channel between two pipeline ranks: messages that are sent in the order in
// which they are received, since a channel gives them out in order.
struct FabricChannel {
  int from = 0, to = 0;  // pipeline ranks
  // Empty kind and stage (-1) mean all.
  int backward = -1;  // 0: forward results, 1: gradients
  int stage = -1;     // whose result it is
  bool carries(const costmodel::Action& send) const;
};

// One channel between two ranks where all their messages keep their order; else one each way of
// the pipeline; else one a stage.
std::vector<FabricChannel> channels_of(const costmodel::Schedule& lowered);

class FabricPlan {
 public:
  // `lowered` is the plan's schedule with its transfers; `tied`: two stages hold one token table.
  FabricPlan(const costmodel::ParallelPlan& plan, const costmodel::Schedule& lowered, bool tied);

  int ranks() const { return ranks_; }
  const std::vector<FabricRound>& rounds() const { return rounds_; }
  // Where a rank sits in each round.
  std::vector<FabricSeat> seats(int rank) const;
  // The round whose groups these are; -1 where such groups would have one rank each.
  int round_of(FabricUse use) const;
  // The round of the channel over which a message of runtime/backend/tags.hpp's number goes between
  // two ranks of the world. Throws InternalError for one that the schedule does not have.
  int round_of_message(int from, int to, int tag) const;

 private:
  void add_axis(FabricUse use, const costmodel::Mesh& mesh, costmodel::Axis axis);
  void add_replicas();
  void add_ends(const costmodel::ParallelPlan& plan);
  void add_channels(const costmodel::Schedule& lowered);
  std::vector<int> along(const std::vector<int>& pipeline_ranks,
                         costmodel::Coordinates others) const;

  costmodel::Mesh mesh_;
  int ranks_;
  std::vector<FabricRound> rounds_;
  // By pipeline ranks, then tag of a message of micro-batch 0.
  std::map<std::pair<std::pair<int, int>, int>, int> messages_;
};

}  // namespace runtime
