#include "planner/diagnosis/tensor_ladder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/serving/serving_reader.hpp"

namespace planner {

using namespace costmodel;

std::vector<TensorRung> tensor_ladder(const ServingScenario& s, int pp, double in_flight) {
  std::vector<TensorRung> ladder;
  const std::int64_t most = std::min(s.cluster.devices_per_node, s.cluster.devices / pp);
  for (int tp = 1; tp <= most; tp *= 2) {
    const ServingSizes sizes{tp, pp, 1, 1};
    if (!sizes_fault(sizes, s.model, s.cluster).empty()) continue;
    TensorRung rung;
    rung.tp = tp;
    rung.pp = pp;
    const auto memory = serving_memory(s, sizes);
    rung.fits = memory.fits() && memory.tokens >= s.serving.input.mean + s.serving.output.mean;
    if (rung.fits) {
      const StepTimes times(s.model, s.cluster, s.serving, sizes);
      ServingSpec inside = s.serving;  // those in flight are in the steps
      inside.engine.constants.request = {};
      const auto state = steady_state(times, inside, memory, in_flight);
      const double running = std::max(1.0, state.running);
      const auto step = times.of(decode_load(s.serving, running));
      rung.weights = step.weights;
      rung.collectives = step.collectives;
      rung.token = step.total();
      rung.all_reduce = times.all_reduce(running);
      rung.all_reduces = times.all_reduces();
      rung.running = running;
      rung.output_per_s = state.output_per_s;
    }
    ladder.push_back(rung);
  }
  return ladder;
}

std::vector<std::string> tensor_sentences(const ServingScenario& s,
                                          const std::vector<TensorRung>& ladder) {
  std::vector<std::string> all;
  for (std::size_t i = 1; i < ladder.size(); ++i) {
    const TensorRung &from = ladder[i - 1], &to = ladder[i];
    if (!to.fits) continue;
    if (!from.fits) {
      all.push_back(
          fmt::format("tp {} is needed{}: on tp {} the weights leave no room for a request.", to.tp,
                      to.pp > 1 ? fmt::format(" with pp {}", to.pp) : "", from.tp));
      continue;
    }
    const Seconds saved = from.weights - to.weights;
    const Seconds paid = to.collectives - from.collectives;
    const double gain = to.output_per_s / from.output_per_s;
    const double bytes = to.running * static_cast<double>(s.model.hidden) * 2;
    all.push_back(fmt::format(
        "From tp {} to tp {} each device reads half of the weights, which saves {} a token; {:.0f} "
        "all-reduces of {} over {} take {} each, {} more in all. {} devices then give {:.2f} times "
        "the tokens of {}{}{}",
        from.tp, to.tp, format_seconds(saved), to.all_reduces, format_bytes(Bytes(bytes)),
        s.cluster.tiers.front().name, format_seconds(to.all_reduce), format_seconds(paid),
        to.tp * to.pp, gain, from.tp * from.pp,
        to.running > from.running * 1.01
            ? fmt::format(" (in part because the cache has room for {:.0f} requests in place of "
                          "{:.0f})",
                          to.running, from.running)
            : "",
        gain < 1.15   ? ": the all-reduces eat what the weights save."
        : gain < 1.85 ? fmt::format(", where two replicas of tp {} give 2.00.", from.tp)
                      : "."));
  }
  return all;
}

}  // namespace planner
