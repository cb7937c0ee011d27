#include "planner/frameworks/export_nemo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>

#include "planner/exchange/exported.hpp"
#include "planner/frameworks/export_megatron.hpp"
#include "planner/frameworks/megatron_rules.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::string_view callback_prefix = "MegatronCommOverlapCallback.";

// Arguments that change numbers, and neither time nor memory.
bool is_costless(const std::string& argument) {
  constexpr std::array<std::string_view, 4> costless{"--use-rope-scaling", "--rope-scaling-factor",
                                                     "--activation-func-clamp-value",
                                                     "--glu-linear-offset"};
  return std::ranges::any_of(costless,
                             [&](std::string_view flag) { return argument.starts_with(flag); });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.e+-") == std::string::npos;
}

std::string python_of(const std::string& value) {
  if (value == "true") return "True";
  if (value == "false") return "False";
  if (value == "null") return "None";
  const bool name = value.starts_with("torch.") || value.starts_with("megatron.");
  if (name || is_number(value)) return value;
  if (!value.starts_with('[')) return "\"" + value + "\"";
  std::string list;
  std::istringstream items(value.substr(1, value.size() - 2));
  for (std::string item; std::getline(items, item, ',');)
    list += (list.empty() ? "" : ", ") + python_of(item);
  return "[" + list + "]";
}

// The plugin of precision, whose fields overwrite those of model and optimizer.
std::vector<Override> precision_of(const Scenario& s, const ParallelPlan& plan) {
  const bool full = s.training.precision == Precision::fp32;
  const bool half = s.training.precision == Precision::fp16;
  const std::string type = full ? "torch.float32" : half ? "torch.float16" : "torch.bfloat16";
  std::vector<Override> fields{{"trainer.plugins.precision", full   ? "32"
                                                             : half ? "16-mixed"
                                                                    : "bf16-mixed"},
                               {"trainer.plugins.params_dtype", type},
                               {"trainer.plugins.pipeline_dtype", type},
                               {"optim.config.bf16", full || half ? "false" : "true"},
                               {"optim.config.fp16", half ? "true" : "false"}};
  if (plan.pp > 1) fields.push_back({"trainer.strategy.pipeline_dtype", type});
  return fields;
}

std::vector<Override> run_of_nemo() {
  return {{"trainer.max_steps", "20"},
          {"trainer.limit_val_batches", "0"},
          {"trainer.val_check_interval", "20"},
          {"trainer.log_every_n_steps", "1"},
          {"optim.lr_scheduler.warmup_steps", "2"}};
}

std::string assignments(const std::vector<Override>& fields) {
  std::string text;
  for (const auto& field : fields) {
    if (!field.field.starts_with(callback_prefix)) {
      const bool word = field.field == "trainer.plugins.precision";
      text += fmt::format("    recipe.{} = {}\n", field.field,
                          word ? "\"" + field.value + "\"" : python_of(field.value));
    }
  }
  return text;
}

// The callback sets the overlaps of model, optimizer and gradients.
std::string callback_line(const std::vector<Override>& fields) {
  std::string text = "    recipe.trainer.callbacks.append(run.Config(MegatronCommOverlapCallback";
  for (const auto& field : fields) {
    if (field.field.starts_with(callback_prefix)) {
      text += fmt::format(", {}={}", field.field.substr(callback_prefix.size()),
                          python_of(field.value));
    }
  }
  return text + "))\n";
}

// Layers of two kinds, which the recipe's specification does not make, and its reader of batches
// that makes the targets of multi-token prediction. DeepSeek's classes have both, and switches that
// are on.
struct Classes {
  explicit Classes(const ModelSpec& m)
      : latent(m.latent_attention()),
        mixed(!latent && m.experts > 0 && m.mixes_layers()),
        predicts(!latent && m.mtp_layers > 0) {}

  std::string imports() const {
    std::string text;
    if (mixed)
      text += "from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec\n";
    if (predicts) text += "from nemo.collections.llm.gpt.model.base import gpt_data_step\n";
    if (latent)
      text += "from nemo.collections.llm.gpt.model.deepseek import DeepSeekConfig, DeepSeekModel\n";
    return text;
  }
  std::string made() const {
    std::string text;
    if (latent) {
      text +=
          "    recipe.model = run.Config(DeepSeekModel, config=run.Config(DeepSeekConfig, "
          "moe_shared_expert_overlap=False, moe_router_pre_softmax=False, "
          "moe_router_dtype=None))\n";
    }
    if (mixed) {
      text +=
          "    recipe.model.config.transformer_layer_spec = run.Partial("
          "get_gpt_decoder_block_spec, use_transformer_engine=True)\n";
    }
    if (predicts)
      text += "    recipe.model.config.data_step_fn = run.Partial(gpt_data_step, use_mtp=True)\n";
    return text;
  }

  bool latent, mixed, predicts;
};

std::string imports_of(const std::vector<Override>& fields, const Classes& classes, bool unfused) {
  std::string text = "import nemo_run as run\nimport torch\n";
  for (const auto& field : fields) {
    if (field.value.starts_with("megatron."))
      text += fmt::format("import {}\n", field.value.substr(0, field.value.rfind('.')));
  }
  if (unfused) text += "from megatron.core.transformer.enums import AttnBackend\n";
  return text + classes.imports() +
         "from nemo.collections import llm\n"
         "from nemo.collections.nlp.modules.common.tokenizer_utils import get_nmt_tokenizer\n"
         "from nemo.lightning.pytorch.callbacks.megatron_comm_overlap import "
         "MegatronCommOverlapCallback\n";
}

std::string program_of(const Scenario& s, const ParallelPlan& plan,
                       const std::vector<Override>& fields, bool unfused) {
  const std::int64_t each = std::min(s.cluster.devices_per_node, plan.devices());
  const Classes classes(s.model);
  std::string text = imports_of(fields, classes, unfused) + "\nif __name__ == \"__main__\":\n";
  text += fmt::format(
      "    recipe = llm.gpt3_175b.pretrain_recipe(name=\"plan\", num_nodes={}, "
      "num_gpus_per_node={})\n",
      plan.devices() / each, each);
  text += classes.made() + assignments(fields);
  if (unfused) text += "    recipe.model.config.attention_backend = AttnBackend.unfused\n";
  text += callback_line(fields);
  text += fmt::format(
      "    recipe.data.tokenizer = run.Config(get_nmt_tokenizer, library=\"null\", "
      "model_name=\"NullTokenizer\", vocab_size={})\n",
      std::max<std::int64_t>(1, s.model.vocab - 1));
  return text +
         "    recipe.model.tokenizer = recipe.data.tokenizer\n"
         "    run.run(recipe, direct=True)\n";
}

void add_learned_positions(const Scenario& s, std::vector<std::string>& notes) {
  const std::int64_t tokens = s.training.sequence;
  if (s.model.positions != Positions::learned || s.model.max_positions == tokens) return;
  notes.push_back(fmt::format("NeMo keeps a learned position a token of the sequence, {}, not {}",
                              tokens, s.model.max_positions));
}

}  // namespace

std::vector<Violation> nemo_violations(const Scenario& scenario, const ParallelPlan& plan) {
  std::vector<Violation> found = megatron_violations(scenario, plan);
  if (!found.empty()) return found;
  const MegatronExport megatron = export_megatron(scenario, plan, MegatronProgram::configurations);
  const auto fields = export_overrides(megatron, scenario, plan, OverrideTarget::nemo);
  for (const auto& argument : fields.without) {
    // Weights that are fine-tuned were trained with them.
    const bool tuned = scenario.training.fine_tuning.method != FineTuningMethod::pretraining;
    if (is_costless(argument) && !tuned) continue;
    found.push_back({"plan", fmt::format("NeMo 2.x has no field of {}", argument), another_target});
  }
  // What core 0.14 asserts beyond (transformer_config.py).
  const auto require = [&](bool holds, const char* key, const char* reason, const char* remedy) {
    if (!holds) found.push_back({key, fmt::format("NeMo 2.x: {}", reason), remedy});
  };
  const bool other = plan.experts.dispatcher != Dispatcher::alltoall;
  require(!plan.experts.shared_overlap || !other, "shared_expert_overlap",
          "moe_shared_expert_overlap works with alltoall only",
          "set plan.shared_expert_overlap: false, or dispatcher: alltoall");
  const std::int64_t groups = scenario.model.kv_heads;
  require(scenario.model.latent_attention() || groups % plan.tp == 0, "tp",
          "tensor ranks share no group of queries", "set tp to a divisor of model.kv_heads");
  return found;
}

OverridesScript export_nemo(const Scenario& scenario, const ParallelPlan& plan) {
  refuse_first(nemo_violations(scenario, plan), scenario);
  const MegatronExport megatron = export_megatron(scenario, plan, MegatronProgram::configurations);
  const auto fields = export_overrides(megatron, scenario, plan, OverrideTarget::nemo);
  OverridesScript out;
  out.overrides = fields.list;
  for (const auto& part : {precision_of(scenario, plan), run_of_nemo()})
    out.overrides.insert(out.overrides.end(), part.begin(), part.end());
  out.notes = megatron.notes;
  note_stack(scenario.training.stack, megatron_stack, out.notes);
  out.notes.emplace_back("NeMo 3 has no language models: there, export to megatron-bridge");
  add_learned_positions(scenario, out.notes);
  for (const auto& argument : fields.without) {
    out.notes.push_back(
        argument + " is not exported: it changes neither time nor memory, but what is trained");
  }
  out.script = script_head({.framework = "NeMo 2.x",
                            .where = "in a container of NeMo 2.x",
                            .notes = out.notes,
                            .environment = megatron.environment},
                           scenario, plan);
  out.script += "\nprogram=$(mktemp --suffix=.py)\ncat > \"$program\" <<'PYTHON'\n" +
                program_of(scenario, plan, out.overrides, has_unfused_attention(megatron)) +
                "PYTHON\n\n" + torchrun_command(scenario, plan) + "  \"$program\" \"$@\"\n";
  return out;
}

}  // namespace planner
