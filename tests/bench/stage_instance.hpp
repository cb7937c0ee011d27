// The graph of a GPT's stage whose memory holds only part of what the fastest sharding takes.
#pragma once

#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "planner/sharding/stage_graph.hpp"
#include "tests/costmodel/support/scenarios.hpp"

// `layers` layers with embedding and head, of a width and batch as one node of eight trains them;
// memory half way between the least that any sharding takes and what the fastest takes.
inline planner::ShardingProblem gpt_stage(int layers, int outer, int inner) {
  const std::string yaml =
      "model: {kind: gpt, layers: " + std::to_string(layers) +
      ", hidden: 2048, heads: 16, vocab: 51200, max_positions: 2048}\n"
      "cluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n";
  const auto s = scenarios::read(yaml);
  planner::StageSpec spec;
  spec.layers.assign(static_cast<std::size_t>(layers),
                     {costmodel::LayerKind::block, costmodel::Recomputed::nothing});
  spec.layers.insert(spec.layers.begin(),
                     {costmodel::LayerKind::embedding, costmodel::Recomputed::nothing});
  spec.layers.push_back({costmodel::LayerKind::head, costmodel::Recomputed::nothing});
  spec.mesh = planner::device_mesh(outer, inner, s.cluster);
  spec.micro_batch = 16;
  spec.micro_batches = 4;
  spec.memory = costmodel::Bytes(std::numeric_limits<double>::infinity());
  const costmodel::Evaluator evaluator(s.model, s.cluster, s.training);
  planner::ShardingProblem problem = stage_graph(spec, evaluator).problem;
  const double fastest = best_sharding(problem).bytes;
  double least = 0;  // of each operator by itself
  for (const auto& choices : problem.nodes) {
    double bytes = std::numeric_limits<double>::infinity();
    for (const auto& c : choices) bytes = std::min(bytes, c.bytes);
    least += bytes;
  }
  problem.memory_limit = (fastest + least) / 2;
  return problem;
}
