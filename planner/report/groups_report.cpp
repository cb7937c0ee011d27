#include "planner/report/groups_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Ranks = std::vector<std::int64_t>;

std::string ranks_text(const Ranks& ranks) {
  constexpr std::size_t most = 16;
  if (ranks.size() <= most) return fmt::format("[{}]", fmt::join(ranks, ","));
  return fmt::format("[{},...,{}]", fmt::join(ranks.begin(), ranks.begin() + 4, ","), ranks.back());
}

// The list on lines that leave room for an indent and the count of what is left out; six at most.
std::vector<std::string> lines_of(const ProcessGroups& all, std::int64_t ranks,
                                  std::size_t most_columns) {
  if (static_cast<std::int64_t>(all.groups.size()) == ranks) return {"each rank alone"};
  constexpr std::size_t most_lines = 6, beside = 16;
  const std::size_t width = std::min<std::size_t>(96, most_columns - beside);
  std::vector<std::string> lines{""};
  for (std::size_t i = 0; i < all.groups.size(); ++i) {
    const std::string text = ranks_text(all.groups[i]);
    if (!lines.back().empty() && lines.back().size() + 1 + text.size() > width) {
      if (lines.size() == most_lines) {
        lines.back() += fmt::format(" ... {} more", all.groups.size() - i);
        return lines;
      }
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + text;
  }
  return lines;
}

std::string sizes_text(const ParallelPlan& p, RankLayout layout) {
  std::string text = fmt::format("t {} · p {} · d {}", p.tp, p.pp, p.dp);
  if (p.cp > 1) text += fmt::format(" · c {}", p.cp);
  if (p.ep > 1) text += fmt::format(" · e {}", p.ep);
  if (layout == RankLayout::megatron && (p.ep > 1 || p.etp != p.tp))
    text += fmt::format(" · etp {}", p.etp);
  return text;
}

std::string apart_text(const ProcessGroups& all) {
  if (all.groups.front().size() < 2) return "";
  return all.apart > 0 ? fmt::format(", {} apart", format_integer(all.apart))
                       : ", not evenly apart";
}

Table markdown_table(const GroupsOf& of) {
  Table t{{left("groups"), "number", "size", "apart", left("network"), left("ranks")}};
  for (const ProcessGroups& all : process_groups(of.plan, of.layout)) {
    const auto lines = lines_of(all, of.plan.devices(), unlimited_width);
    t.rows.push_back({std::string(all.kind), fmt::format("{}", all.groups.size()),
                      fmt::format("{}", all.groups.front().size()),
                      all.apart > 0 ? fmt::format("{}", all.apart) : "-", network_of(all, of),
                      lines.front() + (lines.size() > 1 ? " ..." : "")});
  }
  return t;
}

std::string layout_text(const GroupsOf& of) {
  if (of.layout == RankLayout::vllm)
    return "as vLLM lays them out: data x pipeline x context x tensor, rank = pp_rank t + tp_rank";
  return fmt::format("as Megatron-LM's initialize_model_parallel, order {}", of.plan.rank_order);
}

}  // namespace

std::string network_of(const ProcessGroups& all, const GroupsOf& of) {
  const std::size_t size = all.groups.front().size();
  if (of.cluster == nullptr || size < 2) return "";
  const auto& tiers = of.cluster->tiers;
  std::size_t outermost = 0;
  for (const Ranks& group : all.groups) {
    while (outermost + 1 < tiers.size() &&
           group.front() / tiers[outermost].devices != group.back() / tiers[outermost].devices)
      ++outermost;
  }
  return tiers[outermost].name;
}

std::string groups_report(const GroupsOf& of, const ReportStyle& style) {
  const std::string first = fmt::format("{} ranks: {}, {}", format_integer(of.plan.devices()),
                                        sizes_text(of.plan, of.layout), layout_text(of));
  if (style.markup == Markup::markdown) {
    return bullet(first, style) + "\n" + to_markdown(markdown_table(of));
  }
  std::string text = first + "\n";
  for (const ProcessGroups& all : process_groups(of.plan, of.layout)) {
    const std::string network = network_of(all, of);
    text += "\n" + style.style.bold(fmt::format("{} {} group{} of {}", all.groups.size(), all.kind,
                                                all.groups.size() == 1 ? "" : "s",
                                                all.groups.front().size()));
    text +=
        fmt::format("{}{}: {}\n", apart_text(all),
                    network.empty() ? "" : fmt::format(", over {}", printable(network)), all.use);
    for (const std::string& line : lines_of(all, of.plan.devices(), style.style.width))
      text += "  " + line + "\n";
  }
  return text;
}

Table groups_rows(const GroupsOf& of) {
  Table t{{left("kind"), "index", "size", left("ranks")}};
  for (const ProcessGroups& all : process_groups(of.plan, of.layout)) {
    for (std::size_t i = 0; i < all.groups.size(); ++i) {
      t.rows.push_back({std::string(all.kind), fmt::format("{}", i),
                        fmt::format("{}", all.groups[i].size()),
                        fmt::format("{}", fmt::join(all.groups[i], " "))});
    }
  }
  return t;
}

}  // namespace planner
