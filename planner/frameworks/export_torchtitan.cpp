#include "planner/frameworks/export_torchtitan.hpp"

#include <fmt/format.h>

#include "planner/frameworks/torchrun_script.hpp"
#include "planner/frameworks/torchtitan_flavors.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

class Settings {
 public:
  explicit Settings(TorchtitanVersion version) : version_(version) {}
  void text(std::string_view key, std::string_view value) { raw(key, quoted(value)); }
  void number(std::string_view key, std::int64_t value) { raw(key, fmt::format("{}", value)); }
  void flag(std::string_view key, bool value) {
    const bool toml = version_ == TorchtitanVersion::toml;
    raw(key, value ? (toml ? "true" : "True") : (toml ? "false" : "False"));
  }
  void raw(std::string_view key, std::string value) {
    list.push_back({section, std::string(key), std::move(value)});
  }
  std::string section;
  std::vector<TorchtitanSetting> list;

 private:
  TorchtitanVersion version_;
};

// [["tok_embeddings", "layers.0"], ...], a list a virtual stage, as both write it.
std::string stage_modules(const Scenario& s, const ParallelPlan& p, std::string_view output) {
  std::string list = "[";
  int layer = 0;
  for (int stage = 0; stage < p.virtual_stages(); ++stage) {
    std::string names = stage == 0 ? "\"tok_embeddings\"" : "";
    const auto add = [&names](const std::string& name) {
      names += (names.empty() ? "" : ", ") + quoted(name);
    };
    for (int i = layers_of(p, s.model, stage); i > 0; --i) add(fmt::format("layers.{}", layer++));
    if (stage + 1 == p.virtual_stages()) {
      add("norm");
      add(std::string(output));
    }
    list += fmt::format("{}[{}]", stage == 0 ? "" : ", ", names);
  }
  return list + "]";
}

// DDP replicates, FSDP shards; "never" keeps the gathered parameters as ZeRO-2 does, "default" does
// so in a pipeline only (get_fsdp_reshard_after_forward_policy).
void add_data(const Scenario& s, const ParallelPlan& p, Settings& out) {
  const bool shards = p.zero >= 2;
  out.number("data_parallel_replicate_degree", shards ? p.dp_replicate : p.dp);
  out.number("data_parallel_shard_degree", shards ? p.dp / p.dp_replicate : 1);
  const bool whole = p.pp > 1 && s.training.stack.zero.whole_in_pipeline;
  out.text("fsdp_reshard_after_forward", p.zero == 2 ? "never" : whole ? "default" : "always");
}

void add_pipeline(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                  Settings& out) {
  const bool toml = version == TorchtitanVersion::toml;
  out.number("pipeline_parallel_degree", p.pp);
  if (p.pp == 1) return;
  out.text("pipeline_parallel_schedule", torchtitan_schedule(p));
  if (toml) {
    out.number("pipeline_parallel_microbatch_size", p.micro_batch);
    out.raw("module_fqns_per_model_part", stage_modules(s, p, "output"));
  } else {
    out.number("num_pp_microbatches", p.micro_batches(s.training.global_batch));
    out.raw("pipeline_parallel_module_fqns_per_model_part", stage_modules(s, p, "lm_head"));
  }
}

void add_parallelism(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                     Settings& out) {
  out.section = "parallelism";
  add_data(s, p, out);
  out.number("tensor_parallel_degree", p.tp);
  if (version == TorchtitanVersion::python) {
    out.flag("enable_sequence_parallel", p.sequence_parallel || p.tp == 1);
  } else {
    out.flag("enable_async_tensor_parallel",
             s.training.overlap.async_tp && s.training.overlap.compile);
  }
  out.number("context_parallel_degree", p.cp);
  if (p.cp > 1) {
    const bool gathers = p.cp_comm == ContextExchange::all_gather;
    out.text("context_parallel_rotate_method", gathers ? "allgather" : "alltoall");
  }
  add_pipeline(s, p, version, out);
  if (s.model.experts == 0) return;
  out.number("expert_parallel_degree", p.ep);
  out.number("expert_tensor_parallel_degree", p.etp);
  const bool deepep = p.experts.dispatcher == Dispatcher::deepep;
  out.text("expert_parallel_comm_backend", deepep ? "deepep" : "standard");
}

void add_precisions(const Scenario& s, Settings& out) {
  const auto& t = s.training;
  out.text("mixed_precision_param", t.precision == Precision::fp32 ? "float32" : "bfloat16");
  out.text("mixed_precision_reduce",
           t.gradient_precision == Precision::fp32 ? "float32" : "bfloat16");
}

// fp8 and mxfp8 replace the linear layers, but for the output, and the experts' products.
void add_quantization(const Scenario& s, Settings& out) {
  const bool block = s.training.precision == Precision::mxfp8;
  const std::string kind = block ? "mx" : "float8";
  out.section = "quantize.linear." + kind;
  if (!block) {
    const bool gathers = is_narrow(s.training.gather_precision);
    out.flag("enable_fsdp_float8_all_gather", gathers);
    out.flag("precompute_float8_dynamic_scale_for_fsdp", gathers);
  }
  out.raw("filter_fqns", "[\"output\"]");
  if (s.model.experts == 0) return;
  out.section = "quantize.grouped_mm." + kind;
  out.raw("fqns", "[\"experts\"]");
}

void add_model(const Scenario& s, const TorchtitanFlavor& flavor, Settings& out) {
  out.section = "model";
  out.text("name", flavor.name);
  out.text("flavor", flavor.flavor);
  if (!is_narrow(s.training.precision)) return;
  const char* kind = s.training.precision == Precision::mxfp8 ? "mx" : "float8";
  out.raw("converters",
          s.model.experts == 0
              ? fmt::format("[\"quantize.linear.{}\"]", kind)
              : fmt::format("[\"quantize.linear.{}\", \"quantize.grouped_mm.{}\"]", kind, kind));
}

std::vector<TorchtitanSetting> toml_settings(const Scenario& s, const ParallelPlan& p) {
  const auto& t = s.training;
  Settings out(TorchtitanVersion::toml);
  out.section = "metrics";
  out.number("log_freq", 1);
  add_model(s, *flavor_of(s.model), out);
  out.section = "optimizer";
  out.text("name", "AdamW");
  out.section = "training";
  out.number("local_batch_size",
             p.pp == 1 ? p.micro_batch : p.micro_batch * p.micro_batches(t.global_batch));
  out.number("global_batch_size", t.global_batch);
  out.number("seq_len", t.sequence);
  out.number("steps", 20);
  if (p.offload.states()) out.flag("enable_cpu_offload", true);
  add_precisions(s, out);
  add_parallelism(s, p, TorchtitanVersion::toml, out);
  out.section = "activation_checkpoint";
  const auto recompute = p.recompute.granularity;
  out.text("mode", recomputation_names[static_cast<std::size_t>(recompute)]);
  if (recompute == Recomputation::selective) out.text("selective_ac_option", "op");
  out.section = "compile";
  out.flag("enable", t.overlap.compile);
  if (is_narrow(t.precision)) add_quantization(s, out);
  return out.list;
}

std::vector<TorchtitanSetting> python_settings(const Scenario& s, const ParallelPlan& p) {
  const auto& t = s.training;
  Settings out(TorchtitanVersion::python);
  out.section = "training";
  out.number("num_tokens_per_microbatch_per_dp_rank", p.micro_batch * t.sequence);
  out.number("num_tokens_per_train_step", t.global_batch * t.sequence);
  out.number("max_context_length", t.sequence);
  out.number("steps", 20);
  out.flag("disable_cuda_graphs", !t.overlap.cuda_graph);
  if (p.offload.states()) out.flag("enable_cpu_offload", true);
  add_precisions(s, out);
  add_parallelism(s, p, TorchtitanVersion::python, out);
  const bool full = p.recompute.granularity == Recomputation::full;
  out.section = "";
  out.raw("activation_checkpoint", full ? "FullActivationRematConfig()" : "None");
  if (!t.overlap.compile) return out.list;
  out.raw("compile", t.overlap.async_tp ? "CompileConfig(enable_async_tensor_parallel=True)"
                                        : "CompileConfig()");
  return out.list;
}

std::string toml_of(const std::vector<TorchtitanSetting>& settings) {
  std::string text, section;
  for (const auto& setting : settings) {
    if (setting.section != section) {
      section = setting.section;
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", setting.key, setting.value);
  }
  return text;
}

// A recipe of torchtitan's, changed where the plan says something.
std::string python_of(const Scenario& s, const std::vector<TorchtitanSetting>& settings) {
  std::string text =
      "from torchtitan.config import CompileConfig  # noqa: F401\n"
      "from torchtitan.distributed.activation_checkpoint import FullActivationRematConfig  "
      "# noqa: F401\n"
      "from torchtitan.models.llama3 import build_model_config\n"
      "from torchtitan.trainer import Trainer\n"
      "from torchtitan_recipes.models.llama3 import llama3_8b\n\n\n"
      "def plan() -> Trainer.Config:\n";
  text += fmt::format("    config = llama3_8b(seq_len={})\n", s.training.sequence);
  text += fmt::format("    config.model = build_model_config(\"{}\", seq_len={})\n",
                      flavor_of(s.model)->flavor, s.training.sequence);
  for (const auto& setting : settings) {
    text += fmt::format("    config.{}{}{} = {}\n", setting.section,
                        setting.section.empty() ? "" : ".", setting.key, setting.value);
  }
  return text + "    return config\n";
}

struct Assumed {
  const char* key;
  bool costmodel::Overlap::*flag;
  bool always;  // what torchtitan does
};

// What was priced and no setting says.
std::vector<std::string> notes_of(const Scenario& s, const ParallelPlan& p,
                                  TorchtitanVersion version) {
  using costmodel::Overlap;
  const auto& t = s.training;
  std::vector<std::string> notes;
  const auto note_if = [&](bool wanted, std::string text) {
    if (wanted) notes.push_back(std::move(text));
  };
  const bool toml = version == TorchtitanVersion::toml;
  note_if(t.stack.framework.find("torchtitan") == std::string::npos,
          fmt::format("priced with the kernels of {}, not torchtitan's: --set "
                      "training.stack=torchtitan",
                      t.stack.framework.empty() ? t.stack.name : t.stack.framework));
  const bool shards = p.zero >= 2 && p.replicas() > 1;
  for (const auto& assumed : {Assumed{"overlap_grad_reduce", &Overlap::overlap_grad_reduce, true},
                              Assumed{"overlap_param_gather", &Overlap::overlap_param_gather, true},
                              Assumed{"tp_comm_overlap", &Overlap::tp_comm_overlap, false},
                              Assumed{"pp_overlap", &Overlap::pp_overlap, true},
                              Assumed{"cuda_graph", &Overlap::cuda_graph, false}}) {
    const std::string_view key = assumed.key;
    const bool matters = key == "overlap_grad_reduce"    ? p.replicas() > 1
                         : key == "overlap_param_gather" ? shards
                         : key == "pp_overlap"           ? p.pp > 1
                         : key == "tp_comm_overlap"      ? p.tp > 1
                                                         : toml;
    note_if(matters && t.overlap.*assumed.flag != assumed.always,
            fmt::format("overlap.{} is not exported: torchtitan {}", key,
                        assumed.always ? "always does it" : "does not do it"));
  }
  note_if(t.packing.any(), std::string(samples_note));
  note_if(t.narrow_attention, "narrow_attention is not exported: attention is in bf16");
  note_if(s.model.experts > 0 && (t.expert_imbalance > 1 || t.expert_load.given()),
          fmt::format("{} is not exported: it is what the router does",
                      t.expert_load.given() ? "expert_load" : "expert_imbalance"));
  const auto* flavor = flavor_of(s.model);
  note_if(flavor->name == "llama3" && s.model.rope_scaling_factor == 0,
          "torchtitan's Llama 3 stretches rotary positions as Llama 3.1 does, the scenario's model "
          "does not: same time and memory");
  note_if(true,
          toml ? "tokenizer and data are those of torchtitan's tests, to measure time and memory: "
                 "--model.hf_assets_path and --training.dataset name others"
               : "the recipe's tokenizer must be there: ./assets/hf/Llama-3.1-8B");
  return notes;
}

std::string script_of(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                      const TorchtitanExport& exported) {
  const bool toml = version == TorchtitanVersion::toml;
  std::string text =
      script_head({.framework = toml ? "torchtitan 0.2.2" : "torchtitan of late 2026",
                   .where = "in a checkout of torchtitan",
                   .notes = exported.notes,
                   .environment = {"PYTORCH_ALLOC_CONF=expandable_segments:True"}},
                  s, p);
  if (toml) {
    return text + "\nconfig=$(mktemp --suffix=.toml)\ncat > \"$config\" <<'TOML'\n" +
           toml_of(exported.settings) + "TOML\n\n" + torchrun_command(s, p) +
           "  -m torchtitan.train --job.config_file \"$config\" \"$@\"\n";
  }
  return text + "\nmodules=$(mktemp -d)\ncat > \"$modules/shardplan_plan.py\" <<'PYTHON'\n" +
         python_of(s, exported.settings) +
         "PYTHON\nexport PYTHONPATH=\"$modules:$PWD${PYTHONPATH:+:$PYTHONPATH}\"\n\n" +
         torchrun_command(s, p) +
         "  -m torchtitan.train --module shardplan_plan --config plan \"$@\"\n";
}

}  // namespace

TorchtitanExport export_torchtitan(const Scenario& scenario, const ParallelPlan& plan,
                                   TorchtitanVersion version) {
  refuse_first(torchtitan_violations(scenario, plan, version), scenario);
  TorchtitanExport out;
  out.settings = version == TorchtitanVersion::toml ? toml_settings(scenario, plan)
                                                    : python_settings(scenario, plan);
  out.notes = notes_of(scenario, plan, version);
  out.script = script_of(scenario, plan, version, out);
  return out;
}

}  // namespace planner
