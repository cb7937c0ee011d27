// Translates config.json of mamba and mamba2. Internal to costmodel.
#pragma once

#include <span>

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

std::span<const HfFamily> hf_mambas();

}  // namespace costmodel
