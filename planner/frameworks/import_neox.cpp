#include "planner/frameworks/import_neox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/setting_fields.hpp"
#include "planner/frameworks/tokenizers.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::vector<SetField> with_underscores(std::vector<SetField> fields) {
  for (SetField& one : fields) {
    one.name = one.field;
    std::ranges::replace(one.field, '-', '_');
  }
  return fields;
}

class NeoxImport : public SettingsImport {
 public:
  NeoxImport(const std::string& text, const std::string& file)
      : SettingsImport(JobFormat::gpt_neox, {with_underscores(read_yaml(text, file)),
                                             framework_words("gpt-neox").harmless}),
        file_(file) {}

  void read(std::string_view text) {
    read_mixers(text);
    miss_cluster(job);
    const std::int64_t tp = fields_.number("model_parallel_size", 1),
                       pp = std::max<std::int64_t>(1, fields_.number("pipe_parallel_size", 1, 0));
    put("plan", "tp", tp);
    put("plan", "pp", pp);
    if (scans_) {
      read_scan(tp);
    } else {
      read_model(tp);
    }
    read_batch(tp, pp);
    put("training", "sequence", fields_.number("seq_length", 2048));
    read_precision();
    read_stack(text);
    const bool sequence_parallel = fields_.flag("sequence_parallel", false);
    if (tp > 1) put("plan", "sequence_parallel", sequence_parallel);
    const std::int64_t cp = fields_.number("context_parallel_size", 1);
    if (cp > 1) put("plan", "cp", cp);
    put("plan", "zero", std::min<std::int64_t>(4, fields_.number("zero_optimization.stage", 0, 0)));
    const bool recomputes = fields_.flag("checkpoint_activations", false);
    put("plan", "recompute", recomputes ? "full" : "none");
    const std::int64_t each = fields_.number("checkpoint_num_layers", 1);
    if (recomputes && each > 1) {
      leave_out(fields_.written("checkpoint_num_layers"),
                "the input of every layer is taken as kept");
    }
    if (fields_.flag("partition_activations", false) && recomputes && tp > 1) {
      leave_out(fields_.written("partition_activations"),
                "the inputs of layers are taken as kept on every rank");
    }
    leave_out_rest();
  }

 private:
  // Lists of lists, [[["mamba"], 24]], are no settings: the text itself is looked at.
  void read_mixers(std::string_view text) {
    fields_.find("attention_config");
    const auto names = [&](const char* mixer) {
      return text.find(fmt::format("\"{}\"", mixer)) != std::string_view::npos;
    };
    const bool attends = names("global") || names("flash") || names("local");
    scans_ = names("mamba") && !attends;
    for (const char* other : {"gmlp", "rwkv", "mamba"}) {
      if (!names(other) || (scans_ && std::string_view(other) == "mamba")) continue;
      throw ConfigError({file_, 0, 0},
                        fmt::format("attention_config of {} is not read here", other),
                        "write the model yourself: --set model=FILE");
    }
  }

  // megatron/model/mamba/mamba.py: a state of 16, a convolution of 4, time steps by a sixteenth of
  // the width, and heads of one channel.
  void read_scan(std::int64_t tp) {
    const std::int64_t hidden = fields_.number("hidden_size", 1);
    const std::int64_t inner = fields_.number(
        "intermediate_size", product({hidden, fields_.number("expansion_factor", 2)}));
    put("model", "kind", "mamba");
    put("model", "layers", fields_.number("num_layers", 1));
    put("model", "hidden", hidden);
    put("model", "heads", inner);
    put("model", "head_dim", 1);
    put("model", "state_size", 16);
    put("model", "conv_kernel", 4);
    put("model", "dt_rank", (hidden + 15) / 16);
    put("model", "tie_embeddings", fields_.flag("no_weight_tying", false) ? "false" : "true");
    put("model", "linear_bias", fields_.flag("mamba_use_bias_in_linears", false));
    fields_.find("num_attention_heads");  // of no mixer
    read_vocabulary(tp);
  }

  // By the tokenizer's type, or the file of the vocabulary. Files of sizes alone leave both to
  // another one, which is merged with them: the model that their folder is called after has a
  // vocabulary of its own (llama2/7B.yml).
  void read_vocabulary(std::int64_t tp) {
    const std::string type = fields_.word("tokenizer_type", "GPT2BPETokenizer"),
                      named = fields_.word("vocab_file", "") + " " + file_,
                      called = file_name_of(folder_of(file_)) + "/" + file_name_of(file_);
    const auto of_name = fields_.has("tokenizer_type") ? std::nullopt : vocabulary_of(called);
    std::int64_t words = of_name.value_or(type.starts_with("GPT2") ? 50'257 : 0);
    if (words == 0) words = vocabulary_of(named).value_or(0);
    constexpr std::int64_t neox_20b = 50'277, sentence_pieces = 32'000;
    if (words == 0) words = type.starts_with("SPM") ? sentence_pieces : neox_20b;
    const std::int64_t multiple =
        product({fields_.number("make_vocab_size_divisible_by", 128), tp});
    words = (words + multiple - 1) / multiple * multiple;
    put("model", "vocab", words);
    job.notes.push_back(of_name
                            ? fmt::format("model.vocab {}, as {} is called, padded for {} ranks: "
                                          "no tokenizer_type is written",
                                          words, shortened(called), tp)
                            : fmt::format("model.vocab {}, of tokenizer_type {}, padded for {} "
                                          "ranks",
                                          words, shortened(type), tp));
  }

  // ParallelMLP gives a gated layer a third of the width that is written, which keeps a plain
  // one's parameters (megatron/model/transformer.py, __init__); the older LLaMAParallelMLP has it
  // as written, else two thirds of four times the model's, to a multiple of 256.
  void read_feed_forward(std::int64_t hidden) {
    constexpr std::array<std::string_view, 5> gates{"swiglu", "geglu", "reglu", "bilinear", "glu"};
    const bool llama = fields_.word("mlp_type", "regular") == "llama";
    const std::string activation = fields_.word("activation", "gelu");
    const bool gated = llama || std::ranges::find(gates, activation) != gates.end();
    const std::int64_t usual = llama ? (8 * hidden / 3 + 255) / 256 * 256 : product({4, hidden}),
                       written = fields_.number("intermediate_size", usual),
                       multiple = fields_.number("mlp_multiple_of", 1);
    const std::int64_t part = gated && !llama ? written / 3 : written;
    const std::int64_t width = llama ? part : product({(part + multiple - 1) / multiple, multiple});
    put("model", "ffn_hidden", width);
    put("model", "gated_mlp", gated);
    if (gated && !llama) {
      job.notes.push_back(
          fmt::format("model.ffn_hidden {}: a gated layer has a third of {}, to a multiple of {}",
                      width, written, multiple));
    }
  }

  void read_model(std::int64_t tp) {
    const std::int64_t hidden = fields_.number("hidden_size", 1),
                       heads = fields_.number("num_attention_heads", 1),
                       kv = fields_.number("num_kv_heads", heads);
    const std::string norm = fields_.word("norm", "layernorm");
    put("model", "kind", norm == "rmsnorm" ? "llama" : "gpt");
    put("model", "layers", fields_.number("num_layers", 1));
    put("model", "hidden", hidden);
    put("model", "heads", heads);
    if (kv != heads) put("model", "kv_heads", kv);
    read_feed_forward(hidden);
    if (norm != "rmsnorm") put("model", "linear_bias", "true");
    put("model", "tie_embeddings", fields_.flag("no_weight_tying", false) ? "false" : "true");
    if (fields_.flag("gpt_j_residual", false)) put("model", "parallel_block", "true");
    put("model", "dropout", fields_.word("hidden_dropout", "0"));
    read_positions(norm == "rmsnorm");
    read_vocabulary(tp);
    if (fields_.number("moe_num_experts", 1) > 1 || fields_.number("num_experts", 1) > 1) {
      const SetField* set = fields_.find("moe_num_experts");
      throw ConfigError(set != nullptr ? set->mark : Mark{file_, 0, 0},
                        "experts of GPT-NeoX are not read here",
                        "write the model yourself: --set model=FILE");
    }
  }

  // Its attention is FlashAttention where the layers' kinds name it.
  void read_stack(std::string_view text) {
    Value stack;
    stack.set("base", scalar_value("gpt-neox"));
    const bool flash = text.find("\"flash\"") != std::string_view::npos;
    if (!flash) return put("training", "stack", "gpt-neox");
    stack.set("attention", scalar_value("flash"));
    job.scenario.find("training")->set("stack", std::move(stack));
  }

  void read_positions(bool llama) {
    const std::string kind = fields_.word("pos_emb", "learned");
    fields_.find("max_position_embeddings");
    const std::string share = fields_.word("rotary_pct", "1");
    const std::int64_t base = fields_.number("rotary_emb_base", 10'000);
    if (kind == "rotary" && base != 10'000) put("model", "rotary_base", base);
    if (llama && kind == "rotary" && (share == "1" || share == "1.0")) return;
    if (kind == "learned" || kind == "rotary" || kind == "alibi") put("model", "positions", kind);
    if (kind == "rotary") put("model", "rotary_percent", share);
    if (kind == "learned") {
      put("model", "max_positions",
          fields_.number("max_position_embeddings", fields_.number("seq_length", 2048)));
    }
  }

  void read_batch(std::int64_t tp, std::int64_t pp) {
    const std::int64_t batch = fields_.number("train_batch_size", 0, 0),
                       each = fields_.number("gradient_accumulation_steps", 1),
                       micro = fields_.number("train_micro_batch_size_per_gpu",
                                              fields_.number("batch_size", 4)),
                       nodes = fields_.number("num_nodes", 0, 0);
    put("plan", "micro_batch", micro);
    job.accumulation = each;
    const char* const devices = "the number of devices: --set cluster.devices=N";
    if (batch > 0 && batch % product({micro, each}) == 0) {
      const std::int64_t replicas = batch / product({micro, each});
      put("training", "global_batch", batch);
      put("plan", "dp", replicas);
      put("cluster", "devices", product({replicas, tp, pp}));
    } else {
      if (batch > 0) {
        put("training", "global_batch", batch);
      } else {
        miss_key(job, "training", "global_batch",
                 "the batch, which follows from the number of devices");
      }
      if (nodes > 0) job.notes.push_back(fmt::format("the file names {} nodes", nodes));
      miss_key(job, "cluster", "devices", devices);
    }
  }

  void read_precision() {
    const std::string named = fields_.word("precision", "");
    // "enabled" decides; the map's other word for it is its own name.
    const bool half = fields_.flag("fp16.enabled", fields_.flag("fp16.fp16", false)),
               brain = fields_.flag("bf16.enabled", fields_.flag("bf16.bf16", false)) ||
                       (half && fields_.word("fp16.type", "") == "bfloat16");
    const bool is_bf16 = brain || named == "bfloat16";
    put("training", "precision", is_bf16 ? "bf16" : half || named == "fp16" ? "fp16" : "fp32");
  }

  std::string file_;
  bool scans_ = false;  // Mamba's layers alone
};

// The name as a key: "--encoder-num-layers:" of Megatron-LM's YAML of arguments is another.
bool has_key(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::string_view after = text.substr(at + name.size());
    const bool begins = at == 0 || !is_part(text[at - 1]);
    if (begins && (after.starts_with(':') || after.starts_with("\":"))) return true;
  }
  return false;
}

}  // namespace

bool holds_neox(const std::string& text) {
  const auto key = [&](const char* dashes, const char* underscores) {
    return has_key(text, dashes) || has_key(text, underscores);
  };
  return key("num-layers", "num_layers") && key("num-attention-heads", "num_attention_heads") &&
         (key("pipe-parallel-size", "pipe_parallel_size") ||
          key("model-parallel-size", "model_parallel_size")) &&
         text.find("--num-layers") == std::string::npos;
}

ImportedJob import_neox(const std::string& text, const std::string& file) {
  NeoxImport in(text, file);
  in.read(text);
  return std::move(in.job);
}

}  // namespace planner
