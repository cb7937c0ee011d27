#include "planner/commands/groups_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "costmodel/base/error.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"
#include "costmodel/plan/process_groups.hpp"
#include "costmodel/serving/serving_reader.hpp"
#include "planner/report/groups_report.hpp"
#include "planner/report/json_report.hpp"
#include "planner/search/settled_plan.hpp"

namespace planner {

using namespace costmodel;

namespace {

// More would be gigabytes of text.
constexpr std::int64_t most_ranks = std::int64_t{1} << 20;

RankLayout layout_of(const Options& options) {
  const auto* const at = std::ranges::find(rank_layout_names, options.layout);
  return options.layout.empty() ? RankLayout::megatron
                                : static_cast<RankLayout>(at - rank_layout_names.begin());
}

void check_flags(const Session& session, RankLayout layout) {
  const Options& options = session.options;
  const bool scenario = !options.operands.empty();
  refuse_if(!scenario && !options.sizes.any(), "groups lacks a scenario or sizes",
            "example: shardplan groups --tp 2 --pp 4 --dp 2");
  refuse_if(scenario && (options.sizes.any() || !options.order.empty()),
            "groups takes sizes and --order, or a scenario",
            "change the scenario's with --set plan.tp=2");
  refuse_if(!scenario && !options.assignments.empty(),
            "--set changes a scenario, and groups has none",
            "give the sizes as --tp, --pp, --dp, --cp, --ep, --etp");
  if (layout != RankLayout::vllm) return;
  refuse_if(!options.order.empty(), "vLLM has one order of the ranks", "leave --order out");
  refuse_if(options.sizes.etp > 0, "vLLM's experts are not split further", "leave --etp out");
}

ParallelPlan plan_of(const Options& options) {
  const auto given = [](int size) { return std::max(size, 1); };
  const GroupSizes& sizes = options.sizes;
  ParallelPlan plan;
  plan.tp = given(sizes.tp);
  plan.pp = given(sizes.pp);
  plan.dp = given(sizes.dp);
  plan.cp = given(sizes.cp);
  plan.ep = given(sizes.ep);
  plan.etp = sizes.etp > 0 ? sizes.etp : plan.tp;
  if (options.order.empty()) return plan;
  if (!Mesh::valid_order(options.order)) {
    throw ConfigError(mark_of_argument("--order", options.order), "is not an order of the axes",
                      "allowed: tp, cp, ep, dp, pp in any order, between dashes");
  }
  plan.rank_order = options.order;
  return plan;
}

void check_plan(const ParallelPlan& plan, RankLayout layout) {
  refuse_if(!plan.even(), "the plan's stages or replicas have groups of their own",
            "`evaluate --placement FILE` writes the place of every rank");
  refuse_if(plan.devices() > most_ranks, "these are too many ranks to list",
            fmt::format("allowed: up to {}", format_integer(most_ranks)));
  const auto fault = group_fault(plan, layout);
  refuse_if(!fault.reason.empty(), "" + fault.reason, fault.remedy);
}

std::string text_of(const Session& session, const GroupsOf& of) {
  switch (session.options.format) {
    case Format::json: return groups_json(of);
    case Format::csv: return to_csv(groups_rows(of));
    default: return groups_report(of, session.style);
  }
}

}  // namespace

CommandResult groups_command(const Session& session) {
  const RankLayout layout = layout_of(session.options);
  check_flags(session, layout);
  if (session.options.operands.empty()) {
    const ParallelPlan plan = plan_of(session.options);
    check_plan(plan, layout);
    std::optional<ClusterSpec> cluster;
    if (!session.options.cluster.empty())
      cluster = cluster_named(session, session.options.cluster, plan.devices());
    return {0, text_of(session, {plan, layout, cluster ? &*cluster : nullptr}), {}};
  }
  Scenario s = load(session);
  const auto settled = settled_plan(s, threads_of(session.options));
  if (!settled) return without_plan(session, s);
  ParallelPlan plan = settled->plan;
  if (s.model.experts == 0) plan.etp = plan.tp;  // Megatron-LM's expert grid is then the other one
  check_plan(plan, layout);
  return {0, text_of(session, {plan, layout, &s.cluster}), note_lines(settled->notes)};
}

// The ranks of an engine, as vLLM lays them out.
CommandResult groups_serving(const Session& session) {
  check_flags(session, layout_of(session.options));
  refuse_if(!session.options.layout.empty() && layout_of(session.options) != RankLayout::vllm,
            "the ranks of a scenario of serving are vLLM's",
            "leave --layout out, or give the sizes: shardplan groups --tp 8 --dp 2");
  const ServingScenario written =
      load_serving(file_of(session), session.path, session.options.assignments);
  const auto s = settled_serving(written);
  if (!s) {
    throw ConfigError({written.file, 0, 0}, no_serving_plan,
                      "shardplan plan says what stands in the way");
  }
  if (s->plan.disaggregation) {
    throw ConfigError(s->plan.mark, "prompts and decoding on devices of their own are two engines",
                      "give the sizes of one: --set plan.disaggregation=none, or shardplan groups "
                      "--layout vllm --tp 8 --dp 2");
  }
  const ServingSizes sizes = sizes_of(*s);
  ParallelPlan plan;
  plan.tp = sizes.tp;
  plan.pp = sizes.pp;
  plan.dp = sizes.dp;
  plan.ep = sizes.ep;
  plan.etp = sizes.ep > 1 ? 1 : plan.tp;
  check_plan(plan, RankLayout::vllm);
  return {0, text_of(session, {plan, RankLayout::vllm, &s->cluster}), {}};
}

}  // namespace planner
