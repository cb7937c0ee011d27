#include "planner/frameworks/export_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Lines = NamedSettings;

struct Program {
  std::string_view name, file, start;
};
constexpr std::array<Program, 3> programs{
    {{"axolotl", "axolotl.yaml", "-m axolotl.cli.train axolotl.yaml"},
     {"LLaMA-Factory", "llama_factory.yaml", "-m llamafactory.launcher llama_factory.yaml"},
     {"accelerate", "accelerate.yaml", ""}}};
const Program& program_of(TrainerTarget target) {
  return programs[static_cast<std::size_t>(target)];
}

bool has_flash_loss(const Scenario& s) {
  return s.training.stack.kernels.loss == LossKernel::flash;
}

void check_sizes(const Scenario& s, const ParallelPlan& p, TrainerTarget target, Refusals& r) {
  const bool factory = target == TrainerTarget::llama_factory;
  r.refuse(s.model.encoder_decoder(), "model", "its supervised fine-tuning is of decoders",
           "choose a model of kind gpt, llama or moe");
  r.refuse(p.pp > 1 || p.ep > 1, p.pp > 1 ? "pp" : "ep",
           "the Trainer has neither pipeline nor expert parallelism", "set pp: 1, and ep: 1");
  r.refuse(factory && (p.tp > 1 || p.cp > 1), p.tp > 1 ? "tp" : "cp",
           "the Trainer is data-parallel alone here", "set tp: 1, and cp: 1");
  r.refuse((p.tp > 1 || p.cp > 1) && p.zero < 2, "zero",
           "tensor and context parallelism go with FSDP 2", "set zero: 3, or 2");
  r.refuse(p.tp > 1 && p.sequence_parallel, "sequence_parallel",
           "tensor parallelism of transformers does not shard the sequence",
           "set sequence_parallel: false");
  r.refuse(p.dp_replicate > 1 && factory, "dp_replicate", "no key groups replicas",
           "set dp_replicate: 1");
  r.refuse(p.zero == 1, "zero",
           factory ? "its files of DeepSpeed are of ZeRO 2 and 3" : "FSDP shards gradients too",
           "set zero: 2");
  r.refuse(p.recompute.granularity == Recomputation::selective || p.recompute.layers > 0,
           "recompute", "gradient checkpointing is of every layer", "set recompute: full, or none");
  r.refuse(p.zero_plus_plus.partition > 1, "zero_hpz_partition_size",
           std::string(no_zero_plus_plus), std::string(without_zero_plus_plus));
  r.refuse(p.shards_states_further(), "outer_dp_sharding", std::string(no_further_shards),
           std::string(without_further_shards));
  const bool states = p.offload.optimizer > 0, parameters = p.offload.parameters > 0;
  r.refuse((states || parameters) && p.zero < 2, "offload", "states go to the host where sharded",
           "set zero: 3, or 2");
  r.refuse(states && !parameters && !factory, "offload",
           "FSDP keeps parameters, gradients and states on the host together",
           "set offload: parameters");
  r.refuse(states && !parameters && factory && p.zero == 3, "offload",
           "its file of ZeRO 3 keeps parameters on the host too", "set offload: parameters");
  r.refuse(states && p.offload.optimizer < 1, "offload", "states go to the host together",
           "set offload: optimizer, or parameters");
  r.refuse(p.offload.on_drives(), "offload", "no file that it ships keeps states on NVMe drives",
           "set offload.to: host, or export to deepspeed");
  r.refuse(s.training.fine_tuning.method == FineTuningMethod::qlora &&
               s.training.fine_tuning.base != BasePrecision::nf4,
           "fine_tuning", "bitsandbytes' 4 bits are nf4", "set base_precision: nf4");
  const bool experts = s.model.experts > 0 && s.training.fine_tuning.adapts() &&
                       (s.training.fine_tuning.targets & ~attention_targets) != 0;
  r.refuse(experts, "fine_tuning",
           "transformers 5 keeps experts as parameters, which PEFT's target_modules passes over",
           "set training.fine_tuning.targets: [q, k, v, o]");
}

void check_numbers(const Scenario& s, const ParallelPlan& p, TrainerTarget target, Refusals& r) {
  // integrations/liger/args.py
  r.refuse(target == TrainerTarget::axolotl && p.tp > 1 && has_flash_loss(s), "training.loss",
           "axolotl refuses Liger's loss with tensor parallelism", "set training.loss: unfused");
  const Precision precision = s.training.precision;
  r.refuse(is_narrow(precision), "precision",
           fmt::format("{} is no precision of the Trainer's arguments", to_string(precision)),
           "set training.precision: bf16");
  r.refuse(s.training.optimizer == Optimizer::sgd, "optimizer", "its sgd has no momentum",
           "set training.optimizer: plain-sgd");
  r.refuse(s.training.optimizer == Optimizer::muon, "optimizer", "muon is not among its optimizers",
           "set training.optimizer: adam");
}

// The hub's name, which a shipped model's source has; else the user's to fill in.
std::string model_of(const Scenario& s) {
  constexpr std::string_view hub = "Hugging Face ";
  const std::string& source = s.model.source;
  if (!source.starts_with(hub)) return "REPLACE";
  const std::string name =
      source.substr(hub.size(), source.find_first_of(", ", hub.size()) - hub.size());
  return name.find('/') == std::string::npos ? "REPLACE" : name;
}

// axolotl refuses bitsandbytes' with FSDP 2 (src/axolotl/utils/schemas/validation.py).
std::string optimizer_of(const Scenario& s, bool sharded_axolotl) {
  switch (s.training.optimizer) {
    case Optimizer::adam8bit: return sharded_axolotl ? "adamw_torch_8bit" : "adamw_bnb_8bit";
    case Optimizer::adafactor: return "adafactor";
    case Optimizer::plain_sgd: return "sgd";
    default: return "adamw_torch_fused";
  }
}

std::vector<std::string> targets_of(const FineTuning& f) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    if (f.has(static_cast<AdapterTarget>(i)))
      names.push_back(fmt::format("{}_proj", adapter_target_names[i]));
  }
  return names;
}

std::string list_of(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : std::string(between)) + name;
  return text;
}

// FlashAttention 2 needs Ampere, the first of NVIDIA's devices that multiply in bf16; before it
// PyTorch's own attention (SDPA) has a fused kernel.
bool without_flash_attention(const DeviceSpec& device) {
  return device.peak_of(Precision::bf16).value <= 0;
}

// FlashAttention 2 drops the sinks of gpt-oss; its checkpoint's card names this kernel of FA 3.
constexpr std::string_view attention_with_sinks = "kernels-community/vllm-flash-attn3";

// attn_implementation, and LLaMA-Factory's flash_attn for the same.
std::pair<std::string_view, std::string_view> attention_words(const Scenario& s) {
  if (s.training.stack.kernels.attention == AttentionKernel::unfused) return {"eager", "disabled"};
  if (s.model.attention_sinks) return {attention_with_sinks, "disabled"};
  if (without_flash_attention(s.cluster.device)) return {"sdpa", "sdpa"};
  return {"flash_attention_2", "fa2"};
}

// Lines in the words that the Trainer's own arguments have; the others rename them.
struct TargetLines {
  TrainerTarget target;
  Lines lines;

  bool is(TrainerTarget other) const { return target == other; }
  void put(std::string_view trainer, std::string_view of_axolotl, std::string_view of_factory,
           std::string value) {
    const auto name = is(TrainerTarget::axolotl)         ? of_axolotl
                      : is(TrainerTarget::llama_factory) ? of_factory
                                                         : trainer;
    if (!name.empty()) lines.emplace_back(std::string(name), std::move(value));
  }
};

void put_adapters(const Scenario& s, const ParallelPlan& p, TargetLines& out) {
  const FineTuning& f = s.training.fine_tuning;
  const bool axolotl = out.is(TrainerTarget::axolotl),
             factory = out.is(TrainerTarget::llama_factory);
  if (f.adapts()) {
    const auto names = targets_of(f);
    // TRL loads in fp32 otherwise, and takes the same for the arithmetic of a quantised base.
    const char* const half = s.training.precision == Precision::fp16 ? "float16" : "bfloat16";
    out.put("dtype", "", "", half);
    // FSDP splits flat parameters of one type.
    if (f.base == BasePrecision::nf4 && p.zero == 3)
      out.put("bnb_4bit_quant_storage", "", "", half);
    out.put("use_peft", "", "", "true");
    out.put("lora_r", "lora_r", "lora_rank", std::to_string(f.rank));
    out.put("lora_alpha", "lora_alpha", "lora_alpha", fmt::format("{}", f.alpha));
    out.put("lora_dropout", "lora_dropout", "lora_dropout", fmt::format("{}", f.dropout));
    out.put("lora_target_modules", "lora_target_modules", "lora_target",
            axolotl ? "[" + list_of(names, ", ") + "]" : list_of(names, factory ? "," : " "));
  }
  if (f.base == BasePrecision::nf4) {
    out.put("load_in_4bit", "load_in_4bit", "", "true");
    out.put("", "", "quantization_bit", "4");
    // TRL's default is false, that of the others true.
    if (f.double_quantization) {
      out.put("use_bnb_nested_quant", "", "", "true");
    } else {
      out.put("", "bnb_config_kwargs.bnb_4bit_use_double_quant", "double_quantization", "false");
    }
  }
}

Lines arguments(const Scenario& s, const ParallelPlan& p, TrainerTarget target) {
  const FineTuning& f = s.training.fine_tuning;
  TargetLines out{target, {}};
  const auto put = [&](std::string_view trainer, std::string_view of_axolotl,
                       std::string_view of_factory, std::string value) {
    out.put(trainer, of_axolotl, of_factory, std::move(value));
  };
  put("model_name_or_path", "base_model", "model_name_or_path", model_of(s));
  put("", "", "stage", "sft");
  put("", "adapter", "",
      f.adapts() ? std::string(fine_tuning_names[static_cast<std::size_t>(f.method)]) : "null");
  put("", "", "finetuning_type", f.adapts() ? "lora" : "full");
  put_adapters(s, p, out);
  put("max_length", "sequence_len", "cutoff_len", std::to_string(s.training.sequence));
  put("per_device_train_batch_size", "micro_batch_size", "per_device_train_batch_size",
      std::to_string(p.micro_batch));
  put("gradient_accumulation_steps", "gradient_accumulation_steps", "gradient_accumulation_steps",
      std::to_string(p.micro_batches(s.training.global_batch)));
  const bool checkpoints = p.recompute.granularity == Recomputation::full;
  put("gradient_checkpointing", "gradient_checkpointing", "", truth(checkpoints));
  put("", "", "disable_gradient_checkpointing", truth(!checkpoints));
  put("packing", "sample_packing", "packing", truth(s.training.packing.packed));
  put("bf16", "bf16", "bf16", truth(s.training.precision == Precision::bf16));
  put("fp16", "fp16", "fp16", truth(s.training.precision == Precision::fp16));
  const auto [kernel, in_factory] = attention_words(s);
  put("attn_implementation", "attn_implementation", "", std::string(kernel));
  put("", "", "flash_attn", std::string(in_factory));
  put("optim", "optimizer", "optim", optimizer_of(s, out.is(TrainerTarget::axolotl) && p.zero > 0));
  // axolotl's schema and LLaMA-Factory's parser stop without them.
  put("", "learning_rate", "", "2.0e-5");
  put("", "datasets", "", "[{path: REPLACE, type: alpaca}]");
  put("", "", "dataset", "REPLACE");
  put("", "output_dir", "output_dir", "outputs");
  if (has_flash_loss(s)) {
    put("use_liger_kernel", "liger_fused_linear_cross_entropy", "enable_liger_kernel", "true");
    put("", "plugins", "", "[axolotl.integrations.liger.LigerPlugin]");
  }
  if (s.training.overlap.compile) put("torch_compile", "torch_compile", "torch_compile", "true");
  return std::move(out.lines);
}

// FSDP 2 as axolotl's own keys and accelerate's configuration; LLaMA-Factory by its own examples'
// files of DeepSpeed.
Lines sharding(const Scenario& s, const ParallelPlan& p, TrainerTarget target) {
  Lines out;
  if (target == TrainerTarget::llama_factory) {
    const bool host = p.offload.optimizer > 0 || p.offload.parameters > 0;
    if (p.zero == 0) return out;
    out.emplace_back("deepspeed", fmt::format("examples/deepspeed/ds_z{}_{}config.json", p.zero,
                                              host ? "offload_" : ""));
    return out;
  }
  const bool accelerate = target == TrainerTarget::accelerate;
  const std::string prefix = accelerate ? "fsdp_" : "";
  if (accelerate) {
    out.emplace_back("compute_environment", "LOCAL_MACHINE");
    out.emplace_back("distributed_type", p.zero > 0 ? "FSDP" : "MULTI_GPU");
    out.emplace_back("mixed_precision", s.training.precision == Precision::fp32
                                            ? "'no'"
                                            : std::string(to_string(s.training.precision)));
    out.emplace_back("num_machines",
                     std::to_string(std::max<std::int64_t>(
                         1, p.devices() / std::max<std::int64_t>(1, s.cluster.devices_per_node))));
    out.emplace_back("num_processes", std::to_string(p.devices()));
  } else if (p.zero > 0) {
    out.emplace_back("fsdp_version", "2");
  }
  if (p.zero == 0) return out;
  if (accelerate) out.emplace_back("fsdp_config.fsdp_version", "2");
  const auto put = [&](const char* name, const std::string& value) {
    out.emplace_back("fsdp_config." + prefix + name, value);
  };
  put("reshard_after_forward", truth(p.zero == 3));
  put("offload_params", truth(p.offload.parameters > 0));
  put("auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
  put("state_dict_type", "FULL_STATE_DICT");
  if (p.tp == 1 && p.cp == 1 && p.dp_replicate == 1) return out;
  const auto size = [&](const char* name, const char* of_axolotl, int value) {
    out.emplace_back(accelerate ? std::string("parallelism_config.parallelism_config_") + name
                                : std::string(of_axolotl),
                     std::to_string(value));
  };
  size("dp_replicate_size", "dp_replicate_size", p.dp_replicate);
  size("dp_shard_size", "dp_shard_size", p.dp / p.dp_replicate);
  size("tp_size", "tensor_parallel_size", p.tp);
  if (p.cp > 1 && p.cp_comm == ContextExchange::a2a && accelerate) {
    size("sp_size", "", p.cp);
  } else {
    size("cp_size", "context_parallel_size", p.cp);
  }
  if (accelerate && p.cp > 1 && p.cp_comm == ContextExchange::p2p)
    out.emplace_back("parallelism_config.parallelism_config_cp_comm_strategy", "alltoall");
  return out;
}

std::vector<std::string> notes_of(const Scenario& s, const ParallelPlan& p, TrainerTarget target) {
  std::vector<std::string> notes{
      "data set, learning rate, template and where to save are yours to fill in"};
  if (model_of(s) == "REPLACE")
    notes.emplace_back("the model's name on the hub, or its folder, takes the place of REPLACE");
  const bool deepspeed = target == TrainerTarget::llama_factory && p.zero > 0;
  note_stack(s.training.stack, deepspeed ? deepspeed_stack : trainer_stack, notes);
  if (has_flash_loss(s) && target != TrainerTarget::axolotl)
    notes.emplace_back("Liger's kernels come together: of norms, MLPs and positions too");
  if (p.cp > 1 && p.cp_comm != ContextExchange::p2p && target == TrainerTarget::axolotl)
    notes.emplace_back("axolotl passes keys and values around a ring: cp_comm p2p");
  if (s.training.packing.any()) notes.emplace_back(samples_note);
  if (s.model.experts > 0 && s.training.fine_tuning.base == BasePrecision::nf4)
    notes.emplace_back("load_in_4bit leaves experts in 16 bits, which are parameters: priced so");
  if (s.model.attention_sinks) {
    notes.emplace_back(
        target == TrainerTarget::llama_factory
            ? "attention sinks: by LLaMA-Factory without a fused kernel, which takes more time and "
              "memory than is priced"
            : "attention sinks: the kernel named needs a Hopper device; on another set "
              "attn_implementation: eager, which takes more time and memory than is priced");
  }
  if (target == TrainerTarget::llama_factory)
    notes.emplace_back("it runs in a checkout of LLaMA-Factory, which has the files of DeepSpeed");
  return notes;
}

std::string launch(const Scenario& s, const ParallelPlan& p, TrainerTarget target,
                   const Lines& flags) {
  if (target != TrainerTarget::accelerate)
    return torchrun_command(s, p) + "  " + std::string(program_of(target).start) + " \"$@\"\n";
  std::string text =
      "accelerate launch --config_file accelerate.yaml --machine_rank ${NODE_RANK:-0} \\\n"
      "  --main_process_ip ${MASTER_ADDR:-127.0.0.1} --main_process_port ${MASTER_PORT:-29500} \\\n"
      "  -m trl.scripts.sft";
  for (const auto& [name, value] : flags) text += fmt::format(" \\\n  --{} {}", name, value);
  return text + " \\\n  --dataset_name \"${DATASET:?must name a data set}\" \"$@\"\n";
}

}  // namespace

std::vector<Violation> trainer_violations(const Scenario& scenario, const ParallelPlan& plan,
                                          TrainerTarget target) {
  Refusals refusals(std::string(program_of(target).name));
  refuse_unlike(scenario, plan, refusals);
  if (!refusals.found.empty()) return refusals.found;
  check_sizes(scenario, plan, target, refusals);
  check_numbers(scenario, plan, target, refusals);
  return refusals.found;
}

TrainerExport export_trainer(const Scenario& scenario, const ParallelPlan& plan,
                             TrainerTarget target) {
  refuse_first(trainer_violations(scenario, plan, target), scenario);
  const Lines flags = arguments(scenario, plan, target);
  Lines lines = target == TrainerTarget::accelerate ? Lines{} : flags;
  for (auto& line : sharding(scenario, plan, target)) lines.push_back(std::move(line));
  TrainerExport out;
  out.notes = notes_of(scenario, plan, target);
  const Program& program = program_of(target);
  out.script = script_head({.framework = std::string(program.name),
                            .where = "where it is installed",
                            .notes = out.notes,
                            .environment = {}},
                           scenario, plan);
  out.script += fmt::format("cat > {} <<'YAML'\n{}YAML\n\n", program.file, nested_yaml(lines)) +
                launch(scenario, plan, target, flags);
  if (target == TrainerTarget::accelerate) lines.insert(lines.end(), flags.begin(), flags.end());
  out.settings = std::move(lines);
  return out;
}

}  // namespace planner
