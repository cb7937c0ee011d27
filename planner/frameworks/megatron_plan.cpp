#include "planner/frameworks/megatron_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/model/model_spec.hpp"
#include "costmodel/plan/parallel_plan.hpp"
#include "planner/frameworks/megatron_deepspeed.hpp"
#include "planner/frameworks/megatron_hybrid.hpp"
#include "planner/frameworks/megatron_pattern.hpp"
#include "planner/frameworks/megatron_stacks.hpp"

namespace planner {

namespace {

// The stage of DeepSpeed's engine, which its JSON repeats.
void read_deepspeed_stage(MegatronImport& in) {
  in.any({"--deepspeed", "--deepspeed_config"});
  const MegatronArgument* written = in.find("--zero-stage");
  if (written == nullptr || !written->unknown.empty()) {
    in.miss("plan.zero", "the stage of ZeRO stands in DeepSpeed's JSON: --set plan.zero=N");
    in.job.missing.back().otherwise = "1";
    in.job.missing.back().because = "as --zero-stage is by default";
    return;
  }
  constexpr double last = 3;
  const double stage = in.number("--zero-stage").value_or(1);
  if (stage > last) in.refuse("--zero-stage", "is no stage of ZeRO");
  const bool sharded = stage == 0 && in.has("--bf16");
  if (sharded) in.note("DeepSpeed's bf16 shards the optimizer's states at stage 0 too: zero 1");
  in.put("plan.zero", sharded ? "1" : fmt::format("{}", stage));
}

void read_zero(MegatronImport& in) {
  if (is_run_by_deepspeed(in.arguments())) return read_deepspeed_stage(in);
  const bool layers = in.text("--optimizer", "adam") == "dist_muon";  // as muon, sharded
  const bool one = in.has("--use-distributed-optimizer") || layers;
  const std::string strategy = in.text("--data-parallel-sharding-strategy", "no_shard");
  std::string zero = one ? "1" : "0";
  if (in.has("--use-megatron-fsdp")) {
    constexpr std::array<std::string_view, 4> strategies{"no_shard", "optim", "optim_grads",
                                                         "optim_grads_params"};
    const auto* const at = std::ranges::find(strategies, strategy);
    if (at == strategies.end())
      in.refuse("--data-parallel-sharding-strategy", "is no strategy of Megatron-FSDP");
    zero = fmt::format("{}", at - strategies.begin());
  }
  if (in.has("--use-torch-fsdp2")) zero = "3";
  in.put("plan.zero", zero);
  if (in.has("--optimizer-cpu-offload"))
    in.put("plan.offload.optimizer", in.text("--optimizer-offload-fraction", "1"));
  if (const auto kept = in.text("--cpu-offloading-num-layers", "0"); kept != "0")
    in.put("plan.offload.activations.layers", kept);
  const MegatronArgument* modules = in.find("--offload-modules");
  if (in.has("--fine-grained-activation-offloading") && modules != nullptr)
    in.put_list("plan.offload.activations.modules", modules->values);
  const std::int64_t groups = in.whole("--num-distributed-optimizer-instances", 1);
  if (groups > 1 && zero != "0") in.put("plan.dp_replicate", fmt::format("{}", groups));
  const std::string outer = in.text("--outer-dp-sharding-strategy", "no_shard");
  if (outer == "no_shard" || groups == 1) return;
  if (outer != "optim")
    in.refuse("--outer-dp-sharding-strategy", "is no strategy of Megatron-FSDP");
  in.put("plan.outer_dp_sharding", outer);
}

void read_recompute(MegatronImport& in) {
  std::string granularity = in.text("--recompute-granularity", "none");
  // The older flag is of the time before selective recomputation.
  const bool older = in.has("--checkpoint-activations"), newer = in.has("--recompute-activations");
  if (granularity == "none" && (older || newer)) granularity = newer ? "selective" : "full";
  const std::string method = in.text("--recompute-method");
  const std::int64_t layers = in.whole("--recompute-num-layers", 1);
  const MegatronArgument* modules = in.find("--recompute-modules");
  if (granularity == "selective") {
    const bool named = modules != nullptr && !in.arguments().from_log;
    const bool usual =
        modules == nullptr || modules->values == std::vector<std::string>{"core_attn"};
    if (named || !usual) return in.put_list("plan.recompute.modules", modules->values);
    return in.put("plan.recompute", "selective");
  }
  if (granularity != "full") return in.put("plan.recompute", "none");
  if (method == "block") {
    in.put("plan.recompute.granularity", "full");
    in.put("plan.recompute.layers", fmt::format("{}", layers));
    return;
  }
  in.put("plan.recompute", "full");
  if (layers > 1) in.leave_out("--recompute-num-layers", "every layer keeps its input");
}

void put_layers(MegatronImport& in, const std::vector<int>& stages) {
  std::vector<std::string> list;
  for (const int layers : stages) list.push_back(fmt::format("{}", layers));
  in.put_list("plan.stage_layers", list);
}

// The layers of each stage where the first and the last have counts of their own, or the embedding
// and the loss count as layers; empty where plain keys mean the same.
std::vector<int> uneven_layers(MegatronImport& in, int pp, int vpp) {
  const std::int64_t layers = layers_of_model(in), stages = std::int64_t{pp} * vpp;
  std::int64_t first = in.whole("--decoder-first-pipeline-num-layers", 0);
  std::int64_t last = in.whole("--decoder-last-pipeline-num-layers", 0);
  const bool embedding = in.has("--account-for-embedding-in-pipeline-split");
  const bool loss = in.has("--account-for-loss-in-pipeline-split");
  costmodel::ParallelPlan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  costmodel::ModelSpec model;
  model.layers = layers;
  using costmodel::UnevenSplit;
  const UnevenSplit usual = costmodel::uneven_split(plan, model);
  // Of a model that is named elsewhere the layers are not known.
  for (const char* flag :
       {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
        "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"}) {
    if (stages > 1 && layers < 1) in.leave_out(flag, "stages are taken as even");
  }
  if (stages < 2 || layers < 1) return {};
  if (first == 0 && last == 0) {
    const std::int64_t counted = layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
    const bool same = embedding && loss ? usual == UnevenSplit::embedding_and_loss
                      : loss            ? usual == UnevenSplit::loss
                                        : !embedding;
    if (same || counted % stages != 0) return {};
    std::vector<int> list(static_cast<std::size_t>(stages), static_cast<int>(counted / stages));
    if (embedding) --list.front();
    if (loss) --list.back();
    return list;
  }
  // Counts are of a rank, whose chunks take equal parts.
  const std::int64_t middle = pp - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
  const std::int64_t each = middle > 0 ? (layers - first - last) / middle : 0;
  if (first == 0) first = each;
  if (last == 0) last = each;
  std::vector<int> list;
  for (std::int64_t cell = 0; cell < stages; ++cell) {
    const std::int64_t rank = cell % pp;
    list.push_back(static_cast<int>((rank == 0 ? first : rank == pp - 1 ? last : each) / vpp));
  }
  return list;
}

// The virtual stages of a rank: given as their number, or by the layers of each.
int virtual_stages(MegatronImport& in, std::int64_t pp) {
  const std::int64_t count = in.whole("--num-virtual-stages-per-pipeline-rank", 0);
  const std::int64_t each = in.whole("--num-layers-per-virtual-pipeline-stage", 0);
  if (count > 0) return static_cast<int>(std::min<std::int64_t>(count, 100'000));
  if (each <= 0 || pp < 1) return 1;
  const std::int64_t counted = layers_of_model(in) +
                               (in.has("--account-for-embedding-in-pipeline-split") ? 1 : 0) +
                               (in.has("--account-for-loss-in-pipeline-split") ? 1 : 0);
  return static_cast<int>(std::clamp<std::int64_t>(counted / pp / each, 1, 100'000));
}

// Those of a plan that names none, for as many layers.
std::vector<int> usual_stages(const std::vector<int>& stages, int pp, int vpp) {
  costmodel::ParallelPlan plan;
  plan.pp = pp;
  plan.vpp = vpp;
  costmodel::ModelSpec model;
  for (const int layers : stages) model.layers += layers;
  std::vector<int> usual;
  if (costmodel::uneven_split(plan, model) == costmodel::UnevenSplit::impossible) return usual;
  for (int stage = 0; stage < pp * vpp; ++stage)
    usual.push_back(costmodel::layers_of(plan, model, stage));
  return usual;
}

int read_stages(MegatronImport& in) {
  const std::int64_t size = in.whole("--pipeline-model-parallel-size", 1);
  if (size < 1 || size > 100'000) in.refuse("--pipeline-model-parallel-size", "is no size");
  const int pp = static_cast<int>(size);
  const bool hybrid = is_hybrid(in.arguments());
  if (const auto stages = hybrid ? hybrid_pattern(in).stages : std::vector<int>();
      !stages.empty()) {
    if (stages.size() % static_cast<std::size_t>(pp) != 0)
      in.refuse("--pipeline-model-parallel-size", "does not divide the stages of the pattern");
    const int each = static_cast<int>(stages.size()) / pp;
    if (stages != usual_stages(stages, pp, each)) put_layers(in, stages);
    if (each > 1) in.put("plan.vpp", fmt::format("{}", each));
    return each;
  }
  int vpp = virtual_stages(in, pp);
  // A stage holds a layer at least, or the embedding or the loss.
  const std::int64_t layers = layers_of_model(in);
  if (layers > 0 && std::int64_t{pp} * vpp > layers + 2) {
    in.refuse("--pipeline-model-parallel-size",
              fmt::format("makes {} stages of {} layers", std::int64_t{pp} * vpp, layers));
  }
  const MegatronArgument* layout = in.find("--pipeline-model-parallel-layout");
  if (layout != nullptr && !layout->unknown.empty()) {
    in.leave_out("--pipeline-model-parallel-layout",
                 "the script does not say its value: stages are taken as even");
  } else if (layout != nullptr) {
    const auto cells = layers_of_layout(in.text("--pipeline-model-parallel-layout"));
    if (!cells || cells->size() % static_cast<std::size_t>(pp) != 0)
      in.refuse("--pipeline-model-parallel-layout", fmt::format("is no layout of {} ranks", pp));
    vpp = static_cast<int>(cells->size()) / pp;
    put_layers(in, *cells);
  } else if (const auto list = uneven_layers(in, pp, vpp); !list.empty()) {
    put_layers(in, list);
  }
  if (vpp > 1) in.put("plan.vpp", fmt::format("{}", vpp));
  return vpp;
}

void read_dispatcher(MegatronImport& in) {
  std::string type = in.text("--moe-token-dispatcher-type", "allgather");
  const std::string backend = in.text("--moe-flex-dispatcher-backend", "deepep");
  if (in.has("--moe-enable-deepep")) type = "flex";
  in.put("plan.dispatcher", type == "flex" ? backend : type == "alltoall_seq" ? "alltoall" : type);
  const bool hybrid = backend == "hybridep";
  const std::int64_t own = in.whole(hybrid ? "--moe-hybridep-num-sms" : "--moe-deepep-num-sms", 0);
  in.any({"--moe-hybridep-num-sms", "--moe-deepep-num-sms"});
  const std::int64_t count = in.whole("--moe-flex-dispatcher-num-sms", own);
  if (type == "flex" && count > 0)
    in.put("plan.dispatcher_multiprocessors", fmt::format("{}", count));
}

}  // namespace

int read_megatron_plan(MegatronImport& in) {
  in.copy_all("plan.", WordOf::any_job);
  if (!in.has("--sequence-parallel") && in.number("--tensor-model-parallel-size").value_or(1) > 1)
    in.put("plan.sequence_parallel", "false");
  if (!in.has("--micro-batch-size"))
    in.miss("plan.micro_batch", "the arguments have no --micro-batch-size");
  if (in.whole("--context-parallel-size", 1) > 1) {
    if (in.has("--cp-comm-type")) {
      std::string exchange = in.text("--cp-comm-type");
      // Both at once, of groups within one another: what crosses the network is the ring's.
      if (exchange == "a2a+p2p") {
        in.leave_out("--cp-comm-type", "taken as p2p, the exchange of its outer groups");
        exchange = "p2p";
      }
      in.put("plan.cp_comm", exchange == "allgather" ? "all_gather" : exchange);
    }
  }
  in.has("--cp-comm-type");
  if (in.has("--use-tp-pp-dp-mapping")) in.put("plan.rank_order", "tp-cp-ep-pp-dp");
  const int vpp = read_stages(in);
  const double pp = in.number("--pipeline-model-parallel-size").value_or(1);
  const auto group = in.number("--microbatch-group-size-per-virtual-pipeline-stage");
  if (vpp > 1 && group && *group != pp) in.put("plan.micro_batch_group", fmt::format("{}", *group));
  read_stacks_plan(in);
  if (in.has_experts()) {
    // Of experts whose sizes the model brings, which no argument has.
    in.any({"--moe-grouped-gemm", "--moe-permute-fusion"});
    in.copy_all("plan.", WordOf::experts);
    read_dispatcher(in);
    // Experts are as wide as the rest of a layer unless told otherwise.
    const std::int64_t tp = in.whole("--tensor-model-parallel-size", 1);
    in.put("plan.etp", fmt::format("{}", in.whole("--expert-tensor-parallel-size", tp)));
  }
  read_zero(in);
  read_recompute(in);
  return vpp;
}

}  // namespace planner
