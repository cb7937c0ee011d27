#include "costmodel/model/hf_mamba.hpp"

#include <array>

#include "costmodel/base/units.hpp"

namespace costmodel {

namespace {

class Mamba : public HfTranslation {
 public:
  explicit Mamba(const Value& map) : HfTranslation(map) {}

  void read(bool second) {
    put("kind", "mamba", "model_type");
    size("layers", "num_hidden_layers", hf_counts);
    hidden_ = size("hidden", "hidden_size", hf_widths);
    size("vocab", "vocab_size", {1, 100'000'000});
    const std::int64_t expand = reader_.integer("expand", {1, 64}).value_or(2);
    second ? scan(expand * hidden_) : channels(expand * hidden_);
    size_or("conv_kernel", "conv_kernel", hf_small, 4);
    put("tie_embeddings", flag("tie_word_embeddings", !second), "tie_word_embeddings");
    put("normalization", "rmsnorm", "model_type");
    put("linear_bias", false, "model_type");
    put("qkv_bias", false, "model_type");
    put("dropout", 0, "model_type");
    if (flag("use_bias", false)) tell("use_bias is left out: products are counted without bias");
    if (!flag("use_conv_bias", true))
      tell("use_conv_bias false is left out: the convolution is counted with bias");
    reader_.optional("hidden_act");  // of the convolution: SiLU, in its kernel
    put("source",
        fmt::format("Hugging Face config.json, model_type {}", second ? "mamba2" : "mamba"),
        "model_type");
  }

 private:
  // transformers, MambaConfig: time_step_rank is "auto" or a number, a sixteenth of the width.
  void channels(std::int64_t inner) {
    const auto given = reader_.integer("intermediate_size", hf_widths);
    put("heads", given.value_or(inner), "intermediate_size");
    put("head_dim", 1, "model_type");
    size_or("state_size", "state_size", hf_small, 16);
    reader_.optional("rms_norm");  // of the layer, as every file has it
    constexpr std::int64_t auto_rank = 16;
    const bool automatic =
        reader_.optional("time_step_rank") == nullptr || reader_.is_auto("time_step_rank");
    put("dt_rank",
        automatic ? ceil_div(hidden_, auto_rank) : *reader_.integer("time_step_rank", hf_small),
        "time_step_rank");
  }

  void scan(std::int64_t inner) {
    const std::int64_t heads = size_or("heads", "num_heads", hf_counts, 128);
    const std::int64_t head_dim = size_or("head_dim", "head_dim", hf_small, 64);
    if (heads * head_dim != inner) {
      throw ConfigError(reader_.mark_of("num_heads"),
                        fmt::format("num_heads {} x head_dim {} is not expand x hidden_size {}",
                                    heads, head_dim, inner),
                        "change num_heads, head_dim or expand");
    }
    size_or("state_size", "state_size", hf_small, 128);
    size_or("ssm_groups", "n_groups", hf_small, 8);
    if (!flag("rms_norm", true))
      tell("rms_norm false is left out: the gated norm is counted with gains");
  }

  std::int64_t hidden_ = 0;
};

constexpr std::array<HfFamily, 2> mambas{{
    {"mamba", "MambaForCausalLM", read_hf_as<Mamba, false>},
    {"mamba2", "Mamba2ForCausalLM", read_hf_as<Mamba, true>},
}};

}  // namespace

std::span<const HfFamily> hf_mambas() { return mambas; }

}  // namespace costmodel
