#include "runtime/training/replica_gradient_sum.hpp"

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "runtime/backend/tags.hpp"

namespace runtime {

using namespace costmodel;

namespace {

constexpr int between_groups = 4;  // the channel after those of StageExecutor

Chunk common(const Chunk& a, const Chunk& b) {
  const std::size_t begin = std::max(a.begin, b.begin);
  const std::size_t end = std::min(a.begin + a.size, b.begin + b.size);
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace

GroupSum::GroupSum(std::vector<Pipeline> parts, const ModelSpec& model, Transport& world,
                   Memory& memory)
    : parts_(std::move(parts)), model_(model), memory_(memory), world_(world, memory) {
  const Pipeline& own = pipeline_of_rank(parts_, world.rank());
  own_ = static_cast<std::size_t>(&own - parts_.data());
  at_ = Mesh(own.plan).coordinates(world.rank() - own.first_rank);
}

GroupSum::~GroupSum() {
  if (room_ != nullptr) memory_.release(room_);
}

int GroupSum::stage_of(const Pipeline& part, LayerKind kind, std::int64_t number) const {
  const int last = part.plan.virtual_stages() - 1;
  if (kind == LayerKind::embedding) return 0;
  if (kind == LayerKind::head) return last;
  int stage = 0;
  for (std::int64_t behind = layers_of(part.plan, model_, 0); behind <= number && stage < last;)
    behind += layers_of(part.plan, model_, ++stage);
  return stage;
}

// The ranks of a group that hold this rank's part of the layer, and the chunk that each of them
// has.
std::vector<GroupSum::Holder> GroupSum::holders(std::size_t group, LayerKind kind,
                                                std::int64_t number, std::size_t size) const {
  const Pipeline& part = parts_[group];
  const Mesh mesh(part.plan);
  Coordinates there;
  there.tp = at_.tp;
  there.pp = costmodel::rank_of(part.plan.schedule, part.plan.pp, stage_of(part, kind, number));
  std::vector<Holder> all;
  for (there.dp = 0; there.dp < part.plan.dp; ++there.dp) {
    all.push_back({static_cast<int>(part.first_rank + mesh.rank(there)),
                   chunk_of(size, part.plan.dp, there.dp)});
  }
  return all;
}

void GroupSum::send(int to, std::span<const float> values) {
  if (values.empty()) return;
  world_.send(to, collective_tag(between_groups), std::as_bytes(values));
  traffic_.add(CollectiveKind::all_reduce, values.size_bytes());
}

void GroupSum::recv(int from, std::span<float> values) {
  if (values.empty()) return;
  world_.recv(from, collective_tag(between_groups), std::as_writable_bytes(values));
}

float* GroupSum::room(std::size_t elements) {
  const std::size_t bytes = elements * sizeof(float);
  if (room_bytes_ < bytes) {
    if (room_ != nullptr) memory_.release(std::exchange(room_, nullptr));
    room_bytes_ = 0;
    room_ = memory_.allocate(bytes);
    room_bytes_ = bytes;
  }
  return static_cast<float*>(room_);
}

void GroupSum::sum(LayerKind kind, std::int64_t number, std::size_t size, std::span<float> share) {
  const auto groups = static_cast<int>(parts_.size());
  const Chunk own = chunk_of(size, parts_[own_].plan.dp, at_.dp);
  SHARDPLAN_CHECK(own.size == share.size());
  const auto mine = common(own, chunk_of(size, groups, static_cast<int>(own_)));
  const auto at = [&](const Chunk& c) { return share.subspan(c.begin - own.begin, c.size); };
  const auto each_other = [&](auto act) {
    for (std::size_t g = 0; g < parts_.size(); ++g) {
      if (g == own_) continue;
      const Chunk theirs = common(own, chunk_of(size, groups, static_cast<int>(g)));
      for (const Holder& holder : holders(g, kind, number, size)) act(holder, theirs);
    }
  };
  const auto part_of = [&](const Chunk& held, const Holder& holder) {
    const Chunk c = common(held, holder.chunk);
    return c.size == 0 ? std::span<float>() : at(c);
  };
  each_other([&](const Holder& to, const Chunk& theirs) { send(to.rank, part_of(theirs, to)); });
  each_other([&](const Holder& from, const Chunk&) {
    const auto sums = part_of(mine, from);
    if (sums.empty()) return;
    const std::span<float> came(room(sums.size()), sums.size());
    recv(from.rank, came);
    memory_.reduce(Reduction::sum, came, sums);
  });
  each_other([&](const Holder& to, const Chunk&) { send(to.rank, part_of(mine, to)); });
  each_other(
      [&](const Holder& from, const Chunk& theirs) { recv(from.rank, part_of(theirs, from)); });
}

}  // namespace runtime
