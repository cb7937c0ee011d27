#include "planner/report/tower_report.hpp"

#include <fmt/format.h>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/estimate/model_flops.hpp"
#include "costmodel/operators/tower_layers.hpp"
#include "costmodel/plan/trained_parameters.hpp"

namespace planner {

using namespace costmodel;

namespace {

// A model of this tower alone, for what is counted of all towers of a model.
ModelSpec with_tower(const ModelSpec& model, const TowerSpec& tower) {
  ModelSpec own = model;
  own.towers = std::make_shared<const Towers>(Towers{{tower}});
  return own;
}

void add_times(const Estimate& e, const TowerSpec& tower, Evaluator& evaluator, TowerFigures& f) {
  const ParallelPlan plan = evaluator.as_run(e.plan), unsharded;
  const TrainingSpec& training = evaluator.training();
  for (const TowerLayers& own : tower_layers(with_tower(evaluator.model(), tower))) {
    f.model += model_flops(evaluator.op_list(own.kind, unsharded), LayerKind::encoder).full *
               (static_cast<double>(own.number) * static_cast<double>(training.global_batch));
    if (!e.plan.even()) continue;
    const bool again = recomputes(own.kind, plan.recompute, training.fine_tuning);
    const LayerCost& cost =
        evaluator.layer(own.kind, plan, again ? region_of(plan.recompute) : Recomputed::nothing);
    f.forward += own.number * cost.forward.time();
    f.backward += own.number * (cost.backward.time() + cost.recompute.time());
    f.kept += cost.footprint.kept * own.number;
  }
}

std::string trained_words(const TowerFigures& f) {
  if (f.trained == 0) return "frozen";
  if (f.trained == f.parameters) return "trained";
  return fmt::format("{} of them trained", format_count(f.trained));
}

}  // namespace

std::vector<TowerFigures> tower_figures(const Estimate& e, const Scenario& s,
                                        Evaluator& evaluator) {
  std::vector<TowerFigures> all;
  for (const TowerSpec& tower : towers_of(s.model)) {
    const TowerUse& use = s.training.towers;
    TowerFigures& f = all.emplace_back();
    f.name = tower_names[static_cast<std::size_t>(tower.input)];
    f.layers = tower.encoder.layers;
    f.parameters = tower_parameters(tower);
    f.trained =
        f.parameters - frozen_parameters(with_tower(s.model, tower), s.training.fine_tuning);
    f.inputs = use.number_of(tower);
    f.tokens = tokens_of(tower, use.size_of(tower));
    f.cut = is_cut(tower, e.plan.tp);
    add_times(e, tower, evaluator, f);
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> tower_facts(const Estimate& e, const Scenario& s,
                                                             Evaluator& evaluator) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const TowerFigures& f : tower_figures(e, s, evaluator)) {
    const bool images = f.name == "vision";
    std::string line = fmt::format(
        "{} parameters, {}; {} {}{} a sequence, {} tokens each of which the language model reads "
        "{}",
        format_count(f.parameters), trained_words(f), format_integer(f.inputs),
        images ? "image" : "clip", f.inputs == 1 ? "" : "s", format_integer(f.tokens.encoder),
        format_integer(f.tokens.language));
    if (f.forward.value > 0) {
      line +=
          fmt::format("; forward {}, backward {} of the first stage's, {} kept",
                      format_seconds(f.forward), format_seconds(f.backward), format_bytes(f.kept));
    }
    if (e.plan.tp > 1 && !f.cut) line += "; complete on every tensor rank";
    lines.emplace_back(images ? "Vision" : "Audio", line);
  }
  return lines;
}

}  // namespace planner
