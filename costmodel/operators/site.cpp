#include "costmodel/operators/site.hpp"

#include <array>
#include <cstddef>

namespace costmodel {

namespace {

struct Named {
  Site site;
  std::string_view name;
};

constexpr std::array<Named, site_count> table{{
    {Site::other, "operator"},
    {Site::token_embedding, "token embedding"},
    {Site::position_embedding, "position embedding"},
    {Site::embedding_norm, "embedding norm"},
    {Site::embedding_dropout, "embedding dropout"},
    {Site::relative_positions, "relative positions"},
    {Site::encoder_final_norm, "encoder's final norm"},
    {Site::next_tokens_norm, "next tokens' norm"},
    {Site::hidden_norm, "hidden norm"},
    {Site::concatenation, "concatenation"},
    {Site::mtp_projection, "MTP projection"},
    {Site::attention_norm, "attention norm"},
    {Site::mlp_norm, "MLP norm"},
    {Site::branch_sum, "branch sum"},
    {Site::residual, "residual"},
    {Site::attention_residual, "attention residual"},
    {Site::mlp_residual, "MLP residual"},
    {Site::cross_attention_norm, "cross-attention norm"},
    {Site::cross_attention_residual, "cross-attention residual"},
    {Site::scan_norm, "norm"},
    {Site::scan_in, "in"},
    {Site::convolution, "convolution"},
    {Site::scan, "scan"},
    {Site::gated_norm, "gated norm"},
    {Site::scan_out, "out"},
    {Site::expert_sum, "expert sum"},
    {Site::final_norm, "final norm"},
    {Site::logits, "logits"},
    {Site::cross_entropy, "cross-entropy"},
    {Site::activation, "activation"},
    {Site::mlp_down, "MLP down"},
    {Site::mlp_gate_and_up, "MLP gate and up"},
    {Site::mlp_up, "MLP up"},
    {Site::logits_maximum, "logits maximum"},
    {Site::target_logit, "target logit"},
    {Site::exponential_sum, "exponential sum"},
    {Site::enter_tensor_parallel, "enter tensor-parallel"},
    {Site::leave_tensor_parallel, "leave tensor-parallel"},
    {Site::attention_projection, "attention projection"},
    {Site::cross_attention_q, "cross-attention Q"},
    {Site::cross_attention_kv, "cross-attention K, V"},
    {Site::cross_attention_projection, "cross-attention projection"},
    {Site::qkv, "QKV"},
    {Site::qk_norm, "QK norm"},
    {Site::rotary, "rotary"},
    {Site::q, "Q"},
    {Site::q_down, "Q down"},
    {Site::kv_down, "K, V down"},
    {Site::kv, "K, V"},
    {Site::rotary_and_heads, "rotary and heads"},
    {Site::latent_norm, "latent norm"},
    {Site::flash_attention, "flash attention"},
    {Site::kv_ring, "K, V ring"},
    {Site::kv_gather, "K, V gather"},
    {Site::v_all_to_all, "V all-to-all"},
    {Site::attention_all_to_all, "attention all-to-all"},
    {Site::attention_scores, "attention scores"},
    {Site::relative_position_bias, "relative position bias"},
    {Site::softmax, "softmax"},
    {Site::attention_dropout, "attention dropout"},
    {Site::attention_context, "attention context"},
    {Site::rotary_key, "rotary key"},
    {Site::kv_gathered_again, "K, V gathered again"},
    {Site::q_all_to_all, "Q all-to-all"},
    {Site::k_all_to_all, "K all-to-all"},
    {Site::router, "router"},
    {Site::dispatch_product, "dispatch product"},
    {Site::permute, "permute"},
    {Site::dispatch, "dispatch"},
    {Site::sort_by_expert, "sort by expert"},
    {Site::sort_by_sender, "sort by sender"},
    {Site::combine, "combine"},
    {Site::combine_product, "combine product"},
    {Site::unpermute, "unpermute"},
    {Site::expert_activation, "expert activation"},
    {Site::expert_down, "expert down"},
    {Site::top_k_routing, "top-k routing"},
    {Site::gather_for_experts, "gather for experts"},
    {Site::sum_of_experts, "sum of experts"},
    {Site::expert_gate_and_up, "expert gate and up"},
    {Site::expert_up, "expert up"},
}};

static_assert([] {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].site != static_cast<Site>(i)) return false;
  return true;
}());

}  // namespace

std::string_view name_of(Site site) { return table[static_cast<std::size_t>(site)].name; }

}  // namespace costmodel
