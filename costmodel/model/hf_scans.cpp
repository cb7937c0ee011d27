#include "costmodel/model/hf_scans.hpp"

#include <string>

#include "costmodel/base/units.hpp"

namespace costmodel {

namespace {

std::int64_t inner_width(HfTranslation& file, const char* expand = "expand") {
  return file.integer(expand, 2) * file.number("hidden");
}

// A number, or "auto" for a sixteenth of the width (transformers, MambaConfig, JambaConfig).
void put_rank(HfTranslation& file, const char* field) {
  constexpr std::int64_t auto_rank = 16;
  const bool automatic = file.reader_.optional(field) == nullptr || file.reader_.is_auto(field);
  file.put("dt_rank",
           automatic ? ceil_div(file.number("hidden"), auto_rank) : file.integer(field, 0), field);
}

}  // namespace

void hf_mamba(HfTranslation& file) {
  const std::int64_t inner = inner_width(file);
  if (file.number("heads") == 0) file.put("heads", inner, "intermediate_size");
  put_rank(file, "time_step_rank");
}

void hf_mamba2(HfTranslation& file) {
  const std::int64_t inner = inner_width(file);
  const std::int64_t heads = file.number("heads"), width = file.number("head_dim");
  if (heads * width == inner) return;
  file.refuse(
      "num_heads",
      fmt::format("num_heads {} x head_dim {} is not expand x hidden_size {}", heads, width, inner),
      "change num_heads, head_dim or expand");
}

// A pattern has a letter a layer. Only another number is put, for read_model to refuse: a pattern
// of another length may be written over the file.
void hf_nemotron(HfTranslation& file) {
  const char* const field = "hybrid_override_pattern";
  file.reader_.required(field);
  const std::string pattern = *file.reader_.text(field);
  file.put("layer_pattern", pattern, field);
  const auto letters = static_cast<std::int64_t>(pattern.size());
  if (const std::int64_t layers = file.integer("num_hidden_layers", letters); layers != letters)
    file.put("layers", layers, "num_hidden_layers");
  if (pattern.find('M') != std::string::npos) {
    file.read(
        {"mamba_heads=mamba_num_heads mamba_head_dim=mamba_head_dim state_size=ssm_state_size "
         "ssm_groups=n_groups conv_kernel=conv_kernel expand mamba_hidden_act chunk_size "
         "!use_bias !mamba_proj_bias !use_conv_bias"});
  }
  if (pattern.find('E') == std::string::npos) return;
  // The router is DeepSeek-V3's, which no field names (transformers, NemotronHTopkRouter).
  file.read(
      {"experts=n_routed_experts top_k=num_experts_per_tok expert_ffn_hidden=moe_intermediate_size "
       "router_score:sigmoid router_bias:true router_scaling=routed_scaling_factor:1.0 "
       "moe_latent_size=moe_latent_size? expert_groups=n_group? "
       "expert_groups_per_token=topk_group?"});
  const char* const shared = "moe_shared_expert_intermediate_size";
  file.put_shared(file.integer("n_shared_experts", 0, 0) *
                      file.integer(shared, file.number("expert_ffn_hidden")),
                  shared, "n_shared_experts");
}

}  // namespace costmodel
