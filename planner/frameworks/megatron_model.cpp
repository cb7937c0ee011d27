#include "planner/frameworks/megatron_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "costmodel/model/model_spec.hpp"
#include "planner/frameworks/megatron_hybrid.hpp"
#include "planner/frameworks/megatron_pattern.hpp"
#include "planner/frameworks/megatron_stacks.hpp"
#include "planner/frameworks/tokenizers.hpp"

namespace planner {

namespace {

void read_experts_model(MegatronImport& in, std::int64_t ffn) {
  in.copy_all("model.", WordOf::experts);
  if (!in.has("--moe-router-topk")) in.put("model.top_k", "2");
  const std::int64_t width = in.whole("--moe-ffn-hidden-size", ffn);
  in.put("model.expert_ffn_hidden", fmt::format("{}", width));
  if (const std::int64_t shared = in.whole("--moe-shared-expert-intermediate-size", 0);
      shared > 0) {
    const std::int64_t experts =
        std::max<std::int64_t>(1, (shared + width / 2) / std::max<std::int64_t>(1, width));
    in.put("model.shared_experts", fmt::format("{}", experts));
    if (experts * width != shared) {
      in.leave_out("--moe-shared-expert-intermediate-size",
                   fmt::format("taken as {} experts of {}", experts, width));
    }
  }
  const bool sigmoid = in.text("--moe-router-score-function", "softmax") == "sigmoid";
  const bool before = in.has("--moe-router-pre-softmax");
  if (sigmoid || before) in.put("model.router_score", sigmoid ? "sigmoid" : "pre-softmax");
  in.any({"--moe-grouped-gemm", "--moe-router-force-load-balancing", "--moe-router-dtype",
          "--moe-permute-fusion"});
}

// Which layers have experts, as first_dense_layers, moe_every and moe_offset.
void read_expert_layers(MegatronImport& in, std::int64_t layers) {
  const MegatronArgument* a = in.find("--moe-layer-freq");
  if (a == nullptr || layers < 1 || layers > 100'000) return;
  if (!a->unknown.empty()) {
    return in.leave_out("--moe-layer-freq",
                        "the script does not say its value: every layer is taken to have experts");
  }
  std::string pattern = in.text("--moe-layer-freq");
  if (a->values.size() > 1) pattern = fmt::format("[{}]", fmt::join(a->values, ","));
  std::erase(pattern, '\'');  // of a script that `eval` reads once more
  const auto sparse = layers_with_experts(pattern, static_cast<int>(layers));
  if (!sparse) in.refuse("--moe-layer-freq", fmt::format("is no pattern of {} layers", layers));
  const auto first = std::find(sparse->begin(), sparse->end(), true);
  if (first == sparse->end()) in.refuse("--moe-layer-freq", "gives no layer experts");
  const auto second = std::find(first + 1, sparse->end(), true);
  costmodel::ModelSpec model;
  model.experts = 1;
  model.moe_every = second == sparse->end() ? layers : second - first;
  model.moe_offset = (first - sparse->begin()) % model.moe_every;
  const auto fits = [&] {
    for (std::size_t i = 0; i < sparse->size(); ++i) {
      if (model.has_experts(static_cast<std::int64_t>(i)) != (*sparse)[i]) return false;
    }
    return true;
  };
  // Dense layers before the first of them, where moe_every and moe_offset alone would give experts.
  if (!fits()) model.first_dense_layers = first - sparse->begin();
  if (!fits()) {
    in.refuse("--moe-layer-freq",
              "has experts in no regular order, which first_dense_layers, moe_every and moe_offset "
              "would say");
  }
  if (model.first_dense_layers > 0)
    in.put("model.first_dense_layers", fmt::format("{}", model.first_dense_layers));
  if (model.moe_every > 1) in.put("model.moe_every", fmt::format("{}", model.moe_every));
  if (model.moe_offset > 0) in.put("model.moe_offset", fmt::format("{}", model.moe_offset));
}

// A whole number and nothing else.
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end ? std::optional(value) : std::nullopt;
}

// "(127,0)": so many keys before a query's own, none after it.
std::optional<std::int64_t> keys_before(std::string text) {
  std::erase_if(text,
                [](char c) { return std::string_view(" ()[]").find(c) != std::string_view::npos; });
  const std::size_t comma = std::min(text.find(','), text.size());
  const auto before = whole_number(std::string_view(text).substr(0, comma));
  const bool none_after = std::string_view(text).substr(comma) == ",0";
  constexpr std::int64_t most = 999'999'999;
  return none_after && before && *before >= 0 && *before <= most ? before : std::nullopt;
}

// A letter for each layer that has what is not full attention, F for the others: of every N the
// last has not, or a list has 1 (with) and 0.
std::string letters_of_layers(MegatronImport& in, const char* flag, std::int64_t layers,
                              char with) {
  const MegatronArgument* a = in.find(flag);
  std::string list = in.text(flag);
  const auto every = whole_number(list);
  constexpr std::int64_t most = 100'000;
  if (every && *every > 1 && *every <= most)
    return std::string(static_cast<std::size_t>(*every) - 1, with) + "F";
  if (a->values.size() > 1) list = fmt::format("[{}]", fmt::join(a->values, ","));
  const auto has = layers > 0 && layers <= most
                       ? layers_with_experts(list, static_cast<int>(layers))
                       : std::nullopt;
  if (every || !has) in.refuse(flag, fmt::format("is no pattern of {} layers", layers));
  std::string letters;
  for (const bool one : *has) letters += one ? with : 'F';
  return letters;
}

// The window of attention, and which layers have it (Megatron-LM, core/transformer/utils.py,
// is_layer_window_attention).
void read_window(MegatronImport& in, std::int64_t layers) {
  const bool some = in.has("--window-attn-skip-freq");
  if (!in.has("--window-size")) return;
  const std::string text = in.text("--window-size");
  const auto before = keys_before(text);
  if (!before)
    return in.leave_out("--window-size", "it is no window of keys before a query, as (127,0)");
  in.put("model.sliding_window", fmt::format("{}", *before + 1));
  if (!some) return;
  const std::string letters = letters_of_layers(in, "--window-attn-skip-freq", layers, 'S');
  if (letters.find('F') != std::string::npos) in.put("model.attention_pattern", letters);
}

// Gated delta nets in place of attention, of models whose layers have a feed-forward each.
void read_linear_attention(MegatronImport& in, std::int64_t layers) {
  if (is_hybrid(in.arguments()) || !in.has("--linear-attention-freq")) return;
  if (in.has("--window-size"))
    in.refuse("--linear-attention-freq", "does not go with --window-size here");
  in.put("model.attention_pattern", letters_of_layers(in, "--linear-attention-freq", layers, 'D'));
  read_delta_nets(in, false);
}

// Of a hybrid the pattern's letters decide.
bool is_latent(MegatronImport& in) {
  const bool flag = in.has("--multi-latent-attention");
  return is_hybrid(in.arguments()) ? hybrid_pattern(in).latent() : flag;
}

void read_attention_sizes(MegatronImport& in, std::int64_t hidden, std::int64_t heads) {
  const std::int64_t channels = in.whole("--kv-channels", heads > 0 ? hidden / heads : 0);
  const bool grouped = in.has("--group-query-attention");
  const std::int64_t groups = in.whole("--num-query-groups", 1);
  if (is_latent(in)) {
    in.copy_all("model.", WordOf::latent_attention);
    if (!in.has("--kv-lora-rank")) in.put("model.kv_lora_rank", "32");
    if (!in.has("--q-lora-rank")) in.put("model.q_lora_rank", "0");
    return;
  }
  if (grouped) in.put("model.kv_heads", fmt::format("{}", groups));
  if (!grouped && heads > 0) in.put("model.kv_heads", fmt::format("{}", heads));
  if (heads > 0 && channels > 0) in.put("model.head_dim", fmt::format("{}", channels));
}

// Llama 3.1's scaling, YaRN's (of latent attention by a factor above 1), or one of all positions.
void read_rope_scaling(MegatronImport& in, bool yarn) {
  const double llama3 = in.number("--rope-scaling-factor").value_or(8);
  const double factor = in.number("--rotary-scaling-factor").value_or(1);
  const double linear = in.number("--rotary-seq-len-interpolation-factor").value_or(1);
  const bool latent = is_latent(in), plain = in.text("--rope-type", "yarn") == "rope";
  const auto copy = [&](const char* key, const char* flag) {
    if (const auto value = in.number(flag); value && *value > 0)
      in.put(key, fmt::format("{}", *value));
  };
  if (in.has("--use-rope-scaling")) {
    in.put("model.rope_scaling_factor", fmt::format("{}", llama3));
  } else if ((yarn || (latent && !plain)) && factor > 1) {
    in.put("model.rope_scaling_type", "yarn");
    in.put("model.rope_scaling_factor", fmt::format("{}", factor));
    copy("model.rope_mscale", "--mscale");
    copy("model.rope_mscale_all_dim", "--mscale-all-dim");
    // MLATransformerConfig's own length, which pretrain_gpt.py has no argument for.
    if (latent) in.put("model.rope_original_positions", "4096");
    copy("model.rope_original_positions", "--yarn-original-max-position-embeddings");
    copy("model.rope_beta_fast", "--yarn-beta-fast");
    copy("model.rope_beta_slow", "--yarn-beta-slow");
  } else if (linear > 1) {
    in.put("model.rope_scaling_type", "linear");
    in.put("model.rope_scaling_factor", fmt::format("{}", linear));
  }
  in.any({"--mscale", "--mscale-all-dim"});
}

void read_positions(MegatronImport& in, bool learned_by_default, bool two_stacks) {
  std::string type =
      in.text("--position-embedding-type", learned_by_default ? "learned_absolute" : "rope");
  if (in.has("--use-rotary-position-embeddings")) type = "rope";
  const std::int64_t rows = in.whole("--max-position-embeddings", 0);
  if (type == "learned_absolute") {
    in.put("model.positions", "learned");
    in.put("model.max_positions", fmt::format("{}", rows));
  } else if (type == "relative") {
    if (!two_stacks) in.refuse("--position-embedding-type", "is of T5 alone here");
    in.put("model.positions", "relative");
  } else if (type == "none") {
    in.put("model.positions", "none");
  } else {
    in.put("model.positions", "rotary");
    in.copy_all("model.", WordOf::rotary);
    read_rope_scaling(in, type == "yarn");
    if (type != "rope" && type != "yarn")
      in.leave_out("--position-embedding-type", "taken as rope");
  }
  in.has("--no-position-embedding");
}

// Megatron-DeepSpeed writes the kinds in small letters.
bool normalizes_by_root(MegatronImport& in) {
  return costmodel::lower_case(in.text("--normalization", "LayerNorm")) == "rmsnorm";
}

void read_block(MegatronImport& in) {
  const bool bias = !in.has("--disable-bias-linear");
  in.put("model.linear_bias", bias ? "true" : "false");
  in.put("model.qkv_bias", bias || in.has("--add-qkv-bias") ? "true" : "false");
  const bool latent = is_latent(in);
  if (in.has("--qk-layernorm") && !latent) in.put("model.qk_norm", "true");
  const std::string softmax = in.text("--softmax-type", "vanilla");
  if (softmax == "learnable") in.put("model.attention_sinks", "true");
  if (softmax == "off-by-one") in.leave_out("--softmax-type", "priced as a softmax of scores");
  in.put("model.tie_embeddings",
         in.has("--untie-embeddings-and-output-weights") ? "false" : "true");
  in.put("model.normalization", normalizes_by_root(in) ? "rmsnorm" : "layernorm");
  const double hidden = in.number("--hidden-dropout").value_or(0.1);
  const double attention = in.number("--attention-dropout").value_or(0.1);
  in.put("model.dropout", fmt::format("{}", hidden));
  if (attention != hidden)
    in.note(fmt::format("attention dropout {} is taken as hidden dropout {}", attention, hidden));
}

// Of the tokenizer's model, its vocabulary file or its type, or what the script calls it; 0: none
// of them is known here.
std::int64_t vocabulary_by_name(MegatronImport& in, const std::string& type) {
  std::vector<std::string> names;
  for (const char* flag : {"--tokenizer-model", "--tokenizer-name-or-path",
                           "--tokenizer-prompt-format", "--vocab-file"}) {
    const MegatronArgument* a = in.find(flag);
    if (a != nullptr && a->unknown.empty() && !a->values.empty())
      names.push_back(a->values.front());
  }
  names.push_back(in.find("--merge-file") != nullptr ? "GPT2BPETokenizer" : type);  // of byte pairs
  names.push_back(in.arguments().tokenizer);
  for (const std::string& name : names) {
    const auto rows = vocabulary_of(name);
    if (!rows) continue;
    in.note(fmt::format("the vocabulary has {} tokens, as that of {}", *rows,
                        costmodel::shortened(name)));
    return *rows;
  }
  return 0;
}

struct UsualVocabulary {
  std::int64_t rows;
  std::string_view of;
};

// What a script without a name most likely has: BERT's and T5's word pieces; of SentencePiece the
// vocabularies of the models that Megatron-LM's own scripts train with it; else GPT-2's, which
// --vocab-file alone means.
const UsualVocabulary& usual_vocabulary(MegatronImport& in, const std::string& tokenizer) {
  static constexpr UsualVocabulary pieces{30'522, "BERT's word pieces"}, llama{32'000, "Llama"},
      hybrid{256'000, "NVIDIA's hybrid models"}, gpt2{50'257, "GPT-2"};
  const MegatronArgument* file = in.find("--vocab-file");
  const bool bert = file != nullptr && !file->values.empty() &&
                    file->values.front().find("bert") != std::string::npos;
  if (has_two_stacks(in.arguments()) || bert) return pieces;
  if (tokenizer.find("SentencePiece") == std::string::npos) return gpt2;
  return is_hybrid(in.arguments()) ? hybrid : llama;
}

// The vocabulary is that of a tokenizer: a log says its padded size, a script perhaps nothing.
void read_vocabulary(MegatronImport& in) {
  const std::int64_t padded = in.whole("--padded-vocab-size", 0);
  std::int64_t size = in.whole("--vocab-size", 0);
  const std::string tokenizer = in.text("--tokenizer-type");
  if (size == 0) size = padded;
  if (size == 0) size = vocabulary_by_name(in, tokenizer);
  const std::int64_t divisor = in.whole("--make-vocab-size-divisible-by", 128);
  if (divisor != 128)
    in.leave_out("--make-vocab-size-divisible-by", "the vocabulary is padded to a multiple of 128");
  if (size > 0) return in.put("model.vocab", fmt::format("{}", size));
  in.miss("model.vocab", "the size of the tokenizer's vocabulary, which the arguments do not say");
  const UsualVocabulary& usual = usual_vocabulary(in, tokenizer);
  in.job.missing.back().otherwise = fmt::format("{}", usual.rows);
  in.job.missing.back().because = fmt::format("as that of {}", usual.of);
}

// A size that is written and 0 is a mistake; one that is not written is missing.
void refuse_zero_sizes(MegatronImport& in) {
  for (const char* flag : {"--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length",
                           "--micro-batch-size", "--tensor-model-parallel-size",
                           "--pipeline-model-parallel-size", "--context-parallel-size"}) {
    if (in.has(flag) && in.whole(flag, 1) == 0) in.refuse(flag, "is not 1 or more");
  }
}

}  // namespace

void read_megatron_model(MegatronImport& in) {
  refuse_zero_sizes(in);
  const bool gated = in.any({"--swiglu", "--quick-geglu"});
  const bool squared = in.has("--squared-relu");
  const bool sparse = in.sparse();
  const bool rms = normalizes_by_root(in);
  const bool two_stacks = has_two_stacks(in.arguments()), hybrid = is_hybrid(in.arguments());
  in.put("model.kind", hybrid       ? "hybrid"
                       : two_stacks ? "t5"
                       : sparse     ? "moe"
                       : rms        ? "llama"
                                    : "gpt");
  in.copy_all("model.", WordOf::any_job);
  if (two_stacks) read_stacks_model(in);
  if (hybrid) read_hybrid_model(in);
  const std::int64_t hidden = in.whole("--hidden-size", 0), layers = layers_of_model(in);
  const std::int64_t usual = gated ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
  const std::int64_t ffn = in.whole("--ffn-hidden-size", usual);
  read_attention_sizes(in, hidden, in.whole("--num-attention-heads", 0));
  in.put("model.ffn_hidden", fmt::format("{}", ffn));
  in.put("model.gated_mlp", gated ? "true" : "false");
  const bool silu =
      in.has("--swiglu") || in.number("--glu-linear-offset").value_or(0) != 0;  // GPT-OSS's
  in.put("model.activation", squared ? "squared-relu" : silu ? "silu" : "gelu");
  if (sparse) {
    read_experts_model(in, ffn);
    if (!hybrid) read_expert_layers(in, layers);
    if (!hybrid && in.whole("--mtp-num-layers", 0) > 0) in.copy_all("model.", WordOf::mtp);
  }
  read_window(in, layers);
  read_linear_attention(in, layers);
  read_vocabulary(in);
  read_positions(in, true, two_stacks);
  read_block(in);
  if (hidden == 0) in.miss("model.hidden", "the arguments have no --hidden-size");
  if (layers == 0 && !two_stacks && !hybrid)
    in.miss("model.layers", "the arguments have no --num-layers");
}

}  // namespace planner
