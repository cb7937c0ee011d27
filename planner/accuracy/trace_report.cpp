#include "planner/accuracy/trace_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }

std::string off_by(double predicted, double measured) {
  return measured > 0 && predicted > 0 ? fmt::format("{:+.1f}", 100 * (predicted / measured - 1))
                                       : "-";
}

const PartTime* find(const std::vector<PartTime>& parts, TracedPart part, bool backward) {
  const auto at = std::ranges::find_if(
      parts, [&](const PartTime& p) { return p.part == part && p.backward == backward; });
  return at == parts.end() ? nullptr : &*at;
}

// Those of a thousandth of the kernels' time or more.
Table left_over_table(const TraceTimes& times) {
  constexpr std::size_t most = 5;
  constexpr double counted = 0.001;
  Table table{{"not attributed ms", left("launched by"), left("kernel")}};
  for (const LeftOver& kernel : times.left_over) {
    if (table.rows.size() == most || kernel.time < counted * times.kernels) break;
    table.rows.push_back({milliseconds(kernel.time.value), kernel.launcher.substr(0, 60),
                          kernel.kernel.substr(0, 90)});
  }
  return table;
}

std::string recorded_text(const TraceTimes& times) {
  const Seconds waits = costmodel::max(times.least_wall - times.busy, Seconds(0));
  return fmt::format("An iteration as recorded: {} at least, of which no kernel ran in {}.",
                     format_seconds(times.least_wall), format_seconds(waits));
}

std::string left_out_text(const TraceTimes& times) {
  if (times.left_out == 0) return "";
  const bool one = times.left_out == 1;
  return fmt::format(
      "{} recorded iteration{} left out: {} a tenth fewer kernels than the others, or kernels that "
      "take a quarter longer.",
      times.left_out, one ? " is" : "s are", one ? "it has" : "they have");
}

std::string host_text(const FittedTrace& trace) {
  const TraceTimes& times = trace.read.times;
  if (trace.host_bound) {
    return fmt::format(
        "The host sets the pace: {:.0f} launches; without what {:.0f} records cost it, {} an "
        "iteration.",
        times.launches, times.host_records, format_seconds(trace.unprofiled));
  }
  if (trace.launch.value > 0) {
    return fmt::format(
        "The device sets the pace, so a launch takes the host {} at most; the fixed cost of an "
        "iteration stays the stack's, for a profiler lengthens it.",
        format_seconds(trace.launch));
  }
  return "The device sets the pace: the host's launches and the fixed cost of an iteration stay "
         "the "
         "stack's, for a profiler lengthens both.";
}

std::string attributed_text(const FittedTrace& trace) {
  const TraceTimes& times = trace.read.times;
  std::string text = fmt::format("{:.1f} % of the kernels' time is attributed to operators",
                                 100 * (times.attributed() / times.kernels));
  if (!trace.read.has_launchers) {
    text +=
        ", by the kernels' names alone: no operator of the host is recorded (activities without "
        "CPU)";
  } else if (!trace.read.has_sizes) {
    text += ", without their sizes: record with record_shapes=True";
  }
  return text + ".";
}

std::string no_kind_text(const TraceTimes& times) {
  if (times.no_kind < 0.001 * times.kernels) return "";
  return fmt::format("Kernels of no kind that is known take {}.", format_seconds(times.no_kind));
}

std::string communication_text(const TraceTimes& times) {
  if (times.communication.value <= 0) return "";
  return fmt::format(
      "Collectives take {}, of which {} while no other kernel ran. They are fitted to no "
      "constant.",
      format_seconds(times.communication), format_seconds(times.exposed));
}

// What a stack's description lacks, and the trace has.
std::string lacking_text(const FittedTrace& trace) {
  std::vector<std::string> lacking;
  for (const PartTime& part : trace.read.times.parts) {
    const bool known = find(trace.before.parts, part.part, part.backward) != nullptr;
    constexpr double counted = 0.005;
    // Casts are among the kernels of norms and products in some descriptions.
    if (known || part.part >= TracedPart::communication || part.part == TracedPart::casts ||
        part.part == TracedPart::other_products || part.time < counted * trace.read.times.kernels)
      continue;
    lacking.push_back(fmt::format("{}{}, {}", name_of(part.part), part.backward ? " backward" : "",
                                  format_seconds(part.time)));
  }
  if (lacking.empty()) return "";
  return fmt::format("In the trace, and not in the stack's description: {}.",
                     fmt::join(lacking, "; "));
}

}  // namespace

Table kind_table(const FittedTrace& trace) {
  Table table{{left("kind of kernel"), "measured ms", "predicted ms", "off by %",
               "with the trace ms", "off by %"}};
  const auto steady = trace.read.steady();
  Seconds all;
  const auto add = [&](std::string_view name, double measured, double before, double after) {
    table.rows.push_back({std::string(name), milliseconds(measured), milliseconds(before),
                          off_by(before, measured), milliseconds(after), off_by(after, measured)});
  };
  double left_before = trace.before.iteration.value, left_after = trace.after.iteration.value;
  for (std::size_t kind = 0; kind < costmodel::kernel_kind_count; ++kind) {
    const double before = trace.before.kinds[kind], after = trace.after.kinds[kind];
    left_before -= before;
    left_after -= after;
    add(costmodel::kernel_kind_names[kind], steady[kind].value, before, after);
    all += steady[kind];
  }
  add("in no kernel of these", (trace.unprofiled - all).value, left_before, left_after);
  add("iteration without a profiler", trace.unprofiled.value, trace.before.iteration.value,
      trace.after.iteration.value);
  return table;
}

Table part_table(const FittedTrace& trace) {
  Table table{{left("operator"), left("pass"), "kernels", "measured ms", "predicted ms", "off by %",
               "with the trace ms"}};
  std::set<std::pair<TracedPart, bool>> shown;
  const auto add = [&](TracedPart part, bool backward) {
    if (!shown.insert({part, backward}).second) return;
    const PartTime* measured = find(trace.read.times.parts, part, backward);
    const PartTime* before = find(trace.before.parts, part, backward);
    const PartTime* after = find(trace.after.parts, part, backward);
    const auto time = [](const PartTime* of) { return of == nullptr ? 0 : of->time.value; };
    // Kernels have a price each, collectives one of their own.
    const bool priced = part != TracedPart::communication;
    table.rows.push_back({std::string(name_of(part)), backward ? "backward" : "forward",
                          fmt::format("{:.0f}", measured == nullptr ? 0 : measured->kernels),
                          milliseconds(time(measured)), priced ? milliseconds(time(before)) : "-",
                          off_by(time(before), time(measured)),
                          priced ? milliseconds(time(after)) : "-"});
  };
  for (const PartTime& part : trace.read.times.parts) add(part.part, part.backward);
  for (const PartTime& part : trace.before.parts) add(part.part, part.backward);
  return table;
}

std::string trace_text(const FittedTrace& trace, const ReportStyle& style) {
  const TraceTimes& times = trace.read.times;
  std::string text = table_section(
      fmt::format("{}: {} iteration{} by {}{}", escaped(trace.read.file, style), times.iterations,
                  times.iterations == 1 ? "" : "s", trace.read.profiler,
                  trace.read.device.empty() ? "" : " on " + escaped(trace.read.device, style)),
      kind_table(trace), style);
  text += "\n" + bullets({attributed_text(trace), no_kind_text(times), recorded_text(times),
                          left_out_text(times), host_text(trace), communication_text(times),
                          lacking_text(trace)},
                         style);
  const Table left_over = left_over_table(times);
  return left_over.rows.empty() ? text : text + "\n" + section_table(left_over, style);
}

std::string trace_report(const std::vector<FittedTrace>& traces, const costmodel::OwnRuns& own,
                         Seconds prior_launch, const ReportStyle& style) {
  std::string text;
  for (const FittedTrace& trace : traces) text += trace_text(trace, style);
  text += "\n";
  if (own.kernel_launch.value > 0) {
    text += bullet(fmt::format("A launch takes the host {}, held by the stack's {}.",
                               format_seconds(own.kernel_launch), format_seconds(prior_launch)),
                   style);
  }
  return text + bullet(fmt::format("90 % interval of a prediction: {:.2f} to {:.2f} of it.",
                                   own.low, own.high),
                       style);
}

}  // namespace planner
