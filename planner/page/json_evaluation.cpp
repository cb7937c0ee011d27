#include "planner/page/json_evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "planner/page/json_figure.hpp"
#include "planner/page/json_rest.hpp"
#include "planner/page/json_shown.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/report/html_table.hpp"
#include "planner/search/grid_search.hpp"

namespace planner {

namespace {

using namespace costmodel;

using Part = ShownPart;

constexpr std::array time_parts{
    Part{"compute_s", "compute", "computation"},
    Part{"recompute_s", "recompute", "recomputation"},
    Part{"tp_comm_s", "tp", "tensor-parallel communication"},
    Part{"cp_comm_s", "cp", "context-parallel communication"},
    Part{"ep_comm_s", "ep", "expert-parallel communication"},
    Part{"pp_comm_s", "pp", "pipeline transfers"},
    Part{"dp_comm_s", "dp", "data-parallel communication"},
    Part{"bubble_s", "bubble", "pipeline bubble"},
    Part{"imbalance_s", "imbalance", "wait for slower stages"},
    Part{"optimizer_s", "optimizer", "optimizer"},
    Part{"other_s", "other", "other: the framework's own time, slow nodes"}};

// Only hidden, it has a part of its own.
constexpr Part offload{"offload_s", "other", "activations to and from host memory"};

constexpr std::array memory_parts{Part{"weights_bytes", "weights", "weights"},
                                  Part{"gradients_bytes", "gradients", "gradients"},
                                  Part{"optimizer_bytes", "optimizer", "optimizer"},
                                  Part{"activations_bytes", "activations", "activations"},
                                  Part{"buffers_bytes", "buffers", "buffers"}};

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0 ? 100 * part / whole : 0);
}

std::string legend_of(std::span<const Part> parts, std::string_view last = "") {
  std::string html = "<div class=\"legend\">";
  for (const Part& part : parts)
    html += fmt::format("<span>{}{}</span>", swatch(part.colour), part.name);
  if (!last.empty()) html += fmt::format("<span>{}</span>", last);
  return html + "</div>\n";
}

std::string plan_cell(const std::string& key, const Json& value) {
  if (value.is_null()) return "by stage";
  return value.is_array() && value.empty() ? "even" : line_html(key, value);
}

// What the run takes, where its tokens are known; and the share of the time that trains.
std::string run_tiles(const Json& e) {
  const Json &run = at(e, {"training_run"}), &usd = at(run, {"usd"}),
             &days = at(run, {"days_with_failures"}), &trains = at(e, {"goodput", "fraction"});
  std::string html;
  if (days.is_number()) {
    html += tile(keyed_figure("days", days),
                 "with failures, for " + keyed_figure("tokens", at(run, {"tokens"})) + " tokens");
  }
  if (usd.is_number()) html += tile(keyed_figure("usd", usd), "for the device hours of the run");
  if (trains.is_number())
    html += tile(share_figure(trains), "goodput: the share of the time that trains");
  return html;
}

}  // namespace

std::string verdict_html(const Json& e) {
  const Json &time = at(e, {"time"}), &interval = at(time, {"interval_s"});
  if (!at(time, {"iteration_s"}).is_number()) return "";
  std::string html =
      fmt::format("<b>{} an iteration</b>", seconds_figure(at(time, {"iteration_s"})));
  if (interval.is_array() && interval.size() == 2) {
    html += fmt::format(" (90 % interval {} to {})", seconds_figure(interval[0]),
                        seconds_figure(interval[1]));
  }
  html += fmt::format(", {} TFLOP/s a device",
                      count_figure(at(e, {"throughput", "model_tflops_per_device"})));
  const Json& fits = at(e, {"memory", "fits"});
  note_shown(fits);
  const Json& chance = at(e, {"memory", "fits_probability"});
  html += fmt::format(", {} of {} on the fullest stage: {}{}.",
                      bytes_figure(at(e, {"memory", "peak_bytes"})),
                      bytes_figure(at(e, {"memory", "capacity_bytes"})),
                      fits == Json(false) ? "<b class=\"bad\">it does not fit</b>" : "it fits",
                      chance.is_number() ? fmt::format(" (chance {})", chance_text(chance)) : "");
  if (const Json& host = at(e, {"memory", "host_bytes"}); host.is_number() && host > 0)
    html += fmt::format(" A node's host keeps {}.", bytes_figure(host));
  if (const Json& drives = at(e, {"memory", "nvme_bytes"}); drives.is_number())
    html += fmt::format(" Its NVMe drives keep {}.", bytes_figure(drives));
  if (const std::string unknown = sentences(at(e, {"unknown"})); !unknown.empty())
    html += fmt::format("<p>No published run:</p>{}", unknown);
  return html;
}

std::string tiles_html(const Json& e) {
  if (!at(e, {"time", "iteration_s"}).is_number()) return "";
  const Json &throughput = at(e, {"throughput"}), &causal = at(throughput, {"causal"});
  const double peak = number_at(e, {"memory", "peak_bytes"}),
               capacity = number_at(e, {"memory", "capacity_bytes"});
  const auto mfu_tile = [](const Json& counted, const char* how) {
    return tile(share_figure(at(counted, {"mfu"})),
                fmt::format("{}: {} TFLOP/s a device", how,
                            count_figure(at(counted, {"model_tflops_per_device"}))));
  };
  return "<div class=\"tiles\">\n" +
         tile(seconds_figure(at(e, {"time", "iteration_s"})), "an iteration") +
         tile(count_figure(at(throughput, {"tokens_per_s"})), "tokens a second") +
         mfu_tile(throughput, "MFU, attention in full") +
         (causal.is_object() ? mfu_tile(causal, "causal MFU, as Megatron-LM logs") : "") +
         tile(share_figure(at(throughput, {"hfu"})), "HFU: what kernels execute") +
         tile(bytes_figure(at(e, {"memory", "peak_bytes"})),
              percent(peak, capacity) + " of the fullest device") +
         tile(share_figure(at(e, {"bubble_fraction"})), "bubble, of the slowest stage's work") +
         run_tiles(e) + "</div>\n";
}

namespace {

// Null for what follows from the plan: its devices and micro-batches.
const PlanKey* row_of_key(std::string_view name) {
  const auto& rows = plan_key_rows();
  const auto at =
      std::ranges::find_if(rows, [name](const PlanKey& key) { return key.row.name == name; });
  return at == rows.end() ? nullptr : &*at;
}

// Whether the key says what a plan without it says too.
bool is_neutral(const PlanKey* key, const Json& value) {
  const ParallelPlan plain;
  if (key == nullptr || !key->value || !key->implied(plain)) return false;
  return flow_text(key->value(plain)) ==
         (value.is_string() ? value.get<std::string>() : json_line(value));
}

}  // namespace

std::string plan_section(const Json& e) {
  const Json& plan = at(e, {"plan"});
  if (!plan.is_object()) return "";
  std::string facts, neutral, lists;
  for (const auto& [key, value] : plan.items()) {
    const PlanKey* row = row_of_key(key);
    const std::string title =
        row == nullptr || row->title.empty() ? title_of(key) : std::string(row->title);
    if (value.is_array() && !value.empty() && value.front().is_object()) {
      lists += folded(title, values_html(value));
    } else {
      (is_neutral(row, value) ? neutral : facts) += fmt::format(
          "<div><dt>{}</dt><dd>{}</dd></div>\n", html_text(title), plan_cell(key, value));
    }
  }
  if (!neutral.empty())
    lists += folded("What the plan does not use", "<dl class=\"facts\">\n" + neutral + "</dl>\n");
  const std::string line = words(at(e, {"plan_text"}));
  return section("The plan", (line.empty() ? "" : "<p>" + html_text(line) + "</p>\n") +
                                 "<dl class=\"facts\">\n" + facts + "</dl>\n" + lists);
}

std::string run_section(const Json& e) {
  return section("The training run", values_html(at(e, {"training_run"}))) +
         section("Failures and checkpoints", values_html(at(e, {"goodput"})));
}

std::string time_bar(const Json& e, double full) {
  const Json& parts = at(e, {"time", "breakdown"});
  const double whole = number_at(e, {"time", "iteration_s"});
  std::vector<BarPart> bar;
  for (const Part& part : time_parts) {
    const double time = number_at(parts, {part.key});
    bar.push_back({part.colour, time, fmt::format("{}: {}", part.name, percent(time, whole))});
  }
  return bar_svg(bar, full, 0, "parts of the iteration");
}

std::span<const ShownPart> shown_times() { return time_parts; }

std::string time_legend() { return legend_of(time_parts); }

namespace {

struct HiddenPart {
  const Part* part;
  double time;
};

std::vector<HiddenPart> hidden_parts(const Json& e) {
  std::vector<HiddenPart> all;
  const auto add = [&](const Part& part) {
    const double time = number_at(e, {"time", "hidden", part.key});
    if (time > 0) all.push_back({&part, time});
  };
  for (const Part& part : time_parts) add(part);
  add(offload);
  return all;
}

}  // namespace

std::string hidden_bar(const Json& e, double full) {
  std::vector<BarPart> bar;
  for (const auto& [part, time] : hidden_parts(e)) {
    const std::string seconds = format_seconds(Seconds(time));
    bar.push_back({part->colour, time, fmt::format("{}, hidden: {}", part->name, seconds), true});
  }
  return bar.empty() ? "" : bar_svg(bar, full, 0, "communication that is hidden");
}

namespace {

Table time_table(const Json& e, bool hides) {
  const Json &exposed = at(e, {"time", "breakdown"}), &hidden = at(e, {"time", "hidden"});
  const double whole = number_at(e, {"time", "iteration_s"});
  Table table{{left("part"), "time", "share"}};
  if (hides) table.columns.push_back({"hidden"});
  const auto add = [&](const Part& part) {
    const double time = number_at(exposed, {part.key}), beside = number_at(hidden, {part.key});
    if (time == 0 && !(beside > 0)) return;
    auto& row = table.rows.emplace_back(std::vector{swatch(part.colour) + html_text(part.name)});
    row.push_back(time == 0 ? "" : seconds_figure(exposed[part.key]));
    row.push_back(time == 0 ? "" : percent(time, whole));
    if (hides) row.push_back(beside > 0 ? seconds_figure(hidden[part.key]) : "");
  };
  for (const Part& part : time_parts) add(part);
  add(offload);
  return table;
}

}  // namespace

std::string time_section(const Json& e) {
  const double whole = number_at(e, {"time", "iteration_s"});
  if (!at(e, {"time", "breakdown"}).is_object() || !(whole > 0)) return "";
  const std::vector<HiddenPart> hidden = hidden_parts(e);
  double beside = 0;
  for (const HiddenPart& part : hidden) beside += part.time;
  const double full = std::max(whole, beside);
  std::string html =
      "<p class=\"note\">Of the stage that ends last: what is hidden behind computation does not "
      "count, so the parts add up to the iteration.";
  if (!hidden.empty()) {
    html +=
        " Hatched, on the same scale: communication that runs while the stage computes or waits "
        "anyway, and adds nothing; with nothing to hide it, it would take as much more.";
  }
  html += "</p>\n<div class=\"large\">" + time_bar(e, full) + "</div>\n";
  if (!hidden.empty()) html += "<div class=\"beside\">" + hidden_bar(e, full) + "</div>\n";
  return section("Where the time goes", html + table_of_html(time_table(e, !hidden.empty())));
}

namespace {

// Pipeline stages first to last, shown by the fullest of them.
struct Stages {
  std::size_t first = 0, last = 0, fullest = 0;
  std::string name() const {
    return first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last);
  }
};

constexpr std::size_t most_bars = 64;

// Equal neighbours together.
std::vector<Stages> unlike_stages(const Json& memory, const Json& times) {
  const auto same = [](const Json& list, std::size_t a, std::size_t b) {
    return !list.is_array() || std::max(a, b) >= list.size() || list[a] == list[b];
  };
  std::vector<Stages> groups;
  for (std::size_t k = 0; k < memory.size(); ++k) {
    if (k > 0 && same(memory, k - 1, k) && same(times, k - 1, k)) {
      groups.back().last = k;
    } else {
      groups.push_back({k, k, k});
    }
  }
  return groups;
}

// At most most_bars of them.
std::vector<Stages> gathered(const std::vector<Stages>& all, const Json& memory) {
  const std::size_t each = (all.size() + most_bars - 1) / most_bars;
  std::vector<Stages> groups;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % each == 0) groups.push_back(all[i]);
    Stages& group = groups.back();
    group.last = all[i].last;
    if (number_at(memory[all[i].fullest], {"total_bytes"}) >
        number_at(memory[group.fullest], {"total_bytes"}))
      group.fullest = all[i].fullest;
  }
  return groups;
}

std::string memory_bars(const Json& memory, const std::vector<Stages>& groups, double capacity) {
  double full = capacity;
  const auto limit_of = [&](const Json& stage) {
    return stage.is_object() && stage.contains("capacity_bytes")
               ? number_at(stage, {"capacity_bytes"})
               : capacity;
  };
  for (const Json& stage : memory)
    full = std::max({full, number_at(stage, {"total_bytes"}), limit_of(stage)});
  std::string html = "<div class=\"rows\">\n";
  for (const Stages& group : groups) {
    const Json& stage = memory[group.fullest];
    std::vector<BarPart> bar;
    for (const Part& part : memory_parts) {
      bar.push_back(
          {part.colour, number_at(stage, {part.key}),
           fmt::format("{}: {:.2f} GiB", part.name, number_at(stage, {part.key}) / (1 << 30))});
    }
    html +=
        fmt::format("<span>{}</span>{}<span>{}</span>\n", group.name(),
                    bar_svg(bar, 1.02 * full, limit_of(stage), "memory of stage " + group.name()),
                    gib_figure(at(stage, {"total_bytes"})));
  }
  return html + "</div>\n" + legend_of(memory_parts, "line: what the device has");
}

// Empty where the operator is not known.
std::string peak_note(const Json& peak) {
  if (!at(peak, {"operator"}).is_string()) return "";
  const bool step = at(peak, {"layer"}).is_null();
  std::string html = fmt::format(
      "<p class=\"note\">The peak is on stage {}, in the {}: {} {} {}",
      count_figure(at(peak, {"stage"})),
      step ? "optimizer's step"
           : html_text(fmt::format("{} pass of a layer of kind {}", words(at(peak, {"pass"})),
                                   words(at(peak, {"layer"})))),
      html_text(words(at(peak, {"operator"}))), step ? "take" : "works on",
      bytes_figure(at(peak, {"working_bytes"})));
  if (number_at(peak, {"tensor_bytes"}) > 0) {
    html += fmt::format("; of the activations kept for backward, {} takes most: {}",
                        html_text(words(at(peak, {"tensor"}))),
                        bytes_figure(at(peak, {"tensor_bytes"})));
  }
  return html + ".</p>\n";
}

}  // namespace

std::string memory_section(const Json& e) {
  const Json& memory = at(e, {"memory", "stages"});
  if (!memory.is_array() || memory.empty()) return "";
  const Json& times = at(e, {"time", "stages"});
  const auto all = unlike_stages(memory, times), groups = gathered(all, memory);
  std::string html = "<p class=\"note\">GiB on each device of a pipeline stage";
  if (groups.size() < all.size()) html += "; of neighbouring stages the fullest is drawn";
  html += ".</p>\n" + memory_bars(memory, groups, number_at(e, {"memory", "capacity_bytes"}));
  html += peak_note(at(e, {"memory", "peak_at"}));
  html += folded("Every stage: memory", values_html(memory)) +
          folded("Every stage: time of one micro-batch", values_html(times));
  return section("Memory by stage", html);
}

std::string traffic_section(const Json& e) {
  constexpr std::size_t long_table = 12;
  const Json& stages = at(e, {"communication", "stages"});
  const std::string table = values_html(stages);
  return section("Sent by each device of a stage in one iteration",
                 stages.size() > long_table ? folded("By stage", table) : table);
}

}  // namespace planner
