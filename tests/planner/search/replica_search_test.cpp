// Unequal shares of the batch for groups that are replicas: held against trying all of them.
#include "planner/search/replica_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/replica_cost.hpp"
#include "planner/report/json_mesh.hpp"
#include "planner/report/mesh_report.hpp"
#include "planner/search/mesh_search.hpp"
#include "planner/search/search_space.hpp"
#include "planner/search/stage_options.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace replica_search_test {

using costmodel::ReplicaShare;
using costmodel::Scenario;
using planner::ReplicaSearch;
using planner::search_replicas;
using scenarios::group;
using scenarios::mixed;
using scenarios::read;

namespace {

std::string training(int batch, const std::string& stack = "megatron-2021") {
  return "model: {base: gpt2-medium, layers: 8}\n"
         "training: {global_batch: " +
         std::to_string(batch) + ", sequence: 1024, precision: fp16, stack: " + stack + "}\n";
}

// Everything a group may run, every way to put the groups' together.
struct BruteForce {
  const Scenario& s;
  costmodel::ReplicaEvaluator evaluator{s.model, s.cluster, s.training};
  std::vector<std::vector<ReplicaShare>> shares{};
  double best = 1e300;
  std::uint64_t tried = 0;

  double run() {
    for (std::size_t g = 0; g < evaluator.groups(); ++g) shares.push_back(all_of(g));
    combine({});
    return best;
  }

  std::vector<ReplicaShare> all_of(std::size_t g) {
    std::vector<ReplicaShare> all;
    const auto n = static_cast<int>(s.cluster.groups[g].devices);
    const std::int64_t batch = s.training.global_batch;
    for (int tp = 1; tp <= n; ++tp) {
      for (int pp = 1; pp * tp <= n; ++pp) {
        if (n % (tp * pp) != 0) continue;
        for (std::int64_t b = 1; b <= batch; ++b) {
          for (std::int64_t m = 1; m <= batch; ++m) {
            for (const auto& recompute : planner::recompute_offered(s)) {
              for (const int zero : planner::zero_offered(s, n / tp / pp)) {
                ReplicaShare share;
                share.plan.tp = tp;
                share.plan.pp = pp;
                share.plan.dp = n / tp / pp;
                share.plan.micro_batch = b;
                share.plan.recompute = recompute;
                share.plan.zero = zero;
                share.plan.sequence_parallel = s.training.stack.offers.sequence_parallel && tp > 1;
                share.micro_batches = m;
                if (share.sequences() > batch || !evaluator.is_valid(g, share)) continue;
                if (evaluator.cost(g, share).peak > evaluator.capacity(g)) continue;
                all.push_back(share);
              }
            }
          }
        }
      }
    }
    return all;
  }

  void combine(const std::vector<costmodel::ReplicaEnd>& ends, std::int64_t sequences = 0) {
    const std::size_t g = ends.size();
    if (g == shares.size()) {
      if (sequences != s.training.global_batch) return;
      ++tried;
      best = std::min(best, evaluator.iteration(ends).value);
      return;
    }
    for (const ReplicaShare& share : shares[g]) {
      if (sequences + share.sequences() > s.training.global_batch) continue;
      auto more = ends;
      more.push_back(evaluator.end(g, share));
      combine(more, sequences + share.sequences());
    }
  }
};

}  // namespace

TEST_CASE("the shares found are the best of all") {
  const std::string three =
      scenarios::joined(group("a", "dgx-h100", 1) + ", " + group("b", "dgx-a100", 1) + ", " +
                        group("c", "dgx-v100", 1));
  std::uint64_t tried = 0;
  int uneven = 0;
  for (const std::string& yaml :
       {training(8) + mixed(2, 2), training(12) + mixed(2, 1), training(7) + mixed(1, 2, "2 GB/s"),
        training(6) + three, training(10, "megatron-core-2025") + mixed(2, 2)}) {
    CAPTURE(yaml);
    const Scenario s = read(yaml);
    const ReplicaSearch found = search_replicas(s);
    BruteForce all{s};
    CHECK(found.iteration.value == all.run());  // to the last bit
    REQUIRE(found.shares.size() == s.cluster.groups.size());
    std::int64_t sequences = 0;
    for (const ReplicaShare& share : found.shares) sequences += share.sequences();
    CHECK(sequences == s.training.global_batch);
    CHECK(all.evaluator.iteration(found.shares) == found.iteration);
    CHECK(found.simulated < all.tried);
    tried += all.tried;
    uneven += found.shares.front().sequences() > found.shares.back().sequences() ? 1 : 0;
  }
  CHECK(tried > 1000);
  CHECK(uneven >= 4);
}

TEST_CASE(
    "replicas win where gradients are small beside the work, pipelines where the join is slow") {
  const auto both = [](const std::string& join) {
    const Scenario s = read(training(64) + mixed(4, 4, join));
    const planner::MeshSearch found = planner::search_meshes(s);
    REQUIRE(found.replicas);
    REQUIRE(!found.plans.empty());
    return std::pair{found.replicas->iteration.value, found.plans.front().iteration.value};
  };
  const auto [replicas, pipeline] = both("25 GB/s");
  CHECK(replicas < pipeline);
  const auto [slow_replicas, slow_pipeline] = both("20 MB/s");
  CHECK(slow_replicas > slow_pipeline);
}

TEST_CASE("the shipped scenario: replicas beat the best pipeline, the quicker group takes more") {
  const Scenario s = costmodel::load_scenario(SHARDPLAN_SOURCE_DIR
                                              "/configs/scenarios/llama-3.2-1b-a100-h100.yaml",
                                              fixtures::configs(), {});
  const planner::MeshSearch found = planner::search_meshes(s);
  REQUIRE(found.replicas);
  REQUIRE(found.replicas->shares.size() == 2);
  REQUIRE(!found.plans.empty());
  CHECK(found.replicas->iteration < 0.98 * found.plans.front().iteration);
  CHECK(found.replicas->shares[0].sequences() > 2 * found.replicas->shares[1].sequences());
}

TEST_CASE("what the scenario fixes is kept, and the report tells the shares") {
  const Scenario s = read(training(16) + mixed(2, 2) + "plan: {tp: 2, recompute: full, zero: 0}\n");
  const planner::MeshSearch found = planner::search_meshes(s);
  REQUIRE(found.replicas);
  REQUIRE(found.replicas->shares.size() == 2);
  for (const ReplicaShare& share : found.replicas->shares) {
    CHECK(share.plan.tp == 2);
    CHECK(share.plan.recompute.granularity == costmodel::Recomputation::full);
  }
  const std::string text = planner::mesh_report(found, s, 0, {});
  CHECK(fixtures::contains(text, "With replicas in each group instead"));
  CHECK(fixtures::contains(text, "Group 'a100' takes "));
  const auto json = nlohmann::json::parse(planner::mesh_json(found, s, 0));
  CHECK(json["replicas"]["groups"].size() == 2);
  CHECK(json["replicas"]["groups"][0]["sequences"].get<int>() +
            json["replicas"]["groups"][1]["sequences"].get<int>() ==
        16);
}

TEST_CASE("the work of sharing out does not grow with the batch, nor without end") {
  const auto shared_out = [](std::int64_t batch) {
    return search_replicas(read(training(batch) + mixed(4, 4)));
  };
  const ReplicaSearch few = shared_out(256), many = shared_out(1 << 18);
  REQUIRE(few.shares.size() == 2);
  REQUIRE(many.shares.size() == 2);
  CHECK(many.shares[0].sequences() + many.shares[1].sequences() == 1 << 18);
  CHECK(many.iteration > 500 * few.iteration);
  CHECK(many.evaluated < 20 * few.evaluated);
  // Every share has an even number of sequences.
  const std::string even = mixed(4, 4) + "plan: {tp: 2, dp: 2}\n";
  CHECK(search_replicas(read(training(999'999'999) + even)).reason ==
        "no shares of the groups make up the global batch");
  const std::string uneven = mixed(4, 4) + "plan: {tp: 1, dp: 4}\nsearch: {max_micro_batch: 1}\n";
  CHECK(search_replicas(read(training(1'000'000'000) + uneven)).shares.size() == 2);
}

TEST_CASE("groups that cannot be replicas have a reason") {
  const auto reason = [](const std::string& yaml) {
    const ReplicaSearch found = search_replicas(read(yaml));
    CHECK(found.shares.empty());
    return found.reason;
  };
  CHECK(reason(training(8) + "cluster: {base: dgx-a100, devices: 4}\n") ==
        "there is one group of devices");
  CHECK(reason(training(1) + mixed(1, 1)) == "there are fewer sequences than groups");
  CHECK(reason("model: llama-3-70b\ntraining: {global_batch: 4, sequence: 4096, precision: bf16, "
               "stack: megatron-core-2025}\n" +
               mixed(1, 1)) == "no replica of the model fits on the devices of group 'h100'");
  const Scenario s = read(training(8) + mixed(2, 2));
  CHECK(search_replicas(s, [] { return true; }).reason ==
        "time ran out before all shares were priced");
  // As good as no network between the groups: a value all the same.
  CHECK(search_replicas(read(training(8) + mixed(1, 1, "1 MB/s"))).shares.size() == 2);
}

}  // namespace replica_search_test
