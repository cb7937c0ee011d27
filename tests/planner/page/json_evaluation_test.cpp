#include "planner/page/json_evaluation.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/planner/support/pages.hpp"
#include "tests/sanitized.hpp"

namespace json_evaluation_test {

using pages::both;
using pages::Both;
using pages::check_evaluation;
using pages::has;
using program::Scratch;

TEST_CASE("evaluate, unlike stages and replicas have pages too") {
  const Scratch scratch;
  const Both plan = both("evaluate tiny-gpt-cpu", scratch);
  check_evaluation(plan.page, plan.json);
  const Both tight = both("evaluate gpt3-175b-selene", scratch, 3);
  CHECK(has(tight.page, "it does not fit"));
  const std::vector<std::string> mixtures{"llama-3-8b-a100-h100", "llama-3.2-1b-a100-h100"};
  for (const std::string& name : thinned(mixtures, 2)) {
    const Both mixed =
        both("plan " SHARDPLAN_SOURCE_DIR "/configs/scenarios/" + name + ".yaml", scratch);
    check_evaluation(mixed.page, mixed.json["plans"][0]);
    CHECK(has(mixed.page, "one DGX H100 and one DGX A100"));
  }
}

TEST_CASE("a peak in the optimizer's step is in no layer") {
  const Scratch scratch;
  const Both plan = both(
      "evaluate llama-3-8b --gpus 8xh100 --framework megatron-bridge "
      "--set plan={tp:\t1,pp:\t1,dp:\t8,zero:\t1,micro_batch:\t1,recompute:\tfull}",
      scratch);
  CHECK(plan.json["memory"]["peak_at"]["layer"].is_null());
  CHECK(has(plan.page, "in the optimizer's step: gradients in fp32 take "));
  CHECK_FALSE(has(plan.page, "the the "));
  CHECK_FALSE(has(plan.page, "kind null"));
}

TEST_CASE("communication that is hidden is hatched, and has a column; none where nothing is") {
  const Scratch scratch;
  const Both some = both(
      "evaluate llama-3-8b-a100-h100 --set cluster=dgx-h100 --set cluster.devices=16 "
      "--set training.stack=megatron-core-2025 --set training.overlap.overlap_grad_reduce=true "
      "--set plan={dp:\t16,micro_batch:\t1,zero:\t1}",
      scratch);
  CHECK(some.json["time"]["hidden"]["dp_comm_s"] > 0);
  check_evaluation(some.page, some.json);
  CHECK(has(some.page, "class=\"dp hatched\""));
  CHECK(has(some.page, ">hidden</th>"));
  const Both none = both("evaluate tiny-gpt-cpu --set plan={tp:\t1}", scratch);
  for (const auto& time : none.json["time"]["hidden"]) CHECK(time == 0);
  CHECK_FALSE(has(none.page, " hatched\""));
  CHECK_FALSE(has(none.page, ">hidden</th>"));
}

TEST_CASE("a plan for 16,384 devices has a page of less than 2 MB") {
  const Scratch scratch;
  const Both large = both(
      "evaluate gpt3-175b-selene --set cluster={base:\tmeta-grand-teton,devices:\t16384} "
      "--set plan={tp:\t8,pp:\t96,micro_batch:\t1} --set training.stack=megatron-core-2025 "
      "--set training.global_batch=1344 --set cluster.devices=16128",
      scratch);
  check_evaluation(large.page, large.json);
  CHECK(has(large.page, "of neighbouring stages the fullest is drawn"));
  CHECK(has(large.page, "data-rows=\"96\""));
}

}  // namespace json_evaluation_test
