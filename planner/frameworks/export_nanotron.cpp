#include "planner/frameworks/export_nanotron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/model_reader.hpp"
#include "planner/exchange/exported.hpp"
#include "planner/frameworks/import_nanotron.hpp"
#include "planner/frameworks/torchrun_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Lines = NamedSettings;

// LlamaConfig; its linears have biases of q, k and v as Qwen2Config's.
void write_model(const Scenario& s, Lines& out) {
  const ModelSpec& m = s.model;
  const auto put = [&](const char* key, const std::string& value) {
    out.emplace_back(std::string("model.model_config.") + key, value);
  };
  out.emplace_back("model.ddp_bucket_cap_mb", "25");
  out.emplace_back("model.dtype", s.training.precision == Precision::bf16   ? "bfloat16"
                                  : s.training.precision == Precision::fp16 ? "float16"
                                                                            : "float32");
  out.emplace_back("model.init_method.std", "0.02");
  out.emplace_back("model.make_vocab_size_divisible_by", "1");
  put(m.qkv_bias ? "is_qwen2_config" : "is_llama_config", "true");
  if (m.qkv_bias) put("attention_bias", "true");
  put("hidden_act", "silu");
  put("hidden_size", std::to_string(m.hidden));
  put("intermediate_size", std::to_string(m.ffn_hidden));
  put("num_hidden_layers", std::to_string(m.layers));
  put("num_attention_heads", std::to_string(m.heads));
  put("num_key_value_heads", std::to_string(m.kv_heads));
  put("max_position_embeddings", std::to_string(std::max(m.context_length, s.training.sequence)));
  // PyYAML takes 1e-05 for text.
  put("rms_norm_eps", fmt::format("{:#.6g}", m.norm_epsilon > 0 ? m.norm_epsilon : 1e-5));
  put("rope_theta", fmt::format("{}", m.rotary_base));
  put("rope_interleaved", "false");
  put("tie_word_embeddings", truth(m.tie_embeddings));
  put("vocab_size", std::to_string(m.vocab));
}

void write_plan(const Scenario& s, const ParallelPlan& p, Lines& out) {
  const auto put = [&](const char* key, const std::string& value) { out.emplace_back(key, value); };
  put("optimizer.accumulate_grad_in_fp32", truth(s.training.gradient_precision == Precision::fp32));
  put("optimizer.clip_grad", "1.0");
  put("optimizer.weight_decay", "0.01");
  put("optimizer.zero_stage", std::to_string(p.zero));
  put("optimizer.learning_rate_scheduler.learning_rate", "1.0e-4");
  put("optimizer.learning_rate_scheduler.lr_warmup_steps", "2");
  put("optimizer.learning_rate_scheduler.lr_warmup_style", "linear");
  put("optimizer.learning_rate_scheduler.lr_decay_style", "cosine");
  put("optimizer.learning_rate_scheduler.lr_decay_steps", "18");
  put("optimizer.learning_rate_scheduler.min_decay_lr", "1.0e-5");
  put("optimizer.optimizer_factory.name", "adamW");
  put("optimizer.optimizer_factory.adam_beta1", "0.9");
  put("optimizer.optimizer_factory.adam_beta2", "0.95");
  put("optimizer.optimizer_factory.adam_eps", "1.0e-8");
  put("optimizer.optimizer_factory.torch_adam_is_fused", "true");
  put("parallelism.dp", std::to_string(p.dp));
  put("parallelism.pp", std::to_string(p.pp));
  put("parallelism.tp", std::to_string(p.tp));
  if (p.cp > 1) put("parallelism.context_parallel_size", std::to_string(p.cp));
  put("parallelism.pp_engine", p.schedule == ScheduleKind::gpipe ? "afab" : "1f1b");
  put("parallelism.tp_mode", p.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE");
  put("parallelism.tp_linear_async_communication", truth(p.sequence_parallel));
  put("parallelism.recompute_layer", truth(p.recompute.granularity == Recomputation::full));
  put("tokens.batch_accumulation_per_replica",
      std::to_string(p.micro_batches(s.training.global_batch)));
  put("tokens.micro_batch_size", std::to_string(p.micro_batch));
  put("tokens.sequence_length", std::to_string(s.training.sequence));
  put("tokens.train_steps", "20");
  put("tokens.val_check_interval", "-1");
}

constexpr std::string_view fixed_parts = R"(general:
  project: shardplan
  run: plan_%date_%jobid
  seed: 42
checkpoints:
  checkpoint_interval: 1000000
  checkpoints_path: checkpoints
data_stages:
  - name: Made-up tokens
    start_training_step: 1
    data:
      dataset: null
      num_loading_workers: 1
      seed: 42
logging:
  iteration_step_info_interval: 1
tokenizer:
  tokenizer_name_or_path: gpt2
)";

// A model that nanotron's words do not carry comes back as another one: the first key that differs.
void require_carried(const Scenario& s, const std::string& yaml) {
  const ImportedJob back = import_nanotron(yaml, "nanotron.yaml");
  const Value theirs = to_value(read_model(*back.scenario.find("model"), "nanotron"));
  for (const auto& entry : to_value(s.model).entries) {
    static constexpr std::array<std::string_view, 9> of_no_run{
        "title",         "source", "context_length",        "checkpoint",       "vocab",
        "max_positions", "kind",   "unquantized_attention", "unquantized_dense"};
    if (std::ranges::find(of_no_run, entry.key) != of_no_run.end()) continue;
    const Value* same = theirs.find(entry.key);
    if (same != nullptr && to_yaml(*same) == to_yaml(entry.value)) continue;
    throw ConfigError({s.file, 0, 0}, fmt::format("nanotron has no word for model.{}", entry.key),
                      another_target);
  }
}

}  // namespace

std::vector<Violation> nanotron_violations(const Scenario& s, const ParallelPlan& p) {
  Refusals r("nanotron");
  refuse_unlike(s, p, r);
  if (!r.found.empty()) return r.found;
  r.refuse(s.model.experts > 0, "model", "it has no word for model.experts", another_target);
  r.refuse(p.zero > 1, "zero", "it shards the optimizer's states alone", "set zero: 1, or 0");
  r.refuse(p.vpp > 1 || (p.schedule != ScheduleKind::gpipe &&
                         p.schedule != ScheduleKind::one_f_one_b && p.pp > 1),
           "schedule", "its engines are 1f1b and afab", "set vpp: 1, and schedule: 1f1b or gpipe");
  r.refuse(!p.stage_layers.empty() && p.stage_layers != layers_by_cost(s.model, p.pp),
           "stage_layers", "it cuts the layers by their costs itself", "leave stage_layers out");
  r.refuse(p.dp_replicate > 1, "dp_replicate", "no key groups replicas", "set dp_replicate: 1");
  r.refuse(p.offload.any(), "offload", "nothing goes to the host", "leave offload out");
  r.refuse(p.recompute.granularity == Recomputation::selective || p.recompute.layers > 0,
           "recompute", "recompute_layer is of every layer", "set recompute: full, or none");
  // src/nanotron/config/config.py, __post_init__ of Config.
  r.refuse(s.model.heads % p.tp != 0 || s.model.kv_heads < p.tp, "tp",
           "num_attention_heads must be divisible by tp, num_key_value_heads at least tp",
           "choose a tp that divides the key and value heads");
  r.refuse(is_narrow(s.training.precision), "precision",
           fmt::format("{} is no dtype of it", to_string(s.training.precision)),
           "set training.precision: bf16");
  r.refuse(s.training.optimizer != Optimizer::adam, "optimizer", "its optimizer here is AdamW",
           "set training.optimizer: adam");
  return r.found;
}

NanotronExport export_nanotron(const Scenario& scenario, const ParallelPlan& plan) {
  refuse_first(nanotron_violations(scenario, plan), scenario);
  NanotronExport out;
  write_model(scenario, out.settings);
  write_plan(scenario, plan, out.settings);
  const std::string yaml = std::string(fixed_parts) + nested_yaml(out.settings);
  require_carried(scenario, yaml);
  if (scenario.training.stack.name != "nanotron") {
    out.notes.push_back(
        fmt::format("predicted with the stack {}: training.stack: nanotron "
                    "describes nanotron",
                    scenario.training.stack.name));
  }
  out.notes.emplace_back("the data are made-up tokens, the tokenizer is gpt2's: yours to replace");
  if (scenario.training.packing.any()) out.notes.emplace_back(samples_note);
  out.script = script_head({.framework = "nanotron",
                            .where = "in a checkout of nanotron",
                            .notes = out.notes,
                            .environment = {"CUDA_DEVICE_MAX_CONNECTIONS=1"}},
                           scenario, plan);
  out.script += fmt::format("cat > nanotron.yaml <<'YAML'\n{}YAML\n\n", yaml) +
                torchrun_command(scenario, plan) +
                "  run_train.py --config-file nanotron.yaml \"$@\"\n";
  return out;
}

}  // namespace planner
