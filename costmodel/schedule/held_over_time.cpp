#include "costmodel/schedule/held_over_time.hpp"

#include <algorithm>

namespace costmodel {

namespace {

std::vector<int> stages_computed(std::span<const Slice> slices) {
  std::vector<int> stages;
  for (const Slice& slice : slices) {
    if (!slice.computes()) continue;
    for (const Action& action : slice.actions()) stages.push_back(action.stage);
  }
  std::ranges::sort(stages);
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

struct Change {
  Nanoseconds at = 0;
  int chunks = 0;
  Bytes bytes;
};

Change change_by(const Slice& slice, const Action& action, const RankMemory::Chunk& chunk) {
  switch (action.kind) {
    case ActionKind::forward: return {slice.start, 1, chunk.kept};
    case ActionKind::backward: return {slice.end, -1, chunk.pending - chunk.kept};
    case ActionKind::weight_gradient: return {slice.end, 0, -1 * chunk.pending};
    case ActionKind::send_forward:
    case ActionKind::recv_forward:
    case ActionKind::send_backward:
    case ActionKind::recv_backward: break;
  }
  return {slice.start, 0, {}};
}

}  // namespace

std::vector<HeldStep> held_over_time(std::span<const Slice> slices, const RankMemory& memory) {
  const std::vector<int> stages = stages_computed(slices);
  if (stages.empty()) return {};
  std::vector<Change> changes;
  for (const Slice& slice : slices) {
    if (!slice.computes()) continue;
    for (const Action& action : slice.actions()) {
      const auto at = std::ranges::lower_bound(stages, action.stage);
      const auto chunk = static_cast<std::size_t>(at - stages.begin());
      const bool known = chunk < memory.chunks.size();
      changes.push_back(
          change_by(slice, action, known ? memory.chunks[chunk] : RankMemory::Chunk{}));
    }
  }
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) { return a.at < b.at; });
  std::vector<HeldStep> steps{{0, 0, memory.standing}};
  int chunks = 0;
  for (const Change& change : changes) {
    chunks += change.chunks;
    const HeldStep next{change.at, static_cast<double>(chunks) / static_cast<double>(stages.size()),
                        steps.back().bytes + change.bytes};
    if (steps.back().at == change.at) {
      steps.back() = next;
    } else {
      steps.push_back(next);
    }
  }
  return steps;
}

}  // namespace costmodel
