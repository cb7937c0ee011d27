// What the rows of hf_families.hpp leave out of models with scans and other recurrences, by family,
// as in hf_hooks.hpp. Internal to costmodel.
#pragma once

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

void hf_mamba(HfTranslation& file);
void hf_mamba2(HfTranslation& file);
void hf_nemotron(HfTranslation& file);

}  // namespace costmodel
