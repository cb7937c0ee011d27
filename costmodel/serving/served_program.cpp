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

}  // namespace costmodel
