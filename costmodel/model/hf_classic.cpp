#include "costmodel/model/hf_classic.hpp"

#include <array>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

// Where a family has other names for its sizes; the first is that of newer files.
struct Names {
  std::string_view layers[2], hidden[2], heads[2], ffn;
};
constexpr std::string_view usual_layers = "num_hidden_layers", usual_heads = "num_attention_heads";

class Classic : public HfTranslation {
 public:
  explicit Classic(const Value& map) : HfTranslation(map) {}

 protected:
  // Of all of them: LayerNorm, no gate, embeddings tied where the file does not say otherwise.
  void gpt(const Names& names, std::string_view type) {
    put("kind", "gpt", "model_type");
    layers_ = size("layers", spelled(names.layers[0], names.layers[1]), hf_counts);
    const std::string_view width = spelled(names.hidden[0], names.hidden[1]);
    hidden_ = size("hidden", width, hf_widths);
    const std::string_view number = spelled(names.heads[0], names.heads[1]);
    heads_ = size("heads", number, hf_counts);
    if (hidden_ % heads_ != 0) {
      throw ConfigError(
          reader_.mark_of(width),
          fmt::format("{} {} is not divisible by {} {}", width, hidden_, number, heads_),
          "choose sizes that divide");
    }
    put("head_dim", hidden_ / heads_, number);
    size_or("ffn_hidden", names.ffn, hf_inner, 4 * hidden_);
    size("vocab", "vocab_size", {1, 100'000'000});
    put("gated_mlp", false, "model_type");
    put("tie_embeddings", flag("tie_word_embeddings", true), "tie_word_embeddings");
    put("normalization", "layernorm", "model_type");
    put("source", fmt::format("Hugging Face config.json, model_type {}", type), "model_type");
  }

  void key_value_heads(std::int64_t heads, std::string_view key) {
    if (heads_ % heads != 0) {
      throw ConfigError(reader_.mark_of(key),
                        fmt::format("{} {} does not divide the {} heads", key, heads, heads_),
                        "every key/value head serves the same number of query heads");
    }
    put("kv_heads", heads, key);
  }

  void biases(bool linear, bool qkv) {
    put("linear_bias", linear, "model_type");
    put("qkv_bias", qkv, "model_type");
  }

  // A table of as many rows as the key says, and `more`.
  void learned(std::string_view key, std::int64_t usual, std::int64_t more = 0) {
    put("positions", "learned", "model_type");
    const auto rows = reader_.integer(key, hf_tokens).value_or(usual);
    put("max_positions", rows + more, key);
  }

  void without_table(std::string_view positions) {
    put("positions", positions, "model_type");
    put("max_positions", 0, "model_type");
  }

  void residual_after_norm() {
    if (flag("apply_residual_connection_post_layernorm", false)) {
      tell(
          "apply_residual_connection_post_layernorm is left out: the same operators in another "
          "order");
    }
  }

  std::int64_t layers_ = 0, hidden_ = 0, heads_ = 0;
};

// transformers, Falcon: attention and MLP in parallel; 7B on one norm and with one head of keys and
// values, 40B and 180B (new_decoder_architecture) on a norm each and with groups.
class Falcon : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{usual_layers, "n_layer"},
         {"hidden_size", "hidden_size"},
         {usual_heads, "n_head"},
         "ffn_hidden_size"},
        "falcon");
    const bool later = flag("new_decoder_architecture", false);
    const auto groups = reader_.integer("num_kv_heads", hf_counts);
    const bool one = flag("multi_query", true);
    key_value_heads(later ? groups.value_or(heads_)
                    : one ? 1
                          : heads_,
                    later ? "num_kv_heads" : "multi_query");
    const bool parallel = flag("parallel_attn", true) || later;
    const auto norms = reader_.integer("num_ln_in_parallel_attn", {1, 2}).value_or(later ? 2 : 1);
    put("parallel_block", parallel, "parallel_attn");
    if (parallel && !(later && norms == 2)) put("shared_norm", true, "num_ln_in_parallel_attn");
    const bool bias = flag("bias", false);
    biases(bias, bias);
    activation("activation", "gelu");
    if (flag("alibi", false)) {
      without_table("alibi");
      reader_.optional("rope_theta");
      reader_.optional("rope_scaling");
    } else {
      rotary();
    }
    dropout({"hidden_dropout", "attention_dropout"}, 0);
    residual_after_norm();
  }
};

// transformers, Bloom: ALiBi, a norm after the embedding.
class Bloom : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{usual_layers, "n_layer"}, {"hidden_size", "n_embed"}, {usual_heads, "n_head"}, "n_inner"},
        "bloom");
    key_value_heads(heads_, usual_heads);
    biases(true, true);
    activation("activation_function", "bloom_gelu");
    without_table("alibi");
    put("embedding_norm", true, "model_type");
    dropout({"hidden_dropout", "attention_dropout"}, 0);
    residual_after_norm();
  }
};

// transformers, OPT: two rows more than positions; 350M has a narrower embedding and its norms
// after the residuals, without a last one.
class Opt : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{usual_layers, usual_layers},
         {"hidden_size", "hidden_size"},
         {usual_heads, usual_heads},
         "ffn_dim"},
        "opt");
    key_value_heads(heads_, usual_heads);
    const bool bias = flag("enable_bias", true);
    biases(bias, bias);
    activation("activation_function", "relu");
    constexpr std::int64_t reserved = 2;  // OPTLearnedPositionalEmbedding, self.offset
    learned("max_position_embeddings", 2048, reserved);
    const auto width = reader_.integer("word_embed_proj_dim", hf_widths).value_or(hidden_);
    if (width != hidden_) put("embedding_dim", width, "word_embed_proj_dim");
    if (!flag("do_layer_norm_before", true)) {
      put("norm_placement", "after", "do_layer_norm_before");
    } else if (flag("_remove_final_layer_norm", false)) {
      tell("_remove_final_layer_norm is left out: the norm before the head is counted");
    }
    if (!flag("layer_norm_elementwise_affine", true))
      tell("layer_norm_elementwise_affine false is left out: norms are counted with gains");
    dropout({"dropout", "attention_dropout"}, 0.1);
  }
};

// transformers, GPTNeo: queries, keys and values without bias; every second layer with a window.
class GptNeo : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{"num_layers", usual_layers},
         {"hidden_size", "hidden_size"},
         {"num_heads", usual_heads},
         "intermediate_size"},
        "gpt_neo");
    key_value_heads(heads_, "num_heads");
    biases(true, false);
    activation("activation_function", "gelu_new");
    learned("max_position_embeddings", 2048);
    const std::string letters = pattern();
    if (letters.find('S') != std::string::npos) {
      size_or("sliding_window", "window_size", hf_tokens, 256);
    } else {
      reader_.optional("window_size");
    }
    reader_.optional("attention_layers");  // what attention_types means, written out
    put_pattern(letters, layers_, "attention_types");
    dropout({"resid_dropout", "embed_dropout", "attention_dropout"}, 0);
  }

 private:
  // [[["global", "local"], 12]]: the words, so many times, one list after another.
  std::string pattern() {
    const Value* types = reader_.optional("attention_types");
    if (types == nullptr) return "FS";
    std::string letters;
    for (const Value& part : types->items) {
      if (part.items.size() != 2) {
        throw ConfigError(part.mark, "attention_types: a part is no list of kinds and a number",
                          "write [[[\"global\", \"local\"], 12]]");
      }
      const std::int64_t times = read_integer(part.items[1], "attention_types", hf_counts);
      for (std::int64_t i = 0; i < times; ++i)
        for (const Value& word : part.items[0].items) letters += letter(word);
    }
    return letters;
  }

  static char letter(const Value& word) {
    const std::string text = read_text(word, "attention_types");
    if (text == "global") return 'F';
    if (text == "local") return 'S';
    throw ConfigError(word.mark, fmt::format("attention_types: {} is not known", quote(text)),
                      "one of global, local");
  }
};

// transformers, GPTBigCode: gpt2 with one head of keys and values.
class GptBigCode : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{"n_layer", usual_layers}, {"n_embd", "hidden_size"}, {"n_head", usual_heads}, "n_inner"},
        "gpt_bigcode");
    key_value_heads(flag("multi_query", true) ? 1 : heads_, "multi_query");
    biases(true, true);
    activation("activation_function", "gelu_pytorch_tanh");
    learned("n_positions", 1024);
    dropout({"resid_pdrop", "embd_pdrop", "attn_pdrop"}, 0.1);
  }
};

// transformers, Bert: norms after the residuals, token types, no mask. The head of masked language
// modelling and the pooler are there as the first of `architectures` has them.
class Bert : public Classic {
 public:
  using Classic::Classic;
  void read() {
    gpt({{usual_layers, usual_layers},
         {"hidden_size", "hidden_size"},
         {usual_heads, usual_heads},
         "intermediate_size"},
        "bert");
    key_value_heads(heads_, usual_heads);
    biases(true, true);
    activation("hidden_act", "gelu");
    learned("max_position_embeddings", 512);
    put("causal", false, "model_type");
    put("norm_placement", "after", "model_type");
    put("embedding_norm", true, "model_type");
    size_or("token_types", "type_vocab_size", {1, 1'000'000}, 2);
    const Value* list = reader_.optional("architectures");
    const std::string of = list != nullptr && !list->items.empty()
                               ? read_text(list->items.front(), "architectures")
                               : "BertForPreTraining";
    put("head_transform", of == "BertForMaskedLM" || of == "BertForPreTraining", "architectures");
    put("pooler", of != "BertForMaskedLM", "architectures");
    if (of == "BertForPreTraining")
      tell("the product that predicts the next sentence, of 2 x hidden, is left out");
    if (reader_.text("position_embedding_type").value_or("absolute") != "absolute")
      tell("position_embedding_type is left out: positions are a table");
    dropout({"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0.1);
  }
};

constexpr std::array<HfFamily, 7> classics{
    {{"falcon", "FalconForCausalLM", read_hf_as<Falcon>},
     {"bloom", "BloomForCausalLM", read_hf_as<Bloom>},
     {"opt", "OPTForCausalLM", read_hf_as<Opt>},
     {"gpt_neo", "GPTNeoForCausalLM", read_hf_as<GptNeo>},
     {"gpt_bigcode", "GPTBigCodeForCausalLM", read_hf_as<GptBigCode>},
     {"bert", "BertForMaskedLM", read_hf_as<Bert>},
     {"bert", "BertModel", read_hf_as<Bert>}}};

}  // namespace

std::span<const HfFamily> hf_classics() { return classics; }

}  // namespace costmodel
