#include "costmodel/estimate/alike_stages.hpp"

#include <algorithm>
#include <utility>

namespace costmodel {

namespace {

// By virtual stage, the first with the same layers at the same place.
std::vector<std::size_t> first_alike(const std::vector<LayerMix>& mixes) {
  std::vector<std::size_t> first, between;  // the latter: each kind once
  const std::size_t n = mixes.size();
  first.reserve(n);
  for (std::size_t k = 0; k < n; ++k) {
    first.push_back(k);
    if (k == 0 || k + 1 == n) continue;
    const auto same = [&](std::size_t other) { return mixes[other] == mixes[k]; };
    const auto known = std::find_if(between.rbegin(), between.rend(), same);
    if (known != between.rend()) {
      first.back() = *known;
    } else {
      between.push_back(k);
    }
  }
  return first;
}

// The index of the last entry for which `same` holds, else the number of entries.
template <class Entry, class Same>
std::size_t index_of(const std::vector<Entry>& entries, Same same) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(), same);
  return found == entries.rend() ? entries.size()
                                 : static_cast<std::size_t>(entries.rend() - found) - 1;
}

// Sets `kind_of` and `kinds`. `first` is by virtual stage.
void set_kinds(const std::vector<std::size_t>& first, const ParallelPlan& plan,
               AlikeStages& alike) {
  const auto stage = [&](std::size_t rank, int v) {
    return static_cast<std::size_t>(stage_of(plan.schedule, plan.pp, v, static_cast<int>(rank)));
  };
  const auto ranks = static_cast<std::size_t>(plan.pp);
  alike.kind_of.reserve(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto same = [&](const AlikeStages::Kind& kind) {
      for (int v = 0; v < plan.chunks(); ++v) {
        if (first[stage(kind.rank, v)] != first[stage(r, v)]) return false;
      }
      return true;
    };
    alike.kind_of.push_back(index_of(alike.kinds, same));
    if (alike.kind_of.back() < alike.kinds.size()) continue;
    AlikeStages::Kind& kind = alike.kinds.emplace_back();
    kind.rank = r;
    for (int v = 0; v < plan.chunks(); ++v) kind.layers = kind.layers + alike.mixes[stage(r, v)];
  }
}

}  // namespace

AlikeStages alike_stages(std::vector<LayerMix> mixes, const ParallelPlan& plan) {
  AlikeStages alike;
  const std::vector<std::size_t> first = first_alike(mixes);
  alike.mixes = std::move(mixes);
  set_kinds(first, plan, alike);
  std::vector<std::size_t> row_of;
  row_of.reserve(first.size());
  for (std::size_t k = 0; k < first.size(); ++k) {
    const auto rank =
        static_cast<std::size_t>(rank_of(plan.schedule, plan.pp, static_cast<int>(k)));
    const std::size_t kind = alike.kind_of[rank];
    const auto layers = [&](const AlikeStages::Row& row) { return first[row.stage] == first[k]; };
    row_of.push_back(index_of(
        alike.rows, [&](const AlikeStages::Row& row) { return row.kind == kind && layers(row); }));
    if (row_of.back() == alike.rows.size())
      alike.rows.push_back({k, index_of(alike.rows, layers), kind});
  }
  alike.row_of = std::make_shared<const std::vector<std::size_t>>(std::move(row_of));
  return alike;
}

std::vector<LayerMix> stage_mixes(const ParallelPlan& plan, const ModelSpec& model) {
  std::vector<LayerMix> mixes;
  mixes.reserve(static_cast<std::size_t>(plan.virtual_stages()));
  const bool by_number = !model.mixes_layers();  // a stage's layers are told by their number
  std::int64_t first = 0;
  for (int k = 0; k < plan.virtual_stages(); ++k) {
    const int layers = layers_of(plan, model, k);
    const bool again = by_number && k > 0 && layers == mixes.back().layers();
    mixes.push_back(again ? mixes.back() : layer_mix(model, first, layers, plan.recompute));
    first += layers;
  }
  return mixes;
}

}  // namespace costmodel
