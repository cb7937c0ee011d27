#include "planner/search/search_space.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "costmodel/estimate/iteration_end.hpp"
#include "planner/search/layout.hpp"

namespace planner {

using namespace costmodel;

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    low.push_back(i);
    if (i * i != n) high.push_back(n / i);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

namespace {

// The fixed value only, or all divisors of n up to a limit (0: none).
std::vector<std::int64_t> choices(std::optional<std::int64_t> fixed, std::int64_t n,
                                  std::int64_t most) {
  if (fixed) return {*fixed};
  auto all = divisors(n);
  if (most > 0) std::erase_if(all, [most](std::int64_t i) { return i > most; });
  return all;
}

std::optional<std::int64_t> widened(const std::optional<int>& value) {
  if (!value) return {};
  return *value;
}

bool allowed(const Scenario& s, ScheduleKind kind) {
  const auto& limit = s.search.schedules;
  if (!limit.empty()) return std::ranges::find(limit, kind) != limit.end();
  return row_of(kind).searched && (!splits_backward(kind) || s.training.stack.offers.zero_bubble);
}

std::vector<ScheduleKind> schedules(const Scenario& s, int pp, int vpp) {
  if (s.plan.schedule) return {*s.plan.schedule};
  std::vector<ScheduleKind> kinds;
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    if (splits_backward(kind) && pp == 1) continue;  // no bubble to fill
    if (row_of(kind).waits && takes_chunks(kind, vpp) && allowed(s, kind)) kinds.push_back(kind);
  }
  const auto usual = std::ranges::find(kinds, usual_schedule(vpp));
  if (usual != kinds.end()) std::rotate(kinds.begin(), usual, usual + 1);
  return kinds;
}

// With tp 1 sequence parallelism has no effect: a `true` in the scenario requires a larger tp,
// unless tp is fixed as well (Megatron then disables it).
std::vector<bool> sequence_choices(const Scenario& s, int tp) {
  if (tp == 1) {
    const bool asked =
        s.plan.sequence_parallel.value_or(false) && s.plan.is_written("sequence_parallel");
    return asked && !s.plan.tp ? std::vector<bool>{} : std::vector<bool>{false};
  }
  if (s.plan.sequence_parallel) return {*s.plan.sequence_parallel};
  return {false, true};
}

// Multiprocessors that the recipes of NVIDIA Megatron-Bridge give HybridEP
// (scripts/performance/configs, moe_hybridep_num_sms), and Megatron Core DeepEP
// (transformer_config.py, moe_deepep_num_sms).
int usual_multiprocessors(Dispatcher dispatcher) {
  return dispatcher == Dispatcher::deepep ? 20 : 32;
}

// With fewer tokens per rank little hides the exchange; of experts, whose sizes multiply with
// these, more are asked. search.max_cp overrides.
std::int64_t least_context_tokens(const ModelSpec& model) {
  return model.experts > 0 ? 4096 : 2048;
}

}  // namespace

std::int64_t most_context_ranks(const Scenario& s) {
  if (s.plan.cp) return *s.plan.cp;
  const bool offered = s.training.stack.offers.context_parallel && s.model.attends_by_place() &&
                       !s.model.encoder_decoder() &&
                       s.training.stack.kernels.attention != AttentionKernel::unfused;
  if (!offered) return 1;
  return s.search.max_cp > 0
             ? s.search.max_cp
             : std::max<std::int64_t>(1, s.training.sequence / least_context_tokens(s.model));
}

std::vector<std::int64_t> context_sizes_offered(const Scenario& s, std::int64_t devices) {
  return choices(widened(s.plan.cp), devices, most_context_ranks(s));
}

std::vector<ContextExchange> exchanges_offered(const Scenario& s, std::int64_t cp) {
  if (cp == 1) return {ContextExchange::p2p};
  if (s.plan.cp_comm) return {*s.plan.cp_comm};
  return {ContextExchange::p2p, ContextExchange::a2a, ContextExchange::all_gather};
}

std::vector<ExpertSizes> expert_sizes_offered(const Scenario& s, std::int64_t tp) {
  if (s.model.experts == 0) return {{s.plan.ep.value_or(1), s.plan.etp.value_or(1)}};
  std::vector<int> tensor{1};
  if (tp > 1) tensor.push_back(static_cast<int>(tp));
  if (s.plan.etp) tensor = {*s.plan.etp};
  std::vector<ExpertSizes> sizes;
  for (const auto ep : choices(widened(s.plan.ep), s.model.experts, s.search.max_ep)) {
    for (const int etp : tensor) sizes.push_back({static_cast<int>(ep), etp});
  }
  return sizes;
}

namespace {

// One copy a rank is never slower than one a chosen expert; of two that send so, HybridEP, and both
// where they are asked.
std::vector<Dispatcher> dispatchers_offered(const Scenario& s) {
  const FlexDispatcher flex = s.training.stack.offers.flex_dispatcher;
  if (s.plan.dispatcher || flex == FlexDispatcher::none || !runs_flex_dispatcher(s.cluster))
    return {expert_recipe(s).dispatcher};
  if (flex != FlexDispatcher::both) return {Dispatcher::deepep};
  if (s.plan.is_auto("dispatcher")) return {Dispatcher::hybridep, Dispatcher::deepep};
  return {Dispatcher::hybridep};
}

}  // namespace

std::vector<ExpertRecipe> recipes_offered(const Scenario& s, int ep, int pp, int vpp) {
  const ExpertRecipe written = expert_recipe(s);
  if (s.model.experts == 0) return {{}};
  if (ep == 1) return {written};
  const StackOffers& offers = s.training.stack.offers;
  const bool chooses = !s.plan.shared_expert_overlap;
  std::vector<ExpertRecipe> recipes;
  for (const Dispatcher dispatcher : dispatchers_offered(s)) {
    ExpertRecipe recipe = written;
    recipe.dispatcher = dispatcher;
    if (!s.plan.dispatcher_multiprocessors && sends_once_a_rank(dispatcher))
      recipe.multiprocessors = std::max(recipe.multiprocessors, usual_multiprocessors(dispatcher));
    const bool gathers = dispatcher == Dispatcher::allgather;
    // Shared experts during the exchange are never slower, but for a graph that they then leave.
    if (chooses && offers.shared_overlap && s.model.shared_experts > 0 && !recipe.overlap &&
        !gathers && !s.training.overlap.graph_router)
      recipe.shared_overlap = true;
    recipes.push_back(recipe);
    // In a pipeline the two micro-batches are of different chunks (Megatron-LM, arguments.py). What
    // hides the exchange is another micro-batch or the shared experts (transformer_config.py).
    const bool overlaps = offers.expert_overlap && !s.plan.expert_overlap && !gathers &&
                          (chooses || !recipe.shared_overlap) && (pp == 1 || vpp > 1);
    if (!overlaps) continue;
    recipe.overlap = true;
    if (chooses) recipe.shared_overlap = written.shared_overlap;
    recipe.delayed_weight_gradient = s.plan.delayed_weight_gradient.value_or(true);
    recipes.push_back(recipe);
  }
  return recipes;
}

std::vector<int> micro_batch_groups_offered(const Scenario& s, const ParallelPlan& plan) {
  if (s.plan.micro_batch_group || !row_of(plan.schedule).whole_rounds)
    return {order_choices(s.plan).group};
  const std::int64_t share = s.training.global_batch / plan.dp;
  if (share % plan.micro_batch != 0) return {0};
  const std::int64_t m = share / plan.micro_batch;
  const bool offered = s.training.stack.offers.micro_batch_groups;
  std::vector<int> groups;
  if (m % plan.pp == 0 || !offered) groups.push_back(0);
  if (!offered) return groups;
  constexpr std::int64_t most = 512;  // larger ones hold too much
  constexpr std::int64_t few = 96;    // with more, warm-up and cool-down are a small part
  std::int64_t least = plan.pp + 1;
  while (least < m && least <= most && (groups.size() < 2 || m <= few)) {
    if (m % least != 0) {
      ++least;
      continue;
    }
    groups.push_back(static_cast<int>(least));
    least = groups.size() > 1 ? (3 * least + 1) / 2 : least + 1;
  }
  if (m > plan.pp && m <= most) groups.push_back(static_cast<int>(m));
  return groups;
}

Seconds bound_in_groups(const PlanCost& cost, const ParallelPlan& plan, int widest) {
  if (widest == plan.choices.group) return cost.bound.pipeline;
  return pipeline_bound(plan, {.group = widest}, cost.micro_batches, cost.times);
}

namespace {

std::vector<int> zero_choices(const Scenario& s, bool shards) {
  if (s.plan.zero) return {*s.plan.zero};
  if (!shards) return {0};
  const int most = std::min(s.training.stack.offers.max_zero, most_zero(s.training.optimizer));
  if (!s.search.zero.empty()) {
    std::vector<int> offered = s.search.zero;
    std::erase_if(offered, [most](int z) { return z > most; });
    return offered;
  }
  std::vector<int> stages;
  stages.reserve(4);
  for (int z = 0; z <= most; ++z) stages.push_back(z);
  return stages;
}

// Whether its other keys are of ZeRO 3 alone.
bool needs_sharded_weights(const ParallelPlan& plan) {
  return plan.shards_states_further() || plan.zero_plus_plus.any() || plan.offload.parameters > 0;
}

// Where forwards and backwards run together no more than the optimizer's states are sharded. States
// in host memory are those of a sharded optimizer, on one rank too: DeepSpeed's offload_optimizer
// and Megatron-LM's --optimizer-cpu-offload want ZeRO 1 or more.
std::vector<int> zero_choices(const Scenario& s, const ParallelPlan& plan) {
  std::vector<int> stages = zero_choices(s, plan.replicas() > 1 || plan.offload.states());
  if (!s.training.stack.offers.zero_one && !s.plan.zero) std::erase(stages, 1);
  if (const int most = s.training.stack.offers.max_zero_in_pipeline; plan.pp > 1 && most < 3)
    std::erase_if(stages, [most](int zero) { return zero > most; });
  if (plan.dp_replicate > 1 || (plan.offload.states() && !s.plan.zero)) std::erase(stages, 0);
  if (needs_sharded_weights(plan)) std::erase_if(stages, [](int zero) { return zero < 3; });
  if (overlaps(plan.schedule)) std::erase_if(stages, [](int zero) { return zero > 1; });
  if (plan.replicas() == 1 && stages.size() > 1)  // no more than it needs
    stages = {*std::ranges::min_element(stages)};
  return stages;
}

// For stages with more layers, only this many evenly spaced counts of recomputed layers are tried.
constexpr int most_recompute_counts = 64;

// The modules whose outputs are large for what they cost again: the norms, the activation of
// experts with them, and the up-projections of latent attention.
std::vector<unsigned> module_choices(const ModelSpec& model) {
  using costmodel::bit_of, costmodel::RecomputeModule;
  const unsigned norms = bit_of(RecomputeModule::layernorm);
  const unsigned cheap = bit_of(RecomputeModule::moe_act) | norms;
  const unsigned latent = bit_of(RecomputeModule::mla_up_proj);
  std::vector<unsigned> choices{norms};
  if (model.experts > 0) choices.push_back(cheap);
  if (model.latent_attention()) choices.push_back(latent);
  if (model.experts > 0 && model.latent_attention()) choices.push_back(cheap | latent);
  return choices;
}

std::vector<Recompute> recompute_choices(const Scenario& s, const ParallelPlan& plan) {
  if (s.plan.recompute) return {*s.plan.recompute};
  std::vector<Recompute> list;
  const auto wanted = [&](Recomputation kind) {
    const auto& limit = s.search.recompute;
    return limit.empty() || std::ranges::find(limit, kind) != limit.end();
  };
  if (wanted(Recomputation::none)) list.push_back({Recomputation::none, 0});
  if (wanted(Recomputation::selective) && s.training.stack.offers.recompute_modules) {
    for (const unsigned modules : module_choices(s.model))
      list.push_back({Recomputation::selective, 0, modules});
  }
  if (plan.offload.activation_layers > 0) {  // Megatron-LM: nothing is recomputed
    std::erase_if(list, [](const Recompute& r) { return r.granularity != Recomputation::none; });
    return list;
  }
  if (plan.offload.modules != 0) {  // ... not all of it
    std::erase_if(list, [](const Recompute& r) { return r.granularity == Recomputation::full; });
    return list;
  }
  if (plan.experts.overlap) return list;  // Megatron-LM: not with full recomputation
  if (wanted(Recomputation::selective) && s.training.stack.offers.selective_recompute) {
    list.push_back({Recomputation::selective, 0});
  }
  if (!wanted(Recomputation::full)) return list;
  int most = 0;
  for (int k = 0; k < plan.virtual_stages(); ++k)
    most = std::max(most, layers_of(plan, s.model, k));
  if (!s.training.stack.offers.partial_recompute) most = 0;
  const int stride = std::max(1, most / most_recompute_counts);
  for (int k = stride; k < most; k += stride) list.push_back({Recomputation::full, k});
  list.push_back({Recomputation::full, 0});
  return list;
}

// The largest published v is 12; more chunks per device than this are tried only if search.max_vpp
// allows.
constexpr std::int64_t most_virtual_stages = 128;

// Of models with more layers no layouts with a rest are tried: every plan would carry a long list.
constexpr std::int64_t most_laid_out = 1024;

// The layout that the framework has for layers that do not divide into the stages: a rest on the
// last one. Empty: it has none, or the layers divide, or their number is written.
std::vector<int> rest_layout(const Scenario& s, std::int64_t pp, std::int64_t vpp) {
  const std::int64_t layers = s.model.layers, stages = pp * vpp;
  if (!s.training.stack.defaults.rest_on_last_stage || !s.plan.stage_layers.empty() || pp == 1 ||
      layers > most_laid_out || s.model.encoder_decoder() || stages > layers)
    return {};
  ParallelPlan sizes;
  sizes.pp = static_cast<int>(pp);
  sizes.vpp = static_cast<int>(vpp);
  if (uneven_split(sizes, s.model) != UnevenSplit::balanced) return {};
  return leaves_rest(layers, stages) ? rest_on_last(layers, stages) : std::vector<int>();
}

// Virtual stages per device: every v that divides the layers per pipeline rank.
std::vector<std::int64_t> vpp_choices(const Scenario& s, std::int64_t pp) {
  if (s.plan.vpp) return {*s.plan.vpp};
  if (!s.plan.stage_layers.empty())
    return {std::max<std::int64_t>(1, static_cast<std::int64_t>(s.plan.stage_layers.size()) / pp)};
  if (s.plan.listed != nullptr) return {s.plan.listed->schedule.chunks};
  if (pp == 1) return {1};
  const std::int64_t most = s.search.max_vpp > 0 ? s.search.max_vpp : most_virtual_stages;
  // Megatron's uneven splits count the loss, or embedding and loss, as layers.
  std::vector<std::int64_t> all;
  for (const std::int64_t counted : {s.model.layers, s.model.layers + 1, s.model.layers + 2}) {
    if (counted % pp != 0) continue;
    for (const auto v : choices({}, counted / pp, most)) all.push_back(v);
  }
  for (std::int64_t v = 1; v <= most && v * pp <= s.model.layers; ++v) {
    if (!rest_layout(s, pp, v).empty()) all.push_back(v);
  }
  if (all.empty() && s.training.stack.offers.uneven_stages) return {1};
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Groups of a hybrid sharding: as written; where nothing is, one and what the stack's recipes have;
// with `auto` every number that divides dp and leaves each group more than one rank.
std::vector<int> groups_offered(const Scenario& s, const ParallelPlan& plan) {
  std::vector<int> all{s.plan.dp_replicate.value_or(1)};
  if (s.plan.dp_replicate) return all;
  if (!s.plan.is_auto("dp_replicate")) {
    const int usual = usual_shard_groups(s, plan);
    if (usual > 1 && s.plan.zero != 0) all.push_back(usual);
    return all;
  }
  for (int n = 2; n < plan.dp * plan.cp && n <= plan.dp; ++n)
    if (s.training.stack.offers.hybrid_sharding && plan.dp % n == 0) all.push_back(n);
  return all;
}

// What may wait in host memory: as written; with `auto` nothing, optimizer states, the parameters
// with them, or activations of a quarter to all but one of the layers. Frameworks that also keep
// parameters there have no shares; Megatron-LM's --optimizer-offload-fraction has.
std::vector<HostOffload> offloads_offered(const Scenario& s) {
  if (!s.plan.is_auto("offload")) return {s.plan.offload};
  const StackOffers& offers = s.training.stack.offers;
  std::vector<HostOffload> all{{}};
  const auto add = [&all](bool offered, const HostOffload& one) {
    if (offered && all.back() != one) all.push_back(one);
  };
  constexpr int quarters = 4;
  for (int k = 1; k < quarters; ++k) {
    add(offers.optimizer_offload && !offers.parameter_offload,
        {.optimizer = static_cast<double>(k) / quarters});
  }
  add(offers.optimizer_offload, {.optimizer = 1});
  add(offers.parameter_offload, {.optimizer = 1, .parameters = 1});
  add(offers.drive_offload && s.cluster.drives.size.value > 0,
      {.optimizer = 1, .parameters = 1, .to = OffloadTo::nvme});
  const auto layers = static_cast<int>(s.model.layers);
  for (int k = 1; k <= quarters; ++k) {
    const int sent = std::min(layers * k / quarters, layers - 1);
    add(offers.layer_offload && sent > 0, {.activation_layers = sent});
  }
  unsigned modules = bit_of(OffloadModule::core_attn) | bit_of(OffloadModule::attn_proj);
  if (s.model.experts > 0) modules |= bit_of(OffloadModule::expert_fc1);
  add(offers.module_offload, {.modules = modules});
  return all;
}

void add_families(const Scenario& s, ParallelPlan plan, SearchSpace& space) {
  plan.zero = s.plan.zero.value_or(0);  // what is fixed must obey the rules too
  if (!s.plan.zero && needs_sharded_weights(plan)) {
    plan.zero = 3;
  } else if (!s.plan.zero && (plan.dp_replicate > 1 || plan.offload.states())) {
    plan.zero = s.training.stack.offers.zero_one ? 1 : 2;
  }
  plan.recompute = s.plan.recompute.value_or(Recompute{});
  for (const auto kind : schedules(s, plan.pp, plan.vpp)) {
    plan.schedule = kind;
    const std::vector<int> groups = micro_batch_groups_offered(s, plan);
    if (groups.empty()) continue;
    plan.choices.group = groups.front();
    const std::size_t ways = zero_choices(s, plan).size() * groups.size();
    for (const bool sequence_parallel : sequence_choices(s, plan.tp)) {
      plan.sequence_parallel = sequence_parallel;
      for (const auto exchange : exchanges_offered(s, plan.cp)) {
        plan.cp_comm = exchange;
        for (const auto& [ep, etp] : expert_sizes_offered(s, plan.tp)) {
          plan.ep = ep;
          plan.etp = etp;
          plan.experts = {};  // the recipes follow
          if (!is_valid(plan, s.model, s.cluster, s.training)) continue;
          for (const ExpertRecipe& recipe : recipes_offered(s, ep, plan.pp, plan.vpp)) {
            plan.experts = recipe;
            if (recipe.overlap && !is_valid(plan, s.model, s.cluster, s.training)) continue;
            space.families.push_back({plan});
            space.configurations += recompute_choices(s, plan).size() * ways;
          }
        }
      }
    }
  }
}

// Every vpp and micro-batch of a plan with fixed axes.
void add_axes(const Scenario& s, ParallelPlan plan, SearchSpace& space) {
  const std::int64_t share = s.training.global_batch / plan.dp;
  const std::vector<int> given = plan.stage_layers;
  for (const auto vpp : vpp_choices(s, plan.pp)) {
    plan.stage_layers = given.empty() ? rest_layout(s, plan.pp, vpp) : given;
    for (const auto b : choices(s.plan.micro_batch, share, s.search.max_micro_batch)) {
      plan.vpp = static_cast<int>(vpp);
      plan.micro_batch = b;
      add_families(s, plan, space);
    }
  }
}

enum class Stages { as_written, uneven };

SearchSpace enumerate(const Scenario& s, Stages stages) {
  SearchSpace space;
  const std::int64_t devices = s.cluster.devices;
  for (const auto tp : choices(widened(s.plan.tp), devices, s.search.max_tp)) {
    if (devices % tp != 0 || s.model.common_heads() % tp != 0) continue;
    for (const auto pp : choices(widened(s.plan.pp), devices / tp, s.search.max_pp)) {
      if (devices / tp % pp != 0 || pp > s.model.layers) continue;
      if (stages == Stages::uneven && pp == 1) continue;
      const std::int64_t rest = devices / tp / pp;
      for (const auto cp : context_sizes_offered(s, rest)) {
        if (rest % cp != 0) continue;
        const std::int64_t dp = rest / cp;
        if ((s.plan.dp && *s.plan.dp != dp) || s.training.global_batch % dp != 0) continue;
        ParallelPlan plan;
        plan.tp = static_cast<int>(tp);
        plan.pp = static_cast<int>(pp);
        plan.cp = static_cast<int>(cp);
        plan.dp = static_cast<int>(dp);
        plan.stage_layers = s.plan.stage_layers;
        plan.listed = s.plan.listed;
        plan.choices = order_choices(s.plan);
        const bool by_cost = s.training.stack.defaults.layout_by_cost && pp > 1;
        if (by_cost && s.plan.stage_layers.empty())
          plan.stage_layers = layers_by_cost(s.model, plan.pp);
        if (stages == Stages::uneven) plan.stage_layers = balanced_layout(s.model.layers, plan.pp);
        plan.rank_order = s.plan.rank_order;
        plan.zero_plus_plus = s.plan.zero_plus_plus;
        for (const HostOffload& offload : offloads_offered(s)) {
          plan.offload = offload;
          for (const int groups : groups_offered(s, plan)) {
            plan.dp_replicate = groups;
            plan.outer_sharding = groups > 1 ? s.plan.outer_sharding : OuterSharding::no_shard;
            add_axes(s, plan, space);
          }
        }
      }
    }
  }
  return space;
}

}  // namespace

SearchSpace enumerate(const Scenario& s) { return enumerate(s, Stages::as_written); }

SearchSpace enumerate_uneven(const Scenario& s) {
  const auto& schedule = s.plan.schedule;
  const bool pipelined =
      !schedule || *schedule == usual_schedule(1) || *schedule == usual_schedule(2);
  if (!s.plan.stage_layers.empty() || !pipelined) return {};
  Scenario one_chunk = s;
  one_chunk.plan.vpp = 1;
  one_chunk.plan.schedule = usual_schedule(1);
  one_chunk.plan.micro_batch_group.reset();  // of those with several
  return enumerate(one_chunk, Stages::uneven);
}

std::vector<ParallelPlan> quickest(const Family& family, const Scenario& s) {
  std::vector<ParallelPlan> plans{family.plan};
  if (s.training.stack.offers.max_zero < 3) return plans;
  const auto stages = zero_choices(s, family.plan);
  if (family.plan.zero < 3 && std::ranges::find(stages, 3) != stages.end()) {
    plans.push_back(family.plan);
    plans.back().zero = 3;
  }
  return plans;
}

MemberChoices member_choices(const Family& family, const Scenario& s) {
  return {recompute_choices(s, family.plan), zero_choices(s, family.plan)};
}

std::vector<ParallelPlan> members(const Family& family, const Scenario& s) {
  std::vector<ParallelPlan> plans;
  const MemberChoices choices = member_choices(family, s);
  for (const Recompute& recompute : choices.recompute) {
    for (const int zero : choices.zero) {
      ParallelPlan plan = family.plan;
      plan.recompute = recompute;
      plan.zero = zero;
      plans.push_back(std::move(plan));
    }
  }
  return plans;
}

bool leads(const ParallelPlan& member) {
  return member.recompute.layers > 0 || member.recompute.granularity == Recomputation::none;
}

Seconds bound_with_more(const PlanCost& cost, const ParallelPlan& member, const Scenario& s) {
  const Seconds hidden = member.vpp > 1 ? cost.ranks.front().after.gradient_exposed : Seconds(0);
  return cost.bound.iteration - hidden * iteration_factor(s.cluster);
}

namespace {

// Whether kinds of layers take turns.
bool in_turns(const ModelSpec& model) {
  return !model.layer_pattern.empty() || !model.attention_pattern.empty() ||
         (model.experts > 0 && model.moe_every > 1);
}

bool brackets(const Scenario& s) {
  const StackSpec& stack = s.training.stack;
  return !in_turns(s.model) && !stack.memory.frees_gradients && !stack.zero.root_unit;
}

}  // namespace

bool brackets_partial(const std::vector<ParallelPlan>& members, const Scenario& s) {
  const auto offers = [&members](Recomputation kind) {
    return std::ranges::any_of(members, [kind](const ParallelPlan& plan) {
      return plan.recompute == Recompute{kind, 0} && !splits_backward(plan.schedule);
    });
  };
  return brackets(s) && offers(Recomputation::none) && offers(Recomputation::full);
}

bool brackets_partial(const MemberChoices& choices, const Family& family, const Scenario& s) {
  const auto offers = [&choices](Recomputation kind) {
    return std::ranges::find(choices.recompute, Recompute{kind, 0}) != choices.recompute.end();
  };
  return brackets(s) && !choices.zero.empty() && !splits_backward(family.plan.schedule) &&
         offers(Recomputation::none) && offers(Recomputation::full);
}

}  // namespace planner
