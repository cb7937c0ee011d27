#include "planner/accuracy/scorecard_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "planner/accuracy/kernel_kinds.hpp"

namespace planner {

namespace {

constexpr std::size_t shown_when_few = 20;

std::string rounded(double v) { return fmt::format("{:.0f}", v); }

std::vector<std::string> error_cells(const std::string& name, const ErrorFigures& f) {
  if (f.rows == 0) return {name, "0", "", "", "", "", ""};
  return {name,
          fmt::format("{}", f.rows),
          one_decimal(f.mape),
          one_decimal(f.median_ape),
          one_decimal(f.p90_ape),
          one_decimal(f.max_ape),
          fmt::format("{:+.1f}", f.bias)};
}

Table error_table(const std::string& name) {
  Table t{{left(name)}};
  t.columns.insert(t.columns.end(), {"runs", right("MAPE %", 0), right("median %", 3),
                                     right("p90 %", 3), right("max %", 2), right("bias %", 2)});
  return t;
}

void add_timed(Table& t, const std::string& name, const ErrorFigures& f) {
  t.rows.push_back(error_cells(name, f));
  t.rows.back().push_back(f.rows == 0 ? "" : rounded(f.coverage));
}

// Error and coverage twice: as configured, and (unseen, held) with the source left out of all fits.
Table source_table(const Scorecard& card) {
  Table t = error_table("source");
  t.columns.push_back({"inside %"});
  if (card.unseen != nullptr) {
    t.columns.push_back({"unseen %"});
    t.columns.push_back({"held %"});
  }
  for (const auto& [source, figures] : card.summary.by_source) {
    add_timed(t, source, figures);
    if (card.unseen == nullptr) continue;
    const auto& by_source = card.unseen->unseen.by_source;
    const auto at = by_source.find(source);
    t.rows.back().push_back(at == by_source.end() ? "" : one_decimal(at->second.error));
    t.rows.back().push_back(at == by_source.end() ? "" : rounded(at->second.covered));
  }
  add_timed(t, "all runs", card.summary.all);
  t.rows.back().resize(t.columns.size());
  return t;
}

// How well runs are predicted that the constants have, and have not, seen.
Table unseen_table(const Scorecard& card) {
  Table t{{left("constants fitted without its"), "over sources %", "dense %", "experts %",
           "experts, over runs %"}};
  if (card.unseen == nullptr) return t;
  const costmodel::UnseenErrors& u = card.unseen->unseen;
  for (const auto& [name, e] : {std::pair("source", u.source), std::pair("model family", u.family),
                                std::pair("device", u.device), std::pair("software", u.stack),
                                std::pair("(as configured, all seen)", u.in_sample)}) {
    t.rows.push_back({name, one_decimal(e.sources), one_decimal(e.dense), one_decimal(e.experts),
                      one_decimal(e.experts_by_run)});
  }
  return t;
}

// The intervals of left-out sources, by kind and lineage of stacks.
Table kind_table(const Scorecard& card) {
  Table t{{left("models"), "runs", "sources", "inside %", "low", "high"}};
  if (card.unseen == nullptr) return t;
  const auto add = [&t](const std::string& models, const costmodel::Percentiles& own) {
    t.rows.push_back({models, fmt::format("{}", own.count.runs),
                      fmt::format("{}", own.count.sources), one_decimal(own.covered),
                      fmt::format("{:.2f}", std::exp(own.low)),
                      fmt::format("{:.2f}", std::exp(own.high))});
  };
  for (const bool experts : {false, true}) {
    const costmodel::KindResiduals& kind = card.unseen->of(experts);
    if (kind.count.runs == 0) continue;
    const std::string models = experts ? "mixtures of experts" : "dense";
    add(models, kind);
    for (const auto& [name, own] : kind.lineages)
      add(fmt::format("{}, {} stacks", models, name), own);
  }
  return t;
}

Table fact_table(const std::string& fact, const FiguresByName& figures) {
  Table t = error_table(fact);
  t.columns.push_back({"inside %"});
  for (const auto& [name, own] : figures) add_timed(t, name, own);
  return t;
}

// What is not in it nobody has measured.
Table setting_table(const ValidationSummary& s) {
  Table t{{left("device, framework, family"), "runs", "MAPE %", "max %", "bias %", "inside %"}};
  for (const auto& [name, own] : s.by_setting) {
    t.rows.push_back({name, fmt::format("{}", own.rows), one_decimal(own.mape),
                      one_decimal(own.max_ape), fmt::format("{:+.1f}", own.bias),
                      fmt::format("{:.0f}", own.coverage)});
  }
  return t;
}

Table memory_table(const ValidationSummary& s) {
  Table t = error_table("source");
  for (const auto& [source, figures] : s.memory_by_source)
    t.rows.push_back(error_cells(source, figures));
  if (!t.rows.empty()) t.rows.push_back(error_cells("all runs", s.memory));
  t.columns.insert(t.columns.begin() + 1, left("log prints"));
  for (auto& row : t.rows) {
    const auto counted = s.counted_by_source.find(row.front());
    row.insert(row.begin() + 1, counted == s.counted_by_source.end()
                                    ? ""
                                    : fmt::format("{}", fmt::join(counted->second, ", ")));
  }
  return t;
}

std::vector<std::string> fit_cells(const std::string& name, const FitFigures& f) {
  return {name, fmt::format("{}", f.fitted), fmt::format("{}", f.called_too_large),
          fmt::format("{}", f.did_not_fit), fmt::format("{}", f.recognised)};
}

// Omits sources for which every run fitted and was predicted to fit.
Table fits_table(const ValidationSummary& s) {
  Table t{
      {left("source"), "ran", "of these called too large", "out of memory", "of these recognised"}};
  for (const auto& [source, fits] : s.fits_by_source) {
    if (fits.called_too_large + fits.did_not_fit > 0) t.rows.push_back(fit_cells(source, fits));
  }
  if (s.fits.fitted + s.fits.did_not_fit > 0) t.rows.push_back(fit_cells("all runs", s.fits));
  return t;
}

Table chance_table(const Scorecard& card) {
  Table t{{"chance", "runs", "mean chance %", "ran %"}};
  for (const ChanceBin& bin : chance_bins(card.outcomes)) {
    if (bin.runs == 0) continue;
    t.rows.push_back({fmt::format("{:g} to {:g}", bin.from, bin.to), fmt::format("{}", bin.runs),
                      one_decimal(100 * bin.mean_chance), one_decimal(100 * bin.ran)});
  }
  return t;
}

Table rank_table(const RankAgreement& rank) {
  struct Sum {
    int groups = 0, plans = 0, pairs = 0;
    double spearman = 0, right = 0, ratio = 0;
  };
  std::map<std::string, Sum> by_source;
  for (const auto& g : rank.groups) {
    Sum& sum = by_source[g.source];
    ++sum.groups;
    sum.plans += g.plans;
    sum.pairs += g.pairs;
    sum.spearman += g.plans * g.spearman;
    sum.right += g.pairs_right;
    sum.ratio += 100 * g.plans * g.ratio_error;
  }
  Table t{{left("source"), "groups", "plans", "Spearman", "pairs", "right %", "ratio error %"}};
  const auto add = [&t](const std::string& name, const Sum& s) {
    t.rows.push_back({name, fmt::format("{}", s.groups), fmt::format("{}", s.plans),
                      fmt::format("{:.2f}", s.spearman / s.plans), fmt::format("{}", s.pairs),
                      rounded(100 * s.right / s.pairs), one_decimal(s.ratio / s.plans)});
  };
  Sum all;
  for (const auto& [source, sum] : by_source) {
    add(source, sum);
    all.groups += sum.groups;
    all.plans += sum.plans;
    all.pairs += sum.pairs;
    all.spearman += sum.spearman;
    all.right += sum.right;
    all.ratio += sum.ratio;
  }
  if (all.groups > 0) add("all groups", all);
  return t;
}

Table group_table(const RankAgreement& rank) {
  Table t{{left("source"), left("workload"), "plans", "Spearman", "right %", "ratio error %"}};
  for (const auto& g : rank.groups) {
    t.rows.push_back({g.source, g.workload, fmt::format("{}", g.plans),
                      fmt::format("{:+.2f}", g.spearman), rounded(100 * g.pairs_right / g.pairs),
                      one_decimal(100 * g.ratio_error)});
  }
  return t;
}

Table choice_table(const RankAgreement& rank) {
  std::map<std::string, std::vector<FirstChoice>> by_source;
  for (const auto& c : rank.choices) by_source[c.source].push_back(c);
  Table t{{left("source"), "workloads", "right", "right %", "by chance %", "mean loss %",
           "largest loss %"}};
  const auto add = [&t](const std::string& name, const std::vector<FirstChoice>& choices) {
    const ChoiceFigures f = figures_of(choices);
    t.rows.push_back({name, fmt::format("{}", f.workloads), fmt::format("{}", f.right),
                      rounded(f.right_pct), rounded(f.by_chance_pct), one_decimal(f.mean_loss_pct),
                      one_decimal(f.largest_loss_pct)});
  };
  for (const auto& [source, choices] : by_source) add(source, choices);
  if (!rank.choices.empty()) add("all workloads", rank.choices);
  return t;
}

// Largest loss first, of all workloads or only of those with a wrong choice.
Table choices_table(const RankAgreement& rank, bool all) {
  std::vector<FirstChoice> choices;
  for (const auto& c : rank.choices) {
    if (all || !c.right()) choices.push_back(c);
  }
  std::ranges::stable_sort(choices,
                           [](const auto& a, const auto& b) { return a.loss_pct > b.loss_pct; });
  Table t{{left("source"), left("workload"), "plans", "loss %", left("predicted fastest"),
           left("measured fastest")}};
  for (const auto& c : choices) {
    t.rows.push_back({c.source, c.workload, fmt::format("{}", c.plans), one_decimal(c.loss_pct),
                      c.predicted, c.measured});
  }
  return t;
}

Table calibration_table(const RankAgreement& rank) {
  Table t{{"probability of the order", "pairs", "mean probability %", "right %"}};
  for (const auto& bin : rank.calibration) {
    t.rows.push_back({fmt::format("{:g} to {:g}", bin.from, bin.to), fmt::format("{}", bin.pairs),
                      rounded(100 * bin.mean_probability), rounded(bin.right_pct)});
  }
  return t;
}

Table time_table(const std::vector<const ValidationRow*>& rows) {
  Table t{
      {left("run"), "measured s", "predicted s", right("error %", 0), left("90 % interval", 2)}};
  for (const auto* row : rows) {
    const bool told = row->error.empty();
    t.rows.push_back({row->id, fmt::format("{:.4g}", row->measured),
                      told ? fmt::format("{:.4g}", row->predicted) : "",
                      told ? fmt::format("{:+.1f}", row->error_pct()) : "",
                      told && row->interval
                          ? fmt::format("{:.3g}–{:.3g}{}", row->interval->low.value,
                                        row->interval->high.value, row->inside() ? "" : " *")
                          : ""});
  }
  return t;
}

// The ten worst, abbreviated to terminal width: both ends of a long name.
Table ten_worst(const std::vector<ValidationRow>& rows) {
  Table t = time_table(worst_rows(rows, 10));
  constexpr std::size_t longest = 47;
  for (auto& cells : t.rows) cells.front() = costmodel::shortened(cells.front(), longest);
  return t;
}

Table worst_by_source(const std::vector<ValidationRow>& rows, const ValidationSummary& s) {
  std::vector<const ValidationRow*> worst;
  for (const auto& [source, figures] : s.by_source) {
    const auto own = worst_rows(rows, 5, source);
    worst.insert(worst.end(), own.begin(), own.end());
  }
  return time_table(worst);
}

Table all_rows(const std::vector<ValidationRow>& rows) {
  std::vector<const ValidationRow*> timed;
  for (const auto& row : rows) {
    if (row.quantity == "iteration_s") timed.push_back(&row);
  }
  return time_table(timed);
}

Table not_predicted(const std::vector<ValidationRow>& rows, bool full) {
  Table t{{"runs", left("why", 0)}};
  for (const auto& [count, why] : error_counts(rows)) {
    t.rows.push_back({fmt::format("{}", count), full ? why : costmodel::shortened(why, 88)});
  }
  return t;
}

Table contradicted_rows(const std::vector<ValidationRow>& rows) {
  Table t{{left("run"), right("measured s", 2), "predicted s", "error %", left("why", 0)}};
  for (const auto& row : rows) {
    if (row.quantity != "iteration_s" || row.contradicted.empty()) continue;
    const bool told = row.error.empty();
    t.rows.push_back({costmodel::shortened(row.id, 34), fmt::format("{:.4g}", row.measured),
                      told ? fmt::format("{:.4g}", row.predicted) : "",
                      told ? fmt::format("{:+.1f}", row.error_pct()) : "",
                      costmodel::shortened(row.contradicted, 28)});
  }
  return t;
}

void add_order(const Scorecard& card, std::vector<std::string>& lines) {
  if (!card.rank.groups.empty()) {
    lines.push_back(fmt::format(
        "Order of plans: {} workloads with 3 plans or more, Spearman {:.2f}, {:.0f} % of {} pairs "
        "right.",
        card.rank.groups.size(), card.rank.mean_spearman, card.rank.pairs_right_pct,
        card.rank.pairs));
    lines.push_back(fmt::format("  The ratio of two of their times is off by {:.1f} %.",
                                card.rank.ratio_error_pct));
  }
  if (const ChoiceFigures f = figures_of(card.rank.choices); f.workloads > 0) {
    lines.push_back(
        fmt::format("Best plan: the one predicted is within {:g} % of the fastest measured in {} "
                    "of {} workloads "
                    "({:.0f} %).",
                    as_fast_pct, f.right, f.workloads, f.right_pct));
  }
}

void add_chances(const Scorecard& card, std::vector<std::string>& lines) {
  if (const BrierScore score = brier_score(card.outcomes); score.runs > 0) {
    lines.push_back(fmt::format(
        "Chance that a run fits, by the peaks of other sources: Brier score {:.3f} over {} runs",
        score.all, score.runs));
    lines.push_back(fmt::format("  ({:.3f} over sources", score.over_sources));
    if (score.out_of_memory > 0) {
      lines.back() += fmt::format(", {:.3f} over the {} that were out of memory", score.of_misfits,
                                  score.out_of_memory);
    }
    lines.back() += ").";
  }
}

}  // namespace

std::vector<std::string> summary_lines(const Scorecard& card) {
  const ValidationSummary& s = card.summary;
  std::vector<std::string> lines;
  if (card.unseen != nullptr) {
    const costmodel::UnseenErrors& u = card.unseen->unseen;
    lines.push_back(
        fmt::format("Unseen runs: mean error over sources {:.1f} % with a run's model family left "
                    "out of the fit",
                    u.family.sources));
    lines.push_back(fmt::format(
        "  (dense {:.1f} %, experts {:.1f} %); {:.1f} % its software, {:.1f} % its "
        "device, "
        "{:.1f} % its source.",
        u.family.dense, u.family.experts, u.stack.sources, u.device.sources, u.source.sources));
  }
  lines.push_back(fmt::format(
      "Iteration time of {} measured runs: mean error over sources {:.1f} %, over runs {:.1f} %, "
      "bias {:+.1f} %.",
      s.all.rows, s.macro_mape, s.all.mape, s.all.bias));
  lines.push_back(fmt::format("90 % intervals: {:.1f} % of the runs lie inside.", s.all.coverage));
  if (card.unseen != nullptr) {
    lines.back().pop_back();
    lines.back() += fmt::format("; unseen: {:.1f} % of dense models, {:.1f} % of experts.",
                                card.unseen->of(false).covered, card.unseen->of(true).covered);
  }
  lines.push_back(
      fmt::format("  Interval score {:.1f} % (width, and 20 times by how much a run is outside; "
                  "mean over runs).",
                  s.all.interval_score));
  add_order(card, lines);
  if (s.memory.rows > 0) {
    lines.push_back(fmt::format(
        "Peak memory of {} runs: mean error {:.1f} %, over sources {:.1f} %, bias {:+.1f} %.",
        s.memory.rows, s.memory.mape, s.memory_macro, s.memory.bias));
  }
  if (s.allocated.rows > 0) {
    lines.push_back(fmt::format("  What tensors take of it, of {}: {:.1f} %, bias {:+.1f} %.",
                                s.allocated.rows, s.allocated.mape, s.allocated.bias));
  }
  lines.push_back(
      fmt::format("Fitting: {} of {} runs that ran are called too large; {} of {} that did not are "
                  "recognised.",
                  s.fits.called_too_large, s.fits.fitted, s.fits.recognised, s.fits.did_not_fit));
  add_chances(card, lines);
  lines.push_back(fmt::format("{} runs could not be predicted.", s.unpredicted));
  if (s.unstated > 0) {
    lines.push_back(fmt::format(
        "Runs whose source does not state all that memory depends on, in no figure of it: {}.",
        s.unstated));
  }
  if (s.contradicted > 0) {
    lines.push_back(
        fmt::format("Runs that their own source contradicts, listed apart and in no figure: {}.",
                    s.contradicted));
  }
  return lines;
}

std::vector<Section> scorecard_sections(const std::vector<ValidationRow>& rows,
                                        const Scorecard& card, Detail detail) {
  const ValidationSummary& s = card.summary;
  std::vector<Section> sections{
      {"Unseen runs", unseen_table(card)},
      {"Intervals of unseen runs (measured / predicted, 90 %)", kind_table(card)},
      {"Iteration time, by source", source_table(card)},
      {"By device", fact_table("device", s.by_device)},
      {"By framework", fact_table("framework", s.by_framework)},
      {"By parallelism", fact_table("parallelism", s.by_parallelism)},
      {"By precision", fact_table("precision", s.by_precision)},
      {"By device, framework and model family (others: unknown)", setting_table(s)},
      {"By kind of kernel, where it takes 5 % of the iteration or more", kind_error_table(rows)},
      {"Kinds of kernels of each profiled run", kind_run_table(rows)},
      {"Peak memory, by source", memory_table(s)},
      {"Does it fit", fits_table(s)},
      {"Chance that a run fits, by the peaks of other sources", chance_table(card)},
      {"Order of plans of one workload", rank_table(card.rank)},
      {"How often a predicted order is right", calibration_table(card.rank)},
      {fmt::format("Is the plan predicted fastest within {:g} % of the fastest", as_fast_pct),
       choice_table(card.rank)},
  };
  const bool every_run = detail.rows || rows.size() <= shown_when_few;
  if (detail.full || detail.rows) {
    sections.push_back({detail.rows ? "Each workload's, the largest loss first"
                                    : "Where it is not, the largest loss first",
                        choices_table(card.rank, detail.rows)});
  }
  if (detail.full) {
    sections.push_back({"Order of plans, by workload", group_table(card.rank)});
    sections.push_back({"The five largest errors of each source (*: outside the interval)",
                        worst_by_source(rows, s)});
  } else if (!every_run) {
    sections.push_back({"The ten largest errors (*: outside the interval)", ten_worst(rows)});
  }
  if (every_run) sections.push_back({"Every run (*: outside the interval)", all_rows(rows)});
  sections.push_back({"Contradicted by their own source", contradicted_rows(rows)});
  sections.push_back({"Not predicted", not_predicted(rows, detail.full)});
  return sections;
}

Table validation_rows(const std::vector<ValidationRow>& rows) {
  Table t;
  for (const auto* word :
       {"id", "source", "stack", "framework", "device", "precision", "parallelism", "quantity"})
    t.columns.push_back({word, false});
  for (const auto* number : {"measured", "predicted", "error_pct", "low", "high", "inside"})
    t.columns.push_back({number});
  t.columns.push_back({"error", false});
  for (const auto& row : rows) {
    const RunFacts& f = row.facts;
    const bool told = row.error.empty();
    const bool interval = told && row.interval;
    const auto number = [](bool shown, double v) {
      return shown ? fmt::format("{:.6g}", v) : std::string();
    };
    t.rows.push_back(
        {row.id, row.source, f.stack, f.framework, f.device, f.precision, f.parallelism,
         row.quantity, number(true, row.measured), number(told, row.predicted),
         number(told && row.quantity != "fits", row.quantity != "fits" ? row.error_pct() : 0),
         number(interval, interval ? row.interval->low.value : 0),
         number(interval, interval ? row.interval->high.value : 0),
         interval ? (row.inside() ? "true" : "false") : "", row.error});
  }
  return t;
}

std::string validation_report(const std::vector<ValidationRow>& rows, bool every_row,
                              const ReportStyle& style, const costmodel::ResidualTable* kept) {
  const bool markdown = style.markup == Markup::markdown;
  const Scorecard card = scorecard_of(rows, kept);
  std::string text = markdown ? "## Predictions against published runs\n\n" : "";
  for (const auto& line : summary_lines(card)) text += (markdown ? "- " : "") + line + "\n";
  for (const auto& section : scorecard_sections(rows, card, {markdown, every_row})) {
    if (section.table.rows.empty()) continue;
    text += table_section(section.title, section.table, style);
  }
  return text;
}

}  // namespace planner
