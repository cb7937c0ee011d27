// What the rows of hf_families.hpp leave out of decoders and encoders of attention, by family. Each
// reads further fields of a config.json, whose rows have been read, and throws ConfigError.
// Internal to costmodel.
#pragma once

#include "costmodel/model/hf_translation.hpp"

namespace costmodel {

void hf_qwen(HfTranslation& file);
void hf_deepseek_v2(HfTranslation& file);
void hf_qwen_moe(HfTranslation& file);
void hf_qwen2_moe(HfTranslation& file);
void hf_qwen_next(HfTranslation& file);
void hf_shared_expert(HfTranslation& file);
void hf_ernie(HfTranslation& file);
void hf_rotary_columns(HfTranslation& file);
void hf_layer_kinds(HfTranslation& file);
void hf_phi(HfTranslation& file);
void hf_smollm3(HfTranslation& file);
void hf_gptj(HfTranslation& file);
void hf_stablelm(HfTranslation& file);
void hf_exaone(HfTranslation& file);
void hf_exaone_moe(HfTranslation& file);
void hf_afmoe(HfTranslation& file);
void hf_granite_shared(HfTranslation& file);
void hf_mllama(HfTranslation& file);
void hf_apertus(HfTranslation& file);
void hf_baichuan(HfTranslation& file);
void hf_minicpm(HfTranslation& file);
void hf_chatglm(HfTranslation& file);
void hf_mpt(HfTranslation& file);
void hf_dbrx(HfTranslation& file);
void hf_olmo(HfTranslation& file);
void hf_llama4(HfTranslation& file);
void hf_cohere(HfTranslation& file);
void hf_gemma(HfTranslation& file);
void hf_gemma4(HfTranslation& file);
void hf_gemma4_unified(HfTranslation& file);
void hf_mimo_v2(HfTranslation& file);
void hf_step3p5(HfTranslation& file);
void hf_falcon(HfTranslation& file);
void hf_opt(HfTranslation& file);
void hf_gpt_neo(HfTranslation& file);
void hf_multi_query(HfTranslation& file);
void hf_bert(HfTranslation& file);
void hf_t5(HfTranslation& file);
void hf_mt5(HfTranslation& file);

}  // namespace costmodel
