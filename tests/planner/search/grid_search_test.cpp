#include "planner/search/grid_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/search/search_space.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/search_both_ways.hpp"
#include "tests/sanitized.hpp"

namespace grid_search_test {

using costmodel::Evaluator;
using costmodel::Scenario;
using scenarios::read;

namespace {

std::string long_context(int sequence, const std::string& rest = "") {
  return "model: {kind: llama, layers: 8, hidden: 1024, heads: 16, kv_heads: 4, ffn_hidden: 4096, "
         "vocab: 32000}\ncluster: {base: dgx-h100, devices: 16}\n"
         "training: {global_batch: 8, sequence: " +
         std::to_string(sequence) + ", stack: megatron-core-2026}\n" + rest;
}

}  // namespace

namespace {

// Three stages and 8 micro-batches a replica, which interleave in groups of 4 or 8 alone.
std::string in_threes(const char* stack, const std::string& rest) {
  return std::string(
             "model: {kind: gpt, layers: 12, hidden: 1024, heads: 16, vocab: 32000}\n"
             "cluster: {base: dgx-h100, devices: 3}\ntraining: {global_batch: 8, sequence: "
             "1024, stack: ") +
         stack + "}\nplan: {tp: 1, pp: 3, micro_batch: 1" + rest + "}\n";
}

}  // namespace

TEST_CASE("groups of micro-batches grow by half, and each leaves no rest") {
  const Scenario s = scenarios::read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\n"
      "training: {global_batch: 48, sequence: 4096, stack: megatron-core-2026}\n");
  costmodel::ParallelPlan plan;
  plan.pp = 4;
  plan.vpp = 2;
  plan.dp = 2;
  plan.schedule = costmodel::ScheduleKind::interleaved;
  CHECK(planner::micro_batch_groups_offered(s, plan) == std::vector{0, 6, 12, 24});
  plan.pp = 5;
  CHECK(planner::micro_batch_groups_offered(s, plan) == std::vector{6, 8, 12, 24});
}

TEST_CASE("what of DeepEP and HybridEP a framework has is tried") {
  const auto first = [](const std::string& stack) {
    const Scenario s = scenarios::read(
        "model: qwen3-30b-a3b\ncluster: {base: dgx-h100, devices: 16}\n"
        "training: {global_batch: 64, sequence: 4096, stack: " +
        stack + "}\n");
    return planner::recipes_offered(s, 8, 1, 1).front();
  };
  CHECK(first("nemo-2025").dispatcher == costmodel::Dispatcher::deepep);
  CHECK(first("nemo-2025").multiprocessors == 20);
  CHECK(first("automodel").dispatcher == costmodel::Dispatcher::deepep);
  CHECK(first("torchtitan").dispatcher == costmodel::Dispatcher::deepep);
  CHECK(first("megatron-bridge").dispatcher == costmodel::Dispatcher::hybridep);
  CHECK(first("torchtitan-2024").dispatcher == costmodel::Dispatcher::alltoall);
}

TEST_CASE("interleaved pipelines are searched over groups of micro-batches, where there are any") {
  const auto offered = [](const Scenario& s, const costmodel::ParallelPlan& plan) {
    const auto groups = planner::micro_batch_groups_offered(s, plan);
    return std::set<int>(groups.begin(), groups.end());
  };
  const auto groups_of = [&offered](const Scenario& s) {
    std::set<int> groups;
    for (const auto& family : planner::enumerate(s).families)
      if (family.plan.vpp > 1) groups.merge(offered(s, family.plan));
    return groups;
  };
  const Scenario s = read(in_threes("megatron-core-2026", ""));
  CHECK(groups_of(s) == std::set{4, 8});
  CHECK(groups_of(read(in_threes("megatron-2022", ""))).empty());  // has none
  CHECK(groups_of(read(in_threes("megatron-core-2026", ", micro_batch_group: 5"))) == std::set{5});
  const auto both = both_ways::search(s);
  REQUIRE_FALSE(both.all.plans.empty());
  CHECK(both.all.plans.front().plan.vpp > 1);
  // No group that is written gives a faster plan than the search's.
  for (const int group : {3, 4, 5, 8}) {
    Scenario fixed = s;
    fixed.plan.micro_batch_group = group;
    Evaluator evaluator(fixed.model, fixed.cluster, fixed.training);
    const auto found = planner::search(fixed, evaluator).plans;
    if (found.empty()) continue;
    CHECK(both.all.plans.front().iteration.value <= found.front().iteration.value * (1 + 1e-3));
  }
}

TEST_CASE(
    "shared experts compute during the exchange where the stack has it and nothing is written") {
  const auto overlaps_of = [](const char* stack, const char* rest) {
    std::set<std::pair<bool, bool>> found;
    const Scenario s =
        read(std::string("model: {base: deepseek-v2-lite, layers: 4}\ncluster: {base: dgx-h100, "
                         "devices: 8}\ntraining: {global_batch: 64, sequence: 1024, stack: ") +
             stack + "}\nplan: {pp: 1, ep: 8" + rest + "}\n");
    for (const auto& family : planner::enumerate(s).families)
      found.emplace(family.plan.experts.overlap, family.plan.experts.shared_overlap);
    return found;
  };
  using Found = std::set<std::pair<bool, bool>>;
  CHECK(overlaps_of("megatron-core-2026", "") == Found{{false, true}, {true, false}});
  // Megatron-LM refuses both together.
  CHECK(overlaps_of("megatron-core-2026", ", shared_expert_overlap: true") == Found{{false, true}});
  CHECK(overlaps_of("megatron-core-2026", ", shared_expert_overlap: false") ==
        Found{{false, false}, {true, false}});
  CHECK(overlaps_of("torchtitan", "") == Found{{false, false}});
}

TEST_CASE("long sequences are searched over context parallelism, and that is proved too") {
  for (const int sequence : thinned(std::vector{65536, 16384, 262144}, 3)) {
    for (const char* margin : {"0", "0.7"}) {
      const Scenario s =
          read(long_context(sequence, std::string("search: {memory_margin: ") + margin + "}"));
      both_ways::search(s);
    }
  }
  const auto most = [](const Scenario& s) {
    int cp = 1;
    bool all_to_all = false;
    for (const auto& family : planner::enumerate(s).families) {
      cp = std::max(cp, family.plan.cp);
      all_to_all |= family.plan.cp_comm == costmodel::ContextExchange::a2a;
    }
    CHECK(all_to_all == (cp > 1 && !s.plan.cp_comm));
    return cp;
  };
  CHECK(most(read(long_context(2048))) == 1);
  CHECK(most(read(long_context(4096))) == 2);
  CHECK(most(read(long_context(8192))) == 4);
  CHECK(most(read(long_context(262144))) == 16);
  CHECK(most(read(long_context(262144, "plan: {cp_comm: p2p}"))) == 16);
  CHECK(most(read(long_context(262144, "search: {max_cp: 4}"))) == 4);
  CHECK(most(read(long_context(4096, "search: {max_cp: 4}"))) == 4);
  CHECK(most(read(long_context(262144, "plan: {cp: 1}"))) == 1);
  // Eight sequences of 262,144 tokens: eight ranks by sequence leave half the devices idle.
  const Scenario s = read(long_context(262144));
  Evaluator evaluator(s.model, s.cluster, s.training);
  CHECK(planner::search(s, evaluator).plans.front().plan.cp > 1);
}

TEST_CASE(
    "with every ZeRO stage too, and a plan's time is the same whatever was priced before it") {
  for (const char* stack : {"torchtitan", "megatron-bridge", "llm-foundry", "deepspeed-2021"}) {
    for (const char* batch : thinned(std::vector{"16", "64"}, 2)) {
      const std::string yaml =
          std::string(
              "model: {kind: llama, layers: 8, hidden: 2048, heads: 16, ffn_hidden: 5504, "
              "vocab: 32000}\ncluster: {base: dgx-h100, devices: 16}\n"
              "training: {global_batch: ") +
          batch + ", sequence: 4096, precision: bf16, stack: " + stack + "}\nsearch: {top: 5}\n";
      CAPTURE(yaml);
      const Scenario s = read(yaml);
      const auto [pruned, all] = both_ways::search(s);
      REQUIRE_FALSE(pruned.plans.empty());
      for (const auto& found : pruned.plans) {
        Evaluator alone(s.model, s.cluster, s.training);
        CHECK(alone.iteration_time(found.plan) == found.iteration);
      }
    }
  }
}

TEST_CASE("the search for encoder-decoder models is proved too, and so are their bounds") {
  int checked = 0;
  for (const char* tokens : {"2048, decoder_sequence: 256", "256, decoder_sequence: 2048"}) {
    for (const char* stack :
         thinned(std::vector{"megatron-core-2025", "megatron-2021", "deepspeed-2021"}, 3)) {
      for (const char* margin : {"0", "0.9"}) {
        const Scenario s = read(
            std::string("model: {kind: t5, encoder_layers: 9, decoder_layers: 7, hidden: 2048, "
                        "heads: 16, ffn_hidden: 8192, vocab: 32128}\n"
                        "cluster: {base: dgx-a100, devices: 16}\n"
                        "training: {global_batch: 32, precision: fp16, sequence: ") +
            tokens + ", stack: " + stack + "}\nsearch: {memory_margin: " + margin + "}\n");
        both_ways::search(s);
        Evaluator evaluator(s.model, s.cluster, s.training);
        const auto space = planner::enumerate(s);
        for (std::size_t f = 0; f < space.families.size(); f += 5) {
          CHECK(space.families[f].plan.vpp == 1);
          for (const auto& plan : planner::members(space.families[f], s)) {
            const auto bound = evaluator.cost(plan).bound.iteration;
            CHECK(bound.value <= evaluator.iteration_time(plan).value * (1 + 1e-9));
            ++checked;
          }
        }
      }
    }
  }
  CHECK(checked > (sanitized ? 500 : 4000));
}

TEST_CASE("experts are dealt out by the search, and that is proved too") {
  const std::string head =
      "model: {kind: moe, layers: 8, hidden: 1024, heads: 16, kv_heads: 4, experts: 8, top_k: 2, "
      "expert_ffn_hidden: 2048, ffn_hidden: 4096, vocab: 32000, first_dense_layers: ";
  const std::string tail =
      "}\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 32, sequence: 8192, stack: megatron-core-2026}\n";
  for (const char* dense : thinned(std::vector{"1", "0"}, 2)) {
    for (const char* limit : {"search: {memory_margin: 0}", "search: {memory_margin: 0.8}",
                              "plan: {ep: 4}", "plan: {tp: 2, etp: 2}"}) {
      std::string yaml = head;
      yaml.append(dense).append(tail).append(limit);
      CAPTURE(yaml);
      const Scenario s = read(yaml);
      const auto pruned = both_ways::search(s).pruned;
      REQUIRE_FALSE(pruned.plans.empty());
      for (const auto& found : pruned.plans) {
        CHECK((!s.plan.ep || found.plan.ep == 4));
        CHECK((!s.plan.etp || found.plan.etp == 2));
      }
    }
  }
  int most = 0;
  for (const auto& family :
       planner::enumerate(read(head + "0" + tail + "search: {max_ep: 4}")).families)
    most = std::max(most, family.plan.ep);
  CHECK(most == 4);
}

TEST_CASE("the search tries the recipes of experts that the scenario leaves open") {
  const std::string head =
      "model: deepseek-v2-lite\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 4096, stack: ";
  const auto space = [&](const std::string& stack, const std::string& plan) {
    return planner::enumerate(read(head + stack + "}\nplan: {" + plan + "}\n")).families;
  };
  const auto count = [](const std::vector<planner::Family>& families, auto chosen) {
    return std::count_if(families.begin(), families.end(),
                         [&](const auto& family) { return chosen(family.plan); });
  };
  using costmodel::ParallelPlan;
  const auto once = [](const ParallelPlan& p) { return sends_once_a_rank(p.experts.dispatcher); };
  const auto beside = [](const ParallelPlan& p) { return p.experts.overlap; };
  const auto open = space("megatron-core-2026", "ep: 8");
  CHECK(count(open, once) == static_cast<std::int64_t>(open.size()));
  CHECK(count(open, beside) > 0);
  CHECK(count(open, beside) < static_cast<std::int64_t>(open.size()));
  // In a pipeline the exchange runs beside another chunk, so there must be one.
  CHECK(count(open, [](const ParallelPlan& p) {
          return p.experts.overlap && p.pp > 1 && p.vpp == 1;
        }) == 0);
  CHECK(count(space("megatron-core-2024", "ep: 8"), once) == 0);  // older than both
  CHECK(count(space("megatron-core-2026", "ep: 8, dispatcher: alltoall"), once) == 0);
  CHECK(count(space("megatron-core-2026", "ep: 8, expert_overlap: false"), beside) == 0);
  CHECK(count(space("megatron-core-2026", "ep: 1"), beside) == 0);
  // Members with the exchange beside computation never recompute whole layers.
  const Scenario s = read(head + "megatron-core-2026}\nplan: {ep: 8}\n");
  bool modules = false;
  for (const auto& family : open) {
    for (const auto& plan : planner::members(family, s)) {
      CHECK(
          (!plan.experts.overlap || plan.recompute.granularity != costmodel::Recomputation::full));
      modules = modules || plan.recompute.modules != 0;
    }
  }
  CHECK(modules);
}

TEST_CASE("every plan of the space is valid, and no plan stands in it twice") {
  const Scenario s = read(
      "model: gpt3-1.3b\ncluster: {base: selene, devices: 16}\n"
      "training: {global_batch: 32, sequence: 1024, stack: megatron-core-2026}\n");
  std::vector<costmodel::ParallelPlan> plans;
  for (const auto& family : planner::enumerate(s).families) {
    for (const auto& member : planner::members(family, s)) {
      for (const int group : planner::micro_batch_groups_offered(s, member)) {
        plans.push_back(member);
        plans.back().choices.group = group;
      }
    }
  }
  CHECK(plans.size() == planner::enumerate(s).configurations);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    CAPTURE(to_string(plans[i]));
    REQUIRE(violations(plans[i], s.model, s.cluster, s.training).empty());
    const std::size_t first = sanitized && i > 100 ? i - 100 : 0;  // families are consecutive
    for (std::size_t j = first; j < i; ++j) REQUIRE_FALSE(plans[i] == plans[j]);
  }
}

TEST_CASE(
    "layers that do not divide leave a rest on the last stage, where the framework has that") {
  const auto layouts = [](const std::string& stack) {
    std::set<std::vector<int>> found;
    const Scenario s = read(
        "model: {base: gpt3-1.3b, layers: 61}\ncluster: {base: selene, devices: 16}\n"
        "training: {global_batch: 32, sequence: 1024, stack: " +
        stack + "}\n");
    for (const auto& family : planner::enumerate(s).families)
      for (const auto& plan : planner::members(family, s)) found.insert(plan.stage_layers);
    found.erase(std::vector<int>());
    return found;
  };
  std::vector<int> chunks(16, 4);
  chunks.back() = 1;
  const auto found = layouts("megatron-core-2026");
  CHECK(found.contains({8, 8, 8, 8, 8, 8, 8, 5}));
  CHECK(found.contains(chunks));  // of 16 ranks, of 8 with two each, of 4 with four
  CHECK_FALSE(found.contains({16, 16, 16, 12}));
  CHECK(layouts("megatron-2021").empty());
}

TEST_CASE("keys of the scenario's plan are fixed; auto frees them") {
  const std::string head =
      "model: gpt3-6.7b\ncluster: {base: selene, devices: 32}\n"
      "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n";
  const Scenario fixed =
      read(head + "plan: {tp: 2, zero: 1, micro_batch: auto, recompute: full}\n");
  for (const auto& family : planner::enumerate(fixed).families) {
    for (const auto& plan : planner::members(family, fixed)) {
      REQUIRE(plan.tp == 2);
      REQUIRE(plan.zero == 1);
      REQUIRE(plan.recompute == costmodel::Recompute{costmodel::Recomputation::full, 0});
    }
  }
  const Scenario open = read(head + "plan: {tp: auto}\n");
  CHECK(planner::enumerate(open).configurations == planner::enumerate(read(head)).configurations);
  CHECK(planner::enumerate(open).configurations > planner::enumerate(fixed).configurations);
}

TEST_CASE("groups of a hybrid sharding are tried where the plan asks, and win between slow nodes") {
  const std::string base =
      "model: llama-3-8b\n"
      "cluster: {base: dgx-h100, devices: 32}\n"
      "training: {global_batch: 256, sequence: 2048, precision: bf16, stack: torchtitan}\n";
  // Where its recipes shard within a node, so does the search, and over all ranks.
  std::set<int> usual;
  for (const auto& family :
       planner::enumerate(read("model: llama-3-8b\ncluster: {base: dgx-h100, devices: 32}\n"
                               "training: {global_batch: 256, sequence: 2048, stack: internevo}\n"
                               "plan: {tp: 1, pp: 1}\n"))
           .families)
    usual.insert(family.plan.dp_replicate);
  CHECK(usual == std::set{1, 4});
  const auto groups = [&](const std::string& more) {
    std::set<int> all;
    for (const auto& family :
         planner::enumerate(read(base + "plan: {tp: 1, pp: 1, cp: 1, zero: 3" + more + "}\n"))
             .families)
      all.insert(family.plan.dp_replicate);
    return all;
  };
  CHECK(groups("") == std::set{1});
  CHECK(groups(", dp_replicate: 4") == std::set{4});
  CHECK(groups(", dp_replicate: auto") == std::set{1, 2, 4, 8, 16});
  const Scenario context =
      read(base + "plan: {tp: 1, pp: 1, cp: 2, zero: 3, dp_replicate: auto}\n");
  std::set<int> beside;
  for (const auto& family : planner::enumerate(context).families)
    beside.insert(family.plan.dp_replicate);
  CHECK(beside == std::set{1, 2, 4, 8, 16});  // of 32 ranks each has shards on two at least
  const Scenario quantised = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 32}\n"
      "training: {global_batch: 256, sequence: 2048, precision: bf16, stack: deepspeed-2021}\n"
      "plan: {zero_hpz_partition_size: 8}\n");
  const auto families = planner::enumerate(quantised).families;
  REQUIRE_FALSE(families.empty());
  for (const auto& family : families) {
    for (const auto& member : planner::members(family, quantised)) {
      CHECK(member.zero == 3);
      CHECK(member.zero_plus_plus.partition == 8);
    }
  }
}

TEST_CASE("of a stack of DDP or FSDP alone such plans are tried and no others") {
  const Scenario s = read(
      "model: llama-2-13b\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 64, sequence: 2048, precision: bf16, stack: peft}\n");
  std::set<int> zero;
  std::set<costmodel::Recomputation> recompute;
  const auto families = planner::enumerate(s).families;
  REQUIRE_FALSE(families.empty());
  for (const auto& family : families) {
    for (const auto& plan : planner::members(family, s)) {
      CHECK(plan.dp == 8);
      CHECK(plan.recompute.layers == 0);
      CHECK(is_valid(plan, s.model, s.cluster, s.training));
      zero.insert(plan.zero);
      recompute.insert(plan.recompute.granularity);
    }
  }
  CHECK(zero == std::set{0, 2, 3});
  CHECK(recompute.contains(costmodel::Recomputation::none));
  CHECK(recompute.contains(costmodel::Recomputation::full));
}

TEST_CASE("zero-bubble schedules are tried where the stack has them, or the scenario asks") {
  const auto tried = [](const std::string& stack, const std::string& rest) {
    const Scenario s = read(
        "model: {kind: gpt, layers: 32, hidden: 2048, heads: 16}\n"
        "cluster: {base: zero-bubble-a100, devices: 8}\n"
        "training: {global_batch: 64, sequence: 1024, stack: " +
        stack + "}\n" + rest);
    std::set<costmodel::ScheduleKind> kinds;
    for (const auto& family : planner::enumerate(s).families) {
      kinds.insert(family.plan.schedule);
      if (splits_backward(family.plan.schedule)) CHECK(family.plan.pp > 1);
    }
    return kinds;
  };
  using costmodel::ScheduleKind;
  CHECK(tried("megatron-core-2026", "") ==
        std::set{ScheduleKind::one_f_one_b, ScheduleKind::interleaved});
  CHECK(tried("zero-bubble-fork", "") ==
        std::set{ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zero_bubble_h1,
                 ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_v});
  CHECK(tried("zero-bubble-fork", "plan: {schedule: zero-bubble-v}\n") ==
        std::set{ScheduleKind::zero_bubble_v});
  CHECK(tried("zero-bubble-fork", "search: {schedules: [1f1b, zero-bubble-h1]}\n") ==
        std::set{ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble_h1});
}

TEST_CASE(
    "a plan that fits in the order of its split backward is found, and no limit rules it out") {
  const Scenario s = read(
      "model: {kind: llama, layers: 7, hidden: 4096, heads: 16, kv_heads: 2, ffn_hidden: 16384}\n"
      "cluster: {base: aws-p5, devices: 3}\n"
      "training: {global_batch: 8, sequence: 8192, stack: zero-bubble-fork}\n"
      "plan: {micro_batch: 2}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const auto limit = planner::memory_limit(s);
  costmodel::ParallelPlan plan = planner::search(s, evaluator).plans.front().plan;
  const costmodel::Seconds best = evaluator.iteration_time(plan);
  for (const auto schedule :
       {costmodel::ScheduleKind::zero_bubble_h1, costmodel::ScheduleKind::zero_bubble_h2}) {
    plan.schedule = schedule;
    plan.recompute = {};
    const auto e = evaluator.estimate(plan);
    REQUIRE(e.peak <= limit);
    CHECK(evaluator.cost(plan).peak > limit);
    CHECK(evaluator.cost_within(plan, limit).peak == e.peak);
    CHECK(best <= e.iteration);
  }
  both_ways::search(s);
}

TEST_CASE("a search that is stopped has the best of what it tried, and no bound") {
  const Scenario s = read(
      "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
      "training: {global_batch: 64, sequence: 2048, stack: megatron-core-2026}\n");
  Evaluator evaluator(s.model, s.cluster, s.training);
  int all = 0;
  const auto whole = planner::search(s, evaluator, [&] { return ++all < 0; });
  CHECK_FALSE(whole.expired);
  REQUIRE_FALSE(whole.plans.empty());
  CHECK(whole.plans.front().iteration == planner::search(s, evaluator).plans.front().iteration);
  bool found = false;
  for (int left = 1; left <= all; left += 1 + left / 2) {
    int asked = 0;
    const auto part = planner::search(s, evaluator, [&] { return ++asked > all - left; });
    CHECK(part.expired);
    CHECK(part.lower_bound == costmodel::Seconds());
    CHECK(part.statistics.configurations == whole.statistics.configurations);
    CHECK(part.statistics.simulated <= whole.statistics.simulated);
    CHECK(part.statistics.simulated + part.statistics.pruned <= part.statistics.feasible);
    CHECK(part.plans.size() <= part.statistics.simulated);
    for (const auto& plan : part.plans) {
      CHECK(plan.peak <= planner::memory_limit(s));
      CHECK(plan.iteration >= whole.plans.front().iteration);
    }
    found = found || !part.plans.empty();
  }
  CHECK(found);
}

}  // namespace grid_search_test
