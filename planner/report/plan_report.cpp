#include "planner/report/plan_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/hidden_time.hpp"
#include "costmodel/estimate/training_run.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/plan_text.hpp"
#include "planner/report/fine_tuning_report.hpp"
#include "planner/report/packing_report.hpp"
#include "planner/report/report_tables.hpp"
#include "planner/report/sharding_report.hpp"
#include "planner/report/strategy_text.hpp"
#include "planner/report/tower_report.hpp"
#include "planner/search/device_front.hpp"

namespace planner {

using namespace costmodel;

namespace {

// "" for what has no value.
std::string fact(const std::string& name, const std::string& value, const ReportStyle& s) {
  if (value.empty()) return "";
  if (s.markup == Markup::markdown) return fmt::format("- **{}**: {}\n", name, value);
  constexpr std::size_t label = 11;  // columns, where values begin
  const std::string line = s.style.bold(fmt::format("{:<{}}", name, label)) + value;
  return wrapped(line, s.style.width, label) + "\n";
}

// No decimals from a hundred up, else three digits.
std::string rounded(double n) {
  return n >= 100 ? format_integer(std::llround(n)) : fmt::format("{:.3g}", n);
}

std::string mfu_text(const Estimate& e) {
  const bool above = e.mfu > 1;  // half of a long sequence's attention is skipped, and counted
  return fmt::format(
      "{:.1f} % (attention in full{}, no recomputation)   HFU {:.1f} %   {} a device", 100 * e.mfu,
      above ? ": more than is computed" : "", 100 * e.hfu, format_rate(e.model_rate_per_device));
}

std::string causal_text(const Estimate& e) {
  return fmt::format("{:.1f} % (attention halved for causality, as Megatron-LM logs)   {} a device",
                     100 * e.causal_mfu, format_rate(e.causal_rate_per_device));
}

// The verdict, its chance, and whether any measured peak stands for it.
std::string fits_text(const Estimate& e, const Scenario& s, const ReportStyle& style) {
  const MemoryFit fit = fit_of(e, s.search.memory_margin);
  std::string chance = "chance " + fits_chance(e, s);
  if (!s.training.peak_errors.measured) {
    chance += fmt::format("; no measured peak by {}",
                          s.training.stack.name.empty() ? "this stack" : s.training.stack.name);
  }
  if (fit == MemoryFit::exceeds)
    return style.style.bad("DOES NOT FIT") + escaped(fmt::format(" ({})", chance), style);
  if (fit == MemoryFit::fits)
    return style.style.good("fits") + escaped(fmt::format(" ({})", chance), style);
  const std::string wanted = s.search.memory_confidence ? margin_key(s.search)
                                                        : fmt::format("search.memory_margin {:g} %",
                                                                      100 * s.search.memory_margin);
  return style.style.good(
             fmt::format("fits, tightly: {:.1f} % left", 100 * (1 - e.peak / e.capacity))) +
         escaped(fmt::format(" ({}; {})", wanted, chance), style);
}

// "Peak: stage 0, head: cross-entropy (backward) works on 3.1 GiB; of what is kept most is ..."
std::string peak_sentence(const PeakPlace& peak) {
  if (!peak.known()) return "";
  if (peak.layer.empty()) {
    return fmt::format("The peak is on stage {}, in the optimizer's {}: {} take {}.", peak.stage,
                       peak.pass, peak.op, format_bytes(peak.working));
  }
  std::string text = fmt::format("The peak is on stage {}, in the {} pass of a layer of kind {}",
                                 peak.stage, peak.pass, peak.layer);
  if (!peak.op.empty())
    text += fmt::format(": {} works on {}", peak.op, format_bytes(peak.working));
  if (peak.kept.value > 0) {
    text += fmt::format("; of the activations kept for backward, {} takes most: {}", peak.tensor,
                        format_bytes(peak.kept));
  }
  return text + ".";
}

// Of a run on an H100 whose reserve of 83 GiB 80 GB cut off, iterations took 0.21 to 0.35 s
// (configs/evidence/extra/pytorch-h100.yaml, t-70b2l-4k-eager): by how much time grows is not
// known.
std::string retries_sentence(const Estimate& e, const Scenario& s, Evaluator& evaluator) {
  if (!e.fits()) return "";
  const CountedPeak counted = evaluator.counted_peak(e);
  if (!counted.retries()) return "";
  return fmt::format(
      "PyTorch's allocator would come to hold {} in a larger device. Here it gives cached blocks "
      "back and asks for them again, which slows some iterations{}.",
      format_bytes(counted.wanted),
      s.training.stack.memory.expandable_segments
          ? ""
          : "; PYTORCH_ALLOC_CONF=expandable_segments:True needs less");
}

// What a node keeps of `bytes`, of so many that are known by `key`.
std::string kept_text(Bytes bytes, Bytes capacity, const char* key, const char* what) {
  const std::string kept = fmt::format("{} {}", format_bytes(bytes), what);
  if (capacity.value <= 0)
    return fmt::format("{} (the cluster does not state what a node has: {})", kept, key);
  return fmt::format("{}, of {}: {}", kept, format_bytes(capacity),
                     bytes <= capacity ? "fits" : "DOES NOT FIT");
}

// What a node's host keeps; empty where nothing.
std::string host_text(const Estimate& e) {
  if (e.host.value <= 0) return "";
  std::string host =
      kept_text(e.host, e.host_capacity, "host.memory_bytes", "a node, buffers included");
  if (e.drives.value <= 0) return host;
  return host + "; on NVMe drives " +
         kept_text(e.drives, e.drive_capacity, "host.nvme_bytes", "a node");
}

// What of the plan nobody has measured; empty where all of it has been.
std::string unknown_text(const Estimate& e, const ReportStyle& style) {
  if (e.unknown.empty()) return "";
  const std::string line = escaped(
      fmt::format("Not measured: no published run {}", fmt::join(e.unknown, ", none ")), style);
  return style.markup == Markup::markdown ? fmt::format("**{}**\n\n", line) : line + "\n";
}

// The first that a reader must know.
std::string misfit_text(const Estimate& e, const ReportStyle& style) {
  const std::string line = "Does not fit: " + overflow_text(e);
  return style.markup == Markup::markdown ? fmt::format("**{}**\n\n", line)
                                          : style.style.bad(line) + "\n";
}

// What failures leave of the time, where they matter or the run's days are told.
std::string goodput_text(const Goodput& g) {
  return fmt::format(
      "{:.1f} % of the time: a failure every {}, {} of checkpoint written in {} every "
      "{}, {} to go on",
      100 * g.fraction, format_span(g.between_failures), format_bytes(g.checkpoint),
      format_seconds(g.write), format_span(g.every), format_span(g.restart));
}

std::string run_text(const TrainingRun& run, double tokens) {
  return fmt::format("{} tokens in {} days ({} to {}), {} with failures; {} device hours",
                     format_count(tokens), rounded(run.days), rounded(run.days_low),
                     rounded(run.days_high), rounded(run.days_with_failures),
                     format_count(run.device_hours));
}

std::string cost_text(const TrainingRun& run) {
  const std::string energy =
      run.megawatt_hours
          ? fmt::format("   at most {} MWh{}", rounded(*run.megawatt_hours),
                        run.of_devices_alone ? " in the devices, without their hosts" : "")
          : "";
  if (!run.usd) {
    return "unknown: say --set cluster.price.usd_per_device_hour=2.50, or what you pay" + energy;
  }
  const std::string date =
      run.price_date.empty() ? "" : fmt::format(" (price of {})", run.price_date);
  return fmt::format("{} dollars{}{}", format_count(*run.usd), date, energy);
}

// The estimate's notes, and those of the goodput where it is told.
std::vector<std::string> assumptions(const Estimate& e, const Scenario& s) {
  std::vector<std::string> all = e.notes;
  if (s.training.run_tokens == 0 && s.cluster.devices <= few_failures) return all;
  const auto goodput = costmodel::goodput(e, s.cluster, s.training);
  for (const auto& sentence : goodput.assumed) all.push_back("Failures: " + sentence);
  return all;
}

// The lines of all of the run.
std::string run_facts(const Estimate& e, const Scenario& s, const ReportStyle& style) {
  const auto goodput = costmodel::goodput(e, s.cluster, s.training);
  const auto run = training_run(e, goodput, s.cluster, s.training);
  if (!run && s.cluster.devices <= few_failures) return "";
  std::string text = fact("Goodput", goodput_text(goodput), style);
  if (!run) return text;
  text += fact("Run", run_text(*run, s.training.run_tokens), style);
  return text + fact("Cost", escaped(cost_text(*run), style), style);
}

}  // namespace

std::string fits_chance(const Estimate& e, const Scenario& s) {
  return chance_text(fits_probability(e.peak, e.capacity, s.training.peak_errors));
}

std::string section_title(const std::string& text, const ReportStyle& s) {
  return s.markup == Markup::markdown ? "\n### " + text + "\n\n" : "\n" + s.style.bold(text) + "\n";
}

std::string section_table(const Table& t, const ReportStyle& s) {
  return s.markup == Markup::markdown ? to_markdown(t) : to_text(t, 2, s.style.width);
}

std::string escaped(const std::string& line, const ReportStyle& style) {
  return style.markup == Markup::markdown ? markdown_text(line) : printable(line);
}

std::string table_section(const std::string& title, const Table& table, const ReportStyle& style) {
  return section_title(title, style) + section_table(table, style);
}

std::string bullet(const std::string& sentence, const ReportStyle& style) {
  if (sentence.empty()) return "";
  if (style.markup == Markup::markdown) return "- " + markdown_sentence(sentence) + "\n";
  return "  " + printable(sentence) + "\n";
}

std::string bullets(const std::vector<std::string>& sentences, const ReportStyle& style) {
  std::string text;
  for (const std::string& sentence : sentences) text += bullet(sentence, style);
  return text;
}

std::string heading(const Scenario& s, const ReportStyle& style) {
  const std::string model = s.model.title.empty() ? s.model_text : s.model.title;
  const std::string active =
      s.model.experts > 0
          ? fmt::format(", {} active", format_count(active_parameter_count(s.model)))
          : "";
  const std::string more = s.model.mtp_layers > 0
                               ? fmt::format(", and {} of multi-token prediction",
                                             format_count(mtp_parameter_count(s.model)))
                               : "";
  const std::string cluster = s.cluster.title.empty() ? s.cluster_text : s.cluster.title;
  const std::string what = escaped(fmt::format("{} ({} parameters{}{}) on {} of {}", model,
                                               format_count(parameter_count(s.model)), active, more,
                                               devices_text(s.cluster), cluster),
                                   style);
  const std::string tokens = s.model.encoder_decoder()
                                 ? fmt::format("({} + {})", format_integer(s.training.sequence),
                                               format_integer(s.training.decoder_sequence))
                                 : format_integer(s.training.sequence);
  const std::string optimizer = s.training.optimizer == Optimizer::adam
                                    ? ""
                                    : fmt::format(", {}", to_string(s.training.optimizer));
  const std::string how =
      escaped(fmt::format("global batch {} x {} tokens, {}{}, stack {}",
                          format_integer(s.training.global_batch), tokens,
                          to_string(s.training.precision), optimizer, s.training.stack.name) +
                  method_text(s.training.fine_tuning) +
                  (s.training.packing.packed ? ", packed samples" : ""),
              style);
  if (style.markup == Markup::markdown) return "## " + what + "\n\n" + how + "\n";
  return style.style.bold(what) + "\n" + how + "\n";
}

namespace {

// "" where hardly anything is hidden; the JSON has all.
std::string hidden_sentence(const Estimate& e, Evaluator& evaluator) {
  const HiddenTime all = hidden_time(e, evaluator);
  constexpr double told = 0.005;  // of the iteration
  std::vector<std::string> parts;
  for (const auto& [name, time] : {std::pair{"tensor-parallel communication", all.tp_comm},
                                   std::pair{"context-parallel communication", all.cp_comm},
                                   std::pair{"expert-parallel communication", all.ep_comm},
                                   std::pair{"pipeline transfers", all.pp_comm},
                                   std::pair{"data-parallel communication", all.dp_comm},
                                   std::pair{"activations to and from host memory", all.offload}}) {
    if (time >= told * e.iteration)
      parts.push_back(fmt::format("{} of {}", format_seconds(time), name));
  }
  if (parts.empty()) return "";
  return fmt::format("Hidden beside computation or in waits, adding nothing: {}.",
                     fmt::join(parts, ", "));
}

}  // namespace

std::string overflow_text(const Estimate& e) {
  if (e.fits()) return "";
  if (e.peak > e.capacity) {
    return fmt::format("stage {} needs {} of {}", e.fullest, format_bytes(e.peak),
                       format_bytes(e.capacity));
  }
  if (!e.in_host()) {
    return fmt::format("a node needs {} of {} of host memory", format_bytes(e.host),
                       format_bytes(e.host_capacity));
  }
  return fmt::format("a node needs {} of {} on NVMe drives", format_bytes(e.drives),
                     format_bytes(e.drive_capacity));
}

std::string plan_report(const Estimate& e, const Scenario& s, const ReportStyle& style) {
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::string text = "\n";
  text += unknown_text(e, style);
  if (!e.fits()) text += misfit_text(e, style);
  const std::string m =  // where groups differ each says its own
      e.plan.replica_groups.empty() ? fmt::format("  (m {})", e.micro_batches) : "";
  text += fact("Plan", escaped(to_string(e.plan) + m, style), style);
  text += fact("Iteration",
               fmt::format("{}   (90 % interval {} to {})", format_seconds(e.iteration),
                           format_seconds(e.interval.low), format_seconds(e.interval.high)),
               style);
  text += fact("Throughput",
               fmt::format("{} tokens/s   {} a device", rounded(e.tokens_per_s),
                           rounded(e.tokens_per_s / static_cast<double>(s.cluster.devices))),
               style);
  text += fact("Samples", samples_text(e, s), style);
  text += fact("Trained", trained_text(e, s), style);
  for (const auto& [name, line] : tower_facts(e, s, evaluator)) text += fact(name, line, style);
  text += fact("MFU", mfu_text(e), style);
  text += fact("causal MFU", causal_text(e), style);
  text += fact("Memory",
               fmt::format("{} of {} on the fullest stage: {}", format_bytes(e.peak),
                           format_bytes(e.capacity), fits_text(e, s, style)),
               style);
  text += fact("Host", host_text(e), style);
  text += run_facts(e, s, style);
  text += table_section(
      fmt::format("Where the time goes (pipeline rank {}, the last to finish; bubble {:.1f} % of "
                  "the slowest stage's work)",
                  e.critical_rank, 100 * e.bubble_fraction),
      time_table(e, style.style.width, busiest_rank(e, evaluator)), style);
  text += bullet(hidden_sentence(e, evaluator), style);
  text += bullet(padding_sentence(e, s), style);
  text +=
      table_section("Pipeline stages: one micro-batch, and memory on each of their devices in GiB",
                    stage_table(e, s.model), style);
  text += bullet(peak_sentence(evaluator.peak_place(e)), style);
  text += bullet(retries_sentence(e, s, evaluator), style);
  const Table traffic = traffic_table(e);
  if (!traffic.rows.empty()) {
    text += table_section("Sent by each device of a stage in one iteration", traffic, style);
  }
  const auto assumed = assumptions(e, s);
  if (!assumed.empty()) {
    text += section_title("Assumed", style);
    for (const auto& note : assumed) text += bullet(note, style);
  }
  return text;
}

namespace {

// The sharding found: a summary, then operator by operator.
std::string sharding_text(const ShardedStage& s, const ReportStyle& style) {
  std::string text = section_title("Sharding inside a stage", style);
  text += bullets(sharding_sentences(s.sharding), style);
  text += bullets(as_plan_sentences(s), style);
  if (!s.sharding.found.choice.empty()) text += section_table(sharding_table(s.sharding), style);
  return text;
}

// The plans that need less memory than the fastest one.
std::string front_text(const std::vector<Estimate>& front, const Scenario& s,
                       const ReportStyle& style) {
  if (front.empty()) return "";
  std::string text = section_title("Less memory (each the best of those that need no more)", style);
  if (front.size() > 1)
    return text + section_table(front_table(front, s.training.error_band.pair_spread), style);
  return text + bullet(fmt::format("No plan needs {:g} % less memory than the fastest.",
                                   100 * least_saving),
                       style);
}

// What each key that nobody asked for gains.
std::string gains_text(const Strategies& all, const Scenario& s, const ReportStyle& style) {
  std::string text;
  for (const UnaskedKey& unasked : all.unasked)
    text += bullet(unasked_gain(unasked, all, s), style);
  return text;
}

std::string runner_up(const Estimate& best, const Estimate& next) {
  const bool faster = next.iteration < best.iteration;
  return fmt::format("The runner-up is {} {}: {}.",
                     signed_percent(next.iteration / best.iteration).substr(1),
                     faster ? "faster, and less simple" : "slower", difference(best, next));
}

// How far the best plan may be from the bound, unless it is as quick.
std::string gap_text(const Estimate& best, Seconds bound, bool fastest) {
  const double gap = 100 * (best.iteration / bound - 1);
  constexpr double shown = 0.005;  // per cent
  return gap < shown
             ? std::string()
             : fmt::format("; the {} is within {:.2f} %", fastest ? "best" : "chosen plan", gap);
}

}  // namespace

std::string search_report(const Strategies& all, const std::vector<Step>& steps, const Scenario& s,
                          std::optional<double> seconds, const ReportStyle& style,
                          const std::vector<Estimate>& front, const FamilyMembers& members) {
  const SearchResult& r = all.found;
  const Estimate& best = r.plans.front();
  Evaluator evaluator(s.model, s.cluster, s.training);
  std::string text = heading(s, style) + plan_report(best, s, style);
  const auto busiest = busiest_rank(best, evaluator);
  const Seconds waits = host_waits(best, busiest, evaluator);
  text += section_title("Why this plan", style) + bullets(reasons(best, busiest, waits), style);
  text += bullet(fastest_sentence(best, all.fastest, s), style);
  text += bullet(measured_sentence(all, s), style) + gains_text(all, s, style);
  const bool named = r.plans.size() > 1 && all.fastest && r.plans[1].plan == all.fastest->plan;
  if (r.plans.size() > 1 && !named) text += bullet(runner_up(best, r.plans[1]), style);
  const bool families = s.search.rows == RankingRows::families;
  text += table_section(
      fmt::format("Ranking{} (beats 1: the chance, by errors of published runs, of being really "
                  "faster)",
                  families ? ", the best of each t, p, d, c, e" : ""),
      ranking_table(r.plans, s.training.error_band.pair_spread, members), style);
  text += front_text(front, s, style);
  if (!steps.empty()) {
    text += table_section("One step away from the best", step_table(steps, best), style);
  }
  const auto sentences = strategy_sentences(all, s.training.stack);
  if (!sentences.empty())
    text += section_title("Even stages and others", style) + bullets(sentences, style);
  if (all.sharding) text += sharding_text(*all.sharding, style);
  const auto& n = r.statistics;
  text += section_title("Search", style);
  const std::uint64_t unopened = r.expired ? 0 : n.configurations - n.evaluated;
  const auto count = [](std::uint64_t number) {
    return format_integer(static_cast<long long>(number));
  };
  text += bullet(fmt::format("{} valid plans{}: {} evaluated, {} of them fit, {} simulated; lower "
                             "bounds ruled out {} of those and {} others.",
                             count(n.configurations),
                             seconds ? " in " + format_seconds(Seconds(*seconds)) : "",
                             count(n.evaluated), count(n.feasible), count(n.simulated),
                             count(n.pruned - unopened), count(unopened)),
                 style);
  text +=
      bullet(all.interrupted.empty()
                 ? fmt::format(
                       "Proved: under this cost model no plan of the space takes less than {}{}{}.",
                       format_seconds(r.lower_bound), gap_text(best, r.lower_bound, !all.fastest),
                       proved_but(all))
                 : fmt::format("The search was {}.", interruption(all)),
             style);
  text += bullet(left_out(all, s), style);
  text += bullet(unasked_keys_sentence(all, s), style);
  text += bullet(margin_sentence(s), style);
  const auto fixed = fixed_keys(s.plan);
  if (!fixed.empty()) {
    text +=
        bullet(fmt::format("The space keeps what is fixed by the scenario: {} (`--set plan={{}}` "
                           "frees them).",
                           fmt::join(fixed, ", ")),
               style);
  }
  return text;
}

namespace {

// Why the limit is not all of the device's memory.
std::string kept_free(const Scenario& s) {
  if (s.search.memory_margin == 0) return "";
  return fmt::format(", which leaves {:.3g} % free ({})", 100 * s.search.memory_margin,
                     margin_key(s.search));
}

}  // namespace

std::string fitting_report(const std::vector<Remedy>& remedies, const ReportStyle& style) {
  if (remedies.empty()) return "";
  std::string text =
      section_title("What would make it fit, least time of the devices for a token first", style);
  text += bullets(sentences_of(remedies), style);
  return text;
}

std::vector<std::vector<std::string>> fitting_rows(const std::vector<Remedy>& remedies) {
  std::vector<std::vector<std::string>> rows;
  for (const Remedy& remedy : remedies) {
    rows.push_back({"what would make it fit", fmt::format("{}", fmt::join(remedy.settings, " ")),
                    format_seconds(remedy.best.iteration), remedy.sentence()});
  }
  return rows;
}

std::string failure_report(const SearchResult& r, const Diagnosis& d, const Scenario& s,
                           const ReportStyle& style) {
  std::string text = heading(s, style);
  if (r.statistics.configurations == 0) {
    text += "\nNo plan obeys the rules for these devices, this batch and the fixed keys.\n";
  } else {
    text +=
        fmt::format("\nNothing fits: none of {} valid plans stays within {} of device memory{}.\n",
                    format_integer(static_cast<long long>(r.statistics.configurations)),
                    format_bytes(memory_limit(s)), kept_free(s));
  }
  text += section_title("What stands in the way", style) + bullets(d.obstacles, style);
  text += section_title("What would help", style);
  if (d.remedies.empty()) {
    text += bullet(fmt::format("nothing that was tried: {}", fmt::join(d.tried, "; ")), style);
  }
  text += bullets(sentences_of(d.remedies), style);
  return text;
}

std::string unfinished_report(const Strategies& all, const Scenario& s, const ReportStyle& style) {
  return heading(s, style) + fmt::format("\nNo plan was found: {}.\n", unfinished(all));
}

}  // namespace planner
