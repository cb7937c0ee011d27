#include "planner/frameworks/import_trainer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "planner/exchange/fitting_adapters.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/frameworks/checkpoint_format.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/trainer_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

// A text that only a regular expression is.
bool is_pattern(const std::string& text) { return text.find_first_of("\\(|*+") != text.npos; }

class TrainerImport : public SettingsImport {
 public:
  TrainerImport(TrainerJob from, const std::string& text)
      : SettingsImport(from.format, std::move(from.fields)), from_(std::move(from)), text_(text) {}

  void read() {
    read_model();
    read_sharding();
    read_devices();
    read_batch();
    read_training();
    read_fine_tuning();
    read_recomputation();
    leave_out_rest();
  }

 private:
  // Hugging Face's and YAML's words of truth; "auto" of a precision is bf16 on today's devices.
  bool truth(std::string_view field, bool otherwise) {
    const SetField* set = fields_.find(field);
    const bool open = set != nullptr && !set->unknown.empty();
    if (set == nullptr || (!open && (set->values.size() != 1 || set->values.front().empty())))
      return otherwise;
    const std::string value = lower_case(fields_.word(field, ""));
    return value != "false" && value != "no" && value != "0" && value != "none" && value != "null";
  }
  // The values of a list, which a command may write with blanks, commas or brackets.
  std::vector<std::string> list(std::string_view field) {
    const SetField* set = fields_.find(field);
    std::vector<std::string> items;
    if (set == nullptr) return items;
    for (const std::string& value : set->values) {
      std::string item;
      for (const char c : value + ",") {
        const bool part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
        if (part) {
          item += c;
        } else if (!item.empty()) {
          items.push_back(std::exchange(item, {}));
        }
      }
    }
    return items;
  }
  double real(std::string_view field, double otherwise) {
    const SetField* set = fields_.find(field);
    if (set == nullptr) return otherwise;
    const std::string text = fields_.word(field, "");
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() || text.empty()) {
      throw ConfigError(set->mark, fmt::format("{} is no number", quote(shortened(text))),
                        "write a number");
    }
    return value;
  }

  void read_model() {
    std::string name = fields_.word("model_name_or_path", "");
    miss_key(job, "model", "base",
             name.empty()
                 ? "the model, which no setting names: --set model=NAME"
                 : fmt::format("{}: --set model=NAME (see `shardplan list models`), or its "
                               "config.json: --set model=./config.json",
                               shortened(name)));
    name_model(job, std::move(name));
  }

  // The stage of DeepSpeed's ZeRO, as shipped files are called: zero3_bf16.json, ds_z2_offload.
  int stage_in(const std::string& name) {
    for (const std::string_view word : {"zero", "stage", "z"}) {
      for (std::size_t at = 0; (at = name.find(word, at)) != std::string::npos; ++at) {
        std::size_t digit = at + word.size();
        if (digit < name.size() && (name[digit] == '_' || name[digit] == '-')) ++digit;
        if (digit < name.size() && name[digit] >= '0' && name[digit] <= '3')
          return name[digit] - '0';
      }
    }
    return -1;
  }

  void read_deepspeed(const std::string& path) {
    const std::string name = lower_case(path.substr(path.rfind('/') + 1));
    zero_ = stage_in(name);
    if (zero_ < 0) {
      miss_key(job, "plan", "zero",
               fmt::format("ZeRO's stage stands in {}, which does not lie with this file: put it "
                           "there, or --set plan.zero=N, and plan.offload where it keeps states "
                           "on the host",
                           shortened(path)));
      return;
    }
    const bool offloads = name.find("offload") != std::string::npos;
    if (offloads) offload_ = zero_ == 3 ? "parameters" : "optimizer";
    job.notes.push_back(fmt::format("ZeRO {}{}, as {} is called", zero_,
                                    offloads ? " with states in host memory" : "",
                                    shortened(name)));
  }

  void read_zero_stage() {
    constexpr std::int64_t beyond = 4;  // a stage that the plan refuses
    constexpr std::int64_t usual = 2;   // accelerate's, utils/dataclasses.py, DeepSpeedPlugin
    zero_ = static_cast<int>(std::min(fields_.number("zero_stage", usual, 0), beyond));
    const auto kept = [&](const char* field) {
      const std::string device = lower_case(fields_.word(field, "none"));
      if (device == "nvme") drives_ = true;
      if (device == "cpu" || device == "nvme") return true;
      if (device != "none") leave_out(fields_.written(field), "only cpu and nvme have a model");
      return false;
    };
    if (kept("offload_optimizer_device")) offload_ = "optimizer";
    if (kept("offload_param_device")) offload_ = "parameters";
    // DeepSpeed-Chat's switch for both (dschat/utils/ds_utils.py).
    if (truth("offload", false)) offload_ = zero_ == 3 ? "parameters" : "optimizer";
  }

  // A strategy by its name, or by its number in torch's ShardingStrategy, as accelerate's older
  // files have it.
  std::string sharding_strategy(const char* field) {
    constexpr std::array<std::string_view, 5> names{"full_shard", "shard_grad_op", "no_shard",
                                                    "hybrid_shard", "hybrid_shard_zero2"};
    std::string word = lower_case(fields_.word(field, ""));
    const bool number = word.size() == 1 && word[0] >= '1' && word[0] <= '5';
    if (number) word = names[static_cast<std::size_t>(word[0] - '1')];
    return word;
  }

  // FSDP 1 names a strategy, FSDP 2 whether parameters are resharded after the forward.
  void read_fsdp() {
    std::string strategy;
    for (const std::string& word : list("fsdp")) strategy += lower_case(word) + " ";
    strategy += sharding_strategy("fsdp_config.sharding_strategy") + " " +
                sharding_strategy("fsdp_config.reshard_after_forward");
    const auto holds = [&](const char* word) { return strategy.find(word) != std::string::npos; };
    zero_ = 3;
    if (holds("shard_grad_op") || holds("zero2") || holds("false")) zero_ = 2;
    if (holds("no_shard")) zero_ = 0;
    hybrid_ = holds("hybrid");
    if (truth("fsdp_config.offload_params", false) || holds("offload")) offload_ = "parameters";
  }

  void read_sharding() {
    const std::string type = lower_case(fields_.word("distributed_type", ""));
    const bool shards =
        fields_.has("fsdp") || type.starts_with("fsdp") || fields_.has("dp_shard_size") ||
        fields_.has("fsdp_config.reshard_after_forward") || truth("use_fsdp", false);
    const std::string deepspeed = fields_.word("deepspeed", "");
    deepspeed_ = truth("use_deepspeed", type == "deepspeed") || !deepspeed.empty() ||
                 fields_.has("zero_stage");
    if (fields_.has("zero_stage") || (deepspeed_ && deepspeed.empty())) {
      read_zero_stage();
    } else if (deepspeed_) {
      read_deepspeed(deepspeed);
    } else if (shards) {
      read_fsdp();
    } else if (type == "megatron_lm") {
      const SetField* set = fields_.find("distributed_type");
      throw ConfigError(set->mark, "accelerate with Megatron-LM is not read here",
                        "give Megatron-LM's own script: shardplan import megatron FILE");
    }
    const bool unsaid = type.empty() && !deepspeed_ && !shards;
    const std::string settings = unsaid ? fields_.word("config_file", "") : "";
    const bool unread = !settings.empty();
    if (unread) {
      miss_key(job, "plan", "zero",
               fmt::format("accelerate's settings stand in {}, which does not lie with this file: "
                           "put it there, or --set plan.zero=N",
                           shortened(settings)));
    }
    if (zero_ >= 0) put("plan", "zero", zero_);
    if (zero_ < 0 && deepspeed.empty() && !unread) put("plan", "zero", "0");
    if (!offload_.empty() && !drives_) put("plan", "offload", offload_);
    if (offload_.empty() || !drives_) return;
    Value map;  // both on drives, where either is
    map.set("optimizer", scalar_value("1"));
    if (offload_ == "parameters") map.set("parameters", scalar_value("1"));
    map.set("to", scalar_value("nvme"));
    job.scenario.find("plan")->set("offload", map);
  }

  std::int64_t context_ranks() {
    return std::max(fields_.number("cp_size", 1), fields_.number("sp_size", 1));
  }
  // Ulysses' all-to-all; torch's ring, which gathers keys and values first unless it rotates them;
  // ring attention of axolotl and ms-swift.
  std::string_view context_exchange() {
    const std::string mode = lower_case(fields_.word("cp_mode", from_.defaults.context));
    if (fields_.number("sp_size", 1) > 1 || mode == "ulysses") return "a2a";
    const std::string way = lower_case(
        fields_.word("parallelism_config.parallelism_config_cp_comm_strategy", "allgather"));
    const bool gathers = job.format == JobFormat::accelerate && way == "allgather";
    return gathers ? "all_gather" : "p2p";
  }

  void read_devices() {
    miss_cluster(job);
    const std::int64_t tp = tp_ = fields_.number("tp_size", 1), cp = cp_ = context_ranks();
    const std::int64_t nodes = fields_.number("num_machines", from_.nodes);
    const bool one = from_.alone || lower_case(fields_.word("distributed_type", "")) == "no";
    if (from_.alone && from_.devices > 1) {
      job.left_out.push_back(
          fmt::format("{} visible devices without NPROC_PER_NODE are of one process, which puts "
                      "layers on each in turn (device_map): priced as one device",
                      from_.devices));
    }
    std::int64_t devices = fields_.number("num_processes", one ? 1 : from_.devices, 0);
    std::int64_t replicas = fields_.number("dp_replicate_size", 1);
    const std::int64_t sharded = fields_.number("dp_shard_size", 1);
    // axolotl's ranks of experts have samples of their own, as replicas do.
    const std::int64_t ep = ep_ = fields_.number("expert_parallel_size", 1);
    if (devices == 0 && (sharded > 1 || ep > 1)) devices = product({replicas, sharded, ep, tp, cp});
    put("plan", "tp", tp);
    if (cp > 1) put("plan", "cp", cp);
    if (cp > 1) put("plan", "cp_comm", std::string(context_exchange()));
    if (ep > 1) put("plan", "ep", ep);
    if (devices == 0 || devices % product({tp, cp}) != 0) {
      return miss_key(job, "cluster", "devices", "the number of devices: --set cluster.devices=N");
    }
    dp_ = devices / product({tp, cp});
    put("cluster", "devices", devices);
    put("plan", "dp", dp_);
    if (hybrid_ && replicas == 1) replicas = nodes;
    if (zero_ > 1 && replicas > 1 && dp_ % replicas == 0) put("plan", "dp_replicate", replicas);
  }

  void assume(const char* field, const std::string& value) {
    if (!fields_.has(field))
      job.notes.push_back(fmt::format("{} is not written: {}, the default", field, value));
  }

  void read_batch() {
    const std::int64_t written =
        fields_.number("per_device_train_batch_size", from_.defaults.micro_batch);
    const std::int64_t micro = trains_on_pairs() ? product({2, written}) : written;
    job.accumulation = fields_.number("gradient_accumulation_steps", 1);
    // axolotl's older way of saying it: sequences of an update on each device.
    const std::int64_t updated = fields_.number("batch_size", 0, 0);
    if (updated > 0 && !fields_.has("gradient_accumulation_steps"))
      job.accumulation = std::max<std::int64_t>(1, updated / written);
    put("plan", "micro_batch", micro);
    assume("per_device_train_batch_size", std::to_string(written));
    if (micro != written)
      job.notes.emplace_back("a pair of samples is two sequences, in one micro-batch");
    const std::int64_t global = fields_.number("global_batch_size", 0, 0);
    if (global > 0) {
      put("training", "global_batch", product({global, micro / written}));
    } else if (dp_ > 0) {
      put("training", "global_batch", product({micro, job.accumulation, dp_}));
    } else {
      miss_key(job, "training", "global_batch",
               fmt::format("the sequences of an iteration: {} of each data-parallel rank",
                           product({micro, job.accumulation})));
    }
    std::int64_t length = fields_.number("max_length", from_.defaults.sequence, 0);
    // What TRL's trainers that sample have in its place.
    const std::int64_t prompt = fields_.number("max_prompt_length", 0, 0);
    const bool sampled = prompt > 0;
    if (sampled) length = prompt + fields_.number("max_completion_length", 512, 0);
    if (length == 0) {
      miss_key(job, "training", "sequence", "tokens of a sequence: --set training.sequence=N");
      assume_sequence(job);
    } else {
      put("training", "sequence", length);
      if (!sampled) assume("max_length", std::to_string(length));
    }
    if (truth("packing", false)) {
      job.notes.emplace_back(
          "samples are packed: every sequence is taken as full; --set training.sample_tokens and "
          "training.packing for other lengths");
    } else {
      job.notes.emplace_back(
          "every sequence is taken as full; where a micro-batch is padded to its longest sample "
          "alone, --set training.sequence=N, the mean of those, prices that");
    }
  }

  // bf16 is what all but the oldest of these programs write or choose.
  std::string precision() {
    const std::string type = lower_case(fields_.word("torch_dtype", ""));
    const std::string mixed = lower_case(fields_.word("mixed_precision", ""));
    if (truth("fp8", false)) return "fp8";  // bf16: true is then of the rest
    if (truth("bf16", false) || mixed == "bf16" || type.starts_with("bf")) return "bf16";
    if (truth("fp16", false) || mixed == "fp16" || type == "float16" || type == "fp16")
      return "fp16";
    if (mixed == "fp8") return "fp8";
    if (truth("pure_bf16", false)) {
      leave_out(fields_.written("pure_bf16"),
                "taken as bf16 with fp32 weights, which keeps 8 bytes a trained parameter more");
      return "bf16";
    }
    if (fields_.find("data_split") != nullptr) return "fp16";  // DeepSpeed-Chat's --dtype
    if (from_.format == JobFormat::ms_swift || from_.format == JobFormat::accelerate) return "bf16";
    return fields_.has("fp16") || fields_.has("bf16") || mixed == "no" || type == "float32"
               ? "fp32"
               : "bf16";
  }

  // Of the Trainer's DDP and FSDP or of DeepSpeed, and what accelerate's sizes add to them.
  Value stack() {
    const std::string name = noted_stack(text_, deepspeed_ ? deepspeed_stack : trainer_stack);
    const std::string attention = lower_case(fields_.word("attn_implementation", "auto"));
    const bool unfused = attention == "eager" || attention == "disabled" || truth("eager", false);
    Value stack;
    if (name == trainer_stack && (tp_ > 1 || cp_ > 1 || ep_ > 1 || zero_ == 1)) {
      stack.set("data_parallel_only", scalar_value("false"));
      if (zero_ == 1) stack.set("zero_one", scalar_value("true"));
      job.notes.emplace_back("the stack peft is measured with DDP and FSDP alone");
    }
    if (cp_ > 1) stack.set("context_parallel", scalar_value("true"));
    if (unfused) stack.set("attention", scalar_value("unfused"));
    if (!stack.is_map()) return scalar_value(name);
    stack.set("base", scalar_value(name));
    return stack;
  }

  void read_training() {
    const std::string by = precision();
    put("training", "precision", by);
    if (by == "fp8" && zero_ == 3 && truth("fp8_enable_fsdp_float8_all_gather", false))
      put("training", "parameter_gather_precision", "fp8");
    const std::string tf32 = fields_.word("tf32", "");
    if (by == "fp32" && !tf32.empty())
      leave_out(fields_.written("tf32"), "products in fp32 have the device's fp32 rate");
    job.scenario.find("training")->set("stack", stack());
    for (const char* fused : {"flash_attention", "sdp_attention"}) fields_.find(fused);
    const std::string name = lower_case(fields_.word("optim", "adamw_torch"));
    const auto& rows = framework_words("trainer").rows;
    const auto row = std::ranges::find_if(rows, [&](const auto& one) { return one[0] == name; });
    const bool adam = name.starts_with("adam");
    if (row == rows.end() && !adam) leave_out(fields_.written("optim"), "taken as adam");
    std::string optimizer(row != rows.end() ? (*row)[1] : "adam");
    if (row != rows.end() && row->back() == "nearest")
      leave_out(fields_.written("optim"), "taken as " + optimizer + ", the nearest");
    if (optimizer == "adam-8bit" && !offload_.empty()) {
      leave_out(fields_.written("optim"), "in host memory taken as adam, which runs there");
      optimizer = "adam";
    }
    put("training", "optimizer", optimizer);
    if (truth("torch_compile", false)) {
      Value overlap;
      overlap.set("compile", scalar_value("true"));
      job.scenario.find("training")->set("overlap", overlap);
    }
    for (const char* fused : {"use_liger_kernel", "enable_liger_kernel", "cut_cross_entropy",
                              "liger_fused_linear_cross_entropy"}) {
      if (truth(fused, false)) {
        leave_out(fields_.written(fused),
                  "kernels and memory of the loss are taken as the stack's, which keeps more; "
                  "--set training.loss=flash comes nearer");
      }
    }
    read_stage();
  }

  // A loss of TRL's that only its trainers on pairs have.
  bool has_loss_of_pairs() {
    if (job.format != JobFormat::trainer) return false;
    const auto known = fmt::format(" {} ", framework_words("trainer").read_as("losses_of_pairs"));
    return std::ranges::any_of(list("loss_type"), [&](const std::string& loss) {
      return known.find(fmt::format(" {} ", loss)) != std::string::npos;
    });
  }
  // LLaMA-Factory's stage (and what a script of TRL is called after), axolotl's rl, ms-swift's
  // rlhf_type; else what only one of TRL's trainers has a setting for.
  std::string method() {
    for (const char* field : {"stage", "rl", "rlhf_type"}) {
      std::string stage = lower_case(fields_.word(field, "sft"));
      if (stage != "sft" && stage != "pt") return stage;
    }
    if (fields_.has("num_generations")) return "grpo";
    return fields_.has("precompute_ref_log_probs") || has_loss_of_pairs() ? "dpo" : "sft";
  }
  // The trainers of TRL that put the chosen and the rejected sample of n prompts into a batch of
  // 2 n sequences.
  bool trains_on_pairs() {
    const std::string of = method();
    return std::ranges::any_of(
        std::to_array({"dpo", "ipo", "orpo", "simpo", "cpo", "rm", "reward"}),
        [&](const char* pairs) { return of == pairs; });
  }
  void read_stage() {
    const std::string of = method();
    if (of == "sft") return;
    std::string written;
    for (const char* field :
         {"loss_type", "num_generations", "precompute_ref_log_probs", "rlhf_type", "rl", "stage"})
      if (fields_.find(field) != nullptr) written = fields_.written(field);
    const bool samples = of == "grpo" || of == "rloo" || of == "ppo" || of == "gkd";
    leave_out(written, samples ? "priced as supervised fine-tuning: sampling, which may take most "
                                 "of a step, and a reference model are not"
                               : "priced as supervised fine-tuning: a reference model is not");
  }

  // The names of a list; or of PEFT's regular expression what it has before "_proj".
  std::vector<std::string> target_names() {
    const SetField* set = fields_.find("lora_target_modules");
    if (set == nullptr || set->values.size() != 1 || !is_pattern(set->values.front()))
      return list("lora_target_modules");
    auto names = projections_in(set->values.front());
    if (names.empty()) names.emplace_back("all-linear");
    leave_out(
        fields_.written("lora_target_modules"),
        fmt::format("a regular expression, taken as {} in every layer", fmt::join(names, ", ")));
    return names;
  }

  // Which products have adapters; names of other families' layers are left out.
  Value targets() {
    const auto names = target_names();
    const SetField* rank = fields_.find("lora_r");
    const bool all = truth("lora_target_linear", false) ||
                     (rank != nullptr && rank->name == "lora_dim") ||  // of DeepSpeed-Chat
                     std::ranges::any_of(names, [](const std::string& name) {
                       return name == "all" || name == "all-linear";
                     });
    Value ours;
    ours.kind = Value::Kind::sequence;
    for (const std::string& name : all ? std::vector<std::string>{} : names) {
      if (!add_projection(name, ours))
        leave_out(fmt::format("lora_target_modules {}", shortened(name)), "no projection of ours");
    }
    if (!ours.items.empty()) return ours;
    const bool usual = (job.format == JobFormat::axolotl || job.format == JobFormat::trainer) &&
                       !all && names.empty();
    if (!usual || fields_.has("lora_target_parameters")) return scalar_value("all-linear");
    // axolotl and TRL (ModelConfig.lora_target_modules) leave it to peft/utils/constants.py,
    // TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING: of most families.
    job.notes.emplace_back("no lora_target: PEFT's usual q_proj and v_proj");
    for (const char* product : {"q", "v"}) ours.items.push_back(scalar_value(product));
    return ours;
  }

  bool reads_four_bits() {
    const std::int64_t bits = fields_.number("bits", 0, 0);
    const bool eight = truth("load_in_8bit", false) || bits == 8;
    if (eight)
      job.notes.emplace_back("a base of 8 bits (LLM.int8) is taken as one of fp8, of one byte too");
    eight_bits_ = eight;
    return truth("load_in_4bit", false) || bits == 4;
  }

  // A base whose checkpoint is quantised, as its name has it: where the settings have no bits.
  // Returns whether it has 4 of them.
  bool quantised_by_name() {
    const auto format = format_in_name(fields_.word("model_name_or_path", ""));
    if (!format || format->weights == "bf16") return false;
    const std::string what =
        fmt::format("the base is quantised, as {} in its checkpoint's name has it", format->word);
    if (format->weights.empty()) {
      leave_out(what,
                "no base_precision is as narrow: taken as bf16; --set "
                "training.fine_tuning.method=qlora takes it as nf4");
      return false;
    }
    eight_bits_ = format->weights == "int8" || format->weights == "fp8";
    job.notes.push_back(
        fmt::format("{}: base_precision {}, as many bits", what, eight_bits_ ? "fp8" : "nf4"));
    return !eight_bits_;
  }

  // OFT rotates a product's input by blocks of b: b multiplications for each of its values, as an
  // adapter of rank b / 2 on a square product has.
  std::int64_t rank_of_rotations() {
    const std::int64_t block = fields_.number("oft_block_size", 32);
    leave_out(fields_.written("adapter"),
              fmt::format("priced as LoRA of rank {}, which multiplies as much as rotations of "
                          "blocks of {}",
                          std::max<std::int64_t>(1, block / 2), block));
    return std::max<std::int64_t>(1, block / 2);
  }

  void read_fine_tuning() {
    std::string adapter = lower_case(fields_.word("adapter", ""));
    // axolotl's settings of adapters are of none without this one.
    if (adapter.empty() && job.format == JobFormat::axolotl) adapter = "full";
    if (adapter.empty()) {
      const bool adapts = truth("use_peft", false) || fields_.number("lora_r", 0, 0) > 0;
      adapter = adapts ? "lora" : from_.defaults.adapter;
    }
    bool four = reads_four_bits();
    const bool frozen = adapter != "full" && adapter != "none" && adapter != "null";
    if (frozen && !four && !eight_bits_) four = quantised_by_name();
    const bool rotates = adapter == "oft";
    for (const char* kind : {"adalora", "longlora", "lora_llm", "dora"}) {
      if (adapter != kind) continue;
      leave_out(fields_.written("adapter"), "priced as lora");
      adapter = "lora";
    }
    if (rotates) adapter = "lora";
    if (adapter == "lora" && four) adapter = "qlora";
    if (adapter == "none" || adapter == "null") adapter = "full";
    if (adapter != "full" && adapter != "lora" && adapter != "qlora") {
      const SetField* set = fields_.find("adapter");
      throw ConfigError(set->mark, fmt::format("{} has no model here", quote(shortened(adapter))),
                        "allowed: full, lora, qlora, oft");
    }
    for (const char* field : {"load_in_4bit", "load_in_8bit", "bits"}) {
      if (adapter == "full" && (four || eight_bits_) && fields_.has(field))
        leave_out(fields_.written(field), "only a frozen base is kept in so few bits");
    }
    Value tuning;
    tuning.set("method", scalar_value(adapter));
    if (adapter != "full") {
      const auto& usual = from_.defaults;
      const std::int64_t rank =
          rotates ? rank_of_rotations() : fields_.number("lora_r", usual.rank);
      const double alpha =
          real("lora_alpha", static_cast<double>(usual.alpha > 0 ? usual.alpha : 2 * rank));
      const double dropout = real("lora_dropout", usual.dropout);
      tuning.set("rank", scalar_value(std::to_string(rank)));
      tuning.set("alpha", scalar_value(fmt::format("{}", alpha)));
      tuning.set("targets", targets());
      if (dropout > 0) tuning.set("dropout", scalar_value(fmt::format("{}", dropout)));
      if (eight_bits_) tuning.set("base_precision", scalar_value("fp8"));
      if (adapter == "qlora" && !truth("double_quantization", usual.double_quantization))
        tuning.set("double_quantization", scalar_value("false"));
      assume("lora_r", std::to_string(rank));
    }
    job.scenario.find("training")->set("fine_tuning", tuning);
  }

  void read_recomputation() {
    const bool usual =
        from_.defaults.checkpointing && !truth("disable_gradient_checkpointing", false);
    const SetField* set = fields_.find("gradient_checkpointing");
    bool checkpoints = truth("gradient_checkpointing", usual) ||
                       truth("fsdp_config.activation_checkpointing", false);
    if (usual && !checkpoints && job.format == JobFormat::llama_factory &&
        set->name == set->field) {
      checkpoints = true;
      job.notes.emplace_back(
          "LLaMA-Factory checkpoints unless disable_gradient_checkpointing is true, whatever "
          "gradient_checkpointing is");
    }
    put("plan", "recompute", checkpoints ? "full" : "none");
    const std::string way = lower_case(fields_.written("gradient_checkpointing"));
    if (way.find("offload") != std::string::npos) {
      leave_out(fields_.written("gradient_checkpointing"),
                "inputs of layers are taken as kept on the device");
    }
  }

  TrainerJob from_;  // but for its settings
  const std::string& text_;
  bool deepspeed_ = false;
  int zero_ = -1;        // -1: not sharded
  bool hybrid_ = false;  // shards within a node
  bool eight_bits_ = false;
  std::string offload_;
  bool drives_ = false;  // on NVMe
  std::int64_t tp_ = 1, cp_ = 1, ep_ = 1;
  std::int64_t dp_ = 0;  // 0: not known
};

}  // namespace

ImportedJob import_trainer(const std::string& text, const std::string& file, JobFormat format) {
  TrainerImport in(read_trainer_job(text, file, format), text);
  in.read();
  return std::move(in.job);
}

}  // namespace planner
