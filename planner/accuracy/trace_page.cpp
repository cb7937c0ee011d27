#include "planner/accuracy/trace_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/kernel_list.hpp"
#include "planner/accuracy/trace_report.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_page.hpp"
#include "planner/page/page_style.hpp"
#include "planner/report/html_table.hpp"
#include "planner/report/plan_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

// As few colours as an eye distinguishes.
SliceKind kind_of(TracedPart part) {
  switch (part) {
    case TracedPart::mlp_products:
    case TracedPart::attention_products:
    case TracedPart::logits_products:
    case TracedPart::expert_products:
    case TracedPart::adapter_products:
    case TracedPart::other_products: return {"compute", "products"};
    case TracedPart::attention: return {"backward", "attention"};
    case TracedPart::loss: return {"ep", "loss"};
    case TracedPart::embedding:
    case TracedPart::routing: return {"cp", "embedding and routing"};
    case TracedPart::shards: return {"transfer", "copies of sharded parameters"};
    case TracedPart::optimizer: return {"optimizer", "optimizer and clipping"};
    case TracedPart::communication: return {"reduction", "communication", true};
    case TracedPart::unknown: return {"span", "not attributed"};
    default: return {"gradient", "norms and other element-wise kernels"};
  }
}

std::string named(TracedPart part, bool backward) {
  return std::string(name_of(part)) + (backward ? ", backward" : "");
}

Seconds seconds(Nanoseconds time) { return Seconds(1e-9 * static_cast<double>(time)); }

// What a stage has around its layers, and not in each.
bool around_layers(TracedPart part) {
  return part == TracedPart::embedding || part == TracedPart::logits_products ||
         part == TracedPart::loss;
}

std::string gains_html(const std::vector<TraceGain>& gains) {
  if (gains.empty()) return "<p>Nothing takes longer than it need by a hundredth.</p>\n";
  std::string html = "<ul>\n";
  for (const TraceGain& gain : gains) {
    html += fmt::format("<li><b>{}</b> {}: {}</li>\n", format_seconds(gain.gained),
                        html_text(gain.what), html_text(gain.remedy));
  }
  return html + "</ul>\n";
}

}  // namespace

void TraceRows::add(const std::string& name, TracedPart part, Seconds start, Seconds end) {
  kinds.emplace(name, kind_of(part));
  slices.events.push_back({slices.ranks, Stream::compute, name, start, end});
}

void TraceRows::add_measured(const Trace& trace, const Attributor& attributor,
                             const std::string& label) {
  const auto shortest = std::ranges::min_element(
      trace.iterations, {}, [](const TracedSpan& span) { return span.end - span.begin; });
  if (shortest == trace.iterations.end()) return;
  constexpr Nanoseconds shown = 10'000;  // a gap that is drawn
  Nanoseconds until = 0;
  for (const TracedKernel& kernel : trace.kernels) {
    const Nanoseconds moment = kernel.launched > 0 ? kernel.launched : kernel.begin;
    if (moment < shortest->begin || moment >= shortest->end) continue;
    const Attribution of = attributor.of(trace, kernel);
    const std::string name = named(of.part, of.backward);
    const Nanoseconds begin = std::max<Nanoseconds>(0, kernel.begin - shortest->begin),
                      end = begin + kernel.length;
    const bool follows = !slices.events.empty() && slices.events.back().rank == slices.ranks &&
                         slices.events.back().name == name && begin - until < shown;
    if (follows) {
      slices.events.back().end = costmodel::max(slices.events.back().end, seconds(end));
    } else {
      add(name, of.part, seconds(begin), seconds(end));
    }
    until = std::max(until, end);
  }
  labels.push_back(label);
  ++slices.ranks;
}

void TraceRows::add_predicted(const Scenario& scenario, const ParallelPlan& plan) {
  Evaluator evaluator(scenario.model, scenario.cluster, scenario.training);
  const PlanCost& cost = evaluator.cost(plan);
  const auto micro_batches = cost.micro_batches;
  std::vector<ListedKernels> listed = stage_kernels(cost, 0, plan, evaluator).kernels;
  const auto layers = std::max<std::int64_t>(1, scenario.model.layers / plan.pp);
  Seconds at;
  const auto draw = [&](const ListedKernels& row, std::int64_t share, const std::string& where,
                        bool backward) {
    if (row.sum.time.value <= 0) return;
    const TracedPart part = part_of_listed(row.name);
    const Seconds end = at + row.sum.time / static_cast<double>(share);
    add(named(part, backward) + where, part, at, end);
    at = end;
  };
  // Of a pass, what is within the layers or, of what is around them, one part.
  const auto pass = [&](bool backward, std::optional<TracedPart> around) {
    const std::int64_t times = around ? 1 : layers;
    for (std::int64_t i = 0; i < times; ++i) {
      const std::int64_t layer = backward ? times - i : i + 1;
      for (const ListedKernels& row : listed) {
        const TracedPart part = part_of_listed(row.name);
        const bool once = row.passes == "iteration", forward = row.passes == "forward";
        if (once || forward == backward || (around ? part != *around : around_layers(part)))
          continue;
        draw(row, times, around ? "" : fmt::format(", layer {}", layer), backward);
      }
    }
  };
  constexpr std::int64_t most = 64;  // micro-batches that are drawn
  for (std::int64_t i = 0; i < std::min(micro_batches, most); ++i) {
    pass(false, TracedPart::embedding);
    pass(false, std::nullopt);
    pass(false, TracedPart::logits_products);
    pass(false, TracedPart::loss);
    std::ranges::reverse(listed);
    pass(true, TracedPart::loss);
    pass(true, TracedPart::logits_products);
    pass(true, std::nullopt);
    pass(true, TracedPart::embedding);
    std::ranges::reverse(listed);
  }
  for (const ListedKernels& row : listed)
    if (row.passes == "iteration") draw(row, 1, "", false);
  labels.emplace_back(plan.pp > 1 ? "predicted, first stage" : "predicted");
  ++slices.ranks;
}

std::string trace_page(const TraceExplanation& all, const TraceRows& rows, const Scenario& scenario,
                       const std::string& json) {
  const FittedTrace& trace = all.trace;
  std::string html = fmt::format(
      "<p class=\"verdict\"><b>{}</b> an iteration without a profiler, predicted <b>{}</b> "
      "({:+.1f} %); the {} sets the pace.</p>\n",
      format_seconds(trace.unprofiled), format_seconds(trace.before.iteration),
      100 * (trace.before.iteration / trace.unprofiled - 1), trace.host_bound ? "host" : "device");
  html += section("What an iteration would gain", gains_html(all.gains));
  html += section(
      "Measured and predicted",
      "<p class=\"note\">One iteration as recorded, with what the profiler costs, above the "
      "predicted kernels one after another, layer by layer. Where nothing is drawn, no kernel "
      "runs: "
      "measured, the device waits for the host.</p>\n" +
          rows_html(rows.slices, rows.labels, rows.kinds));
  html += section("By kind of kernel", table_html(kind_table(trace)));
  html += section("By operator", table_html(part_table(trace)));
  html += figures_section(json);
  const std::string& file = trace.read.file;
  const std::string title = heading(scenario, {}).substr(0, heading(scenario, {}).find('\n')) +
                            ", " + printable(file.substr(file.rfind('/') + 1));
  return html_page(title, html, std::string(report_head()));
}

}  // namespace planner
