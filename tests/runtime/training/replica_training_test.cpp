// Replicas of unequal shares, really trained: each group runs its own pipelines and numbers of
// micro-batches, and all learn what one device learns.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/pipeline.hpp"
#include "runtime/run/run_command.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/runtime/support/trained.hpp"

namespace replica_training_test {

using costmodel::Scenario;
using training_test::gpt;
using training_test::llama;
using training_test::trained;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int steps = 2;  // each takes ten times as long
#else
constexpr int steps = 20;
#endif

struct GroupOf {
  int devices;
  std::string replicas;  // of plan.replicas, without the group
};

Scenario replicated(const std::string& model, const std::vector<GroupOf>& groups,
                    const std::string& common = "", bool overlap = false) {
  std::string clusters, replicas;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const char* comma = g > 0 ? ", " : "";
    clusters += fmt::format("{}{{name: g{}, base: laptop-cpu, devices: {}, devices_per_node: {}}}",
                            comma, g, groups[g].devices, groups[g].devices);
    replicas += fmt::format("{}{{group: g{}, {}}}", comma, g, groups[g].replicas);
  }
  const std::string yaml = fmt::format(
      "model: {}\ncluster: {{groups: [{}], join: {{bandwidth_bytes_per_s: 1 GB/s, latency_s: 10 "
      "us}}}}\ntraining: {{global_batch: 16, sequence: 16, precision: fp32, stack: shardplan-cpu, "
      "overlap: {{overlap_grad_reduce: {}}}}}\nplan: {{{}replicas: [{}]}}\n",
      model, clusters, overlap, common, replicas);
  return costmodel::read_scenario(costmodel::parse_yaml(yaml, "test"), "test", fixtures::configs());
}

const std::vector<double>& loss_of_one(const std::string& model) {
  static std::map<std::string, std::vector<double>> known;
  auto& loss = known[model];
  if (loss.empty()) {
    const Scenario s =
        training_test::scenario(model, "stack: shardplan-cpu", "{micro_batch: 4}", 1);
    loss = trained(s, steps).measured.loss;
  }
  return loss;
}

void check_loss(const std::vector<double>& loss, const std::string& model) {
  CHECK(training_test::loss_difference(loss, loss_of_one(model)) <= training_test::loss_bound);
}

void check_bytes(const training_test::Outcome& outcome) {
  const auto& held = outcome.measured.memory;
  REQUIRE(held.size() == outcome.predicted.memory.size());
  for (std::size_t p = 0; p < held.size(); ++p) {
    CAPTURE(p);
    const auto& predicted = outcome.predicted.memory[p];
    CHECK(held[p][0] == predicted.weights.value);
    CHECK(held[p][1] == predicted.gradients.value);
    CHECK(held[p][2] == predicted.optimizer.value);
    CHECK(held[p][3] == predicted.activations.value);
    const auto& sent = outcome.measured.traffic[p];
    const auto& said = outcome.predicted.rank_traffic[p];
    CHECK(sent.all_reduce.value == said.all_reduce.value);
    CHECK(sent.all_gather.value == said.all_gather.value);
    CHECK(sent.reduce_scatter.value == said.reduce_scatter.value);
    CHECK(sent.send.value == said.send.value);
  }
}

}  // namespace

TEST_CASE("groups of unequal shares learn what one device learns, and send and hold what is said") {
  struct Case {
    const char* what;
    const char* model;
    std::vector<GroupOf> groups;
    const char* common;
  };
  const std::vector<Case> cases{
      {"12 and 4 sequences",
       gpt,
       {{2, "dp: 2, micro_batch: 2, micro_batches: 3"}, {1, "micro_batch: 2, micro_batches: 2"}},
       ""},
      {"pipelines of two stages with a tied table",
       gpt,
       {{2, "pp: 2, micro_batch: 1, micro_batches: 10"},
        {2, "pp: 2, micro_batch: 2, micro_batches: 3"}},
       ""},
      {"four stages beside one",
       llama,
       {{4, "pp: 4, micro_batch: 1, micro_batches: 9"}, {1, "micro_batch: 7, micro_batches: 1"}},
       ""},
      {"tensor groups, two stages in one",
       llama,
       {{4, "dp: 2, micro_batch: 1, micro_batches: 6"},
        {4, "pp: 2, micro_batch: 2, micro_batches: 2"}},
       "tp: 2, sequence_parallel: true, "},
      {"ZeRO 2 and 3",
       llama,
       {{2, "dp: 2, zero: 2, micro_batch: 1, micro_batches: 5"},
        {2, "dp: 2, zero: 3, micro_batch: 1, micro_batches: 3"}},
       ""},
      {"ZeRO 0 and 1, recomputed otherwise",
       gpt,
       {{4, "dp: 4, zero: 1, recompute: full, micro_batch: 1, micro_batches: 3"},
        {2, "dp: 2, zero: 0, recompute: selective, micro_batch: 1, micro_batches: 2"}},
       "schedule: gpipe, "}};
  for (const Case& c : cases) {
    CAPTURE(c.what);
    const auto outcome = trained(replicated(c.model, c.groups, c.common), steps);
    check_loss(outcome.measured.loss, c.model);
    check_bytes(outcome);
  }
}

// Where a layer does not divide evenly over replicas or groups, bytes are right in the mean only.
TEST_CASE("three groups, and replicas that do not divide a layer, learn the same") {
  const auto outcome =
      trained(replicated(gpt, {{3, "dp: 3, zero: 1, micro_batch: 1, micro_batches: 3"},
                               {2, "dp: 2, micro_batch: 2, micro_batches: 1"},
                               {1, "micro_batch: 3, micro_batches: 1"}}),
              steps);
  check_loss(outcome.measured.loss, gpt);
  double sent = 0, said = 0;
  const std::vector<double> ranks{3, 2, 1};
  for (std::size_t p = 0; p < ranks.size(); ++p) {
    sent += outcome.measured.traffic[p].total().value * ranks[p];
    said += outcome.predicted.rank_traffic[p].total().value * ranks[p];
  }
  CHECK(sent == doctest::Approx(said).epsilon(1e-9));
}

TEST_CASE("gradients of groups are reduced behind the backward, also where they might overlap") {
  const std::vector<GroupOf> groups{{2, "dp: 2, micro_batch: 2, micro_batches: 3"},
                                    {2, "dp: 2, micro_batch: 1, micro_batches: 2"}};
  const auto outcome = trained(replicated(gpt, groups, "", true), steps);
  check_loss(outcome.measured.loss, gpt);
  check_bytes(outcome);
}

TEST_CASE("what the runtime cannot sum over groups is refused, with a remedy") {
  const auto refusal = [](const char* model, const std::string& quick, const std::string& slow) {
    const Scenario s = replicated(model, {{2, quick}, {2, slow}});
    const auto faults = runtime::unsupported(s.model, s.training, costmodel::resolve_plan(s));
    return faults.empty() ? std::string() : faults.front().key + ": " + faults.front().reason;
  };
  CHECK(refusal(llama, "tp: 2, micro_batches: 8", "pp: 2, micro_batches: 8") ==
        "replicas: the runtime sums gradients of equally wide tensor groups, and group 'g0' has tp "
        "2, group 'g1' tp 1");
  CHECK(refusal(gpt, "dp: 2, micro_batches: 4", "pp: 2, micro_batches: 8") ==
        "replicas: the tied embedding is on one stage in some groups and on two in others");
  CHECK(refusal(llama, "dp: 2, micro_batches: 4", "pp: 2, micro_batches: 8") == "");
}

TEST_CASE("emulated on a virtual clock, groups take the predicted time to the bit") {
  runtime::RunRequest request;
  request.backend = &runtime::backend_named("emulated");
  request.virtual_clock = true;
  request.scenario = replicated(
      llama, {{4, "pp: 4, micro_batch: 1, micro_batches: 9"}, {2, "pp: 2, micro_batches: 7"}});
  const auto result = runtime::run(request);
  REQUIRE(result);
  CHECK(result->measured.iteration == result->predicted.iteration);
  CHECK(result->measured.timeline.ranks == 6);
  REQUIRE(result->measured.stage_forward.size() == 6);
  for (std::size_t k = 0; k < 6; ++k) {
    CHECK(result->measured.stage_forward[k].value ==
          doctest::Approx(result->predicted.stage_forward[k].value).epsilon(1e-9));
    CHECK(result->measured.stage_backward[k].value ==
          doctest::Approx(result->predicted.stage_backward[k].value).epsilon(1e-9));
  }
}

}  // namespace replica_training_test
