#include "planner/frameworks/torchtitan_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "costmodel/plan/plan_text.hpp"
#include "planner/exchange/exported.hpp"
#include "planner/frameworks/torchtitan_flavors.hpp"

namespace planner {

using namespace costmodel;

namespace {

void check_model(const Scenario& s, TorchtitanVersion version, Refusals& r) {
  std::string models;
  for (const auto& flavor : torchtitan_flavors()) {
    if (version == TorchtitanVersion::python && flavor.name != "llama3") continue;
    models += fmt::format("{}{}", models.empty() ? "" : ", ", flavor.model);
  }
  const bool predicts = s.model.mtp_layers > 0;
  r.refuse(predicts, "model", "its deepseek_v3 predicts one token",
           std::string("set model.mtp_layers: 0, or ") + another_target);
  const auto* flavor = predicts ? nullptr : flavor_of(s.model);
  r.refuse(flavor == nullptr && !predicts, "model", "it has no flavor of these sizes",
           fmt::format("it has these: {}; or {}", models, another_target));
  r.refuse(flavor != nullptr && flavor->name != "llama3" && version == TorchtitanVersion::python,
           "model", "only its recipes of Llama 3 are known here",
           fmt::format("{}, or take one of these: {}", another_target, models));
}

void check_training(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                    Refusals& r) {
  const auto& t = s.training;
  const bool python = version == TorchtitanVersion::python;
  r.refuse(t.precision == Precision::fp16 || t.precision == Precision::nvfp4, "precision",
           fmt::format("there is no {} training", to_string(t.precision)),
           "set training.precision: bf16");
  r.refuse(python && is_narrow(t.precision), "precision",
           fmt::format("{} is a transform of the model there", to_string(t.precision)),
           "set training.precision: bf16, or export to torchtitan (0.2.2)");
  r.refuse(!python && t.gradient_precision != Precision::fp32, "gradient_precision",
           "mixed_precision_reduce is float32 alone", "set training.gradient_precision: fp32");
  r.refuse(t.moment_precision != Precision::fp32, "moment_precision",
           "the optimizer's moments have the parameters' precision, fp32",
           "set training.moment_precision: fp32");
  r.refuse(t.optimizer != Optimizer::adam, "optimizer", "its optimizers are Adam and AdamW",
           "set training.optimizer: adam");
  r.refuse(t.capacity_factor > 0 || t.expert_buffer_factor > 0, "capacity_factor",
           "experts take every token that is routed to them",
           "leave training.capacity_factor and expert_buffer_factor out");
  r.refuse(p.tp > 1 && t.overlap.async_tp && !t.overlap.compile, "overlap",
           "asynchronous tensor parallelism is made by the compiler",
           "set training.overlap.compile: true, or async_tp: false");
}

// Float8GroupedMMConverter: "Float8 MoE training prototype does not yet support pipeline
// parallelism", nor context parallelism. MXLinearConverter: "TP not yet supported with
// torch.compile" (torchtitan/components/quantization/float8.py and mx.py).
void check_quantization(const Scenario& s, const ParallelPlan& p, Refusals& r) {
  const bool experts = s.training.precision == Precision::fp8 && s.model.experts > 0;
  r.refuse(experts && p.pp > 1, "pp", "fp8 experts do not support pipeline parallelism",
           "set pp: 1, or training.precision: bf16");
  r.refuse(experts && p.cp > 1, "cp", "fp8 experts do not support context parallelism",
           "set cp: 1, or training.precision: bf16");
  const bool blocks = s.training.precision == Precision::mxfp8;
  r.refuse(blocks && p.tp > 1 && s.training.overlap.compile, "tp",
           "mxfp8 does not support tensor parallelism where the model is compiled",
           "set tp: 1, or training.overlap.compile: false");
}

// "DDP has not supported > 1D parallelism" (parallelize.py); FSDP shards parameters, gradients and
// states over dp x cp, and keeps parameters after the forward or not.
void check_data(const ParallelPlan& p, Refusals& r) {
  r.refuse(p.shards_states_further(), "outer_dp_sharding", std::string(no_further_shards),
           std::string(without_further_shards));
  const bool all = p.offload.optimizer == 1 && p.offload.parameters == 1;
  r.refuse(p.offload.any() && (!all || p.offload.activation_layers > 0), "offload",
           "training.enable_cpu_offload keeps all states and parameters in host memory",
           "set offload: parameters, or leave it out");
  r.refuse(p.zero_plus_plus.any(), "zero", std::string(no_zero_plus_plus),
           std::string(without_zero_plus_plus));
  r.refuse(p.zero == 1, "zero", "FSDP shards parameters and gradients as well",
           "set zero: 2 or 3, or 0 for DDP");
  const bool alone = p.tp == 1 && p.pp == 1 && p.cp == 1;
  r.refuse(p.zero == 0 && p.replicas() > 1 && !alone, "zero",
           "DDP has not supported more than one dimension of parallelism", "set zero: 2 or 3");
}

void check_tensor(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                  Refusals& r) {
  if (p.tp == 1) return;
  r.refuse(!p.sequence_parallel && version == TorchtitanVersion::toml, "sequence_parallel",
           "tensor parallelism shards the sequence between the products",
           "set sequence_parallel: true");
  r.refuse(s.model.heads % p.tp != 0, "tp",
           fmt::format("tensor_parallel_degree must divide {} heads", s.model.heads),
           "choose another tp");
  r.refuse(!s.model.latent_attention() && s.model.kv_heads % p.tp != 0, "tp",
           fmt::format("tensor_parallel_degree must divide {} heads of keys and values",
                       s.model.kv_heads),
           "choose another tp");
}

void check_context(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                   Refusals& r) {
  const std::int64_t divisor = std::int64_t{p.tp} * 2 * p.cp;
  r.refuse(s.training.sequence % divisor != 0, p.cp > 1 ? "cp" : "tp",
           fmt::format("the sequence must be divisible by {}, tp x 2 cp", divisor),
           "choose a sequence that is");
  if (p.cp == 1) return;
  // Its three large flavors attend by flex_attention (models/deepseek_v3/__init__.py), which
  // context parallelism does not know (model/args.py: NotImplementedError).
  r.refuse(s.model.latent_attention(), "cp",
           "context parallelism needs sdpa, and the flavors of deepseek_v3 have flex attention",
           "set cp: 1");
  r.refuse(version == TorchtitanVersion::python, "cp",
           "context parallelism is a transform of the model's attention there",
           "set cp: 1, or export to torchtitan (0.2.2)");
  r.refuse(p.cp_comm == ContextExchange::a2a, "cp_comm",
           "keys and values are gathered or go round, by context_parallel_rotate_method",
           "set cp_comm: all_gather or p2p");
}

void check_experts(const Scenario& s, const ParallelPlan& p, Refusals& r) {
  if (s.model.experts == 0) return;
  const std::int64_t shard = p.zero >= 2 ? p.dp : 1, cp = p.cp, ep = p.ep;
  r.refuse(ep == 1 && p.etp != p.tp, "etp", "without expert parallelism experts are split as tp",
           fmt::format("set etp: {}", p.tp));
  if (ep > 1) {
    r.refuse(p.etp != p.tp && p.etp != 1, "etp", "only etp = tp or etp = 1 is supported",
             fmt::format("set etp: {}, or 1", p.tp));
    const std::int64_t borrowed = p.etp == p.tp ? cp : cp * p.tp;
    r.refuse(ep % borrowed != 0, "ep",
             fmt::format("expert ranks borrow all {} ranks of cp{}", borrowed,
                         p.etp == p.tp ? "" : " x tp"),
             fmt::format("choose a multiple of {}", borrowed));
    r.refuse(
        (shard * borrowed) % ep != 0, "ep",
        fmt::format("expert ranks must divide the {} that shard the weights", shard * borrowed),
        "choose another ep, or zero: 2 or 3");
    r.refuse(s.model.experts % ep != 0, "ep",
             fmt::format("it must divide {} experts", s.model.experts), "choose another ep");
  }
  const auto& e = p.experts;
  const bool deepep = e.dispatcher == Dispatcher::deepep;
  r.refuse(e.dispatcher != Dispatcher::alltoall && !deepep, "dispatcher",
           "expert_parallel_comm_backend is standard or deepep",
           "set dispatcher: alltoall, or deepep");
  r.refuse(deepep && p.etp > 1, "etp", "DeepEP does not go with tensor ranks inside experts",
           "set etp: 1, or dispatcher: alltoall");
  r.refuse(deepep && !s.model.latent_attention(), "dispatcher",
           "only deepseek_v3 reads expert_parallel_comm_backend", "set dispatcher: alltoall");
  r.refuse(deepep && ep == 1, "dispatcher", "DeepEP needs expert parallelism",
           "set dispatcher: alltoall");
  r.refuse(e.overlap || e.delayed_weight_gradient, "expert_overlap",
           "only DualPipeV overlaps the expert exchange, which is no schedule of a plan",
           "set expert_overlap: false");
  r.refuse(e.shared_overlap, "shared_expert_overlap",
           "shared experts do not compute beside the exchange", "set shared_expert_overlap: false");
}

void check_pipeline(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                    Refusals& r) {
  if (p.pp == 1) return;
  r.refuse(s.model.qk_norm && version == TorchtitanVersion::toml, "pp",
           "its qwen3 has no pipeline (models/qwen3/__init__.py, pipelining_fn)", "set pp: 1");
  const std::int64_t m = p.micro_batches(s.training.global_batch), ranks = p.pp;
  r.refuse(torchtitan_schedule(p).empty(), "schedule",
           fmt::format("it has GPipe, 1F1B, Interleaved1F1B and ZBVZeroBubble, and no {}",
                       schedule_text(p)),
           "set schedule: 1f1b, gpipe, interleaved or zero-bubble-v");
  r.refuse(p.vpp == 1 && m < ranks, "pp",
           fmt::format("there must be as many micro-batches ({}) as stages ({})", m, ranks),
           "choose a smaller pp or micro_batch");
  const std::int64_t rounds = std::max<std::int64_t>(1, m / ranks);
  r.refuse(p.schedule == ScheduleKind::interleaved && m % rounds != 0, "pp",
           fmt::format("{} micro-batches must be divisible by their {} rounds", m, rounds),
           "choose a pp that divides the micro-batches");
}

void check_recompute(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                     Refusals& r) {
  const auto& recompute = p.recompute;
  const bool selective = recompute.granularity == Recomputation::selective;
  const bool second = selective && recompute.modules == 0 && s.training.stack.memory.selective_half;
  r.refuse(recompute.granularity == Recomputation::full && recompute.layers > 0, "recompute",
           "full activation checkpointing takes every layer",
           "set recompute: full without a number of layers, or none");
  r.refuse(selective && version == TorchtitanVersion::python, "recompute",
           "its selective policy is another one since 2026: it recomputes routed experts",
           "set recompute: full, or none");
  r.refuse(selective && version == TorchtitanVersion::toml && !second, "recompute",
           "selective activation checkpointing keeps every second product, not what the stack says",
           "set training.stack: torchtitan, or recompute: full, or none");
}

// ParallelDims.fsdp_enabled; without it maybe_enable_amp (distributed/utils.py) leaves weights and
// products in fp32 wherever tensor or pipeline ranks are.
void check_sharding(const Scenario& s, const ParallelPlan& p, TorchtitanVersion version,
                    Refusals& r) {
  const bool sharded = p.zero >= 2 && (p.dp > p.dp_replicate || p.cp > 1);
  r.refuse(p.zero >= 2 && !sharded, "zero", "one rank shards nothing, and FSDP is left out",
           "set zero: 0, or dp: 2 or more");
  r.refuse(!sharded && (p.tp > 1 || p.pp > 1) && s.training.precision != Precision::fp32 &&
               version == TorchtitanVersion::toml,
           "precision", "mixed precision with tensor or pipeline ranks is made by FSDP alone",
           "set zero: 3 and dp: 2 or more, or training.precision: fp32");
}

}  // namespace

std::string_view torchtitan_schedule(const ParallelPlan& plan) {
  switch (plan.schedule) {
    case ScheduleKind::gpipe: return plan.vpp == 1 ? "GPipe" : "";
    case ScheduleKind::one_f_one_b: return plan.vpp == 1 ? "1F1B" : "";
    case ScheduleKind::interleaved: return plan.vpp > 1 ? "Interleaved1F1B" : "";
    case ScheduleKind::zero_bubble_v: return "ZBVZeroBubble";
    default: return "";
  }
}

std::vector<Violation> torchtitan_violations(const Scenario& scenario, const ParallelPlan& plan,
                                             TorchtitanVersion version) {
  Refusals refusals(version == TorchtitanVersion::toml ? "torchtitan 0.2.2" : "torchtitan");
  refuse_unlike(scenario, plan, refusals);
  check_model(scenario, version, refusals);
  if (!refusals.found.empty()) return refusals.found;
  check_training(scenario, plan, version, refusals);
  check_quantization(scenario, plan, refusals);
  check_data(plan, refusals);
  check_tensor(scenario, plan, version, refusals);
  check_context(scenario, plan, version, refusals);
  check_experts(scenario, plan, refusals);
  check_pipeline(scenario, plan, version, refusals);
  check_recompute(scenario, plan, version, refusals);
  check_sharding(scenario, plan, version, refusals);
  return refusals.found;
}

}  // namespace planner
