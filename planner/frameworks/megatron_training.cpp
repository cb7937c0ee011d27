#include "planner/frameworks/megatron_training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/plan/loss_kernel.hpp"

#include "planner/frameworks/megatron_deepspeed.hpp"
#include "planner/frameworks/megatron_stacks.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string precision_of(MegatronImport& in) {
  const bool half = in.has("--fp16"), bf16 = in.has("--bf16");
  const std::string fp8 = in.text("--fp8-format"), fp4 = in.text("--fp4-format");
  const std::string recipe = in.text("--fp8-recipe", "delayed");
  in.has("--fp4-recipe");
  if (!fp4.empty()) return "nvfp4";
  if (!fp8.empty()) {
    if (recipe == "blockwise" || recipe == "custom")
      in.leave_out("--fp8-recipe", "priced as fp8 with a scale a tensor");
    return recipe == "mxfp8" ? "mxfp8" : "fp8";
  }
  return bf16 ? "bf16" : half ? "fp16" : "fp32";
}

// A log has torch's names, and none where a type follows from others.
std::string type_of(MegatronImport& in, std::string_view flag, std::string_view otherwise) {
  std::string name = in.text(flag, otherwise);
  name.erase(0, name.find('.') + 1);
  return name == "bfloat16"  ? "bf16"
         : name == "float16" ? "fp16"
         : name == "float32" ? "fp32"
                             : name;
}

// bf16 accumulates and reduces in fp32 unless told otherwise; fp16 the other way round.
// Megatron-FSDP of core 0.17 and later keeps gradients in the type of the parameters.
std::string gradients_of(MegatronImport& in, const std::string& precision) {
  const bool wide = in.has("--accumulate-allreduce-grads-in-fp32"), half = precision == "fp16";
  const bool narrow = in.has("--grad-reduce-in-bf16"),
             main = type_of(in, "--main-grads-dtype", "fp32") == "bf16",
             newer = in.arguments().find("--megatron-fsdp-main-params-dtype") != nullptr ||
                     in.has("--megatron-fsdp-main-grads-dtype");
  const std::string sharded = type_of(in, "--megatron-fsdp-main-grads-dtype", "auto");
  if (in.has("--use-megatron-fsdp") && precision != "fp32" && (newer || !in.arguments().from_log))
    return sharded != "auto" ? sharded : half ? "fp16" : "bf16";
  if (half) return wide ? "fp32" : "fp16";
  return (narrow || main) && !wide ? "bf16" : "fp32";
}

void read_precisions(MegatronImport& in) {
  const std::string precision = precision_of(in);
  in.put("training.precision", precision);
  in.put("training.gradient_precision", gradients_of(in, precision));
  const bool reuse = in.has("--reuse-grad-buf-for-mxfp8-param-ag");
  if (in.has("--fp8-param-gather"))
    in.put("training.parameter_gather_precision", reuse ? "mxfp8" : "fp8");
  const bool aware = in.has("--use-precision-aware-optimizer");
  const std::string moments = in.text("--exp-avg-dtype", "fp32");
  const std::string second = in.text("--exp-avg-sq-dtype", moments);
  if (aware && (moments == "bf16" || moments == "bfloat16")) {
    in.put("training.moment_precision", "bf16");
  } else if (aware && (moments == "fp16" || moments == "float16")) {
    in.put("training.moment_precision", "fp16");
  } else if (aware && moments != "fp32" && moments != "float32") {
    in.leave_out("--exp-avg-dtype", "taken as fp32");
  }
  if (aware && second != moments) in.leave_out("--exp-avg-sq-dtype", "taken as the first moment's");
}

// Megatron-DeepSpeed's forks of 2023 have what those that its stacks are of did without.
void add_newer_offers(MegatronImport& in) {
  const auto offer = [&](const char* key, bool used) {
    if (used) in.put(fmt::format("training.stack.{}", key), "true");
  };
  offer("context_parallel", in.number("--context-parallel-size").value_or(1) > 1);
  offer("sequence_parallel", in.has("--sequence-parallel"));
  offer("selective_recompute", in.has("--recompute-activations") ||
                                   in.text("--recompute-granularity", "none") == "selective");
}

// What the flags say of the stack's kernels, where they depart from it.
void read_stack(MegatronImport& in) {
  const StackKernels& own = in.kernels();
  in.put("training.stack.base", in.arguments().stack);
  const std::string backend = in.text("--attention-backend", "auto");
  const bool local = in.text("--transformer-impl", "transformer_engine") == "local";
  const bool flash = in.has("--use-flash-attn");
  const bool plain = local && !flash && backend == "auto";  // DotProductAttention of its layer spec
  // Neither FlashAttention nor cuDNN has an fp32 kernel.
  const Value* precision = in.job.scenario.find("training")->find("precision");
  const bool full = precision != nullptr && precision->text == "fp32";
  const bool unfused = backend == "unfused" || backend == "local" || plain || full;
  if (unfused != (own.attention == AttentionKernel::unfused))
    in.put("training.stack.attention", unfused ? "unfused" : "flash");
  const auto set = [&](const char* key, bool is, bool usual) {
    if (is != usual) in.put(fmt::format("training.stack.{}", key), is ? "true" : "false");
  };
  const bool separate = in.any({"--no-bias-gelu-fusion", "--no-bias-swiglu-fusion"});
  set("fused_softmax", !in.has("--no-masked-softmax-fusion"), own.fused_softmax);
  set("fused_bias_activation", !separate || in.arguments().from_log, own.fused_bias_activation);
  set("fused_bias_dropout_add", !in.has("--no-bias-dropout-fusion"), own.fused_bias_dropout_add);
  set("fused_rotary", !in.has("--no-rope-fusion"), own.fused_rotary);
  const bool router = in.has("--moe-router-fusion");
  if (router || in.has_experts()) set("fused_router", router, own.fused_router);
  if (is_run_by_deepspeed(in.arguments())) add_newer_offers(in);
}

// Where it departs from the stack's.
void read_loss(MegatronImport& in) {
  const bool fused = in.has("--cross-entropy-loss-fusion");
  const std::string kernel = in.text("--cross-entropy-fusion-impl", "native");
  if (kernel != "native" && kernel != "te")
    in.refuse("--cross-entropy-fusion-impl", "is no loss of Megatron-LM");
  const std::string loss = fused ? kernel : "unfused";
  if (loss != loss_kernel_names.at(static_cast<std::size_t>(in.kernels().loss)))
    in.put("training.loss", loss);
}

void read_graphs(MegatronImport& in) {
  const std::string impl = in.text("--cuda-graph-impl", "none");
  const bool old = in.any({"--enable-cuda-graph", "--external-cuda-graph"});
  std::vector<std::string> scopes;
  for (const char* flag : {"--cuda-graph-scope", "--cuda-graph-modules"}) {
    if (const MegatronArgument* a = in.find(flag))
      scopes.insert(scopes.end(), a->values.begin(), a->values.end());
  }
  std::erase_if(scopes, [](const std::string& scope) { return scope == "full"; });
  if (impl == "none" && !old) return in.put("training.overlap.cuda_graph", "false");
  if (scopes.empty()) return in.put("training.overlap.cuda_graph", "true");
  in.put_list("training.overlap.cuda_graph", scopes);
}

void read_overlap(MegatronImport& in, std::int64_t vpp) {
  // DeepSpeed's JSON decides it, or the stage: as the stack has it.
  if (is_run_by_deepspeed(in.arguments())) return;
  for (const char* key : {"overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap"})
    in.put(fmt::format("training.overlap.{}", key), "false");
  in.copy_all("training.overlap.", WordOf::any_job);
  const bool serial = in.has("--no-overlap-p2p-communication");
  if (vpp > 1) in.put("training.overlap.pp_overlap", serial ? "false" : "true");
  read_graphs(in);
}

// A run without --global-batch-size has one micro-batch a replica.
void read_batch(MegatronImport& in) {
  const std::int64_t replicas =
      in.arguments().world_size /
      std::max<std::int64_t>(1, in.whole("--tensor-model-parallel-size", 1) *
                                    in.whole("--pipeline-model-parallel-size", 1) *
                                    in.whole("--context-parallel-size", 1));
  if (const MegatronArgument* a = in.find("--global-batch-size")) {
    if (!a->unknown.empty()) {
      return in.miss("training.global_batch",
                     fmt::format("--global-batch-size: the script leaves {} open", a->unknown));
    }
    in.put("training.global_batch", in.text("--global-batch-size"), a->mark);
  } else if (replicas > 0) {
    in.put("training.global_batch",
           fmt::format("{}", replicas * in.whole("--micro-batch-size", 1)));
  } else {
    in.miss("training.global_batch", "the arguments have no --global-batch-size");
  }
}

}  // namespace

void read_megatron_training(MegatronImport& in, std::int64_t vpp) {
  read_batch(in);
  in.copy_all("training.", WordOf::any_job);
  read_stacks_training(in);
  if (!in.has("--seq-length") && !in.any({"--encoder-seq-length", "--total-seq-length"}))
    in.miss("training.sequence", "the arguments have no --seq-length");
  read_precisions(in);
  const std::string optimizer = in.text("--optimizer", "adam");
  const bool muon = optimizer == "muon" || optimizer == "dist_muon";
  const bool plain = optimizer == "sgd" && in.text("--sgd-momentum", "0.9") == "0";
  in.put("training.optimizer", muon                 ? "muon"
                               : plain              ? "plain-sgd"
                               : optimizer == "sgd" ? "sgd"
                                                    : "adam");
  if (!muon && optimizer != "sgd" && optimizer != "adam")
    in.leave_out("--optimizer", "taken as adam");
  if (in.has_experts()) {
    in.copy_all("training.", WordOf::experts);
    in.has("--moe-pad-expert-input-to-capacity");
  }
  read_stack(in);
  read_loss(in);
  read_overlap(in, vpp);
}

}  // namespace planner
