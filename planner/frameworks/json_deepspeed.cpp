#include "planner/frameworks/json_deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/plan/plan_text.hpp"

namespace planner {

using namespace costmodel;
using Json = nlohmann::ordered_json;

namespace {

// Megatron-DeepSpeed splits layers itself, with Megatron-LM's groups; elsewhere AutoTP does.
bool megatron_splits(const Scenario& s) {
  return s.training.stack.framework.find("Megatron-DeepSpeed") != std::string::npos;
}

void check_shape(const Scenario& s, const ParallelPlan& p, Refusals& r) {
  refuse_unlike(s, p, r);
  r.refuse(
      !p.stage_layers.empty() &&
          std::ranges::adjacent_find(p.stage_layers, std::not_equal_to<>()) != p.stage_layers.end(),
      "stage_layers", "PipelineModule partitions by parameters or uniformly, not by a list",
      "leave stage_layers out");
  const Precision precision = s.training.precision;
  r.refuse(is_narrow(precision), "precision",
           fmt::format("there is no {} training, only fp32, fp16 and bf16", to_string(precision)),
           "set training.precision: bf16");
  r.refuse(p.dp_replicate > 1 && p.zero < 3, "dp_replicate",
           "MiCS shards parameters within groups: ZeRO 3", "set zero: 3, or leave it out");
  r.refuse(p.shards_states_further(), "outer_dp_sharding", std::string(no_further_shards),
           std::string(without_further_shards));
  const bool half = precision == Precision::bf16 || precision == Precision::fp16;
  r.refuse(p.zero == 0 && half && s.training.gradient_precision == Precision::fp32,
           "gradient_precision",
           "without ZeRO gradients are summed in the run's own format (engine.py, since 0.18.9)",
           fmt::format("set training.gradient_precision: {}, or zero: 1", to_string(precision)));
  r.refuse(p.offload.optimizer > 0 && p.offload.optimizer < 1 && p.zero < 3, "offload",
           "a part of the optimizer's states goes to the host with ZeRO 3 alone",
           "set offload: optimizer, or zero: 3");
  r.refuse(p.ep > 1 && p.zero == 3, "ep", "its MoE layer is not supported with ZeRO 3",
           "set zero: 2 at most, or ep: 1");
  r.refuse(p.etp > 1, "etp", "experts are not split over tensor ranks", "set etp: 1");
}

void check_pipeline(const ParallelPlan& p, Refusals& r) {
  if (p.pp == 1) return;
  r.refuse(p.schedule != usual_schedule(1), "schedule",
           fmt::format("PipelineModule runs 1f1b, not {}", schedule_text(p)),
           "set schedule: 1f1b, and vpp: 1");
  r.refuse(p.zero >= 2, "zero", "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
           "set zero: 1 at most, or pp: 1");
  r.refuse(p.cp > 1, "cp", "Ulysses is not combined with PipelineModule", "set cp: 1, or pp: 1");
}

void check_axes(const Scenario& s, const ParallelPlan& p, Refusals& r) {
  r.refuse(p.cp > 1 && p.cp_comm != ContextExchange::a2a, "cp_comm",
           "context parallelism is Ulysses' all-to-all", "set cp_comm: a2a, or cp: 1");
  if (p.tp == 1 || megatron_splits(s)) return;
  r.refuse(p.sequence_parallel, "sequence_parallel",
           "sequence parallelism beside tensor parallelism is Megatron's",
           "set sequence_parallel: false, or training.stack: megatron-deepspeed-2022");
  r.refuse(p.zero == 3, "zero", "AutoTP supports ZeRO stages 0, 1 and 2",
           "set zero: 2 at most, or tp: 1");
  r.refuse(p.pp > 1 || p.cp > 1, "tp",
           "tensor parallelism with pipeline or context parallelism needs Megatron-DeepSpeed",
           "set training.stack: megatron-deepspeed-2022, or tp: 1");
}

void check_exchange(const Scenario& s, const ParallelPlan& p, Refusals& r) {
  if (s.model.experts == 0) return;
  r.refuse(p.experts.dispatcher != Dispatcher::alltoall, "dispatcher",
           "its MoE layer exchanges tokens by all-to-all", "set dispatcher: alltoall");
  r.refuse(p.experts.overlap || p.experts.delayed_weight_gradient || p.experts.shared_overlap,
           "expert_overlap", "nothing computes beside the experts' exchange",
           "set expert_overlap: false, and shared_expert_overlap: false");
}

void check_optimizer(const Scenario& s, Refusals& r) {
  const Optimizer optimizer = s.training.optimizer;
  const bool built = optimizer == Optimizer::adam || optimizer == Optimizer::muon ||
                     is_sgd(optimizer);  // deepspeed/runtime/config.py, DEEPSPEED_OPTIMIZERS
  r.refuse(!built, "optimizer",
           fmt::format("{} is built by your program, not by ds_config.json", to_string(optimizer)),
           "set training.optimizer: adam, and pass your optimizer to deepspeed.initialize");
  // bf16_optimizer_states is valid with bf16_master_weights_and_grads alone
  // (deepspeed/runtime/precision_config.py), which no plan has.
  r.refuse(s.training.moment_precision != Precision::fp32, "moment_precision",
           "the optimizer's moments are fp32 where master weights are",
           "set training.moment_precision: fp32");
}

void check_recompute(const ParallelPlan& p, Refusals& r) {
  r.refuse(p.recompute.granularity == Recomputation::selective, "recompute",
           "activation checkpointing recomputes whole layers", "set recompute: full, or none");
  r.refuse(p.recompute.granularity == Recomputation::full && p.recompute.layers > 0, "recompute",
           "activation checkpointing takes every layer of the model",
           "set recompute: full without a number of layers, or none");
}

Json optimizer_json(const Scenario& s) {
  if (is_sgd(s.training.optimizer)) {
    const double momentum = s.training.optimizer == Optimizer::sgd ? 0.9 : 0;
    return {{"type", "SGD"}, {"params", {{"lr", 1e-4}, {"momentum", momentum}}}};
  }
  if (s.training.optimizer == Optimizer::muon) {
    return {{"type", "Muon"},
            {"params", {{"lr", 1e-4}, {"momentum", 0.95}, {"weight_decay", 0.1}}}};
  }
  return {
      {"type", "AdamW"},
      {"params",
       {{"lr", 1e-4}, {"betas", Json::array({0.9, 0.95})}, {"eps", 1e-8}, {"weight_decay", 0.1}}}};
}

// "stages" is what a training script builds, not what the engine decides by; it says so to readers.
Json config_json(const Scenario& s, const ParallelPlan& p) {
  const auto& t = s.training;
  Json config;
  // With AutoTP DeepSpeed holds the batch against all ranks as if they were data-parallel
  // (deepspeed/runtime/config.py, _batch_assertion); left out it is the product of the others.
  if (p.tp == 1 || megatron_splits(s)) config["train_batch_size"] = t.global_batch;
  config["train_micro_batch_size_per_gpu"] = p.micro_batch;
  config["gradient_accumulation_steps"] = p.micro_batches(t.global_batch);
  config["optimizer"] = optimizer_json(s);
  config["gradient_clipping"] = 1.0;
  // ZeRO knows Adam's, Lion's and Muon's states (deepspeed/runtime/zero/utils.py).
  if (is_sgd(t.optimizer) && p.zero > 0) config["zero_allow_untested_optimizer"] = true;
  if (t.precision == Precision::bf16) config["bf16"] = {{"enabled", true}};
  if (t.precision == Precision::fp16) config["fp16"] = {{"enabled", true}, {"loss_scale", 0}};
  // 16-bit gradients are in the format of the run: stacks say fp16 for either.
  const bool narrow = t.precision != Precision::fp32 && t.gradient_precision != Precision::fp32;
  config["data_types"] = {{"grad_accum_dtype", to_string(narrow ? t.precision : Precision::fp32)}};
  config["zero_optimization"] = {{"stage", p.zero},
                                 {"overlap_comm", t.overlap.overlap_grad_reduce},
                                 {"reduce_scatter", true},
                                 {"contiguous_gradients", true}};
  const ZeroPlusPlus& more = p.zero_plus_plus;
  if (more.partition > 1) config["zero_optimization"]["zero_hpz_partition_size"] = more.partition;
  if (more.weights) config["zero_optimization"]["zero_quantized_weights"] = true;
  if (more.gradients) config["zero_optimization"]["zero_quantized_gradients"] = true;
  const auto kept = [](bool drives) {
    if (drives) return Json{{"device", "nvme"}, {"nvme_path", "/local_nvme"}, {"pin_memory", true}};
    return Json{{"device", "cpu"}, {"pin_memory", true}};
  };
  if (const double share = p.offload.optimizer; share > 0) {
    Json& states = config["zero_optimization"]["offload_optimizer"];
    states = kept(p.offload.optimizer_on_drives());
    if (share < 1) states["ratio"] = share;  // since DeepSpeed 0.12, of stage 3
  }
  if (p.offload.parameters > 0)
    config["zero_optimization"]["offload_param"] = kept(p.offload.parameters_on_drives());
  if (p.dp_replicate > 1) config["zero_optimization"]["mics_shard_size"] = p.shards();
  if (p.tp > 1 && !megatron_splits(s)) config["tensor_parallel"] = {{"autotp_size", p.tp}};
  if (p.pp > 1) config["pipeline"] = {{"stages", p.pp}};
  if (p.recompute.granularity == Recomputation::full) {
    config["activation_checkpointing"] = {{"partition_activations", false},
                                          {"cpu_checkpointing", false}};
  }
  config["steps_per_print"] = 1;
  config["wall_clock_breakdown"] = true;
  return config;
}

std::vector<std::string> notes_of(const Scenario& s, const ParallelPlan& p) {
  std::vector<std::string> notes;
  const auto note_if = [&](bool wanted, std::string text) {
    if (wanted) notes.push_back(std::move(text));
  };
  note_if(p.pp > 1, fmt::format("the training script builds PipelineModule(layers, num_stages={}, "
                                "partition_method=\"uniform\"): ds_config.json does not say it",
                                p.pp));
  note_if(megatron_splits(s),
          fmt::format("Megatron-DeepSpeed takes --tensor-model-parallel-size {}{}", p.tp,
                      p.sequence_parallel ? " and --sequence-parallel" : ""));
  note_if(p.dp_replicate > 1, "the model is built under deepspeed.zero.MiCS_Init");
  note_if(p.cp > 1, fmt::format("Ulysses is in the model: UlyssesSPAttentionHF."
                                "register_with_transformers(sequence_parallel_size={})",
                                p.cp));
  note_if(p.ep > 1,
          fmt::format("experts are in the model: deepspeed.moe.layer.MoE(ep_size={})", p.ep));
  note_if(p.recompute.granularity == Recomputation::full,
          "the model calls deepspeed.checkpointing.checkpoint for each layer");
  note_if(s.training.optimizer == Optimizer::muon,
          "Muon is among DeepSpeed's own optimizers since 0.17.6");
  note_if(p.devices() > s.cluster.devices_per_node,
          fmt::format("HOSTFILE names the nodes, a line each, as the launcher needs it: \"NAME "
                      "slots={}\"; within a job of Slurm the script writes it",
                      s.cluster.devices_per_node));
  note_if(s.training.packing.any(), std::string(samples_note));
  note_if(s.training.overlap.compile, "engine.compile() is called by the training script");
  note_if(p.zero >= 1 && !s.training.stack.memory.master_weights &&
              s.training.precision == Precision::bf16,
          "bf16 training keeps fp32 master weights, which the stack does not");
  return notes;
}

std::string script(const Scenario& s, const ParallelPlan& p, const std::string& config,
                   const std::vector<std::string>& notes) {
  const std::int64_t per_node = std::min(s.cluster.devices_per_node, p.devices());
  std::string text = "#!/usr/bin/env bash\n";
  const auto comment = [&](const std::string& line) {
    text += fmt::format("# {}\n", printable(line));
  };
  comment(fmt::format("{} for DeepSpeed, as shardplan planned it:",
                      s.name.empty() ? "A plan" : s.name));
  comment(to_string(p));
  for (const auto& note : notes) comment("Note: " + note);
  text += "set -euo pipefail\n\ncat > ds_config.json <<'JSON'\n" + config + "JSON\n\n";
  const std::int64_t nodes = p.devices() / per_node;
  if (nodes > 1) {
    text += fmt::format(
        "HOSTFILE=${{HOSTFILE:-hostfile}}\n"
        "if [[ -n \"${{SLURM_JOB_NODELIST:-}}\" ]]; then\n"
        "  scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed 's/$/ slots={}/' >\"$HOSTFILE\"\n"
        "fi\n\n",
        per_node);
  }
  text += fmt::format("deepspeed {}--num_nodes {} --num_gpus {} \\\n",
                      nodes > 1 ? "--hostfile \"$HOSTFILE\" " : "", nodes, per_node);
  return text +
         "  \"${TRAIN:?must name the training script}\" --deepspeed --deepspeed_config "
         "ds_config.json \"$@\"\n";
}

}  // namespace

std::vector<Violation> deepspeed_violations(const Scenario& scenario, const ParallelPlan& plan) {
  Refusals refusals("DeepSpeed");
  check_shape(scenario, plan, refusals);
  if (!refusals.found.empty()) return refusals.found;
  check_pipeline(plan, refusals);
  check_axes(scenario, plan, refusals);
  check_exchange(scenario, plan, refusals);
  check_optimizer(scenario, refusals);
  check_recompute(plan, refusals);
  return refusals.found;
}

Exported export_deepspeed(const Scenario& scenario, const ParallelPlan& plan) {
  refuse_first(deepspeed_violations(scenario, plan), scenario);
  Exported exported;
  exported.json = json_text(config_json(scenario, plan));
  exported.notes = notes_of(scenario, plan);
  exported.text = script(scenario, plan, exported.json, exported.notes);
  return exported;
}

}  // namespace planner
