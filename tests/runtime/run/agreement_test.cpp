// Ranks that were started with different scenarios do not begin.
#include "runtime/run/agreement.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "runtime/ranks/thread_transport.hpp"

namespace agreement_test {

using runtime::RunFault;
using runtime::Statements;
using runtime::Transport;

namespace {

costmodel::Scenario scenario(const std::vector<std::string>& assignments) {
  const costmodel::ConfigPath path{{SHARDPLAN_SOURCE_DIR "/configs"}};
  return costmodel::load_scenario(costmodel::scenario_file("tiny-gpt-cpu", path), path,
                                  assignments);
}

runtime::RunRequest request(const std::vector<std::string>& assignments) {
  return {.scenario = scenario(assignments)};
}

Statements said_by(const runtime::RunRequest& request) {
  return runtime::statements(request, costmodel::resolve_plan(request.scenario));
}

Statements of(const std::vector<std::string>& assignments) { return said_by(request(assignments)); }

// What ends a run of four ranks whose last says `other`; "" when all begin.
std::string end_of(const Statements& other, std::int64_t wanted = 4) {
  try {
    runtime::run_ranks(4, {}, [&](Transport& transport) {
      runtime::require_agreement(transport, transport.rank() == 3 ? other : of({}), wanted,
                                 "t 1 · p 2");
    });
  } catch (const RunFault& fault) {
    return fault.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks with one scenario begin") { CHECK(end_of(of({})) == ""); }

TEST_CASE("a rank that runs something else is named, with what differs") {
  CHECK(end_of(of({"plan.tp=2", "plan.dp=1"})) ==
        "rank 3 runs plan t 2 · p 2 · d 1 · b 2 · 1f1b · recompute none · ZeRO 0, rank 0 runs plan "
        "t 1 · p 2 · d 2 · b 2 · 1f1b · recompute none · ZeRO 0: start all ranks with the same "
        "scenario and flags");
  auto other = request({});
  other.seed = 2;
  CHECK(end_of(said_by(other)) ==
        "rank 3 runs seed 2, rank 0 runs seed 1: start all ranks with the same scenario and flags");
  for (const char* difference :
       {"plan.micro_batch=1", "plan.recompute=full", "training.sequence=64",
        "training.global_batch=8", "training.overlap.overlap_grad_reduce=true",
        "training.stack=megatron-2021", "model={base: gpt-tiny, hidden: 64}",
        "model={base: gpt-tiny, layers: 8}", "model={base: gpt-tiny, dropout: 0.3}",
        "model={base: gpt-tiny, vocab: 1024}", "model={base: gpt-tiny, tie_embeddings: false}"}) {
    CAPTURE(difference);
    CHECK(end_of(of({difference})).starts_with("rank 3 runs "));
  }
}

TEST_CASE("a rank of another backend or other arithmetic is named, too") {
  const std::string remedy = ": start all ranks with the same scenario and flags";
  auto other = request({});
  other.backend = &runtime::backend_named("cuda");
  CHECK(end_of(said_by(other)) == "rank 3 runs backend cuda, rank 0 runs backend threads" + remedy);
  other = request({});
  other.tf32 = true;
  CHECK(end_of(said_by(other)) ==
        "rank 3 runs products in TF32, rank 0 runs products without TF32" + remedy);
  other = request({});
  other.scenario.training.precision = costmodel::Precision::fp16;
  CHECK(end_of(said_by(other)) ==
        "rank 3 runs precision fp16, rank 0 runs precision fp32" + remedy);
  other = request({});
  other.iterations = 9;
  CHECK(end_of(said_by(other)) == "rank 3 runs iterations 9, rank 0 runs iterations 3" + remedy);
}

TEST_CASE("a world of another size than the plan's is told both and the remedy") {
  CHECK(end_of(of({}), 6) ==
        "the plan t 1 · p 2 has 6 ranks, and 4 were started: start it by mpirun -np 6, or change "
        "the plan");
}

}  // namespace agreement_test
