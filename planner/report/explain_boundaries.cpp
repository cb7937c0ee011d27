#include "planner/report/explain_boundaries.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/split_rank.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string shape_text(std::int64_t tokens, const ParallelPlan& p, const Scenario& s) {
  const std::string cut = p.sequence_parallel && p.tp > 1 ? fmt::format(" / {}", p.tp) : "";
  return fmt::format("({}{}, {}, {})", tokens, cut, p.micro_batch, s.model.hidden);
}

// What virtual stage k receives.
std::string tensors_into(int k, std::int64_t first, const ParallelPlan& p, const Scenario& s) {
  const costmodel::LayerMix mix = layer_mix(s.model, first, layers_of(p, s.model, k), p.recompute);
  const std::int64_t encoder = s.training.sequence, decoder = s.training.decoder_sequence;
  if (mix.number[costmodel::encoder_place] > 0 || mix.decoder_starts)
    return shape_text(encoder, p, s) + ": the encoder's hidden states";
  if (mix.number[costmodel::decoder_place] == 0)
    return shape_text(decoder, p, s) + ": the decoder's hidden states";
  return shape_text(decoder, p, s) + " and " + shape_text(encoder, p, s) +
         ": the decoder's hidden states, the encoder's output";
}

std::string split_text(int split) {
  return fmt::format(
      "the first rank of the decoder: Megatron-LM's "
      "--pipeline-model-parallel-split-rank {}",
      split);
}

}  // namespace

std::vector<Explained> explained_boundaries(const ParallelPlan& plan, const Scenario& s,
                                            const costmodel::PlanCost& cost) {
  if (!s.model.encoder_decoder() || plan.pp == 1 || cost.boundaries.empty()) return {};
  std::vector<Explained> rows;
  if (const int split = split_rank_of(plan, s.model); split > 0)
    rows.push_back({"pipeline", "split", fmt::format("{}", split), split_text(split)});
  std::int64_t first = layers_of(plan, s.model, 0);
  int from = 0;
  std::string before;
  for (int k = 1; k < plan.pp; ++k) {
    const std::string tensors = tensors_into(k, first, plan, s);
    first += layers_of(plan, s.model, k);
    if (tensors == before) {
      rows.back().symbol = fmt::format("send {}-{}", from, k - 1);
      continue;
    }
    from = k - 1;
    before = tensors;
    const costmodel::Bytes sent = cost.boundaries[static_cast<std::size_t>(k - 1)].forward.sent;
    rows.push_back({"pipeline", fmt::format("send {}", from), format_bytes(sent), tensors});
  }
  return rows;
}

}  // namespace planner
