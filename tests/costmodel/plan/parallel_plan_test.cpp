// The rules of plans, in words and without.
#include "costmodel/plan/parallel_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace parallel_plan_test {

using namespace costmodel;

namespace {

const ModelSpec model = fixtures::gpt(24, 1024, 16, 51200, 1024);

std::string first_key(const ParallelPlan& plan,
                      const TrainingSpec& training = fixtures::training(64, 1024)) {
  const auto found = violations(plan, model, fixtures::cluster(plan.devices()), training);
  return found.empty() ? "" : found.front().key;
}

}  // namespace

TEST_CASE("half of the layers recomputed is half of each stage's own") {
  const Recompute selective{Recomputation::selective, 0};
  StackMemory stack;
  CHECK(recompute_as_run(selective, stack) == selective);
  stack.selective_half = true;
  const Recompute full{Recomputation::full, 3};
  CHECK(recompute_as_run(full, stack) == full);
  const Recompute half = recompute_as_run(selective, stack);
  CHECK(half.granularity == Recomputation::full);
  CHECK(recomputed_layers(half, 28) == 14);
  CHECK(recomputed_layers(half, 5) == 2);
  CHECK(recomputed_layers(half, 1) == 1);
  CHECK(recomputed_layers(half, 0) == 0);
}

TEST_CASE("a stage's layers by kind are those of its own place in the model") {
  CHECK(layer_mix(model, 3, 5, {Recomputation::full, 2}) == LayerMix{{5}, {2}});
  CHECK(layer_mix(model, 3, 5, {Recomputation::none, 0}) == LayerMix{{5}, {5}});
  ModelSpec sparse = model;
  sparse.experts = 8;
  sparse.first_dense_layers = 1, sparse.moe_every = 2;  // layers 2, 4, 6, ... have experts
  CHECK(layer_mix(sparse, 3, 5, {Recomputation::full, 2}) == LayerMix{{3, 2}, {1, 1}});
  CHECK(layer_mix(sparse, 2, 5, {Recomputation::full, 0}) == LayerMix{{2, 3}, {2, 3}});
}

TEST_CASE("a stack may ask for a global batch that is a multiple of the pipeline size") {
  ParallelPlan plan;
  plan.pp = 3;
  TrainingSpec training = fixtures::training(64, 1024);
  CHECK(first_key(plan, training) == "");
  training.stack.offers.batch_by_pipeline = true;
  CHECK(first_key(plan, training) == "pp");
  training.global_batch = 63;
  CHECK(first_key(plan, training) == "");
}

TEST_CASE("each rule is broken alone, at its key") {
  ParallelPlan plan;
  CHECK(first_key(plan) == "");
  CHECK(violations(plan, model, fixtures::cluster(8), fixtures::training(64, 1024)).front().key ==
        "dp");
  plan.tp = 3;
  CHECK(first_key(plan) == "tp");
  plan = {};
  plan.sequence_parallel = true;
  CHECK(first_key(plan) == "sequence_parallel");
  plan.tp = 2;
  CHECK(first_key(plan) == "");
  CHECK(first_key(plan, fixtures::training(64, 1023)) == "sequence_parallel");
  plan = {};
  plan.micro_batch = 3;
  CHECK(first_key(plan) == "micro_batch");
  plan = {};
  plan.pp = 7;
  CHECK(first_key(plan) == "pp");
  plan = {};
  plan.pp = 2;
  plan.vpp = 2;
  CHECK(first_key(plan) == "schedule");
  plan.schedule = ScheduleKind::interleaved;
  CHECK(first_key(plan) == "vpp");  // two ranks interleave only with transfers beside computation
  TrainingSpec beside = fixtures::training(64, 1024);
  beside.overlap.pp_overlap = true;
  CHECK(first_key(plan, beside) == "");
  beside.global_batch = 3;
  CHECK(first_key(plan, beside) == "vpp");
  plan.vpp = 1;
  CHECK(first_key(plan) == "schedule");
  plan.vpp = 2;
  plan.pp = 1;
  CHECK(first_key(plan) == "vpp");
  plan = {};
  plan.pp = 2;
  plan.stage_layers = {10, 13};
  CHECK(first_key(plan) == "stage_layers");
  plan.stage_layers = {10, 14};
  CHECK(first_key(plan) == "");
  plan.stage_layers = {10, 10, 4};
  CHECK(first_key(plan) == "stage_layers");
  plan = {};
  plan.recompute = {Recomputation::selective, 2};
  CHECK(first_key(plan) == "recompute");
  plan.recompute = {Recomputation::full, 25};
  CHECK(first_key(plan) == "recompute");
  plan.recompute = {Recomputation::full, 24};
  CHECK(first_key(plan) == "");
  plan = {};
  plan.zero = 2;
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.max_zero = 1;
  CHECK(first_key(plan, training) == "zero");
}

TEST_CASE("what the stack does not offer") {
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.sequence_parallel = false;
  training.stack.offers.selective_recompute = false;
  training.stack.offers.interleaved = false;
  ParallelPlan plan;
  plan.tp = 2;
  plan.pp = 2;
  CHECK(first_key(plan, training) == "");
  plan.sequence_parallel = true;
  CHECK(first_key(plan, training) == "sequence_parallel");
  plan.sequence_parallel = false;
  plan.recompute.granularity = Recomputation::selective;
  CHECK(first_key(plan, training) == "recompute");
  plan.recompute.granularity = Recomputation::full;
  CHECK(first_key(plan, training) == "");
  plan.vpp = 2;
  plan.schedule = ScheduleKind::interleaved;
  CHECK(first_key(plan, training) == "vpp");
}

TEST_CASE("a stack whose ZeRO stage is lower with pipeline stages") {
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.max_zero_in_pipeline = 1;
  ParallelPlan plan;
  plan.zero = 3;
  CHECK(first_key(plan, training) == "");
  plan.pp = 2;
  CHECK(first_key(plan, training) == "zero");
  plan.zero = 1;
  CHECK(first_key(plan, training) == "");
}

TEST_CASE(
    "a stack of DDP or FSDP alone: no other parallelism, no ZeRO 1, all layers again or none") {
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.data_parallel_only = true;
  training.stack.offers.zero_one = false;
  training.stack.offers.partial_recompute = false;
  ParallelPlan plan;
  for (const int zero : {0, 2, 3}) {
    plan.zero = zero;
    CHECK(first_key(plan, training) == "");
  }
  plan.zero = 1;
  CHECK(first_key(plan, training) == "zero");
  plan = {};
  plan.tp = 2;
  CHECK(first_key(plan, training) == "tp");
  plan = {};
  plan.pp = 2;
  CHECK(first_key(plan, training) == "pp");
  plan = {};
  plan.recompute = {Recomputation::full, 0};
  CHECK(first_key(plan, training) == "");
  plan.recompute.layers = 3;
  CHECK(first_key(plan, training) == "recompute");
}

TEST_CASE("layers that do not divide: Megatron counts the loss, or both ends, as a layer") {
  ParallelPlan plan;
  const auto split = [&](std::int64_t layers, int p, int v = 1) {
    plan.pp = p;
    plan.vpp = v;
    const ModelSpec m = fixtures::gpt(layers, 64, 4, 512, 64);
    std::vector<int> counts;
    for (int k = 0; k < p * v; ++k) counts.push_back(layers_of(plan, m, k));
    return counts;
  };
  CHECK(split(24, 4) == std::vector<int>{6, 6, 6, 6});
  CHECK(split(126, 16) == std::vector<int>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});
  CHECK(split(23, 4) == std::vector<int>{6, 6, 6, 5});
  CHECK(split(22, 2, 4) == std::vector<int>{2, 3, 3, 3, 3, 3, 3, 2});
  CHECK(split(22, 8) == std::vector<int>{2, 3, 3, 3, 3, 3, 3, 2});
  const auto chunks = split(126, 16, 8);  // one layer a chunk, the first and the last chunk empty
  CHECK(chunks.front() == 0);
  CHECK(chunks.back() == 0);
  CHECK(std::count(chunks.begin(), chunks.end(), 1) == 126);
  CHECK(split(70, 12) == std::vector<int>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
  CHECK(split(78, 12) == std::vector<int>{6, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 5});
  CHECK(split(82, 12) == std::vector<int>{6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 6});
  CHECK(split(5, 4) == std::vector<int>{2, 1, 1, 1});
  for (std::int64_t layers = 1; layers <= 60; ++layers) {
    for (int p = 1; p <= 8; ++p) {
      for (int v = 1; v <= 3; ++v) {
        const auto counts = split(layers, p, v);
        const ModelSpec m = fixtures::gpt(layers, 64, 4, 512, 64);
        const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        CAPTURE(layers);
        CAPTURE(p);
        CAPTURE(v);
        CHECK((sum == layers) == (uneven_split(plan, m) != UnevenSplit::impossible));
        if (sum != layers) continue;
        for (std::size_t k = 0; k < counts.size(); ++k) {
          const bool end = k == 0 || k + 1 == counts.size();
          CHECK(counts[k] >=
                (v > 1 && end ? 0 : 1));  // an end chunk may hold no layer, no rank may
        }
        const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
        CHECK(*most - *least <= 2);
      }
    }
  }
}

TEST_CASE("layers that no count divides need a framework that partitions freely") {
  ParallelPlan plan;
  plan.pp = 16;
  const ModelSpec m = fixtures::gpt(79, 64, 4, 512, 64);
  const ClusterSpec cluster = fixtures::cluster(16);
  TrainingSpec training = fixtures::training(64, 1024);
  CHECK(uneven_split(plan, m) == UnevenSplit::loss);
  plan.pp = 8, plan.dp = 2;
  CHECK(uneven_split(plan, fixtures::gpt(75, 64, 4, 512, 64)) == UnevenSplit::balanced);
  const ModelSpec odd = fixtures::gpt(75, 64, 4, 512, 64);
  const auto found = violations(plan, odd, cluster, training);
  REQUIRE(found.size() == 1);
  CHECK(found.front().key == "pp");
  training.stack.offers.uneven_stages = true;
  CHECK(violations(plan, odd, cluster, training).empty());
}

TEST_CASE("equal shares, and the rest on the last stage") {
  CHECK(rest_on_last(61, 8) == std::vector<int>{8, 8, 8, 8, 8, 8, 8, 5});
  CHECK(rest_on_last(61, 4) == std::vector<int>{16, 16, 16, 13});
  CHECK(rest_on_last(9, 8) == std::vector<int>{2, 1, 1, 1, 1, 1, 1, 1});  // nothing would be left
  CHECK(rest_on_last(3, 4).empty());
  for (std::int64_t layers = 1; layers <= 40; ++layers) {
    for (std::int64_t stages = 1; stages <= layers; ++stages) {
      const auto list = rest_on_last(layers, stages);
      CHECK(std::accumulate(list.begin(), list.end(), std::int64_t{0}) == layers);
      CHECK(*std::min_element(list.begin(), list.end()) >= 1);
      CHECK(list.front() == ceil_div(layers, stages));
    }
  }
}

TEST_CASE("which schedules go with virtual stages, and which stacks have zero-bubble ones") {
  const ClusterSpec cluster = fixtures::cluster(16);
  TrainingSpec training = fixtures::training(64, 1024);
  training.stack.offers.zero_bubble = true;
  const auto faults = [&](ScheduleKind kind, int vpp) {
    ParallelPlan plan;
    plan.pp = 4, plan.dp = 4, plan.vpp = vpp, plan.schedule = kind;
    const auto found = violations(plan, model, cluster, training);
    return found.empty() ? std::string() : found.front().key + ": " + found.front().remedy;
  };
  CHECK(faults(ScheduleKind::zero_bubble_h1, 1).empty());
  CHECK(faults(ScheduleKind::zero_bubble_h2, 1).empty());
  CHECK(faults(ScheduleKind::zero_bubble_v, 2).empty());
  CHECK(faults(ScheduleKind::zero_bubble_h1, 2) ==
        "schedule: zero-bubble-h1 and -h2 go with vpp: 1");
  CHECK(faults(ScheduleKind::zero_bubble_v, 1) == "schedule: zero-bubble-v goes with vpp: 2");
  CHECK(faults(ScheduleKind::zero_bubble_v, 3) == "schedule: zero-bubble-v goes with vpp: 2");
  training.stack.offers.zero_bubble = false;
  CHECK(faults(ScheduleKind::zero_bubble_h1, 1).substr(0, 9) == "schedule:");
}

TEST_CASE("the verdict without words is the same: 5,000 plans at random") {
  fixtures::Random random(99);
  const ClusterSpec cluster = fixtures::cluster(16);
  const TrainingSpec training = fixtures::training(64, 1024);
  int valid = 0;
  for (int round = 0; round < 5000; ++round) {
    ParallelPlan plan;
    plan.tp = 1 << random.integer(0, 4);
    plan.pp = 1 << random.integer(0, 3);
    plan.dp =
        random.integer(0, 3) > 0 ? std::max<int>(1, 16 / plan.tp / plan.pp) : random.integer(1, 16);
    plan.vpp = random.integer(1, 3);
    plan.micro_batch = random.integer(1, 5);
    plan.sequence_parallel = random.integer(0, 1) == 1;
    plan.schedule = plan.vpp > 1 && random.integer(0, 4) > 0
                        ? ScheduleKind::interleaved
                        : static_cast<ScheduleKind>(random.integer(0, 7));
    plan.recompute = {static_cast<Recomputation>(random.integer(0, 2)), random.integer(0, 2)};
    plan.zero = random.integer(0, 3);
    const auto found = violations(plan, model, cluster, training);
    CHECK(is_valid(plan, model, cluster, training) == found.empty());
    for (const auto& violation : found) {
      CHECK_FALSE(violation.key.empty());
      CHECK_FALSE(violation.reason.empty());
      CHECK_FALSE(violation.remedy.empty());
    }
    valid += found.empty() ? 1 : 0;
  }
  CHECK(valid > 100);
}

TEST_CASE("layers of stages, padding, text") {
  ParallelPlan plan;
  plan.pp = 4;
  CHECK(layers_of(plan, model, 3) == 6);
  plan.stage_layers = {5, 6, 6, 7};
  CHECK(layers_of(plan, model, 3) == 7);
  CHECK(padded_vocab(50257, 1) == 50304);
  CHECK(padded_vocab(50257, 8) == 51200);
  CHECK(padded_vocab(51200, 8) == 51200);
  plan.tp = 8, plan.dp = 2, plan.zero = 1, plan.sequence_parallel = true,
  plan.recompute = {Recomputation::full, 3};
  const std::string text = to_string(plan);
  for (const auto* part : {"t 8", "p 4", "d 2", "1f1b", "sequence parallel", "recompute full", "3",
                           "ZeRO 1", "5+6x2+7"})
    CHECK(fixtures::contains(text, part));
  plan.schedule = ScheduleKind::interleaved, plan.choices.group = 8;
  CHECK(fixtures::contains(to_string(plan), "interleaved (groups of 8)"));
  plan.ep = 4, plan.experts.shared_overlap = true;
  CHECK(fixtures::contains(to_string(plan), "e 4 (under shared experts)"));
}

TEST_CASE("stages cut by cost: the output projection is worth layers") {
  ModelSpec m = fixtures::gpt(16, 2048, 32, 131072, 4096);
  m.gated_mlp = true, m.ffn_hidden = 8192;  // 67.1 M multiply-adds a layer, the projection 268.4 M
  CHECK(layers_by_cost(m, 2) == std::vector{11, 5});
  CHECK(layers_by_cost(m, 4) == std::vector{6, 5, 5, 0});
  for (const int stages : {1, 2, 4, 8, 16}) {
    const auto counts = layers_by_cost(m, stages);
    CHECK(std::accumulate(counts.begin(), counts.end(), 0) == 16);
    for (std::size_t k = 1; k + 1 < counts.size(); ++k) CHECK(counts[k] > 0);
  }
}

TEST_CASE("DeepSpeed with models of Transformers has no pipeline") {
  TrainingSpec training = fixtures::training(64, 1024);
  ParallelPlan plan;
  plan.pp = 2;
  CHECK(first_key(plan, training) == "");
  training.stack.offers.pipeline = false;
  CHECK(first_key(plan, training) == "pp");
  const auto on = [](const char* stack, const char* zero) {
    return scenarios::fault_of([&] {
      return scenarios::read(
          std::string("model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
                      "training: {global_batch: 8, sequence: 128, stack: ") +
          stack + "}\nplan: {pp: 2, zero: " + zero + "}\n");
    });
  };
  for (const char* zero : {"1", "2"})
    CHECK(fixtures::contains(on("deepspeed", zero), "stack deepspeed has no pipeline; set pp: 1"));
  CHECK(on("deepspeed-2021", "1") == "");
}

}  // namespace parallel_plan_test
