#include "planner/frameworks/export_bridge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "planner/frameworks/export_megatron.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Hydra reads a comma or a bracket as its own grammar, but in lists and between quotes.
std::string word_of(const Override& override) {
  const bool list = override.value.starts_with('[');
  const bool plain = override.value.find_first_of(",|(){} ") == std::string::npos;
  const std::string value = list || plain ? override.value : "\"" + override.value + "\"";
  return override.field + "=" + value;
}

std::string array_of(std::string_view name, const std::vector<Override>& overrides) {
  std::string text = fmt::format("{}=(\n", name);
  for (const auto& override : overrides)
    text += fmt::format("  {}\n", shell_word(word_of(override)));
  return text + ")\n";
}

std::string_view dtype_of(Precision precision) {
  if (precision == Precision::fp32) return "torch.float32";
  return precision == Precision::fp16 ? "torch.float16" : "torch.bfloat16";
}

// Adapters of whole products, or of their parts (Megatron-Bridge, peft/lora.py and
// peft/canonical_lora.py).
std::string adapter_class(const FineTuning& f) { return f.joint ? "LoRA" : "CanonicalLoRA"; }

std::string adapters(const FineTuning& f) {
  using enum AdapterTarget;
  std::vector<std::string_view> modules;
  const auto add = [&](bool wanted, std::string_view module) {
    if (wanted) modules.push_back(module);
  };
  if (f.joint) {
    add(f.has(q), "\"linear_qkv\"");
  } else {
    add(f.has(q), "\"linear_q\"");
    add(f.has(k), "\"linear_k\"");
    add(f.has(v), "\"linear_v\"");
  }
  add(f.has(o), "\"linear_proj\"");
  if (f.joint) {
    add(f.has(up), "\"linear_fc1\"");
  } else {
    add(f.has(gate), "\"linear_fc1_gate\"");
    add(f.has(up), "\"linear_fc1_up\"");
  }
  add(f.has(down), "\"linear_fc2\"");
  return fmt::format("{}(target_modules=[{}], dim={}, alpha={:g}, dropout={:g})", adapter_class(f),
                     fmt::join(modules, ", "), f.rank, f.alpha, f.dropout);
}

// What a command line cannot say: objects, and values of enumerations. A mixed precision recipe is
// resolved after the overrides, which an object takes instead.
std::string program(const Scenario& s, bool unfused) {
  const bool mixed = s.model.experts > 0 && s.model.mixes_layers();
  const bool latent = s.model.latent_attention();
  const FineTuning& tuning = s.training.fine_tuning;
  const std::string run = tuning.adapts() ? "finetune" : "pretrain";
  std::string text = "import sys\n";
  if (mixed) text += "from functools import partial\n";
  text += "\nimport torch\n";
  if (mixed) {
    text += "from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec\n";
  }
  if (unfused) text += "from megatron.core.transformer.enums import AttnBackend\n";
  text += "from megatron.bridge import recipes\n";
  if (latent) text += "from megatron.bridge.models.mla_provider import MLAModelProvider\n";
  if (tuning.adapts()) {
    text += fmt::format("from megatron.bridge.peft.{} import {}\n",
                        tuning.joint ? "lora" : "canonical_lora", adapter_class(tuning));
    text += "from megatron.bridge.training.finetune import finetune\n";
  }
  text +=
      "from megatron.bridge.training.gpt_step import forward_step\n"
      "from megatron.bridge.training.mixed_precision import MixedPrecisionConfig\n";
  if (!tuning.adapts()) text += "from megatron.bridge.training.pretrain import pretrain\n";
  text +=
      "from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides\n"
      "\n"
      "if __name__ == \"__main__\":\n"
      "    cfg = recipes.vanilla_gpt_pretrain_config()\n";
  if (latent) text += "    cfg.model = MLAModelProvider()\n";
  text += fmt::format(
      "    cfg.mixed_precision = MixedPrecisionConfig(params_dtype={0}, pipeline_dtype={0})\n",
      dtype_of(s.training.precision));
  if (mixed) {
    text +=
        "    cfg.model.transformer_layer_spec = partial(get_gpt_decoder_block_spec, "
        "use_transformer_engine=True)\n";
  }
  if (tuning.adapts()) text += fmt::format("    cfg.peft = {}\n", adapters(tuning));
  text += "    cfg = process_config_with_overrides(cfg, cli_overrides=sys.argv[1:])\n";
  if (unfused) text += "    cfg.model.attention_backend = AttnBackend.unfused\n";
  return text + fmt::format("    {}(config=cfg, forward_step_func=forward_step)\n", run);
}

// NullTokenizer counts an end-of-document token on top of its vocabulary.
std::vector<Override> data_of(const Scenario& s) {
  return {{"tokenizer.tokenizer_type", "NullTokenizer"},
          {"tokenizer.vocab_size", fmt::format("{}", std::max<std::int64_t>(1, s.model.vocab - 1))},
          {"model.vocab_size", fmt::format("{}", s.model.vocab)},
          {"model.should_pad_vocab", "true"}};
}

std::vector<Override> run_of() {
  return {{"train.train_iters", "20"},    {"validation.eval_interval", "1000"},
          {"validation.eval_iters", "1"}, {"scheduler.lr_warmup_iters", "2"},
          {"logger.log_interval", "1"},   {"logger.log_throughput", "true"},
          {"checkpoint.save", "null"}};
}

void add_notes(const Scenario& s, const std::vector<std::string>& without,
               std::vector<std::string>& notes) {
  if (s.model.positions == Positions::learned && s.model.max_positions != s.training.sequence) {
    notes.push_back(
        fmt::format("Megatron-Bridge keeps a learned position a token of the sequence, {}, not {}",
                    s.training.sequence, s.model.max_positions));
  }
  if (s.training.packing.packed) {
    notes.push_back(
        fmt::format("samples are packed by the dataset: enable_offline_packing=True, "
                    "offline_packing_specs=PackedSequenceSpecs(packed_sequence_size={})",
                    s.training.sequence));
  }
  for (const auto& argument : without)
    notes.push_back(argument + " is not exported: Megatron-Bridge has no field of it");
}

}  // namespace

OverridesScript export_bridge(const Scenario& scenario, const ParallelPlan& plan) {
  // training/flex_dispatcher_backend.py takes Ampere, Hopper, B200 and B300.
  const bool grace = scenario.cluster.device.name.starts_with("gb");
  if (grace && scenario.model.experts > 0 && plan.experts.dispatcher == Dispatcher::deepep) {
    throw ConfigError(scenario.plan.mark_of("dispatcher"),
                      "Megatron-Bridge runs DeepEP on no GB200 or GB300",
                      "set dispatcher: hybridep, or alltoall");
  }
  const MegatronExport megatron = export_megatron(scenario, plan, MegatronProgram::configurations);
  const auto fields = export_overrides(megatron, scenario, plan, OverrideTarget::bridge);
  OverridesScript out;
  out.notes = megatron.notes;
  note_stack(scenario.training.stack, bridge_stack, out.notes);
  add_notes(scenario, fields.without, out.notes);
  const std::vector<Override> data = data_of(scenario), run = run_of();
  for (const auto& part : {fields.list, data, run})
    out.overrides.insert(out.overrides.end(), part.begin(), part.end());
  out.script = script_head({.framework = "Megatron-Bridge 0.6",
                            .where = "where Megatron-Bridge is installed",
                            .notes = out.notes,
                            .environment = megatron.environment},
                           scenario, plan);
  out.script += "\nprogram=$(mktemp --suffix=.py)\ncat > \"$program\" <<'PYTHON'\n" +
                program(scenario, has_unfused_attention(megatron)) + "PYTHON\n";
  out.script += "\n# The plan.\n" + array_of("plan", fields.list);
  out.script += "\n# Made-up data, to measure time and memory; replace it to train.\n" +
                array_of("data", data);
  const bool adapts = scenario.training.fine_tuning.adapts();
  if (adapts) {
    out.script +=
        "\n# The frozen base, in Megatron-Bridge's own format (AutoBridge.import_ckpt).\n"
        "base=(checkpoint.pretrained_checkpoint=\"${PRETRAINED_CHECKPOINT:?a Megatron-Bridge "
        "checkpoint of the base}\")\n";
  }
  out.script += "\n# A short run that prints time and throughput of each iteration.\n" +
                array_of("run", run) + "\n";
  out.script += torchrun_command(scenario, plan);
  out.script +=
      fmt::format("  \"$program\" \"${{plan[@]}}\" \"${{data[@]}}\" {}\"${{run[@]}}\" \"$@\"\n",
                  adapts ? "\"${base[@]}\" " : "");
  return out;
}

}  // namespace planner
