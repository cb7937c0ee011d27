// How far the search over meshes goes: its bound against every plan of small spaces, threads, what
// a time limit leaves undone, and more devices than layers.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/json_report.hpp"
#include "planner/search/mesh_batch.hpp"
#include "planner/search/mesh_improve.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"
#include "planner/search/strategy.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/sanitized.hpp"

namespace mesh_bound_test {

using costmodel::Evaluator;
using costmodel::ParallelPlan;
using costmodel::Recompute;
using costmodel::Scenario;
using costmodel::Seconds;
using costmodel::StagePlan;
using planner::infinity;
using planner::MeshSearch;
using planner::search_meshes;

namespace {

Scenario read(const std::string& yaml) {
  return costmodel::read_scenario(costmodel::parse_yaml(yaml, "t.yaml"), "t", fixtures::configs());
}

// Calls `visit` with every plan of stages for so many sequences of a micro-batch.
class EveryPlan {
 public:
  EveryPlan(const Scenario& s, std::int64_t sequences,
            std::function<void(const ParallelPlan&)> visit)
      : s_(&s), sequences_(sequences), visit_(std::move(visit)) {
    plan_.sequence_parallel = s.training.stack.offers.sequence_parallel;
    order_.resize(std::max<std::size_t>(1, s.cluster.groups.size()));
    std::iota(order_.begin(), order_.end(), 0);
  }
  // Groups stand in any order along the pipeline.
  void all() {
    do {
      from();
    } while (std::next_permutation(order_.begin(), order_.end()));
  }

 private:
  void from(std::size_t place = 0, std::int64_t left = -1) {
    if (place == order_.size()) return deal_out(0, static_cast<int>(s_->model.layers));
    const auto& devices = group_of(s_->cluster, order_[place]);
    if (left < 0) left = devices.devices;
    if (left == 0) return from(place + 1);
    for (const int n : planner::submeshes(static_cast<int>(left), 8)) {
      for (StagePlan stage : all_sizes(n)) {
        if (sequences_ % stage.dp != 0) continue;
        stage.group = s_->cluster.groups.empty() ? "" : devices.name;
        for (const Recompute& recompute : planner::recompute_offered(*s_)) {
          for (const int zero : planner::zero_offered(*s_, std::int64_t{stage.dp} * stage.cp)) {
            stage.recompute = recompute;
            stage.zero = zero;
            plan_.stages.push_back(stage);
            from(place, left - n);
            plan_.stages.pop_back();
          }
        }
      }
    }
  }

  // Every way to cut a stage over n devices, of which is_valid leaves what may be.
  std::vector<StagePlan> all_sizes(int n) const {
    std::vector<StagePlan> all;
    const auto of = [](std::int64_t most) { return planner::divisors(most); };
    for (const auto tp : of(n)) {
      if (s_->search.max_tp > 0 && tp > s_->search.max_tp) continue;
      for (const auto cp : planner::context_sizes_offered(*s_, n / tp)) {
        if (n / tp % cp != 0) continue;
        for (const auto exchange :
             {costmodel::ContextExchange::p2p, costmodel::ContextExchange::a2a,
              costmodel::ContextExchange::all_gather}) {
          if (cp == 1 && exchange != costmodel::ContextExchange::p2p) continue;
          for (const auto ep : of(std::max<std::int64_t>(1, s_->model.experts))) {
            for (const auto etp : of(tp)) {
              if (etp != 1 && etp != tp) continue;
              const auto size = [](std::int64_t value) { return static_cast<int>(value); };
              StagePlan stage{size(tp), size(n / tp / cp), {}, 0, ""};
              stage.cp = size(cp), stage.cp_comm = exchange;
              stage.ep = size(ep), stage.etp = size(etp);
              all.push_back(stage);
            }
          }
        }
      }
    }
    return all;
  }

  void deal_out(std::size_t stage, int left) {
    plan_.pp = static_cast<int>(plan_.stages.size());
    if (stage + 1 == plan_.stages.size()) {
      plan_.stage_layers.push_back(left);
      visit();
      plan_.stage_layers.pop_back();
      return;
    }
    for (int layers = stage == 0 ? 0 : 1; layers <= left;
         ++layers) {  // the first has the embedding
      plan_.stage_layers.push_back(layers);
      deal_out(stage + 1, left - layers);
      plan_.stage_layers.pop_back();
    }
  }
  void visit() {
    plan_.dp = 1;
    for (const StagePlan& stage : plan_.stages) plan_.dp = std::max(plan_.dp, stage.dp);
    plan_.micro_batch = sequences_ / plan_.dp;
    if (is_valid(plan_, s_->model, s_->cluster, s_->training)) visit_(plan_);
  }

  const Scenario* s_;
  std::int64_t sequences_;
  std::function<void(const ParallelPlan&)> visit_;
  std::vector<int> order_;
  ParallelPlan plan_;
};

planner::GroupOrders orders_of(const Scenario& s) {
  std::vector<int> order(std::max<std::size_t>(1, s.cluster.groups.size()));
  std::iota(order.begin(), order.end(), 0);
  planner::GroupOrders all;
  do {
    all.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return all;
}

// What is proved of a size of a micro-batch, beginning with what costs nothing.
struct Proved {
  Seconds at_first, bound;
  planner::MeshBatch batch;
};

Proved proved_of(const Scenario& s, std::int64_t sequences,
                 Seconds best = Seconds(planner::infinity)) {
  const std::function<bool()> never;
  std::vector<planner::StageChoice> choices;
  std::vector<planner::SlicingProblem> groups;
  for (std::size_t g = 0; g < std::max<std::size_t>(1, s.cluster.groups.size()); ++g) {
    groups.push_back(*planner::StageOptions(s, static_cast<int>(g),
                                            {sequences, s.training.stack.offers.sequence_parallel},
                                            choices)
                          .problem());
  }
  planner::MeshBatchSearch search(s, sequences, never, Seconds(planner::infinity));
  search.begin(orders_of(s), Seconds(0));
  Proved proved{planner::mesh_bound(s, groups), Seconds(0), search.run(best)};
  proved.bound = proved.batch.bound;
  return proved;
}

const std::string small =
    "model: {base: gpt2-medium, layers: 3}\n"
    "training: {global_batch: 4, sequence: 1024, precision: fp16, stack: megatron-2021}\n";
const std::string even = "cluster: {base: dgx-a100, devices: 4}\n";
const std::string mixed =
    "cluster:\n"
    "  groups: [{name: h100, base: dgx-h100, devices: 2}, "
    "{name: a100, base: dgx-a100, devices: 1}]\n"
    "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n";
const std::string three =
    "cluster:\n"
    "  groups: [{name: h100, base: dgx-h100, devices: 1}, "
    "{name: a100, base: dgx-a100, devices: 1}, {name: v100, base: dgx-v100, devices: 1}]\n"
    "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n";

}  // namespace

TEST_CASE("no plan of a small space is faster than the bound of its micro-batch") {
  int tight = 0, all = 0;
  for (const std::string& cluster : {even, mixed, three}) {
    for (const std::string stack : {"megatron-2021", "megatron-core-2025"}) {
      for (const int batch : {4, 24}) {
        if (sanitized && (batch > 4) != (stack == "megatron-2021")) continue;
        std::string yaml = "model: {base: gpt2-medium, layers: 3}\n";
        yaml += cluster;
        yaml += fmt::format(
            "training: {{global_batch: {}, sequence: 1024, precision: fp16, stack: {}}}\n"
            "search: {{recompute: [none, full]{}}}\n",
            batch, stack, batch > 4 ? ", zero: [0]" : "");
        const Scenario s = read(yaml);
        const MeshSearch found = search_meshes(s);
        REQUIRE(!found.plans.empty());
        Evaluator evaluator(s.model, s.cluster, s.training);
        Seconds least(1e300), least_bound(1e300);
        std::uint64_t tried = 0;
        for (const std::int64_t sequences : planner::divisors(s.training.global_batch)) {
          const Proved proved = proved_of(s, sequences);
          least_bound = min(least_bound, proved.bound);
          Seconds best(infinity);
          ParallelPlan quickest;
          EveryPlan(s, sequences, [&](const ParallelPlan& plan) {
            if (!planner::fits(evaluator.cost(plan), s.search.memory_margin)) return;
            ++tried;
            const Seconds time = evaluator.iteration_time(plan);
            if (time >= best) return;
            best = time;
            quickest = plan;
          }).all();
          CAPTURE(sequences);
          CAPTURE(to_string(quickest));
          CHECK(best.value >= proved.bound.value);
          CHECK(proved.bound >= proved.at_first * (1 - 1e-9));
          CHECK(proved.bound.value > 0.9 * best.value);
          tight += proved.bound > 0.995 * best ? 1 : 0;
          ++all;
          least = min(least, best);
        }
        INFO(tried << " plans");
        CHECK(tried > 400);
        CHECK(found.lower_bound <= least);
        CHECK(found.lower_bound >= least_bound * (1 - 1e-9));
        CHECK(found.plans.front().iteration >= least * (1 - 1e-9));
        CHECK(found.plans.front().iteration <= least * 1.02);
      }
    }
  }
  CHECK(tight >= (sanitized ? 5 : 14));
  CHECK((sanitized || all == 66));
}

TEST_CASE("with little memory no plan that fits is faster than the bound of its micro-batch") {
  int differ = 0, none = 0, some = 0;
  for (const std::string& cluster : {even, mixed}) {
    for (const double room : {0.5, 0.7, 0.9}) {
      Scenario s = read("model: {base: gpt2-medium, layers: 4}\n" + cluster +
                        "training: {global_batch: 8, sequence: 1024, precision: fp16, "
                        "stack: megatron-2021}\nplan: {zero: 0}\n"
                        "search: {recompute: [none, full], max_tp: 1}\n");
      Evaluator roomy(s.model, s.cluster, s.training);
      ParallelPlan whole;
      whole.micro_batch = 2;
      const costmodel::Bytes most = Evaluator(s.model, group_of(s.cluster, 0), s.training)
                                        .cost(whole)
                                        .ranks.front()
                                        .memory.total();
      s.cluster.device.memory = most * room;
      for (costmodel::ClusterSpec& group : s.cluster.groups) group.device.memory = most * room;
      Evaluator evaluator(s.model, s.cluster, s.training);
      for (const std::int64_t sequences : {1, 2, 4}) {
        const Proved proved = proved_of(s, sequences);
        Seconds best(infinity);
        EveryPlan(s, sequences, [&](ParallelPlan plan) {
          // And where few layers of a stage are recomputed.
          for (int few = 0; few < 3; ++few) {
            for (StagePlan& stage : plan.stages) {
              if (stage.recompute.granularity == costmodel::Recomputation::full)
                stage.recompute.layers = few;
            }
            if (!is_valid(plan, s.model, s.cluster, s.training)) continue;
            if (!planner::fits(evaluator.cost(plan), s.search.memory_margin)) continue;
            best = min(best, evaluator.iteration_time(plan));
          }
        }).all();
        CAPTURE(room);
        CAPTURE(sequences);
        CHECK(best.value >= proved.bound.value);
        (proved.batch.plans.empty() ? none : some) += 1;
        for (const planner::Ranked& ranked : proved.batch.plans)
          for (const StagePlan& stage : ranked.plan.stages) differ += stage.recompute.layers;
      }
    }
  }
  CHECK(some > 6);
  CHECK(none > 0);
  CHECK(differ > 0);
}

TEST_CASE(
    "with cp and ep open no plan of a small space is faster than the bound or what is found") {
  const std::string moe =
      "model: {kind: moe, layers: 2, hidden: 1024, heads: 16, ffn_hidden: 4096, vocab: 32000, "
      "experts: 8, top_k: 2, expert_ffn_hidden: 4096}\n";
  const std::string llama = "model: {base: llama-3.2-1b, layers: 3}\n";
  const std::string wide =
      "cluster:\n"
      "  groups: [{name: h100, base: dgx-h100, devices: 2}, "
      "{name: a100, base: dgx-a100, devices: 4}]\n"
      "  join: {bandwidth_bytes_per_s: 25 GB/s, latency_s: 5 us}\n";
  int context = 0, experts = 0, differ = 0, spaces = 0, quickest_found = 0;
  for (const std::string& model : {moe, llama}) {
    for (const std::string& cluster : {even, mixed, wide}) {
      for (const int batch : {1, 4}) {
        if (batch > 1 && cluster == wide) continue;  // hundreds of thousands of plans
        if (sanitized && (cluster == wide || (model == llama) == (cluster == mixed))) continue;
        const Scenario s =
            read(model + cluster + "training: {global_batch: " + std::to_string(batch) +
                 ", sequence: 8192, stack: megatron-core-2025}\n"
                 "search: {max_cp: 4, recompute: [none], zero: [0]}\n");
        const MeshSearch found = search_meshes(s);
        REQUIRE(!found.plans.empty());
        Evaluator evaluator(s.model, s.cluster, s.training);
        Seconds least(1e300);
        std::uint64_t tried = 0;
        ParallelPlan quickest;
        for (const std::int64_t sequences : planner::divisors(s.training.global_batch)) {
          const Seconds bound = proved_of(s, sequences).bound;
          EveryPlan(s, sequences, [&](const ParallelPlan& plan) {
            ++tried;
            if (!planner::fits(evaluator.cost(plan), s.search.memory_margin)) return;
            const Seconds time = evaluator.iteration_time(plan);
            CHECK(time >= bound);
            if (time >= least) return;
            least = time;
            quickest = plan;
          }).all();
        }
        CAPTURE(to_string(quickest));
        CAPTURE(to_string(found.plans.front().plan));
        CAPTURE(tried);
        CHECK(tried > 40);
        CHECK(found.lower_bound <= least);
        const double ratio = found.plans.front().iteration / least;
        CHECK(ratio >= 1 - 1e-9);
        CHECK(ratio <= 1.005);  // 1.0045 the most: a third stage, no step from two
        ++spaces;
        quickest_found += ratio <= 1 + 1e-9 ? 1 : 0;
        for (const StagePlan& stage : found.plans.front().plan.stages) {
          context += stage.cp > 1 ? 1 : 0;
          experts += stage.ep > 1 ? 1 : 0;
          const StagePlan& first = found.plans.front().plan.stages.front();
          differ += stage.cp != first.cp || stage.ep != first.ep ? 1 : 0;
        }
      }
    }
  }
  CHECK(spaces == (sanitized ? 4 : 10));
  CHECK(quickest_found >= (sanitized ? 3 : 9));
  CHECK((sanitized || context > 0));
  CHECK((sanitized || experts > 0));
  CHECK((sanitized || differ > 0));
}

TEST_CASE("the search over meshes gives the same answer with any number of threads") {
  for (const std::string& cluster : {even, mixed}) {
    const Scenario s = read(small + cluster);
    const MeshSearch one = search_meshes(s, 1);
    REQUIRE(!one.plans.empty());
    for (const int threads : {2, 5}) {
      const MeshSearch several = search_meshes(s, threads);
      CHECK(several.lower_bound == one.lower_bound);
      CHECK(several.priced == one.priced);
      CHECK(several.ruled_out == one.ruled_out);
      CHECK(several.sliced == one.sliced);
      CHECK(several.simulated == one.simulated);
      REQUIRE(several.plans.size() == one.plans.size());
      for (std::size_t i = 0; i < one.plans.size(); ++i) {
        CHECK(several.plans[i].plan == one.plans[i].plan);
        CHECK(several.plans[i].iteration == one.plans[i].iteration);
      }
    }
  }
}

TEST_CASE("a size of a micro-batch is cut further only where its bound leaves room") {
  const Scenario s = read(
      "model: {base: gpt2-medium, layers: 16}\ncluster: {base: dgx-a100, devices: 16}\n"
      "training: {global_batch: 16, sequence: 1024, precision: fp16, stack: megatron-2021}\n");
  const Proved whole = proved_of(s, 4);
  REQUIRE(!whole.batch.plans.empty());
  CHECK(!whole.batch.ruled_out);
  const Proved none = proved_of(s, 4, whole.at_first);
  CHECK(none.batch.ruled_out);
  CHECK(none.bound <= whole.bound);
  CHECK(none.batch.priced == whole.batch.priced);
  CHECK(none.batch.sliced < whole.batch.sliced);
}

TEST_CASE("once time is up no stage is priced, whatever the size") {
  const Scenario s = read(
      "model: {base: gpt3-175b, layers: 1000}\ncluster: {base: dgx-h100, devices: 131072}\n"
      "training: {global_batch: 131072, sequence: 2048, stack: megatron-core-2026}\n");
  const MeshSearch none = search_meshes(s, 1, [] { return true; });
  CHECK(none.expired);
  CHECK(none.priced == 0);
  CHECK(none.sliced == 0);
  // From one asking to the next the stages of one content are priced, in every way and place.
  std::uint64_t most = 0, before = 0;
  for (int asked = 3; asked <= 6; ++asked) {
    int times = 0;
    const MeshSearch found = search_meshes(s, 1, [&] { return ++times > asked; });
    CHECK(found.expired);
    CHECK(found.plans.empty());
    CHECK(found.priced > before);
    most = std::max(most, found.priced - before);
    before = found.priced;
  }
  CHECK(most < 2000);
}

TEST_CASE("more devices than stages of the smallest micro-batches use up") {
  const std::string model =
      "model: {base: gpt2, layers: 1, heads: 12}\n"
      "training: {global_batch: 8, sequence: 1024, precision: fp16, stack: megatron-2021}\n";
  // Three layers, each on eight devices for a sequence at most.
  const MeshSearch found = search_meshes(read(model + "cluster: {base: dgx-a100, devices: 64}\n"));
  CHECK(found.batches == 2);  // of 1, 2, 4 and 8 sequences
  const MeshSearch none = search_meshes(read(model + "cluster: {base: dgx-a100, devices: 256}\n"));
  CHECK(none.plans.empty());
  CHECK(none.batches == 0);
  CHECK(none.reason == "no micro-batch has sequences enough for stages that use up 256 devices");
}

TEST_CASE(
    "JSON of strategy alpa tells stages with sizes of their own, on hundreds of devices too") {
  const Scenario s = read(
      "model: {base: gpt2-medium, layers: 8}\ncluster: {base: dgx-a100, devices: 128}\n"
      "training: {global_batch: 128, sequence: 1024, precision: fp16, stack: megatron-2021}\n"
      "plan: {recompute: none, zero: 0}\n");
  const auto all = planner::run_strategies(s, planner::Reach::all, 1, {});
  REQUIRE(all.meshes);
  const MeshSearch& own = *all.meshes;
  REQUIRE(!own.plans.empty());
  const auto json = nlohmann::json::parse(planner::search_json(all, {}, s, 0))["strategies"];
  CHECK(json["meshes"]["iteration_s"] == own.plans.front().iteration.value);
  CHECK(json["meshes"]["plan"]["stages"].size() == own.plans.front().meshes.size());
  CHECK(json["meshes"]["certificate"]["lower_bound_s"] == own.lower_bound.value);
  CHECK(json["meshes"]["certificate"]["gap_pct"] >= 0);
  CHECK(json["meshes"]["searched"]["priced"] == own.priced);
  CHECK(json["meshes"]["searched"]["time_ran_out"] == false);
  Scenario fixed = s;
  fixed.plan.pp = 1;
  const auto without = planner::run_strategies(fixed, planner::Reach::all, 1, {});
  CHECK(nlohmann::json::parse(planner::search_json(without, {}, fixed, 0))["strategies"]["meshes"]
            .is_null());
}

TEST_CASE("stages of a shorter pipeline wait less, and compute slower for it on limited power") {
  for (const std::string stack : {"megatron-2021", "torchtitan"}) {
    const Scenario s = read(
        "model: {base: gpt2-medium, layers: 24}\ncluster: {base: dgx-a100, devices: 32}\n"
        "training: {global_batch: 32, sequence: 1024, precision: bf16, stack: " +
        stack + "}\n");
    REQUIRE(s.cluster.device.idle_boost > 0);
    Evaluator evaluator(s.model, s.cluster, s.training);
    ParallelPlan plan;
    plan.tp = 2;
    plan.dp = 2;
    plan.recompute = {costmodel::Recomputation::selective, 0};
    const costmodel::LayerMix mix{.number = {3}, .again = {1}};
    const auto forward = [&](int stages) {
      plan.pp = stages;
      const std::vector<costmodel::LayerMix> all(static_cast<std::size_t>(stages), mix);
      return evaluator.cost(plan, all).times.forward[1];
    };
    const costmodel::Seconds in_eight = forward(8), in_three = forward(3);
    // torchtitan's host needs longer than this device either way.
    if (stack == "torchtitan")
      CHECK(in_three >= in_eight);
    else
      CHECK(in_three > in_eight);
  }
}

}  // namespace mesh_bound_test
