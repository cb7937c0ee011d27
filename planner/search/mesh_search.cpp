#include "planner/search/mesh_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "costmodel/base/parallel_for.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "planner/search/mesh_batch.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/simplest_plan.hpp"
#include "planner/search/simplicity.hpp"

namespace planner {

using namespace costmodel;

namespace {

// Orders along the pipeline. For more than four groups, only the given one and its reverse.
GroupOrders group_orders(int groups) {
  std::vector<int> order(static_cast<std::size_t>(groups));
  std::iota(order.begin(), order.end(), 0);
  constexpr int most_permuted = 4;
  if (groups > most_permuted) return {order, {order.rbegin(), order.rend()}};
  GroupOrders all;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

class MeshSearcher {
 public:
  MeshSearcher(const Scenario& scenario, int threads, const std::function<bool()>& expired,
               Seconds below)
      : s_(&scenario), threads_(threads), expired_(&expired), below_(below) {
    const Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
    const double peak = peak_of(scenario.cluster, scenario.training.precision).value;
    least_ = Seconds(evaluator.model_flops().value / peak);
    result_.lower_bound = Seconds(infinity);
  }

  MeshSearch run() {
    const auto orders = group_orders(static_cast<int>(groups_of(s_->cluster).size()));
    result_.orders = orders.size();
    search_all(orders);
    finish();
    return std::move(result_);
  }

 private:
  struct Batch {
    std::unique_ptr<MeshBatchSearch> search;
    Seconds bound;
  };

  // First every size is cut once, then the sizes with the least bounds are settled first. Each
  // fixed batch of them sees the same best plan, for any number of threads.
  void search_all(const GroupOrders& orders) {
    std::vector<Batch> all;
    for (const std::int64_t sequences : batches())
      all.push_back({std::make_unique<MeshBatchSearch>(*s_, sequences, *expired_, below_), least_});
    share_out(all.size(), threads_,
              [&](std::size_t i) { all[i].bound = all[i].search->begin(orders, least_); });
    std::ranges::stable_sort(all, [](const Batch& a, const Batch& b) { return a.bound < b.bound; });
    Seconds best = below_;
    for (const Batch& batch : all) best = min(best, batch.search->best());
    constexpr std::size_t together = 4;
    for (std::size_t next = 0; next < all.size(); next += together) {
      std::vector<MeshBatch> found(std::min(together, all.size() - next));
      share_out(found.size(), threads_, [&](std::size_t i) {
        found[i] = all[next + i].search->run(best);
        all[next + i].search.reset();
      });
      for (MeshBatch& batch : found) {
        for (const Ranked& plan : batch.plans) best = min(best, plan.time);
        add(std::move(batch));
      }
    }
  }

  bool out_of_time() {
    result_.expired = result_.expired || (*expired_ && (*expired_)());
    return result_.expired;
  }

  // Sequences per micro-batch, over all replicas: the sizes with which one-layer stages with the
  // widest tensor and context groups can use all devices.
  std::vector<std::int64_t> batches() {
    if (s_->plan.dp && s_->plan.micro_batch) return {*s_->plan.dp * *s_->plan.micro_batch};
    std::int64_t node = 1;
    for (const ClusterSpec& group : groups_of(s_->cluster))
      node = std::max(node, group.devices_per_node);
    const double widest = static_cast<double>(node) * static_cast<double>(most_context_ranks(*s_));
    const double most = widest * static_cast<double>(s_->model.layers + 2);
    std::vector<std::int64_t> all = divisors(s_->training.global_batch);
    std::erase_if(all, [&](std::int64_t sequences) {
      return most * static_cast<double>(sequences) < static_cast<double>(s_->cluster.devices);
    });
    if (all.empty()) {
      result_.reason =
          fmt::format("no micro-batch has sequences enough for stages that use up {} devices",
                      format_integer(s_->cluster.devices));
    }
    return all;
  }

  void add(MeshBatch batch) {
    ++result_.batches;
    result_.priced += batch.priced;
    result_.sliced += batch.sliced;
    result_.simulated += batch.simulated;
    result_.ruled_out += batch.ruled_out ? 1 : 0;
    result_.expired = result_.expired || batch.expired;
    if (batch.bound < result_.lower_bound) {
      result_.lower_bound = batch.bound;
      result_.held_by = std::move(batch.held_by);
    }
    if (result_.reason.empty()) result_.reason = batch.reason;
    for (Ranked& plan : batch.plans) {
      plan.order = started_.size();
      started_.push_back(std::move(plan));
    }
  }

  // Improves the best sliced plans, and ranks the results with the others.
  void finish() {
    std::ranges::stable_sort(started_, better);
    constexpr std::size_t most_improved = 12;
    const auto improved = out_of_time() ? 0 : std::min(most_improved, started_.size());
    std::vector<std::uint64_t> simulated(improved, 0);
    share_out(improved, threads_, [&](std::size_t i) {
      Evaluator evaluator(s_->model, s_->cluster, s_->training);
      MeshImprover improver(*s_, evaluator, *expired_);
      started_[i] = improver.improved(started_[i]);
      simulated[i] = improver.simulated();
    });
    result_.improved = improved;
    result_.simulated += std::accumulate(simulated.begin(), simulated.end(), std::uint64_t{0});
    out_of_time();
    std::vector<Ranked> found;
    for (Ranked& ranked : started_) {
      const bool known =
          std::ranges::any_of(found, [&](const Ranked& r) { return r.plan == ranked.plan; });
      if (!known) found.push_back(std::move(ranked));
    }
    std::ranges::stable_sort(found, better);
    Evaluator evaluator(s_->model, s_->cluster, s_->training);
    for (const Ranked& plan : rows_of(found))
      result_.plans.push_back(evaluator.estimate(plan.plan));
    if (!found.empty()) result_.simplest = simplest_of(found);
    conclude();
  }

  // The best of each family, in the order of `found`.
  std::vector<Ranked> rows_of(const std::vector<Ranked>& found) const {
    std::vector<Ranked> rows;
    for (const Ranked& plan : found) {
      if (rows.size() == static_cast<std::size_t>(s_->search.top)) break;
      const bool known =
          s_->search.rows == RankingRows::families &&
          std::ranges::any_of(rows, [&](const Ranked& r) { return one_family(r.plan, plan.plan); });
      if (!known) rows.push_back(plan);
    }
    return rows;
  }

  // Of as simple ones the fastest.
  ParallelPlan simplest_of(const std::vector<Ranked>& found) const {
    const Seconds most = most_time(found.front().time, *s_);
    const Ranked* best = &found.front();
    for (const Ranked& plan : found)
      if (plan.time <= most && simplicity(plan.plan) < simplicity(best->plan)) best = &plan;
    return best->plan;
  }

  void conclude() {
    if (!result_.plans.empty()) {
      result_.reason.clear();
      result_.lower_bound = min(result_.lower_bound, result_.plans.front().iteration);
    } else if (result_.expired) {
      result_.reason = "time ran out before a plan was found";
    } else if (below_.value < infinity) {
      result_.reason = "none found takes less than " + format_seconds(below_);
    } else if (result_.reason.empty()) {
      result_.reason = "no plan obeys the rules for these devices, this batch and the fixed keys";
    }
  }

  const Scenario* s_;
  int threads_;
  const std::function<bool()>* expired_;
  Seconds below_;
  Seconds least_;  // of any plan
  std::vector<Ranked> started_;
  MeshSearch result_;
};

struct Refusal {
  std::string_view key;
  const char* why;
};

// The keys that this search cannot keep fixed.
std::optional<Refusal> refusal(const Scenario& s) {
  const auto& listed = s.search.schedules;
  const auto plain = usual_schedule(1);
  const bool offered = listed.empty() || std::ranges::find(listed, plain) != listed.end();
  if (!s.plan.lists().empty()) return Refusal{s.plan.lists(), "are fixed, and plan searches them"};
  if (!s.plan.stage_layers.empty())
    return Refusal{"stage_layers", "are searched where stages differ"};
  if (s.plan.pp) return Refusal{"pp", "is searched where stages differ"};
  if (s.plan.dp.has_value() != s.plan.micro_batch.has_value()) {
    return Refusal{s.plan.dp ? "dp" : "micro_batch",
                   "alone does not say how large a micro-batch is"};
  }
  if (s.plan.rank_order != default_rank_order)
    return Refusal{"rank_order", "is the default where stages differ"};
  if (!offered) return Refusal{"search", "leaves out 1f1b, the schedule where stages differ"};
  if (s.plan.vpp.value_or(1) != 1) return Refusal{"vpp", "is 1 where stages differ"};
  if (s.plan.schedule.value_or(plain) != plain)
    return Refusal{"schedule", "is 1f1b where stages differ"};
  if (s.plan.dp_replicate.value_or(1) > 1 || s.plan.is_auto("dp_replicate"))
    return Refusal{"dp_replicate", "is 1 where stages differ"};
  if (s.plan.offload.any() || s.plan.is_auto("offload"))
    return Refusal{"offload", "is none where stages differ"};
  if (s.plan.zero_plus_plus.any()) return Refusal{"zero", "is plain where stages differ"};
  return {};
}

}  // namespace

bool can_search_meshes(const Scenario& scenario) { return !refusal(scenario); }

MeshSearch search_meshes(const Scenario& scenario, int threads,
                         const std::function<bool()>& expired, Seconds below) {
  if (const auto fault = refusal(scenario)) {
    throw ConfigError(scenario.plan.mark_of(fault->key), std::string(fault->key) + " " + fault->why,
                      "leave it out, or ask `shardplan evaluate`");
  }
  MeshSearch found = MeshSearcher(scenario, threads, expired, below).run();
  if (scenario.cluster.groups.size() > 1) found.replicas = search_replicas(scenario, expired);
  return found;
}

}  // namespace planner
