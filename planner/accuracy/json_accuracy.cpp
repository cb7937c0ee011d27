#include "planner/accuracy/json_accuracy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "costmodel/base/json_text.hpp"
#include "planner/accuracy/scorecard.hpp"
#include "planner/report/json_plan.hpp"

namespace planner {

using Json = nlohmann::ordered_json;

namespace {

Json figures_json(const ErrorFigures& f) {
  return {{"rows", f.rows},
          {"mape_pct", f.mape},
          {"median_ape_pct", f.median_ape},
          {"p90_ape_pct", f.p90_ape},
          {"max_ape_pct", f.max_ape},
          {"bias_pct", f.bias},
          {"interval_coverage_pct", f.coverage},
          {"interval_score_pct", f.interval_score}};
}

Json figures_json(const FiguresByName& figures) {
  Json json = Json::object();
  for (const auto& [name, own] : figures) json[name] = figures_json(own);
  return json;
}

// Memory has no interval.
Json memory_json(const ErrorFigures& f) {
  Json json = figures_json(f);
  json.erase("interval_coverage_pct");
  json.erase("interval_score_pct");
  return json;
}

Json fits_json(const FitFigures& f) {
  return {{"fitted", f.fitted},
          {"called_too_large", f.called_too_large},
          {"did_not_fit", f.did_not_fit},
          {"recognised", f.recognised}};
}

Json choices_json(const std::vector<FirstChoice>& choices) {
  const ChoiceFigures f = figures_of(choices);
  Json list = Json::array();
  for (const auto& c : choices) {
    list.push_back({{"source", c.source},
                    {"workload", c.workload},
                    {"plans", c.plans},
                    {"as_fast", c.fastest},
                    {"predicted_fastest", c.predicted},
                    {"measured_fastest", c.measured},
                    {"loss_pct", c.loss_pct},
                    {"right", c.right()}});
  }
  const bool any = !choices.empty();
  return {{"workloads", f.workloads},
          {"within_pct", as_fast_pct},
          {"right", f.right},
          {"right_pct", any ? Json(f.right_pct) : Json()},
          {"by_chance_pct", any ? Json(f.by_chance_pct) : Json()},
          {"mean_loss_pct", any ? Json(f.mean_loss_pct) : Json()},
          {"largest_loss_pct", any ? Json(f.largest_loss_pct) : Json()},
          {"by_workload", list}};
}

Json rank_json(const RankAgreement& rank) {
  Json groups = Json::array(), calibration = Json::array();
  for (const auto& g : rank.groups) {
    groups.push_back({{"source", g.source},
                      {"workload", g.workload},
                      {"plans", g.plans},
                      {"spearman", g.spearman},
                      {"pairs_right_pct", 100 * g.pairs_right / g.pairs},
                      {"ratio_error_pct", 100 * g.ratio_error}});
  }
  for (const auto& bin : rank.calibration) {
    calibration.push_back({{"from", bin.from},
                           {"to", bin.to},
                           {"pairs", bin.pairs},
                           {"mean_probability", bin.mean_probability},
                           {"right_pct", bin.right_pct}});
  }
  const bool any = !rank.groups.empty();
  return {{"groups", rank.groups.size()},
          {"spearman", any ? Json(rank.mean_spearman) : Json()},
          {"pairs", rank.pairs},
          {"pairs_right_pct", any ? Json(rank.pairs_right_pct) : Json()},
          {"ratio_error_pct", any ? Json(rank.ratio_error_pct) : Json()},
          {"calibration", calibration},
          {"by_group", groups},
          {"first_choice", choices_json(rank.choices)}};
}

Json row_json(const ValidationRow& row) {
  Json json{{"id", row.id}, {"source", row.source}, {"quantity", row.quantity}};
  const RunFacts& f = row.facts;
  for (const auto& [key, text] :
       {std::pair("stack", f.stack), std::pair("framework", f.framework),
        std::pair("device", f.device), std::pair("precision", f.precision),
        std::pair("parallelism", f.parallelism), std::pair("family", f.traits.family)}) {
    if (!text.empty()) json[key] = text;
  }
  if (!f.stack.empty()) {
    json["experts"] = f.traits.experts;
    json["mechanisms"] = f.traits.mechanisms;
    json["devices"] = f.devices;
    json["parameters"] = f.traits.parameters;
  }
  const bool verdict = row.quantity == "fits";
  json["measured"] = verdict ? Json(row.measured > 0) : Json(row.measured);
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["predicted"] = verdict ? Json(row.predicted > 0) : Json(row.predicted);
  if (!verdict) json["error_pct"] = row.error_pct();
  if (verdict) {
    json["peak_bytes"] = row.peak;
    json["capacity_bytes"] = row.capacity;
  }
  if (!row.contradicted.empty()) json["contradicted"] = row.contradicted;
  if (!row.unstated.empty()) json["unstated"] = row.unstated;
  if (row.kinds_measured) {
    for (std::size_t i = 0; i < kind_keys.size(); ++i) {
      json["kinds"][kind_keys[i]]["measured_s"] = (*row.kinds_measured)[i];
      if (row.kinds_predicted)
        json["kinds"][kind_keys[i]]["predicted_s"] = (*row.kinds_predicted)[i];
    }
  }
  if (row.interval) {
    json["interval"] = {row.interval->low.value, row.interval->high.value};
    json["inside"] = row.inside();
  }
  return json;
}

Json means_json(const costmodel::MeanErrors& m) {
  return {{"macro_mape_pct", m.sources},
          {"dense_macro_mape_pct", m.dense},
          {"experts_macro_mape_pct", m.experts},
          {"experts_mape_pct", m.experts_by_run}};
}

Json left_out_json(const Scorecard& card) {
  if (card.unseen == nullptr) return {};
  const costmodel::UnseenErrors& u = card.unseen->unseen;
  const auto& dense = card.unseen->of(false);
  const auto& experts = card.unseen->of(true);
  const double runs = dense.count.runs + experts.count.runs;
  Json by_source = Json::object(), errors = Json::object(), by_kind = Json::object();
  for (const auto& [source, own] : u.by_source) {
    by_source[source] = own.covered;
    errors[source] = own.error;
  }
  for (const auto& [name, kind] : {std::pair("dense", &dense), std::pair("experts", &experts)}) {
    by_kind[name] = {{"rows", kind->count.runs},
                     {"sources", kind->count.sources},
                     {"interval_coverage_pct", kind->covered}};
  }
  return {{"interval_coverage_pct",
           (dense.covered * dense.count.runs + experts.covered * experts.count.runs) / runs},
          {"by_source", by_source},
          {"mape_pct_by_source", errors},
          {"by_kind", by_kind},
          {"source", means_json(u.source)},
          {"family", means_json(u.family)},
          {"device", means_json(u.device)},
          {"stack", means_json(u.stack)},
          {"in_sample", means_json(u.in_sample)}};
}

Json chances_json(const std::vector<Outcome>& outcomes) {
  const BrierScore score = brier_score(outcomes);
  const auto known = [](int runs, double value) { return runs > 0 ? Json(value) : Json(); };
  return {{"brier", known(score.runs, score.all)},
          {"brier_over_sources", known(score.runs, score.over_sources)},
          {"brier_out_of_memory", known(score.out_of_memory, score.of_misfits)}};
}

// Of each run, the errors of predictions that had not seen it.
Json runs_json(const RefitResult& fitted) {
  Json runs = Json::array();
  const auto percent = [](double error) {
    return std::isnan(error) ? Json() : Json(100 * std::expm1(error));
  };
  for (const auto& run : fitted.runs) {
    runs.push_back({{"id", run.id},
                    {"source", run.source},
                    {"family", run.traits.family},
                    {"device", run.traits.device},
                    {"error_pct", percent(run.error(FittedTo::all))},
                    {"source_left_out_error_pct", percent(run.error(FittedTo::other_sources))},
                    {"family_left_out_error_pct", percent(run.error(FittedTo::other_families))},
                    {"device_left_out_error_pct", percent(run.error(FittedTo::other_devices))}});
  }
  return runs;
}

}  // namespace

std::string validation_json(const std::vector<ValidationRow>& rows,
                            const costmodel::ResidualTable* kept) {
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(row_json(row));
  const Scorecard card = scorecard_of(rows, kept);
  const ValidationSummary& s = card.summary;
  Json summary = figures_json(s.all);
  summary["macro_mape_pct"] = s.macro_mape;
  summary["unpredicted"] = s.unpredicted;
  summary["contradicted"] = s.contradicted;
  summary["unstated"] = s.unstated;
  summary["fitted_called_too_large"] = s.fitted_called_too_large;
  summary["too_large_called_fitting"] = s.too_large_called_fitting;
  summary["by_source"] = figures_json(s.by_source);
  summary["by_device"] = figures_json(s.by_device);
  summary["by_framework"] = figures_json(s.by_framework);
  summary["by_setting"] = figures_json(s.by_setting);
  summary["by_parallelism"] = figures_json(s.by_parallelism);
  summary["by_precision"] = figures_json(s.by_precision);
  summary["memory"] = memory_json(s.memory);
  summary["memory"]["macro_mape_pct"] = s.memory_macro;
  summary["allocated"] = memory_json(s.allocated);
  Json memory = Json::object(), fits = Json::object();
  for (const auto& [source, figures] : s.memory_by_source) {
    memory[source] = figures_json(figures);
    if (const auto own = s.counted_by_source.find(source); own != s.counted_by_source.end())
      memory[source]["log_prints"] = fmt::format("{}", fmt::join(own->second, ", "));
  }
  for (const auto& [source, figures] : s.fits_by_source) fits[source] = fits_json(figures);
  summary["memory_by_source"] = memory;
  summary["fits"] = fits_json(s.fits);
  summary["fits"].update(chances_json(card.outcomes));
  summary["fits_by_source"] = fits;
  summary["left_out"] = left_out_json(card);
  summary["rank"] = rank_json(card.rank);
  return costmodel::json_text(Json{{"rows", list}, {"summary", summary}});
}

std::string refit_json(const RefitResult& fitted) {
  Json constants = Json::array();
  for (const auto& c : fitted.constants) {
    constants.push_back({{"name", c.name},
                         {"files", c.files},
                         {"key", c.key},
                         {"prior", c.prior},
                         {"fitted", c.value},
                         {"runs", c.runs}});
  }
  Json sources = Json::object();
  const auto after = fitted.by_source(FittedTo::all);
  const auto left_out = fitted.by_source(FittedTo::other_sources);
  for (const auto& [source, before] : fitted.by_source(FittedTo::configured)) {
    sources[source] = {{"before_mape_pct", before}, {"mape_pct", after.at(source)}};
    if (left_out.contains(source)) sources[source]["left_out_mape_pct"] = left_out.at(source);
  }
  const double macro = fitted.means(FittedTo::all).sources;
  Json json{{"constants", constants},
            {"by_source", sources},
            {"objective", fitted.objective},
            {"before_objective", fitted.objective_before},
            {"before_macro_mape_pct", fitted.means(FittedTo::configured).sources},
            {"macro_mape_pct", macro}};
  if (fitted.cross_validated) {
    json["runs"] = runs_json(fitted);
    json["left_out_macro_mape_pct"] = fitted.means(FittedTo::other_sources).sources;
    json["left_out"] = {{"source", means_json(fitted.means(FittedTo::other_sources))},
                        {"family", means_json(fitted.means(FittedTo::other_families))},
                        {"device", means_json(fitted.means(FittedTo::other_devices))},
                        {"stack", means_json(fitted.means(FittedTo::other_stacks))}};
  }
  return costmodel::json_text(json);
}

using costmodel::Estimate;

namespace {

Json priced_json(const std::optional<Estimate>& e) {
  if (!e) return {};
  return {{"iteration_s", e->iteration.value}, {"plan", printed_plan(*e)}};
}

Json figures_json(const ComparisonFigures& f) {
  return {{"runs", f.runs},
          {"as_fast", f.as_fast},
          {"slower", f.slower},
          {"median_gain_pct", f.median_gain_pct},
          {"smallest_gain_pct", f.smallest_gain_pct},
          {"largest_gain_pct", f.largest_gain_pct}};
}

Json run_json(const ExpertRun& run, const ExpertComparison& c) {
  Json json{{"id", run.id}, {"source", run.source}};
  if (run.measured) json["measured_s"] = *run.measured;
  if (!run.own) {
    json["error"] = run.error;
    return json;
  }
  json["workload"] = run.workload;
  json["predicted_s"] = run.own->iteration.value;
  json["fits"] = run.own->fits();
  json["plan"] = printed_plan(*run.own);
  const Estimate* best = c.workloads[run.workload].best();
  const auto gain = c.gain_pct(run);
  json["planner_s"] = best != nullptr ? Json(best->iteration.value) : Json();
  json["gain_pct"] = gain ? Json(*gain) : Json();
  return json;
}

Json workload_json(const ExpertWorkload& w, bool layouts) {
  Json json{{"model", w.model}, {"on", w.rest}, {"even_stages", priced_json(w.even)}};
  if (layouts) json["any_layout"] = priced_json(w.any);
  if (!w.error.empty()) json["error"] = w.error;
  return json;
}

}  // namespace

std::string expert_json(const ExpertComparison& c) {
  Json runs = Json::array(), workloads = Json::array(), slower = Json::array();
  Json by_source = Json::object();
  std::set<std::string> sources;
  for (const auto& run : c.runs) {
    runs.push_back(run_json(run, c));
    sources.insert(run.source);
  }
  for (const auto& w : c.workloads) workloads.push_back(workload_json(w, c.layouts));
  for (const auto* run : slower_runs(c)) slower.push_back(run->id);
  for (const auto& source : sources) by_source[source] = figures_json(figures_of(c, source));
  Json summary = figures_json(figures_of(c));
  summary["equal_within_pct"] = equal_pct;
  summary["slower_runs"] = slower;
  summary["by_source"] = by_source;
  return costmodel::json_text(Json{{"runs", runs}, {"workloads", workloads}, {"summary", summary}});
}

}  // namespace planner
