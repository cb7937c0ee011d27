#include "runtime/ranks/fabric_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

namespace {

bool sends(const Action& a) {
  return a.kind == ActionKind::send_forward || a.kind == ActionKind::send_backward;
}

bool receives(const Action& a) {
  return a.kind == ActionKind::recv_forward || a.kind == ActionKind::recv_backward;
}

bool goes_back(const Action& a) {
  return a.kind == ActionKind::send_backward || a.kind == ActionKind::recv_backward;
}

// The send that matches a receive.
Action sent_for(const Action& a) {
  return {goes_back(a) ? ActionKind::send_backward : ActionKind::send_forward, a.stage,
          a.micro_batch};
}

// The destination of a send; a transfer's stage is the one that produced the tensor.
int receiver_of(const Schedule& s, const Action& send) {
  return s.home_of(goes_back(send) ? send.stage - 1 : send.stage + 1, send.micro_batch);
}

int tag_of(const Action& send, int micro_batch) {
  return goes_back(send) ? backward_tag(send.stage, micro_batch)
                         : forward_tag(send.stage, micro_batch);
}

// The messages of one channel that one rank sends or receives, in order.
std::vector<Action> messages(const Schedule& s, const FabricChannel& channel, bool sending) {
  std::vector<Action> found;
  for (const Action& a : s.actions[static_cast<std::size_t>(sending ? channel.from : channel.to)]) {
    if (sending ? !sends(a) : !receives(a)) continue;
    const Action send = sent_for(a);
    if (s.home_of(send.stage, send.micro_batch) == channel.from &&
        receiver_of(s, send) == channel.to && channel.carries(send))
      found.push_back(send);
  }
  return found;
}

bool keeps_order(const Schedule& s, const FabricChannel& channel) {
  return messages(s, channel, true) == messages(s, channel, false);
}

std::vector<FabricChannel> split_by_stage(const Schedule& s, const FabricChannel& channel) {
  std::set<int> stages;
  for (const Action& send : messages(s, channel, true)) stages.insert(send.stage);
  std::vector<FabricChannel> parts;
  for (const int stage : stages) {
    parts.push_back({channel.from, channel.to, channel.backward, stage});
    SHARDPLAN_CHECK(keeps_order(s, parts.back()));
  }
  return parts;
}

std::vector<FabricChannel> split(const Schedule& s, const FabricChannel& all) {
  if (keeps_order(s, all)) return {all};
  std::vector<FabricChannel> parts;
  for (const int backward : {0, 1}) {
    const FabricChannel way{all.from, all.to, backward, -1};
    if (messages(s, way, true).empty()) continue;
    if (keeps_order(s, way)) {
      parts.push_back(way);
      continue;
    }
    for (const FabricChannel& part : split_by_stage(s, way)) parts.push_back(part);
  }
  return parts;
}

// Coordinates of the ranks at pipeline rank 0: one for each pipeline.
std::vector<Coordinates> pipelines(const Mesh& mesh) {
  std::vector<Coordinates> found;
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank)
    if (const Coordinates at = mesh.coordinates(rank); at.pp == 0) found.push_back(at);
  return found;
}

}  // namespace

int FabricRound::group_of(int rank) const {
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (std::ranges::find(groups[i], rank) != groups[i].end()) return static_cast<int>(i);
  return -1;
}

std::string FabricRound::name_for(int rank) const {
  const int group = group_of(rank);
  const auto name = fabric_use_names[static_cast<std::size_t>(use)];
  if (group < 0) return fmt::format("no {} group", name);
  return fmt::format("the {} group of ranks {}", name,
                     fmt::join(groups[static_cast<std::size_t>(group)], ", "));
}

bool FabricChannel::carries(const Action& send) const {
  return (backward < 0 || goes_back(send) == (backward == 1)) && (stage < 0 || stage == send.stage);
}

std::vector<FabricChannel> channels_of(const Schedule& lowered) {
  std::set<std::pair<int, int>> pairs;
  for (int rank = 0; rank < lowered.ranks; ++rank) {
    for (const Action& a : lowered.actions[static_cast<std::size_t>(rank)])
      if (sends(a)) pairs.insert({rank, receiver_of(lowered, a)});
  }
  std::vector<FabricChannel> channels;
  for (const auto& [from, to] : pairs)
    for (const FabricChannel& part : split(lowered, {from, to, -1, -1})) channels.push_back(part);
  return channels;
}

FabricPlan::FabricPlan(const ParallelPlan& plan, const Schedule& lowered, bool tied)
    : mesh_(plan), ranks_(static_cast<int>(mesh_.size())) {
  add_axis(FabricUse::tensor, mesh_, Axis::tensor);
  add_axis(FabricUse::context, mesh_, Axis::context);
  add_replicas();
  if (plan.ep > 1) {
    const Mesh experts = expert_mesh(plan);
    add_axis(FabricUse::expert, experts, Axis::expert);
    add_axis(FabricUse::expert_tensor, experts, Axis::tensor);
  }
  if (tied) add_ends(plan);
  add_channels(lowered);
}

void FabricPlan::add_round(FabricRound round) {
  if (!round.groups.empty()) rounds_.push_back(std::move(round));
}

void FabricPlan::add_axis(FabricUse use, const Mesh& mesh, Axis axis) {
  FabricRound round{use, {}};
  for (std::int64_t rank = 0; rank < mesh.size(); ++rank) {
    const auto group = mesh.group(axis, rank);
    if (group.size() > 1 && group.front() == rank)
      round.groups.emplace_back(group.begin(), group.end());
  }
  add_round(std::move(round));
}

void FabricPlan::add_replicas() {
  std::map<std::pair<int, int>, std::vector<int>> same;  // by tp and pp
  for (int rank = 0; rank < ranks_; ++rank) {
    const Coordinates at = mesh_.coordinates(rank);
    same[{at.pp, at.tp}].push_back(rank);
  }
  FabricRound round{FabricUse::replicas, {}};
  for (const auto& [place, ranks] : same)
    if (ranks.size() > 1) round.groups.push_back(ranks);
  add_round(std::move(round));
}

std::vector<int> FabricPlan::along(const std::vector<int>& pipeline_ranks,
                                   Coordinates others) const {
  std::vector<int> ranks;
  for (const int pp : pipeline_ranks) {
    others.pp = pp;
    ranks.push_back(static_cast<int>(mesh_.rank(others)));
  }
  return ranks;
}

void FabricPlan::add_ends(const ParallelPlan& plan) {
  const int last = costmodel::rank_of(plan.schedule, plan.pp, plan.virtual_stages() - 1);
  if (last == 0) return;
  FabricRound round{FabricUse::ends, {}};
  for (const Coordinates& at : pipelines(mesh_)) round.groups.push_back(along({0, last}, at));
  rounds_.push_back(std::move(round));
}

// Channels without a common rank share a round: the first one that is free for both ranks.
void FabricPlan::add_channels(const Schedule& lowered) {
  struct Room {
    std::set<int> taken;
    std::size_t round;
  };
  std::vector<Room> rooms;
  for (const FabricChannel& channel : channels_of(lowered)) {
    auto room = std::ranges::find_if(rooms, [&](const Room& r) {
      return !r.taken.contains(channel.from) && !r.taken.contains(channel.to);
    });
    if (room == rooms.end()) {
      rooms.push_back({{}, rounds_.size()});
      rounds_.push_back({FabricUse::channel, {}});
      room = rooms.end() - 1;
    }
    room->taken.insert({channel.from, channel.to});
    for (const Coordinates& at : pipelines(mesh_))
      rounds_[room->round].groups.push_back(along({channel.from, channel.to}, at));
    for (const Action& send : messages(lowered, channel, true))
      messages_[{{channel.from, channel.to}, tag_of(send, 0)}] = static_cast<int>(room->round);
  }
}

std::vector<FabricSeat> FabricPlan::seats(int rank) const {
  std::vector<FabricSeat> seats;
  for (const FabricRound& round : rounds_) {
    FabricSeat seat{.group = round.group_of(rank),
                    .channel = round.use == FabricUse::channel,
                    .name = round.name_for(rank)};
    if (seat.group >= 0) {
      const auto& ranks = round.groups[static_cast<std::size_t>(seat.group)];
      seat.position = static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
      seat.size = static_cast<int>(ranks.size());
    }
    seats.push_back(std::move(seat));
  }
  return seats;
}

int FabricPlan::round_of(FabricUse use) const {
  SHARDPLAN_CHECK(use != FabricUse::channel);
  const auto found = std::ranges::find(rounds_, use, &FabricRound::use);
  return found == rounds_.end() ? -1 : static_cast<int>(found - rounds_.begin());
}

int FabricPlan::round_of_message(int from, int to, int tag) const {
  const auto found = messages_.find(
      {{mesh_.coordinates(from).pp, mesh_.coordinates(to).pp}, without_micro_batch(tag)});
  SHARDPLAN_CHECK(found != messages_.end());
  return found->second;
}

}  // namespace runtime
