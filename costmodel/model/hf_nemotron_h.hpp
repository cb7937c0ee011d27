// Translates config.json of nemotron_h, a hybrid of Mamba-2, attention, MLP and expert layers
// (transformers, NemotronHConfig). Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_hybrids();

}  // namespace costmodel
