// What one plan leaves behind for the next: the prices of layers, and the schedules with what they
// hold in flight and how they ran. The only state that pricing keeps; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "costmodel/estimate/alike_stages.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/pricing.hpp"
#include "costmodel/schedule/simulator.hpp"

namespace costmodel {

// The layers of a plan by kind, priced. Valid as long as the cache they come from.
struct LayerPrices {
  // `again` is a recomputed layer, `whole` one that keeps everything.
  struct Kind {
    LayerKind kind = LayerKind::block;
    std::size_t place = 0;  // in a LayerMix
    const LayerCost* again = nullptr;
    const LayerCost* whole = nullptr;
    int number(const LayerMix& mix) const { return mix.number[place]; }
    int repeated(const LayerMix& mix) const { return mix.again[place]; }
  };
  std::array<Kind, most_blocks> kinds;  // as ModelSpec::blocks() has them
  std::size_t count = 0;
  const LayerCost* embedding = nullptr;
  const LayerCost* head = nullptr;
  const LayerCost* decoder_embedding = nullptr;  // of an encoder-decoder model
  const LayerCost* mtp_start = nullptr;          // of multi-token prediction, and its layer
  const LayerCost* mtp_layer = nullptr;
  // Of the first stage's towers, in the order in which they run; `again`: recomputed.
  struct Tower : TowerLayers {
    const LayerCost* cost = nullptr;
    bool again = false;
  };
  std::vector<Tower> towers;
  double dummy_gradients = 0;  // elements, of all kinds together (LayerCost)
  std::span<const Kind> all() const { return std::span(kinds).first(count); }
};

// The maximal mixes of chunks in flight by rank; null where the plan's schedule needs none.
struct HeldMixes {
  const std::vector<std::vector<EndMix>>* ends = nullptr;
  const InFlight* chunks = nullptr;
};

// Of the schedules that a cache keeps for plans to come, the most actions; some 30 bytes each.
inline constexpr std::int64_t most_kept_actions = std::int64_t{1} << 22;
// Of simulations, numbers of 8 bytes.
inline constexpr std::size_t most_kept_times = std::size_t{1} << 19;

// Every call must be for the workload of the first one, but for its global batch.
class PriceCache {
 public:
  const LayerCost& layer(LayerKind kind, const ParallelPlan& plan, Recomputed what,
                         const Workload& on);
  const LayerPrices& layers(const ParallelPlan& plan, const Workload& on);

  // The stages of a plan, as it lays them out.
  std::shared_ptr<const AlikeStages> stages(const ParallelPlan& plan, const ModelSpec& model);
  HeldMixes held(const ParallelPlan& plan, std::int64_t micro_batches, const ModelSpec& model);
  // The schedule of a plan, of a kind that does not split the backward. Valid until the next call.
  const SimulationProgram& program(const ParallelPlan& plan, std::int64_t micro_batches);
  // Its simulation. Plans that differ in what no micro-batch waits for, such as how optimizer
  // states are sharded, share one. Valid until the next call.
  const SimulationResult& simulated(const ParallelPlan& plan, std::int64_t micro_batches,
                                    const PipelineTimes& times);

 private:
  // Kind and recomputation; sequence parallelism, whether gradients are accumulated in a buffer,
  // the dispatcher and the exchange of keys; tp and cp; ep and etp; micro-batch; strides.
  using LayerKey = std::array<std::int64_t, 7>;
  struct KeyHash {
    std::size_t operator()(const LayerKey& key) const;
  };
  using ScheduleKey = std::array<std::int64_t, 5>;  // kind, p, v, m, group
  using TimesKey = std::vector<std::uint64_t>;      // schedule, and the bits of its times
  struct TimesHash {
    std::size_t operator()(const TimesKey& key) const;
  };
  using StagesKey = std::array<std::int64_t, 4>;  // how folded, p, v, recomputed layers
  static LayerKey key_of(const ParallelPlan& plan, const Workload& on);
  const LayerCost& layer(LayerKey key, LayerKind kind, const ParallelPlan& plan, Recomputed what,
                         const Workload& on);
  LayerPrices price_layers(const LayerKey& key, const ParallelPlan& plan, const Workload& on);

  // Shared, so that the prices outlive a copy's original.
  std::unordered_map<LayerKey, std::shared_ptr<const LayerCost>, KeyHash> layers_;
  std::unordered_map<LayerKey, LayerPrices, KeyHash> plans_;
  std::map<StagesKey, std::shared_ptr<const AlikeStages>> stages_;
  std::map<ScheduleKey, std::vector<std::vector<EndMix>>> end_mixes_;
  std::map<ScheduleKey, InFlight> in_flight_;
  std::map<ScheduleKey, SimulationProgram> programs_;
  std::int64_t kept_actions_ = 0;  // of programs_
  std::unordered_map<TimesKey, SimulationResult, TimesHash> simulations_;
  std::size_t kept_times_ = 0;   // of simulations_
  TimesKey asked_;               // keeps its capacity between calls
  std::vector<double> scratch_;  // of simulations
};

}  // namespace costmodel
