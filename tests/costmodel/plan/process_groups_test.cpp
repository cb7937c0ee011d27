// Which ranks form which groups, held against two independent statements of Megatron-LM's own.
#include "costmodel/plan/process_groups.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "costmodel/plan/mesh.hpp"

namespace process_groups_test {

using namespace costmodel;

namespace {

using Ranks = std::vector<std::int64_t>;
using Lists = std::vector<Ranks>;

ParallelPlan sizes(int tp, int pp, int dp, int cp = 1, int ep = 1, int etp = 0) {
  ParallelPlan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  plan.cp = cp;
  plan.ep = ep;
  plan.etp = etp > 0 ? etp : tp;
  return plan;
}

const Lists& lists_of(const std::vector<ProcessGroups>& all, const std::string& kind) {
  const auto at = std::ranges::find(all, kind, &ProcessGroups::kind);
  REQUIRE(at != all.end());
  return at->groups;
}

// The masked-rank algorithm as parallel_state.py documents it, over axes as a list of sizes: a rank
// is the sum of coordinate x stride, strides are running products; group g takes its coordinates on
// the axes left out from g, member k its own on the others from k, the first axis fastest.
Lists masked(const std::vector<int>& axis_sizes, const std::vector<bool>& mask) {
  std::int64_t world = 1, size = 1;
  std::vector<std::int64_t> strides;
  for (std::size_t i = 0; i < axis_sizes.size(); ++i) {
    strides.push_back(world);
    world *= axis_sizes[i];
    if (mask[i]) size *= axis_sizes[i];
  }
  const auto place = [&](std::int64_t index, bool within) {
    std::int64_t rank = 0;
    for (std::size_t i = 0; i < axis_sizes.size(); ++i) {
      if (mask[i] != within) continue;
      rank += index % axis_sizes[i] * strides[i];
      index /= axis_sizes[i];
    }
    return rank;
  };
  Lists lists;
  for (std::int64_t g = 0; g < world / size; ++g) {
    lists.emplace_back();
    for (std::int64_t k = 0; k < size; ++k)
      lists.back().push_back(place(g, false) + place(k, true));
  }
  return lists;
}

// RankGenerator.get_ranks: `token` names the axes that vary, as "tp-dp".
Lists generated(const std::map<std::string, int>& named, const std::string& order,
                const std::string& token) {
  std::vector<int> ordered;
  std::vector<bool> mask;
  const auto holds = [](const std::string& words, const std::string& word) {
    return ("-" + words + "-").find("-" + word + "-") != std::string::npos;
  };
  for (std::size_t from = 0; from < order.size(); from += 3) {
    const std::string name = order.substr(from, 2);
    ordered.push_back(named.at(name));
    mask.push_back(holds(token, name));
  }
  return masked(ordered, mask);
}

}  // namespace

TEST_CASE("the example of initialize_model_parallel: 16 GPUs, tensor 2, pipeline 4") {
  const auto all = process_groups(sizes(2, 4, 2), RankLayout::megatron);
  CHECK(lists_of(all, "data") ==
        Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(lists_of(all, "tensor") ==
        Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(lists_of(all, "pipeline") ==
        Lists{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  CHECK(lists_of(all, "embedding") == Lists{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
  CHECK(lists_of(all, "position-embedding") == Lists{{0}, {1}, {2}, {3}});
}

TEST_CASE("its example of context parallelism: 8 GPUs, tensor 4, context 2") {
  CHECK(lists_of(process_groups(sizes(4, 1, 1, 2), RankLayout::megatron), "context") ==
        Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

// Neighbours share the shards, as Megatron-LM cuts its data-parallel group into instances.
TEST_CASE("hybrid sharding: 16 GPUs, tensor 2, two groups of four data-parallel ranks") {
  ParallelPlan plan = sizes(2, 1, 8);
  plan.zero = 3;
  plan.dp_replicate = 2;
  const auto all = process_groups(plan, RankLayout::megatron);
  CHECK(lists_of(all, "shard") ==
        Lists{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}});
  CHECK(lists_of(all, "replicate") ==
        Lists{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}});
  plan.rank_order = "tp-dp-ep-cp-pp";
  CHECK(lists_of(process_groups(plan, RankLayout::megatron), "shard").front() == Ranks{0, 2, 4, 6});
  plan = sizes(1, 2, 4, 2);
  plan.zero = 1;
  plan.dp_replicate = 2;  // context ranks are in the group, pipeline ranks are not
  CHECK(lists_of(process_groups(plan, RankLayout::megatron), "shard").front() == Ranks{0, 1, 2, 3});
  CHECK(lists_of(process_groups(plan, RankLayout::megatron), "replicate").front() == Ranks{0, 4});
}

TEST_CASE(
    "hybrid sharding of experts: their shards are over the ranks of a group with the same ones") {
  ParallelPlan plan = sizes(1, 1, 8);
  plan.ep = 2;
  plan.zero = 3;
  plan.dp_replicate = 2;
  const auto all = process_groups(plan, RankLayout::megatron);
  CHECK(lists_of(all, "expert-shard") == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(lists_of(all, "expert-replicate") == Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("the default order as nested loops") {
  // Megatron-LM before its RankGenerator: ranks of a stage are contiguous, tensor groups within.
  for (const auto& [t, p, d] : {std::tuple{2, 4, 2}, {8, 2, 3}, {1, 5, 4}, {3, 1, 2}, {4, 4, 1}}) {
    Lists tensor, pipeline, data;
    const int world = t * p * d, stage = world / p;
    for (int first = 0; first < world; first += t) {
      tensor.emplace_back();
      for (int k = 0; k < t; ++k) tensor.back().push_back(first + k);
    }
    for (int first = 0; first < stage; ++first) {
      pipeline.emplace_back();
      for (int k = 0; k < p; ++k) pipeline.back().push_back(first + k * stage);
    }
    for (int s = 0; s < p; ++s) {
      for (int j = 0; j < t; ++j) {
        data.emplace_back();
        for (int rank = s * stage + j; rank < (s + 1) * stage; rank += t)
          data.back().push_back(rank);
      }
    }
    const auto all = process_groups(sizes(t, p, d), RankLayout::megatron);
    CHECK(lists_of(all, "tensor") == tensor);
    CHECK(lists_of(all, "pipeline") == pipeline);
    CHECK(lists_of(all, "data") == data);
  }
}

TEST_CASE("200 random grids: the groups are those of the masked-rank algorithm") {
  std::mt19937 random(23);
  const auto draw = [&](int most) { return static_cast<int>(random() % most) + 1; };
  int seen = 0, with_experts = 0, refused = 0;
  while (seen < 200) {
    ParallelPlan plan = sizes(draw(4), draw(4), draw(6), draw(3), draw(4), draw(4));
    std::vector<std::string> axes{"tp", "cp", "ep", "dp", "pp"};
    if (seen % 2 == 1) std::shuffle(axes.begin(), axes.end(), random);
    plan.rank_order = axes[0] + "-" + axes[1] + "-" + axes[2] + "-" + axes[3] + "-" + axes[4];
    const int stage = plan.tp * plan.cp * plan.dp;
    const std::map<std::string, int> dense{
        {"tp", plan.tp}, {"cp", plan.cp}, {"ep", 1}, {"dp", plan.dp}, {"pp", plan.pp}};
    const bool divides = stage % (plan.ep * plan.etp) == 0;
    std::map<std::string, int> experts{{"tp", plan.etp},
                                       {"cp", 1},
                                       {"ep", plan.ep},
                                       {"dp", divides ? stage / (plan.ep * plan.etp) : 1},
                                       {"pp", plan.pp}};
    // parallel_state.py asserts that both grids have the same pipelines.
    const bool same = divides && generated(dense, plan.rank_order, "pp") ==
                                     generated(experts, plan.rank_order, "pp");
    CAPTURE(plan.rank_order);
    CHECK(group_fault(plan, RankLayout::megatron).reason.empty() == same);
    if (!same) {
      ++refused;
      continue;
    }
    ++seen;
    const auto all = process_groups(plan, RankLayout::megatron);
    const auto of = [&](const std::string& token) {
      return generated(dense, plan.rank_order, token);
    };
    CHECK(lists_of(all, "tensor") == of("tp"));
    CHECK(lists_of(all, "pipeline") == of("pp"));
    CHECK(lists_of(all, "data") == of("dp"));
    CHECK(lists_of(all, "context") == of("cp"));
    CHECK(lists_of(all, "data-context") == of("dp-cp"));
    CHECK(lists_of(all, "model") == of("tp-pp"));
    Lists ends, firsts;
    for (const Ranks& ranks : of("pp")) {
      firsts.push_back({ranks.front()});
      ends.push_back(ranks.size() == 1 ? firsts.back() : Ranks{ranks.front(), ranks.back()});
    }
    CHECK(lists_of(all, "embedding") == ends);
    CHECK(lists_of(all, "position-embedding") == firsts);
    if (plan.ep == 1 && plan.etp == plan.tp) continue;
    ++with_experts;
    CHECK(lists_of(all, "expert") == generated(experts, plan.rank_order, "ep"));
    CHECK(lists_of(all, "expert-tensor") == generated(experts, plan.rank_order, "tp"));
    CHECK(lists_of(all, "expert-data") == generated(experts, plan.rank_order, "dp"));
  }
  CHECK(with_experts >= 80);
  CHECK(refused >= 50);
}

TEST_CASE("vLLM: rank = pp_rank * tp + tp_rank") {
  const auto all = process_groups(sizes(4, 2, 1), RankLayout::vllm);
  CHECK(lists_of(all, "tensor") == Lists{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(lists_of(all, "pipeline") == Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(lists_of(all, "data").size() == 8);
}

TEST_CASE("vLLM's groups are its array of ranks, an axis moved to the end") {
  // arange(world).reshape(d, p, c, t); a group holds what differs in one axis alone, and groups are
  // listed by the others, where the moved axis' place is taken by the tensor axis.
  for (const auto& [t, p, d, c] :
       {std::tuple{2, 2, 2, 1}, {4, 2, 3, 1}, {2, 3, 2, 2}, {1, 2, 4, 3}}) {
    const auto rank = [t = t, p = p, c = c](int di, int pi, int ci, int ti) {
      return std::int64_t{((di * p + pi) * c + ci) * t + ti};
    };
    Lists pipeline, data, experts;
    for (int di = 0; di < d; ++di) {  // transpose(2, 4): d, t, c, p
      for (int ti = 0; ti < t; ++ti) {
        for (int ci = 0; ci < c; ++ci) {
          pipeline.emplace_back();
          for (int pi = 0; pi < p; ++pi) pipeline.back().push_back(rank(di, pi, ci, ti));
        }
      }
    }
    for (int ti = 0; ti < t; ++ti) {  // transpose(1, 4): t, p, c, d
      for (int pi = 0; pi < p; ++pi) {
        for (int ci = 0; ci < c; ++ci) {
          data.emplace_back();
          for (int di = 0; di < d; ++di) data.back().push_back(rank(di, pi, ci, ti));
        }
      }
    }
    for (int pi = 0; pi < p; ++pi) {  // transpose(1, 2): p, then d, c, t together
      experts.emplace_back();
      for (int di = 0; di < d; ++di) {
        for (int ci = 0; ci < c; ++ci)
          for (int ti = 0; ti < t; ++ti) experts.back().push_back(rank(di, pi, ci, ti));
      }
    }
    const auto all = process_groups(sizes(t, p, d, c, t * d * c), RankLayout::vllm);
    CHECK(lists_of(all, "pipeline") == pipeline);
    CHECK(lists_of(all, "data") == data);
    CHECK(lists_of(all, "expert") == experts);
  }
  CHECK_FALSE(group_fault(sizes(4, 2, 2, 1, 4), RankLayout::vllm).reason.empty());
}

TEST_CASE("every rank is in one group of each kind that all ranks have") {
  for (const auto layout : {RankLayout::megatron, RankLayout::vllm}) {
    const ParallelPlan plan = sizes(2, 3, 4, 2, 16, 1);
    for (const ProcessGroups& all : process_groups(plan, layout)) {
      if (all.kind == "embedding" || all.kind == "position-embedding") continue;
      Ranks seen;
      for (const Ranks& group : all.groups) seen.insert(seen.end(), group.begin(), group.end());
      std::ranges::sort(seen);
      CAPTURE(all.kind);
      REQUIRE(seen.size() == 48);
      for (std::int64_t rank = 0; rank < 48; ++rank)
        CHECK(seen[static_cast<std::size_t>(rank)] == rank);
    }
  }
}

}  // namespace process_groups_test
