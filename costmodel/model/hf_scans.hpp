// What the rows of hf_families.hpp leave out of models with scans and other recurrences, by family,
// as in hf_hooks.hpp. Internal to costmodel.
#pragma once

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

void hf_mamba(HfTranslation& file);
void hf_mamba2(HfTranslation& file);
void hf_nemotron(HfTranslation& file);
void hf_granite_hybrid(HfTranslation& file);
void hf_bamba(HfTranslation& file);
void hf_jamba(HfTranslation& file);
void hf_falcon_h1(HfTranslation& file);
void hf_minimax_m1(HfTranslation& file);
void hf_kimi_linear(HfTranslation& file);
void hf_lfm2(HfTranslation& file);
void hf_rwkv7(HfTranslation& file);

}  // namespace costmodel
