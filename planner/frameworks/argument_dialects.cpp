#include "planner/frameworks/argument_dialects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/import_megatron.hpp"
#include "planner/frameworks/launcher_words.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/trainer_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

using NamedArgument = std::pair<std::string_view, std::string_view>;

const FrameworkWords& dialects() { return framework_words("dialects"); }

// Of a setting that is on unless it is false: the flag for that; empty: it is none of these.
std::string_view switched_off(std::string_view name) {
  const auto& rows = dialects().rows;
  const auto at = std::ranges::find(rows, name, [](const auto& row) { return row.at(0); });
  return at == rows.end() ? "" : at->at(1);
}

bool is_off(const std::string& value) {
  return value == "false" || value == "False" || value == "null" || value == "none" ||
         value == "None";
}
bool is_on(const std::string& value) { return value == "true" || value == "True"; }

const std::string& sole_value(const SetField& set) {
  static const std::string nothing;
  return set.values.empty() ? nothing : set.values.front();
}

// The settings of a program as arguments of Megatron-LM.
class Dialect {
 public:
  explicit Dialect(std::vector<SetField> fields) : fields_(std::move(fields)) {}

  // The last that is set of the name; null for none.
  const SetField* find(std::string_view name) const {
    const auto at = std::find_if(fields_.rbegin(), fields_.rend(),
                                 [&](const SetField& set) { return set.field == name; });
    return at == fields_.rend() ? nullptr : &*at;
  }
  std::string word(std::string_view name, std::string_view otherwise = "") const {
    const SetField* set = find(name);
    return set == nullptr || is_off(sole_value(*set)) ? std::string(otherwise) : sole_value(*set);
  }
  bool on(std::string_view name, bool otherwise = false) const {
    const SetField* set = find(name);
    return set == nullptr ? otherwise : is_on(sole_value(*set));
  }

  void add(const char* flag, std::vector<std::string> values = {}) {
    arguments.list.push_back({flag, std::move(values), {}, ""});
  }
  // Unless the program's settings have it.
  void add_usual(const char* flag, std::vector<std::string> values = {}) {
    if (arguments.find(flag) == nullptr) add(flag, std::move(values));
  }

  // A setting under Megatron-LM's name for it; of switches the ones that are on.
  void translate(const std::string& name, const SetField& set) {
    const std::string& value = sole_value(set);
    if (const auto off = switched_off(name); !off.empty()) {
      if (is_off(value)) arguments.list.push_back({"--" + std::string(off), {}, set.mark, ""});
      return;
    }
    if (is_off(value) && set.unknown.empty()) return;
    std::string flag = "--" + std::string(dialects().read_as(name));
    std::ranges::replace(flag, '_', '-');
    arguments.list.push_back(
        {flag, is_on(value) ? std::vector<std::string>{} : set.values, set.mark, set.unknown});
  }

  const std::vector<SetField>& fields() const { return fields_; }
  MegatronArguments arguments;

 private:
  std::vector<SetField> fields_;
};

constexpr std::array<std::string_view, 3> swift_verbs{"sft", "pt", "rlhf"};

struct SwiftCommand {
  std::size_t at = 0;  // among the script's commands
  ShellWords words;    // after `megatron sft`, or after the program that it starts
};

// Without words where no command is one of these.
SwiftCommand swift_command(const ShellScript& script) {
  for (std::size_t at = 0; at < script.commands.size(); ++at) {
    const ShellWords& command = script.commands[at];
    for (std::size_t i = 0; i < command.size(); ++i) {
      const bool verb = command[i].text == "megatron" && i + 1 < command.size() &&
                        std::ranges::find(swift_verbs, command[i + 1].text) != swift_verbs.end();
      const bool program = command[i].text.find("cli/_megatron/") != std::string::npos;
      if (!verb && !program) continue;
      const auto begin = command.begin() + static_cast<std::ptrdiff_t>(i) + (verb ? 2 : 1);
      return {at, ShellWords(begin, command.end())};
    }
  }
  return {};
}

// What every one of the linear layers means, or its own names of them.
Value swift_targets(const SetField* set) {
  constexpr auto products = std::to_array<NamedArgument>({{"linear_qkv", "q k v"},
                                                          {"linear_proj", "o"},
                                                          {"linear_fc1", "gate up"},
                                                          {"linear_fc2", "down"}});
  Value list;
  list.kind = Value::Kind::sequence;
  for (const std::string& name : set == nullptr ? std::vector<std::string>{} : set->values) {
    const auto* row = std::ranges::find(products, name, &NamedArgument::first);
    for (std::string_view rest = row == products.end() ? "" : row->second; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      list.items.push_back(scalar_value(std::string(rest.substr(0, end))));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return list.items.empty() ? scalar_value("all-linear") : list;
}

std::string tuner_of(const Dialect& in) {
  return in.word("tuner_type", in.word("train_type", "full"));
}

void put_swift_adapters(ImportedJob& job, const Dialect& in) {
  const std::string tuner = tuner_of(in);
  if (tuner == "full") return;
  if (tuner != "lora") {
    const SetField* set = in.find(in.find("tuner_type") != nullptr ? "tuner_type" : "train_type");
    job.left_out.push_back(fmt::format("{} {}: priced as lora, the tower is taken as frozen",
                                       set->field, shortened(tuner)));
  }
  Value tuning;
  tuning.set("method", scalar_value("lora"));
  tuning.set("rank", scalar_value(in.word("lora_rank", "8")));
  tuning.set("alpha", scalar_value(in.word("lora_alpha", "32")));
  tuning.set("targets", swift_targets(in.find("target_modules")));
  if (const std::string dropout = in.word("lora_dropout", "0.05"); dropout != "0")
    tuning.set("dropout", scalar_value(dropout));
  Value* training = job.scenario.find("training");
  // Megatron's fp8_param_gather keeps the weights themselves in fp8: the base, which is frozen.
  if (const Value* gathered = training->find("parameter_gather_precision")) {
    if (gathered->text == "fp8") tuning.set("base_precision", scalar_value("fp8"));
    training->erase("parameter_gather_precision");
  }
  training->set("fine_tuning", std::move(tuning));
  // Its adapters of grouped linear layers are grouped too, each expert's own.
  Value adapters;
  adapters.set("experts", scalar_value("true"));
  training->find("stack")->set("adapters", std::move(adapters));
}

// The arguments have no sizes: the model is one of a hub.
void name_hubs_model(ImportedJob& job, std::string name) {
  job.scenario.set("model", Value{});
  std::erase_if(job.missing, [](const MissingKey& one) { return one.key.starts_with("model."); });
  miss_key(job, "model", "base",
           fmt::format("{}: --set model=NAME",
                       name.empty() ? "no setting names the model" : shortened(name)));
  name_model(job, std::move(name));
}

void name_swift_model(ImportedJob& job, const Dialect& in) {
  std::string name = in.word("model", in.word("mcore_model", in.word("load")));
  for (const char* converted : {"-mcore", "-Mcore"})
    if (const auto at = name.rfind(converted); at != std::string::npos) name.erase(at);
  name_hubs_model(job, std::move(name));
}

// swift/megatron/arguments/megatron_args.py, the defaults that are not Megatron-LM's.
void add_swift_defaults(Dialect& in) {
  in.add_usual("--micro-batch-size", {"1"});
  in.add_usual("--global-batch-size", {"16"});
  if (in.find("recompute_granularity") == nullptr) in.add("--recompute-granularity", {"selective"});
  in.add_usual("--moe-token-dispatcher-type", {"alltoall"});
  in.add_usual("--expert-tensor-parallel-size", {"1"});
  for (const char* name : {"use_distributed_optimizer", "cross_entropy_loss_fusion"}) {
    std::string flag = "--" + std::string(name);
    std::ranges::replace(flag, '_', '-');
    if (in.on(name, true)) in.add_usual(flag.c_str());
  }
  const std::string type = in.word("torch_dtype", "bfloat16");
  if (!in.on("fp16") && type != "float32") in.add_usual(type == "float16" ? "--fp16" : "--bf16");
}

// "${.hidden_size}" stands for the setting of that name next to it.
void resolve(SetField& set, const std::vector<SetField>& all) {
  std::string& value = set.values.front();
  if (!value.starts_with("${")) return;
  const std::string group = set.field.substr(0, set.field.rfind('.') + 1);
  const std::string other = value.starts_with("${.") && value.ends_with('}')
                                ? group + value.substr(3, value.size() - 4)
                                : "";
  const auto at = std::ranges::find(all, other, &SetField::field);
  if (at != all.end() && at->values.size() == 1) {
    value = at->values.front();
  } else {
    set.unknown = value;
  }
}

void add_nemo_block(Dialect& in) {
  const std::string activation = in.word("model.activation", "gelu");
  if (activation.ends_with("swiglu")) in.add("--swiglu");
  if (activation.ends_with("geglu")) in.add("--quick-geglu");
  if (activation == "squared-relu") in.add("--squared-relu");
  const std::string norm = in.word("model.normalization", "layernorm1p");
  if (norm == "rmsnorm") in.add("--normalization", {"RMSNorm"});
  if (in.find("model.num_query_groups") != nullptr && !in.word("model.num_query_groups").empty())
    in.add("--group-query-attention");
  const std::string library = in.word("model.tokenizer.library"),
                    type = in.word("model.tokenizer.type");
  if (library == "megatron") in.add("--tokenizer-type", {type});
  if (library == "huggingface") in.add("--tokenizer-model", {type});
  const std::string model = in.word("model.tokenizer.model");
  if (library == "sentencepiece") in.add("--tokenizer-type", {"SentencePieceTokenizer"});
  if (!model.empty()) in.add("--tokenizer-model", {model.substr(model.rfind('/') + 1)});
}

void add_nemo_training(Dialect& in) {
  const std::string precision = in.word("trainer.precision", "bf16");
  if (precision.starts_with("bf16")) in.add("--bf16");
  if (precision.starts_with("16")) in.add("--fp16");
  if (in.on("model.fp8")) in.add("--fp8-format", {in.on("model.fp8_e4m3") ? "e4m3" : "hybrid"});
  if (in.word("model.optim.name").find("distributed") != std::string::npos)
    in.add("--use-distributed-optimizer");
  if (in.word("model.optim.grad_sync_dtype").starts_with("bf")) in.add("--grad-reduce-in-bf16");
  if (in.find("model.transformer_engine") == nullptr || !in.on("model.transformer_engine"))
    in.add("--transformer-impl", {"local"});
  if (in.on("model.use_flash_attention")) in.add("--use-flash-attn");
  if (!in.on("model.overlap_p2p_comm")) in.add("--no-overlap-p2p-communication");
}

std::int64_t number_in(const Dialect& in, const char* field, std::int64_t otherwise = 0) {
  const std::string text = in.word(field);
  const bool number =
      !text.empty() && text.size() < 8 && text.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(text) : otherwise;
}

// What LLaMA-Factory reads itself, or what is read here next to the arguments.
bool is_factory_setting(std::string_view name) {
  constexpr std::array<std::string_view, 10> own{
      "model_name_or_path", "stage",        "finetuning_type",
      "flash_attn",         "packing",      "per_device_train_batch_size",
      "neat_packing",       "gradient_acc", "lora_",
      "mixed_precision"};
  return is_harmless_to_trainer(name) ||
         std::ranges::any_of(own, [&](std::string_view begin) { return name.starts_with(begin); });
}

// mcore_adapter/training_args.py, the defaults that are not Megatron-LM's; of Megatron-Bridge, the
// other library that these files are for (hparams/megatron_bridge_args.py), a precision's name.
void add_factory_defaults(Dialect& in, std::int64_t micro) {
  in.add("--micro-batch-size", {std::to_string(micro)});
  in.add_usual("--seq-length", {"2048"});
  if (number_in(in, "expert_model_parallel_size") > 1) {
    in.add_usual("--moe-token-dispatcher-type", {"allgather"});
    in.add_usual("--expert-tensor-parallel-size", {"1"});
  }
  if (!in.on("bias_activation_fusion")) in.add_usual("--no-bias-swiglu-fusion");
  if (!in.on("apply_rope_fusion")) in.add_usual("--no-rope-fusion");
  if (in.word("mixed_precision").starts_with("bf16")) in.add_usual("--bf16");
  if (in.arguments.find("--bf16") != nullptr) in.add_usual("--accumulate-allreduce-grads-in-fp32");
}

void put_factory_adapters(ImportedJob& job, const Dialect& in) {
  const std::string rank = in.word("lora_rank", "8");
  Value tuning;
  tuning.set("method", scalar_value("lora"));
  tuning.set("rank", scalar_value(rank));
  tuning.set("alpha", scalar_value(in.word("lora_alpha",
                                           std::to_string(2 * number_in(in, "lora_rank", 8)))));
  tuning.set("targets", scalar_value("all-linear"));
  job.scenario.find("training")->set("fine_tuning", std::move(tuning));
  const SetField* targets = in.find("lora_target");
  if (targets != nullptr && sole_value(*targets) != "all") {
    job.left_out.push_back(
        fmt::format("lora_target {}: taken as all linear layers", shortened(sole_value(*targets))));
  }
}

}  // namespace

bool holds_swift_megatron(const std::string& text) {
  return std::ranges::any_of(swift_verbs,
                             [&](std::string_view verb) {
                               return text.find("megatron " + std::string(verb) + " ") !=
                                      std::string::npos;
                             }) ||
         text.find("cli/_megatron/") != std::string::npos;
}

ImportedJob import_swift_megatron(const std::string& text, const std::string& file) {
  const ShellScript script = read_shell(text, file);
  const auto [at, words] = swift_command(script);
  if (words.empty())
    throw ConfigError({file, 0, 0}, "has no command that trains", "give the script that does");
  std::vector<SetField> fields = flags_of(words);
  for (SetField& set : fields) {
    set.field = set.name;
    std::ranges::replace(set.field, '-', '_');
  }
  Dialect in(std::move(fields));
  for (const SetField& set : in.fields()) {
    const bool counts = in.find(set.field) == &set;  // the last of several
    if (counts && !is_harmless_to_trainer(set.field)) in.translate(set.field, set);
  }
  add_swift_defaults(in);
  Launched launched = launched_by(script, words);
  if (launched.world_size == 0) launched = launched_by_variables(script, at);
  in.arguments.world_size = launched.world_size;
  in.arguments.per_node = launched.per_node;
  in.arguments.nodes = launched.nodes;
  constexpr std::array<std::string_view, 12> own{
      "--tuner-type",   "--train-type", "--lora-rank",      "--lora-alpha",
      "--lora-dropout", "--load",       "--target-modules", "--model",
      "--torch-dtype",  "--rlhf-type",  "--packing",        "--padding-free"};
  std::erase_if(in.arguments.list, [&](const MegatronArgument& one) {
    return std::ranges::find(own, one.flag) != own.end();
  });
  // Megatron-LM's own stack has no adapters.
  if (tuner_of(in) != "full") in.arguments.stack = bridge_stack;
  ImportedJob job = import_megatron(in.arguments);
  job.format = JobFormat::ms_swift;
  assume_sequence(job);
  name_swift_model(job, in);
  put_swift_adapters(job, in);
  if (const SetField* set = in.find("rlhf_type")) {
    job.left_out.push_back(
        fmt::format("rlhf_type {}: priced as supervised fine-tuning: a reference model, pairs and "
                    "sampling are not",
                    shortened(sole_value(*set))));
  }
  job.notes.emplace_back("every sequence is taken as full: shorter samples take less time");
  return job;
}

bool holds_nemo_yaml(const std::string& text) {
  const auto nested = [&](const char* key) { return text.find(key) != std::string::npos; };
  return has_line(text, "trainer:") && has_line(text, "model:") && nested(" micro_batch_size:") &&
         nested(" tensor_model_parallel_size:") &&
         (nested(" num_layers:") || nested(" encoder_seq_length:"));
}

ImportedJob import_nemo_yaml(const std::string& text, const std::string& file) {
  std::vector<SetField> fields = read_yaml(text, file);
  const std::vector<SetField> written = fields;
  for (SetField& set : fields) {
    if (!set.values.empty()) resolve(set, written);
    if (set.field.starts_with("model.encoder.") || set.field.starts_with("model.decoder.")) {
      throw ConfigError(set.mark, "an encoder and a decoder of NeMo 1 are not read here",
                        "write the model yourself: --set model=FILE");
    }
  }
  Dialect in(std::move(fields));
  constexpr std::string_view model = "model.";
  for (const SetField& set : in.fields()) {
    const bool optim = set.field.starts_with("model.optim.overlap_");
    const bool checkpoints = set.field.starts_with("model.activations_checkpoint") &&
                             !in.word("model.activations_checkpoint_granularity").empty();
    const bool multiplied = set.field == "model.ffn_hidden_size" && !set.unknown.empty();
    const bool kept = optim || checkpoints || set.field == "model.fp8_params";
    const bool harmless = std::ranges::any_of(
        dialects().harmless, [&](std::string_view word) { return set.field.starts_with(word); });
    // Its launcher writes stages of a rank where there is one rank, which has none.
    const bool alone = set.field == "model.virtual_pipeline_model_parallel_size" &&
                       in.word("model.pipeline_model_parallel_size", "1") == "1";
    if (alone || multiplied || (harmless && !kept) || !set.field.starts_with(model)) continue;
    in.translate(set.field.substr(model.size()), set);
  }
  add_nemo_block(in);
  add_nemo_training(in);
  in.arguments.per_node = number_in(in, "trainer.devices");
  in.arguments.world_size = in.arguments.per_node * number_in(in, "trainer.num_nodes");
  ImportedJob job = import_megatron(in.arguments);
  job.format = JobFormat::nemo;
  job.scenario.find("training")->find("stack")->set("base", scalar_value("nemo-2024"));
  return job;
}

bool holds_factory_megatron(const std::string& text) {
  return std::ranges::any_of(
      std::to_array({"tensor_model_parallel_size:", "pipeline_model_parallel_size:",
                     "expert_model_parallel_size:", "use_distributed_optimizer:"}),
      [&](const char* key) { return has_line(text, key); });
}

ImportedJob import_factory_megatron(const std::string& text, const std::string& file) {
  Dialect in(read_yaml(text, file));
  for (const SetField& set : in.fields())
    if (!is_factory_setting(set.field)) in.translate(set.field, set);
  const std::string stage = in.word("stage", "sft");
  // A pair of samples is two sequences of a micro-batch.
  const bool pairs = stage == "dpo" || stage == "rm";
  constexpr std::int64_t usual = 8;  // transformers' TrainingArguments
  const std::int64_t micro =
      product({pairs ? 2 : 1, number_in(in, "per_device_train_batch_size", usual)});
  add_factory_defaults(in, micro);
  const bool adapts = in.word("finetuning_type", "lora") != "full";
  // Megatron-LM's own stack has no adapters.
  if (adapts || in.find("mixed_precision") != nullptr) in.arguments.stack = bridge_stack;
  ImportedJob job = import_megatron(in.arguments);
  job.format = JobFormat::llama_factory;
  job.accumulation = std::max<std::int64_t>(1, number_in(in, "gradient_accumulation_steps", 1));
  for (MissingKey& key : job.missing) {
    if (key.key != "training.global_batch") continue;
    key.remedy = fmt::format("the sequences of an iteration: {} of each data-parallel rank",
                             product({micro, job.accumulation}));
  }
  name_hubs_model(job, in.word("model_name_or_path"));
  if (adapts) put_factory_adapters(job, in);
  if (stage != "sft" && stage != "pt") {
    job.left_out.push_back(
        fmt::format("stage = {}: priced as supervised fine-tuning: a reference model is not",
                    shortened(stage)));
  }
  job.notes.emplace_back("every sequence is taken as full: shorter samples take less time");
  return job;
}

}  // namespace planner
