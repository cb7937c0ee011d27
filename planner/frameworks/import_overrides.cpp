#include "planner/frameworks/import_overrides.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "planner/exchange/fitting_adapters.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/launcher_words.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/override_words.hpp"
#include "planner/frameworks/overrides_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

// "torch.nn.functional.silu" and "AttnBackend.unfused" end with what they mean.
std::string last_part(const std::string& value) { return value.substr(value.rfind('.') + 1); }

std::string written(const SetField& set) {
  return shortened(fmt::format("{}={}", set.field, fmt::join(set.values, ",")), 100);
}

class Translation {
 public:
  explicit Translation(const OverridesText& text) : text_(text) {
    arguments.world_size = text.world_size;
    arguments.per_node = text.per_node;
  }

  void translate() {
    for (const auto& set : text_.fields) {
      const auto rows = rows_of(set.field);
      const bool adapters = set.field == "peft" || set.field.starts_with("peft.");
      if (translate_special(set) || adapters) continue;
      if (!rows.empty()) {
        translate_row(*rows.front(), set);
      } else if (!is_harmless_override(set.field)) {
        left_out.push_back(written(set) + ": no key says it");
      }
    }
    add_activation();
    add_precision();
    if (!last("model.num_query_groups", "model.config.num_query_groups").empty())
      add("--group-query-attention", {}, {});
    // Both keep a learned position a token.
    if (const auto* sequence = arguments.find("--seq-length"))
      add("--max-position-embeddings", sequence->values, sequence->mark);
  }

  MegatronArguments arguments;
  std::vector<std::string> left_out;

 private:
  static std::vector<const OverrideWord*> rows_of(std::string_view field) {
    std::vector<const OverrideWord*> rows;
    for (const auto& word : override_words())
      if (word.bridge == field || word.nemo == field) rows.push_back(&word);
    return rows;
  }

  // The value that counts, of either framework's field; empty: not said, or null.
  std::string last(std::string_view bridge, std::string_view nemo = "") const {
    std::string value;
    for (const auto& set : text_.fields) {
      if (set.field == bridge || (!nemo.empty() && set.field == nemo))
        value = set.values.empty() || set.values.front() == "null" ? "" : set.values.front();
    }
    return value;
  }

  void add(std::string_view flag, std::vector<std::string> values, const Mark& mark,
           const std::string& unknown = "") {
    arguments.list.push_back({std::string(flag), std::move(values), mark, unknown});
  }

  void drop(std::string_view flag) {
    std::erase_if(arguments.list, [&](const MegatronArgument& a) { return a.flag == flag; });
  }

  bool translate_special(const SetField& set) {
    if (set.field == "mixed_precision") return true;
    if (set.field == "model.cuda_graph_scope") {  // of before core 0.18
      if (last(set.field).empty()) return true;
      drop("--cuda-graph-modules");
      add("--cuda-graph-modules", set.values, set.mark, set.unknown);
      return true;
    }
    const bool vocabulary =
        set.field == "model.vocab_size" || set.field == "model.config.vocab_size";
    if (vocabulary && !last(set.field).empty())
      add("--padded-vocab-size", set.values, set.mark, set.unknown);
    return vocabulary;
  }

  // A switch that is set the other way takes back what came before.
  void translate_row(const OverrideWord& word, const SetField& set) {
    if (word.form == OverrideForm::together) return;
    drop(word.flag);
    const std::string value = set.values.empty() ? std::string() : set.values.front();
    switch (word.form) {
      case OverrideForm::on:
      case OverrideForm::import_on: return add_switch(word, set, value == "true");
      case OverrideForm::off: return add_switch(word, set, value == "false");
      case OverrideForm::list:
        if (value != "null" && !set.values.empty())
          add(word.flag, set.values, set.mark, set.unknown);
        return;
      case OverrideForm::torch:
        if (value != "null")
          add(word.flag, {last_part(value) == "bfloat16" ? "bf16" : "fp32"}, set.mark, set.unknown);
        return;
      case OverrideForm::value:
      case OverrideForm::together:
      case OverrideForm::import_value: break;
    }
    if ((value.empty() && set.unknown.empty()) || value == "null") return;
    if (set.values.size() > 1) {
      add(word.flag, {fmt::format("[{}]", fmt::join(set.values, ","))}, set.mark, set.unknown);
    } else {
      const bool name = word.flag == "--attention-backend";
      add(word.flag, {name ? last_part(value) : value}, set.mark, set.unknown);
    }
  }

  void add_switch(const OverrideWord& word, const SetField& set, bool said) {
    if (!set.unknown.empty()) {
      left_out.push_back(fmt::format("{}: {} has no value in the script", set.field, set.unknown));
      return;
    }
    const std::string value = set.values.empty() ? std::string() : set.values.front();
    if (said) add(word.flag, {}, set.mark);
    if (value != "true" && value != "false" && value != "null") {
      throw ConfigError(set.mark, fmt::format("{} is neither true nor false", quote(written(set))),
                        "write true or false");
    }
  }

  void add_activation() {
    const bool gated = last("model.gated_linear_unit", "model.config.gated_linear_unit") == "true";
    const std::string function =
        last_part(last("model.activation_func", "model.config.activation_func"));
    if (gated) {
      add(function == "quick_gelu" || function == "gelu" ? "--quick-geglu" : "--swiglu", {}, {});
    } else if (function == "squared_relu" || function == "relu2") {
      add("--squared-relu", {}, {});
    }
    // There is no such kernel to be without.
    const bool squared = arguments.find("--squared-relu") != nullptr,
               biased = arguments.find("--disable-bias-linear") == nullptr;
    if (!gated && (squared || !biased))
      for (const char* flag : {"--no-bias-swiglu-fusion", "--no-bias-gelu-fusion"}) drop(flag);
  }

  // The name of a recipe of precision, "bf16_with_mxfp8_mixed", or "bf16-mixed" of NeMo.
  void add_named_precision(const std::string& name) {
    const bool half = name.starts_with("fp16") || name.starts_with("16");
    add(half ? "--fp16" : "--bf16", {}, {});
    if (!half && arguments.find("--accumulate-allreduce-grads-in-fp32") == nullptr &&
        last("mixed_precision.grad_reduce_in_fp32", "trainer.plugins.grad_reduce_in_fp32").empty())
      add("--accumulate-allreduce-grads-in-fp32", {}, {});
    if (name.find("nvfp4") != std::string::npos) {
      add("--fp4-format", {"e2m1"}, {});
      add("--fp4-recipe", {"nvfp4"}, {});
    }
    const bool mxfp8 = name.find("mxfp8") != std::string::npos;
    if (name.find("fp8") == std::string::npos) return;
    const bool delayed = name.find("delayed") != std::string::npos;
    const bool blocks = name.find("subchannel") != std::string::npos;
    add("--fp8-format", {mxfp8 ? "e4m3" : "hybrid"}, {});
    add("--fp8-recipe",
        {mxfp8     ? "mxfp8"
         : delayed ? "delayed"
         : blocks  ? "blockwise"
                   : "tensorwise"},
        {});
    const auto kept = [&](const char* field) { return last(field) != "false"; };
    if (!blocks && kept("mixed_precision.fp8_param_gather")) add("--fp8-param-gather", {}, {});
    if (mxfp8 && kept("mixed_precision.reuse_grad_buf_for_mxfp8_param_ag"))
      add("--reuse-grad-buf-for-mxfp8-param-ag", {}, {});
  }

  // "deepseek_v3_pretrain_256gpu_gb300_fp8mx_config"; empty: its name has none, or a function
  // computes it.
  std::string precision_of_recipe() const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> names{
        {{"_fp8mx", "bf16_with_mxfp8_mixed"},
         {"_fp8cs", "bf16_with_fp8_current_scaling_mixed"},
         {"_nvfp4", "bf16_with_nvfp4_mixed"}}};
    for (const auto& [part, recipe] : names) {
      if (!computes_precision() && text_.recipe.find(part) != std::string::npos)
        return std::string(recipe);
    }
    return "";
  }

  bool computes_precision() const {
    return std::ranges::any_of(text_.computed, [](const std::string& line) {
      return line.starts_with("mixed_precision = ");
    });
  }

  void add_unnamed_precision() {
    const std::string called = precision_of_recipe();
    add_named_precision(called.empty() ? "bf16_mixed" : called);
    arguments.notes.push_back(
        computes_precision()
            ? "the precision is computed: taken as bf16_mixed, with gradients in fp32"
        : called.empty() ? "no override names a precision: bf16_mixed, as recipes have it"
                         : fmt::format("no override names a precision: {}, as {} is called", called,
                                       shortened(text_.recipe)));
  }

  void add_precision() {
    const std::string name = last("mixed_precision", "trainer.plugins.precision");
    const bool said = !last("mixed_precision.bf16").empty() ||
                      !last("mixed_precision.fp16").empty() ||
                      !last("mixed_precision.fp32").empty();
    if (!name.empty() && name != "32") {
      add_named_precision(name);
    } else if (!said && name.empty()) {
      add_unnamed_precision();
    }
    const bool wide = arguments.find("--accumulate-allreduce-grads-in-fp32") != nullptr;
    if (arguments.find("--bf16") != nullptr && !wide) add("--grad-reduce-in-bf16", {}, {});
  }

  const OverridesText& text_;
};

// A recipe brings its model: without sizes of one the scenario needs the name of ours.
void replace_model(const OverridesText& text, ImportedJob& job) {
  const bool sized = std::ranges::any_of(job.missing, [](const MissingKey& key) {
    return key.key == "model.layers" || key.key == "model.hidden";
  });
  if (!sized) return;
  Value model;
  model.set("base", scalar_value(std::string(to_be_replaced)));
  job.scenario.set("model", std::move(model));
  std::erase_if(job.missing, [](const MissingKey& key) { return key.key.starts_with("model."); });
  const std::string recipe =
      text.recipe.empty() ? "the recipe" : "recipe " + shortened(text.recipe);
  job.missing.push_back({"model.base", fmt::format("the model is that of {}: --set model.base=NAME "
                                                   "(see `shardplan list models`)",
                                                   recipe)});
}

bool is_gated(const ImportedJob& job) {
  const Value* model = job.scenario.find("model");
  const Value* gated = model != nullptr && model->is_map() ? model->find("gated_mlp") : nullptr;
  return gated == nullptr || gated->text == "true";
}

Value adapted_products(const SetField& modules, ImportedJob& job) {
  Value targets;
  targets.kind = Value::Kind::sequence;
  for (const std::string& module : modules.values) {
    if (!add_projection(module, targets))
      job.left_out.push_back(fmt::format("adapters of {}: no product of ours", shortened(module)));
  }
  if (!is_gated(job))
    std::erase_if(targets.items, [](const Value& item) { return item.text == "gate"; });
  return targets;
}

// Those of `cfg.peft`; a rank that is not written is 32 (peft/lora.py).
void read_adapters(const OverridesText& text, ImportedJob& job) {
  Value* training = job.scenario.find("training");
  Value tuning;
  std::string kind;
  for (const SetField& set : text.fields) {
    if ((set.field != "peft" && !set.field.starts_with("peft.")) || set.values.empty()) continue;
    const std::string field = set.field.substr(set.field.find('.') + 1);
    if (field == "class" || field == "peft") {
      kind = lower_case(set.values.front());
      tuning = {};
    }
    if (tuning.find("method") == nullptr) {
      tuning.set("method", scalar_value("lora"));
      tuning.set("rank", scalar_value("32"));
      tuning.set("alpha", scalar_value(kind == "dora" ? "64" : "32"));
    }
    if (field == "target_modules") {
      Value targets = adapted_products(set, job);
      if (!targets.items.empty()) tuning.set("targets", std::move(targets));
    } else if (field == "dim" || field == "alpha" || field == "dropout") {
      tuning.set(field == "dim" ? "rank" : field, scalar_value(set.values.front()));
    } else if (field != "class" && field != "peft") {
      job.left_out.push_back(written(set) + ": a key of ours is missing");
    }
  }
  const bool none = kind == "null" || kind == "none";  // `cfg.peft = None`
  if (training == nullptr || !tuning.is_map() || none) return;
  if (kind.ends_with("dora")) job.left_out.emplace_back("peft dora: priced as lora");
  training->set("fine_tuning", std::move(tuning));
}

// Of keys that a recipe may set, those whose argument no field here is.
std::string keys_of_recipe(const OverridesText& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> keys{
      {{"--tensor-model-parallel-size", "plan.tp"},
       {"--pipeline-model-parallel-size", "plan.pp"},
       {"--context-parallel-size", "plan.cp"},
       {"--micro-batch-size", "plan.micro_batch"},
       {"--use-distributed-optimizer", "plan.zero"},
       {"--recompute-granularity", "plan.recompute"},
       {"--sequence-parallel", "plan.sequence_parallel"},
       {"--moe-token-dispatcher-type", "plan.dispatcher"},
       {"--cross-entropy-loss-fusion", "training.loss"},
       {"--overlap-grad-reduce", "training.overlap.overlap_grad_reduce"},
       {"--tp-comm-overlap", "training.overlap.tp_comm_overlap"},
       {"--cuda-graph-impl", "training.overlap.cuda_graph"}}};
  const auto sets = [&](std::string_view flag) {
    return std::ranges::any_of(override_words(), [&](const OverrideWord& word) {
      return word.flag == flag && std::ranges::any_of(text.fields, [&](const SetField& one) {
               return one.field == word.bridge || one.field == word.nemo;
             });
    });
  };
  std::string list;
  for (const auto& [flag, key] : keys) {
    const bool other = key == "plan.dispatcher" && !sets("--expert-model-parallel-size");
    if (!other && !sets(flag)) list += fmt::format("{}{}", list.empty() ? "" : ", ", key);
  }
  return list;
}

}  // namespace

bool holds_bridge_overrides(const std::string& text) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"model.tensor_model_parallel_size", "model.num_layers=",
                                         "train.micro_batch_size", "train.global_batch_size"},
      [&](const char* word) { return text.find(word) != std::string::npos; });
}

bool holds_nemo_overrides(const std::string& text) {
  return text.find("trainer.strategy.") != std::string::npos;
}

ImportedJob import_overrides(const std::string& text, const std::string& file) {
  const OverridesText read = read_overrides(text, file);
  Translation translation(read);
  translation.translate();
  const bool nemo = holds_nemo_overrides(text);
  translation.arguments.stack = noted_stack(text, nemo ? megatron_stack : bridge_stack);
  if (nemo && translation.arguments.find("--accumulate-allreduce-grads-in-fp32") != nullptr)
    translation.arguments.list.push_back({"--megatron-fsdp-main-grads-dtype", {"fp32"}, {}, ""});
  ImportedJob job = import_megatron(translation.arguments);
  job.format = nemo ? JobFormat::nemo : JobFormat::bridge;
  job.left_out.insert(job.left_out.end(), translation.left_out.begin(), translation.left_out.end());
  for (const std::string& line : read.computed) {
    if (!is_harmless_override(line)) job.left_out.push_back(line + ": it is computed");
  }
  read_adapters(read, job);
  replace_model(read, job);
  if (!read.recipe.empty()) job.recipes.push_back(read.recipe);
  if (!read.recipe.empty() && !read.recipe.starts_with("vanilla_gpt")) {
    const std::string keys = keys_of_recipe(read);
    job.notes.push_back(
        fmt::format("what no override says, {} says, which is not known here: Megatron Core's "
                    "defaults stand instead{}{}",
                    shortened(read.recipe), keys.empty() ? "" : ", of ", keys));
  }
  if (read.by_variable) job.notes.emplace_back(world_size_note);
  if (read.branches) {
    job.notes.emplace_back(
        "the script has conditions or loops: every branch is read, and the last value counts");
  }
  return job;
}

}  // namespace planner
