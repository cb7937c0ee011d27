#include "runtime/serving/served_batch.hpp"

#include "costmodel/plan/parallel_plan.hpp"

namespace runtime {

using namespace costmodel;

namespace {

Traffic collectives_of(const OpList& list, int tp) {
  Traffic sum;
  for (const Node& node : list.nodes) {
    const auto* collective = std::get_if<Collective>(&node.op);
    if (collective == nullptr || collective->forward == CollectiveKind::none) continue;
    sum.add(collective->forward, collective_bytes(collective->forward, collective->bytes, tp));
  }
  return sum;
}

}  // namespace

Traffic served_traffic(const ModelSpec& model, const EngineSpec& engine, const ServingSizes& sizes,
                       int stage, const ServedBatch& batch, double element) {
  const ServedStage own = served_stage(model, sizes.pp, stage);
  const auto requests = static_cast<double>(batch.requests);
  const auto columns = static_cast<double>(padded_vocab(model.vocab, sizes.tp));
  const auto passes = [&](std::int64_t tokens) {  // of all requests
    const ServedShape shape{batch.requests, tokens};
    const auto of = [&](LayerKind kind) {
      return collectives_of(served_list(kind, model, sizes.tp, shape, element), sizes.tp);
    };
    Traffic sum = of(LayerKind::block) * static_cast<double>(own.layers);
    if (own.first) sum += of(LayerKind::embedding);
    if (!own.last) {
      sum.send += passed_on(model, engine, sizes.tp, static_cast<double>(shape.rows()), element);
    } else {
      sum.all_gather += collective_bytes(CollectiveKind::all_gather,
                                         gathered_logits(columns, requests, element), sizes.tp);
    }
    return sum;
  };
  const auto decoded = static_cast<double>(batch.output - 1);
  Traffic sum = passes(batch.input);
  sum += passes(1) * decoded;
  if (own.last && !own.first) sum.send += Bytes(8 * requests) * decoded;
  return sum;
}

}  // namespace runtime
