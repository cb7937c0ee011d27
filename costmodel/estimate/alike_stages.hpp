// Which virtual stages and which ranks of a plan are alike, so that each kind is priced once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"

namespace costmodel {

// Two ranks are alike if their chunks have the same layers and the same place in the model: first,
// last or between. Two stages share a row if these are the same for both, and their ranks are
// alike.
struct AlikeStages {
  std::vector<LayerMix> mixes;                             // by virtual stage
  std::shared_ptr<const std::vector<std::size_t>> row_of;  // by virtual stage
  struct Row {
    std::size_t stage = 0;   // the first of those that share it
    std::size_t layers = 0;  // an earlier row with the same layers at the same place; else this
    std::size_t kind = 0;    // of its rank
  };
  std::vector<Row> rows;
  std::vector<std::size_t> kind_of;  // by rank
  struct Kind {
    std::size_t rank = 0;  // the first of those that are alike
    LayerMix layers;       // of all its chunks
  };
  std::vector<Kind> kinds;
};

AlikeStages alike_stages(std::vector<LayerMix> mixes, const ParallelPlan& plan);

// The layers of a plan's virtual stages: numbered consecutively through them, the first ones of
// each stage recomputed.
std::vector<LayerMix> stage_mixes(const ParallelPlan& plan, const ModelSpec& model);

}  // namespace costmodel
