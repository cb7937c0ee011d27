#include "costmodel/config/synonyms.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace costmodel {

namespace {

// A key and its other words, apart by blanks.
struct Row {
  std::string_view path, words;
};

// The words are those of Megatron-LM, DeepSpeed, Hugging Face, torchtitan, NeMo and Slurm, without
// dashes at their beginning.
constexpr std::array rows{
    Row{"training.global_batch",
        "batch batch_size global_batch_size gbs train_batch_size total_batch_size"},
    Row{"training.sequence",
        "seq seq_len seq_length sequence_length seqlen context context_length max_seq_len "
        "max_length"},
    Row{"training.precision", "dtype torch_dtype mixed_precision data_type"},
    Row{"training.stack", "framework software"},
    Row{"training.tokens", "train_tokens total_tokens training_tokens"},
    Row{"cluster.devices", "gpus num_gpus n_gpus ngpus world_size num_devices gpu_count"},
    Row{"cluster.devices_per_node", "gpus_per_node num_gpus_per_node nproc_per_node"},
    Row{"cluster.device", "gpu gpu_type gpu_name accelerator"},
    Row{"plan.micro_batch",
        "mbs microbatch micro_batch_size local_batch_size per_device_train_batch_size "
        "train_micro_batch_size_per_gpu"},
    Row{"plan.tp", "tensor_parallel tensor_parallel_size tensor_model_parallel_size tp_size"},
    Row{"plan.pp", "pipeline_parallel pipeline_parallel_size pipeline_model_parallel_size pp_size"},
    Row{"plan.dp", "data_parallel data_parallel_size dp_size"},
    Row{"plan.cp", "context_parallel context_parallel_size cp_size"},
    Row{"plan.ep", "expert_parallel expert_parallel_size expert_model_parallel_size ep_size"},
    Row{"plan.etp", "expert_tensor_parallel expert_tensor_parallel_size"},
    Row{"plan.vpp",
        "virtual_pipeline virtual_pipeline_size virtual_pipeline_model_parallel_size "
        "interleaved_stages"},
    Row{"plan.recompute",
        "recomputation activation_checkpointing gradient_checkpointing activation_checkpoint "
        "recompute_granularity activation_recomputation"},
    Row{"plan.zero", "zero_stage zero_optimization"},
    Row{"plan.schedule", "pipeline_schedule pipeline_parallel_schedule"},
    Row{"model.layers", "num_layers n_layers n_layer num_hidden_layers"},
    Row{"model.hidden", "hidden_size d_model n_embd hidden_dim"},
    Row{"model.heads", "num_heads n_heads n_head num_attention_heads"},
    Row{"model.kv_heads", "num_key_value_heads num_query_groups n_kv_heads num_kv_heads"},
    Row{"model.ffn_hidden", "intermediate_size ffn_hidden_size d_ff"},
    Row{"model.vocab", "vocab_size vocabulary padded_vocab_size"},
    Row{"model.experts", "num_experts n_routed_experts num_local_experts"},
    Row{"model.top_k", "topk moe_router_topk num_experts_per_tok experts_per_token"},
};

std::string plain(std::string_view word) {
  std::string text(word);
  for (char& c : text)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t from = 0; from < words.size();) {
    const std::size_t end = std::min(words.find(' ', from), words.size());
    if (words.substr(from, end - from) == word) return true;
    from = end + 1;
  }
  return false;
}

std::string meant_key(std::string_view word) {
  const std::string asked = plain(word);
  for (const Row& row : rows)
    if (last_part(row.path) == asked || has_word(row.words, asked)) return std::string(row.path);
  return "";
}

bool means(std::string_view word, std::string_view key) {
  const std::string meant = meant_key(word);
  return !meant.empty() && word != key && last_part(meant) == key;
}

}  // namespace costmodel
