// The op lists of towers: their stem, their layers, and what projects their result.
#pragma once

#include "costmodel/operators/transformer.hpp"

namespace costmodel {

// Whether tensor parallelism cuts the tower's layers: it divides their heads and widths.
bool is_cut(const TowerSpec& tower, int tp);

// One part for all inputs of a micro-batch; `kind` is of a tower that the model has.
OpList build_tower_part(LayerKind kind, const ModelSpec& model, const LayerContext& context);

}  // namespace costmodel
