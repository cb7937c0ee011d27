#include "costmodel/serving/served_program.hpp"

#include <algorithm>

#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

namespace {

// Ends the head before the loss.
void end_with_logits(OpList& list) {
  const auto loss = std::ranges::find(list.nodes, Site::cross_entropy, &Node::site);
  if (loss == list.nodes.end()) return;
  list.output = loss->inputs.front();
  list.nodes.erase(loss, list.nodes.end());
}

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

OpList served_list(LayerKind kind, const ModelSpec& model, int tp, const ServedShape& shape,
                   double element) {
  LayerContext context;
  context.tp = tp;
  context.micro_batch = shape.sequences;
  context.sequence = context.decoder_sequence = shape.tokens;
  context.element = element;
  context.loss = LossKernel::flash;
  OpList list = build_layer(kind, model, context);
  if (kind == LayerKind::head) end_with_logits(list);
  return list;
}

ServedStage served_stage(const ModelSpec& model, int pp, int stage) {
  const std::int64_t whole = model.layers / pp, over = model.layers % pp;
  const auto layers = [&](int k) { return whole + (k >= pp - 1 - over && k < pp - 1 ? 1 : 0); };
  ServedStage s{
      .first_layer = 0, .layers = layers(stage), .first = stage == 0, .last = stage == pp - 1};
  for (int k = 0; k < stage; ++k) s.first_layer += layers(k);
  return s;
}

Bytes passed_on(const ModelSpec& model, const EngineSpec& engine, int tp, double tokens,
                double element) {
  const Bytes all =
      hidden_states(model, tokens, element) * static_cast<double>(engine.stage_tensors);
  return engine.splits_transfers ? all / tp : all;
}

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

}  // namespace costmodel
