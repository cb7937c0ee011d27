#include "planner/diagnosis/reason.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/breakdown.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/grid_search.hpp"
#include "planner/search/search_space.hpp"

namespace planner {

using namespace costmodel;

namespace {

struct Part {
  const char* name;
  Seconds Breakdown::*time;
};
constexpr std::array parts{
    Part{"computation", &Breakdown::compute},
    Part{"recomputation", &Breakdown::recompute},
    Part{"tensor-parallel communication", &Breakdown::tp_comm},
    Part{"context-parallel communication", &Breakdown::cp_comm},
    Part{"expert-parallel communication", &Breakdown::ep_comm},
    Part{"pipeline transfers", &Breakdown::pp_comm},
    Part{"data-parallel communication", &Breakdown::dp_comm},
    Part{"pipeline bubble", &Breakdown::bubble},
    Part{"wait for slower stages", &Breakdown::imbalance},
    Part{"optimizer", &Breakdown::optimizer},
    Part{"other", &Breakdown::other},
};

// Of packed samples.
const char* longer_samples(const Estimate& e) {
  return e.plan.pp > 1 ? "wait for slower stages, longer samples" : "wait for longer samples";
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

std::string memory_sentence(const Estimate& e) {
  const double used = e.peak / e.capacity;
  const auto& stage = e.memory[e.fullest];
  const bool activations = stage.activations > stage.weights + stage.gradients + stage.optimizer;
  const std::string what = activations ? "activations" : "weights, gradients and optimizer states";
  const std::string where = e.memory.size() > 1 ? fmt::format(" of stage {}", e.fullest) : "";
  if (!e.fits()) {
    return fmt::format("It does not fit: {}{} needs {:.0f} % of device memory, most of it {}.",
                       "the fullest rank", where, 100 * used, what);
  }
  if (used > 0.9) {
    return fmt::format(
        "Memory binds: the fullest rank{} uses {:.0f} % of the device, most of it {}.", where,
        100 * used, what);
  }
  return fmt::format("The fullest rank{} uses {:.0f} % of the device's memory.", where, 100 * used);
}

}  // namespace

std::vector<Share> all_shares(const Estimate& e) { return all_shares(e, e.breakdown); }

std::vector<Share> all_shares(const Estimate& e, const Breakdown& of_rank) {
  std::vector<Share> list;
  for (const Part& part : parts) {
    const Seconds time = of_rank.*part.time;
    const bool of_samples = part.time == &Breakdown::imbalance && e.longest_samples.value > 0;
    list.push_back({of_samples ? longer_samples(e) : part.name, time, time / e.iteration});
  }
  return list;
}

std::vector<Share> shares(const Estimate& e) {
  auto list = all_shares(e);
  std::erase_if(list, [](const Share& share) { return share.time.value == 0; });
  return list;
}

namespace {

// "the optimizer (1.2 %)"
std::string loss_text(const Share& loss) {
  const bool unnamed = loss.name == "other";
  return fmt::format("{} ({})", unnamed ? "other work, as the host's" : "the " + loss.name,
                     percent(loss.of_iteration));
}

}  // namespace

Seconds host_waits(const Estimate& e, const std::optional<BusiestRank>& busiest,
                   Evaluator& evaluator) {
  const ParallelPlan& plan = e.plan;
  if (!plan.even() || !plan.replica_groups.empty()) return {};
  const int rank = busiest ? busiest->rank : static_cast<int>(e.critical_rank);
  const PlanCost& cost = evaluator.cost(plan);
  Seconds waits;
  for (int v = 0; v < plan.chunks(); ++v) {
    const auto k = static_cast<std::size_t>(stage_of(plan.schedule, plan.pp, v, rank));
    const auto& row = cost.stages[k];
    waits += row.forward.waited + row.backward.waited + row.recompute.waited;
  }
  return static_cast<double>(cost.micro_batches) / plan.ways() * waits;
}

std::vector<std::string> reasons(const Estimate& e, const std::optional<BusiestRank>& busiest,
                                 Seconds host_waits) {
  const Breakdown& time = busiest ? busiest->breakdown : e.breakdown;
  auto losses = all_shares(e, time);
  std::erase_if(losses,
                [](const Share& s) { return s.name == "computation" || s.time.value == 0; });
  std::ranges::stable_sort(losses, [](const Share& a, const Share& b) { return a.time > b.time; });
  std::string text =
      fmt::format("Computation is {} of the iteration{}", percent(time.compute / e.iteration),
                  busiest ? fmt::format(" on pipeline rank {}, the slowest", busiest->rank) : "");
  if (!losses.empty() && losses[0].of_iteration >= 0.001) {
    text += "; the largest other part is " + loss_text(losses[0]);
    if (losses.size() > 1 && losses[1].of_iteration >= 0.01)
      text += ", then " + loss_text(losses[1]);
  }
  std::vector<std::string> all{text + "."};
  constexpr double much = 0.1;
  const double waits = host_waits / e.iteration;
  if (waits >= much) {
    all.push_back(fmt::format(
        "For {} of the iteration devices wait for their host, which launches kernels more slowly "
        "than they run: a faster device does not help; larger micro-batches and CUDA graphs do.",
        percent(waits)));
  }
  all.push_back(memory_sentence(e));
  return all;
}

std::string difference(const Estimate& best, const Estimate& other) {
  struct Delta {
    const char* name;
    Seconds time;
  };
  std::vector<Delta> deltas;
  for (const Part& part : parts)
    deltas.push_back({part.name, other.breakdown.*part.time - best.breakdown.*part.time});
  std::ranges::stable_sort(deltas, [](const Delta& a, const Delta& b) {
    return std::abs(a.time.value) > std::abs(b.time.value);
  });
  std::string text;
  int told = 0;
  for (const Delta& d : deltas) {
    if (told == 3 || std::abs(d.time.value) < 0.002 * best.iteration.value) break;
    text += fmt::format("{}{}{} {}", told++ > 0 ? ", " : "", d.time.value > 0 ? "+" : "-",
                        format_seconds(Seconds(std::abs(d.time.value))), d.name);
  }
  return text.empty() ? "nothing that counts" : text;
}

namespace {

// A key's value in words of the ranking.
std::string key_text(const PlanKey& key, const ParallelPlan& plan) {
  if (key.row.name == "stage_layers") {
    return plan.stage_layers.empty() ? "even" : stage_layers_text(plan.stage_layers);
  }
  if (key.row.name == "recompute") return to_string(plan.recompute);
  if (key.row.name == "stages") return plan.stages.empty() ? "of one size" : "of own sizes";
  const std::string text = flow_text(key.value(plan));
  return text == "true" ? "on" : text == "false" ? "off" : text;
}

bool usual_schedules(const ParallelPlan& a, const ParallelPlan& b) {
  return a.schedule == usual_schedule(a.vpp) && b.schedule == usual_schedule(b.vpp);
}

}  // namespace

std::vector<std::string> plan_changes(const ParallelPlan& from, const ParallelPlan& to) {
  std::vector<std::string> all;
  for (const PlanKey& key : plan_key_rows()) {
    if (!key.value || (key.row.name == "schedule" && usual_schedules(from, to))) continue;
    const std::string before = key_text(key, from), after = key_text(key, to);
    if (before != after) all.push_back(fmt::format("{} {} -> {}", key.row.name, before, after));
  }
  return all;
}

std::vector<std::string> plan_assignments(const PlanRequest& asked, const ParallelPlan& from,
                                          const ParallelPlan& to, const Scenario& changed) {
  std::vector<std::string> all;
  const bool searched = asked.written.empty() || !asked.automatic.empty(),
             open = std::ranges::all_of(std::array{"tp", "pp", "micro_batch", "recompute", "zero"},
                                        [&](const char*key) { return asked.is_auto(key); });
  for (const PlanKey& key : plan_key_rows()) {
    if (!key.value) continue;
    const std::string_view name = key.row.name;
    const bool automatic = asked.is_auto(name), stays_auto = automatic && !open;
    const bool chosen = searched && (automatic || !asked.is_written(name));
    const std::string before = flow_text(key.value(chosen ? ParallelPlan{} : from)),
                      after = flow_text(key.value(to));
    const bool by_stack =
        name == "dp_replicate" && !asked.is_written(name) && !has_usual_shard_groups(changed, to);
    if (stays_auto || by_stack || before != after)
      all.push_back(fmt::format("plan.{}={}", name, after));
  }
  if (all.empty() && asked.written.empty()) all.emplace_back("plan.tp=1");
  return all;
}

namespace {

// Entries that fix nothing: null, `auto` (including dp, which follows from the other sizes),
// offload, and `cp_comm: none`.
bool asks_for_nothing(const Value::Entry& entry) {
  const Value& value = entry.value;
  if (value.kind == Value::Kind::null || entry.key == "offload") return true;
  if (!value.is_scalar()) return false;
  return value.text == "auto" || (entry.key == "cp_comm" && value.text == "none");
}

}  // namespace

std::vector<std::string> fixed_keys(const PlanRequest& plan) {
  std::vector<std::string> keys;
  for (const auto& entry : plan.written) {
    if (!asks_for_nothing(entry)) keys.push_back(entry.key);
  }
  return keys;
}

namespace {

// Adjusts dp, vpp and schedule after another knob moved; nullopt when no valid plan is near.
std::optional<ParallelPlan> repaired(ParallelPlan plan, const Scenario& s) {
  const std::int64_t model_parallel = std::int64_t{plan.tp} * plan.pp * plan.cp;
  if (s.cluster.devices % model_parallel != 0) return {};
  plan.dp = static_cast<int>(s.cluster.devices / model_parallel);
  if (plan.tp == 1) plan.sequence_parallel = false;
  if (plan.replicas() == 1) plan.zero = 0;
  if (plan.cp == 1) plan.cp_comm = ContextExchange::p2p;
  for (int v = plan.vpp; v >= 1; --v) {
    ParallelPlan trial = plan;
    trial.vpp = v;
    if (!takes_chunks(trial.schedule, v)) trial.schedule = usual_schedule(v);
    if (is_valid(trial, s.model, s.cluster, s.training)) return trial;
  }
  return {};
}

// Values below (nearest first) and above `now` among the divisors of n.
struct Sides {
  std::vector<std::int64_t> below, above;
};
Sides beside(std::int64_t now, std::int64_t n) {
  Sides sides;
  for (const auto d : divisors(n)) {
    if (d < now) sides.below.insert(sides.below.begin(), d);
    if (d > now) sides.above.push_back(d);
  }
  return sides;
}

class Stepper {
 public:
  Stepper(const Estimate& from, const Scenario& s, Evaluator& evaluator, StepLength length)
      : from_(from), s_(s), evaluator_(evaluator), length_(length) {}

  std::vector<Step> all() {
    const ParallelPlan& p = from_.plan;
    sizes("tp", p.tp, s_.cluster.devices,
          [](ParallelPlan& q, std::int64_t n) { q.tp = static_cast<int>(n); });
    sizes("pp", p.pp, s_.cluster.devices,
          [](ParallelPlan& q, std::int64_t n) { q.pp = static_cast<int>(n); });
    sizes("cp", p.cp, s_.cluster.devices,
          [](ParallelPlan& q, std::int64_t n) { q.cp = static_cast<int>(n); });
    exchanges();
    if (s_.model.experts > 0) {
      sizes("ep", p.ep, s_.model.experts,
            [](ParallelPlan& q, std::int64_t n) { q.ep = static_cast<int>(n); });
      sizes("etp", p.etp, p.tp,
            [](ParallelPlan& q, std::int64_t n) { q.etp = static_cast<int>(n); });
    }
    if (p.pp > 1 && p.stage_layers.empty()) {
      sizes("vpp", p.vpp, s_.model.layers / p.pp,
            [](ParallelPlan& q, std::int64_t n) { q.vpp = static_cast<int>(n); });
    }
    sizes("micro_batch", p.micro_batch, s_.training.global_batch / p.dp,
          [](ParallelPlan& q, std::int64_t n) { q.micro_batch = n; });
    if (p.tp > 1) {
      add("sequence_parallel", p.sequence_parallel ? "on -> off" : "off -> on",
          [](ParallelPlan& q) { q.sequence_parallel = !q.sequence_parallel; });
    }
    for (const auto kind : {Recomputation::none, Recomputation::selective, Recomputation::full}) {
      if (p.recompute == Recompute{kind, 0}) continue;
      add("recompute",
          fmt::format("{} -> {}", to_string(p.recompute),
                      recomputation_names[static_cast<std::size_t>(kind)]),
          [kind](ParallelPlan& q) {
            q.recompute = {kind, 0};
          });
    }
    if (length_ == StepLength::fitting) few_layers_again();
    for (const int zero : zero_stages()) {
      if (zero < 0 || zero > s_.training.stack.offers.max_zero || p.replicas() == 1) continue;
      add("zero", fmt::format("{} -> {}", p.zero, zero),
          [zero](ParallelPlan& q) { q.zero = zero; });
    }
    groups_of_shards();
    return std::move(steps_);
  }

 private:
  std::vector<int> zero_stages() const {
    const int own = from_.plan.zero;
    if (length_ == StepLength::next) return {own - 1, own + 1};
    std::vector<int> more;
    for (int zero = own + 1; zero <= s_.training.stack.offers.max_zero; ++zero)
      more.push_back(zero);
    return more;
  }

  // The fewest layers of a stage with whose recomputation the plan fits, by halving: more of them
  // keep less.
  void few_layers_again() {
    const ParallelPlan& p = from_.plan;
    if (p.recompute.granularity == Recomputation::full && p.recompute.layers == 0) return;
    const auto with = [&](int layers) {
      ParallelPlan plan = p;
      plan.recompute = {Recomputation::full, layers};
      return plan;
    };
    const auto fits = [&](int layers) {
      const ParallelPlan plan = with(layers);
      return is_valid(plan, s_.model, s_.cluster, s_.training) &&
             evaluator_.cost_within(plan, memory_limit(s_)).peak <= memory_limit(s_);
    };
    int too_few = p.recompute.granularity == Recomputation::full ? p.recompute.layers : 0;
    int enough = static_cast<int>(s_.model.layers) / (p.pp * p.chunks());
    if (enough <= too_few + 1 || !fits(enough - 1)) return;
    --enough;
    while (enough - too_few > 1) {
      const int middle = (too_few + enough) / 2;
      (fits(middle) ? enough : too_few) = middle;
    }
    add("recompute",
        fmt::format("{} -> {}", to_string(p.recompute), to_string(with(enough).recompute)),
        [&](ParallelPlan& q) { q.recompute = with(enough).recompute; });
  }

  // Hybrid sharding: a group a node, or one group of all.
  void groups_of_shards() {
    const ParallelPlan& p = from_.plan;
    if (p.zero < 1 || !s_.training.stack.offers.hybrid_sharding) return;
    const int shards = ranks_nearby(Mesh(p).replica_layout(s_.cluster), s_.cluster) / p.cp;
    const bool some = shards > 1 || (shards == 1 && p.cp > 1);
    const int groups = p.dp_replicate > 1 ? 1 : some ? p.dp / shards : 1;
    if (groups == p.dp_replicate) return;
    add("dp_replicate", fmt::format("{} -> {}", p.dp_replicate, groups),
        [groups](ParallelPlan& q) { q.dp_replicate = groups; });
  }

  void exchanges() {
    const ParallelPlan& p = from_.plan;
    if (p.cp == 1) return;
    const auto& names = context_exchange_names;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto other = static_cast<ContextExchange>(i);
      if (other == p.cp_comm) continue;
      add("cp_comm", fmt::format("{} -> {}", names[static_cast<std::size_t>(p.cp_comm)], names[i]),
          [other](ParallelPlan& q) { q.cp_comm = other; });
    }
  }

  // The nearest value on each side that makes a valid plan.
  template <class Apply>
  void sizes(const char* knob, std::int64_t now, std::int64_t n, Apply apply) {
    const Sides sides = beside(now, n);
    for (const auto& side : {sides.below, sides.above}) {
      for (const std::int64_t next : side) {
        if (add(knob, fmt::format("{} -> {}", now, next), [&](ParallelPlan& q) { apply(q, next); }))
          break;
      }
    }
  }

  // Returns whether the change gives a valid plan; if so, prices and records it.
  template <class Apply>
  bool add(const char* knob, const std::string& change, Apply apply) {
    ParallelPlan wanted = from_.plan;
    apply(wanted);
    const auto plan = repaired(wanted, s_);
    const bool is_vpp = std::string_view(knob) == "vpp";
    if (!plan || (is_vpp && plan->vpp != wanted.vpp)) return false;
    Step step{knob, change, {}, {}, false, breaks_fixed(knob, *plan), *plan};
    if (!is_vpp && plan->vpp != from_.plan.vpp) step.change += fmt::format(" (vpp {})", plan->vpp);
    step.peak = evaluator_.cost_within(*plan, memory_limit(s_)).peak;
    step.fits = step.peak <= memory_limit(s_);
    if (length_ == StepLength::fitting && !step.fits) return false;
    step.iteration = evaluator_.iteration_time(*plan);
    steps_.push_back(std::move(step));
    return true;
  }

  // dp, vpp and schedule follow a knob; they may be fixed too.
  bool breaks_fixed(const char* knob, const ParallelPlan& plan) const {
    const auto fixed = fixed_keys(s_.plan);
    const auto holds = [&fixed](std::string_view key) {
      return std::ranges::find(fixed, key) != fixed.end();
    };
    return holds(knob) || (holds("dp") && plan.dp != from_.plan.dp) ||
           (holds("vpp") && plan.vpp != from_.plan.vpp) ||
           (holds("schedule") && plan.schedule != from_.plan.schedule);
  }

  const Estimate& from_;
  const Scenario& s_;
  Evaluator& evaluator_;
  StepLength length_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> one_step_away(const Estimate& from, const Scenario& scenario,
                                Evaluator& evaluator, StepLength length) {
  if (!from.plan.stages.empty()) return {};
  return Stepper(from, scenario, evaluator, length).all();
}

namespace {

// The rank whose stages take longest for a micro-batch.
int longest_at_work(const Estimate& e) {
  std::vector<Seconds> work(static_cast<std::size_t>(e.plan.pp));
  for (std::size_t k = 0; k < e.stage_forward.size(); ++k) {
    const int rank = rank_of(e.plan.schedule, e.plan.pp, static_cast<int>(k));
    work[static_cast<std::size_t>(rank)] += e.stage_forward[k] + e.stage_backward[k];
  }
  return static_cast<int>(std::ranges::max_element(work) - work.begin());
}

// How many losses are larger than the wait, which computation is none of.
int larger_losses(const costmodel::Breakdown& b, Seconds wait) {
  using costmodel::Breakdown;
  return static_cast<int>(std::ranges::count_if(breakdown_parts, [&](auto part) {
    return part != &Breakdown::compute && part != &Breakdown::imbalance && b.*part > wait;
  }));
}

}  // namespace

std::optional<BusiestRank> busiest_rank(const Estimate& e, Evaluator& evaluator) {
  const Seconds wait = e.breakdown.imbalance - e.longest_samples;
  if (!e.plan.replica_groups.empty() || wait < e.iteration * least_wait) return {};
  if (larger_losses(e.breakdown, wait) > 1) return {};
  BusiestRank busiest{.rank = longest_at_work(e), .breakdown = {}};
  if (busiest.rank == e.critical_rank) return {};
  Ending end = evaluator.end_of(e.plan);
  end.critical = static_cast<std::size_t>(busiest.rank);
  const Seconds transfers = e.breakdown.pp_comm / end.own_runs;
  busiest.breakdown = breakdown_of(evaluator.cost(e.plan), e.plan, end, {transfers, Seconds(0)},
                                   evaluator.training().stack.host);
  busiest.breakdown *= end.own_runs;
  return busiest;
}

}  // namespace planner
