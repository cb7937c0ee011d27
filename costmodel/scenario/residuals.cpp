#include "costmodel/scenario/residuals.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/base/student_t.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"

namespace costmodel {

namespace {

std::string runs_text(int runs) {
  return fmt::format("{} published run{}", format_integer(runs), runs == 1 ? "" : "s");
}

// 1: no source measured it.
double novelty(int sources) { return sources == 0 ? 1 : sources == 1 ? 0.5 : 0; }

double doublings(double value, double most) {
  return most > 0 ? std::max(0.0, std::log2(value / most)) : 0;
}

int sources_of(const KindResiduals& kind, const Trait& trait) {
  const auto at = kind.traits.find(trait);
  return at == kind.traits.end() ? 0 : at->second.sources;
}

// "by peft", "of qwen models".
std::string with_trait(const Trait& trait) {
  const std::string name = shortened(trait.name);
  switch (trait.group) {
    case TraitGroup::stack: return "by " + (name.empty() ? "this stack" : name);
    case TraitGroup::device: return "on " + (name.empty() ? "this device" : name);
    case TraitGroup::family: return fmt::format("of {} models", name);
    case TraitGroup::mechanism:
    case TraitGroup::plan: break;
  }
  return "with " + name;
}

std::string lacking(const Trait& trait, int sources) {
  return fmt::format("{} {}", sources == 1 ? "one source" : "none", with_trait(trait));
}

std::vector<std::string> unknown_of(const KindResiduals& kind, const RunTraits& traits) {
  std::vector<std::string> unknown;
  for (const Trait& trait : listed(traits))
    if (sources_of(kind, trait) == 0) unknown.push_back(with_trait(trait));
  return unknown;
}

// Nothing by a table that does not count them.
PlanFeatures unmeasured_features(const KindResiduals& kind) {
  PlanFeatures measured = 0, all = 0;
  for (unsigned i = 0; i < plan_feature_names.size(); ++i) {
    const bool known = sources_of(kind, {TraitGroup::plan, std::string(plan_feature_names[i])}) > 0;
    all |= 1U << i;
    measured |= known ? 1U << i : 0;
  }
  if (measured == 0) return 0;
  const PlanFeatures unmeasured = all & ~measured;
  const bool any_third = (unmeasured & bit_of(PlanFeature::zero_3)) == 0;
  return any_third ? unmeasured : unmeasured & ~bit_of(PlanFeature::zero_3_in_pipeline);
}

// What of the run was measured, and what was not.
std::string basis_of(const KindResiduals& kind, const RunTraits& traits) {
  const std::string models = traits.experts ? "mixtures of experts" : "dense models";
  if (kind.count.runs == 0) return fmt::format("interval: no published run of {}: widest", models);
  const auto own = kind.runs.find({traits.stack, traits.device});
  const auto lineage = kind.lineages.find(traits.lineage);
  std::string text =
      lineage == kind.lineages.end()
          ? fmt::format("interval: {} of {}", runs_text(kind.count.runs), models)
          : fmt::format("interval: {} of {} by {} stacks", runs_text(lineage->second.count.runs),
                        models, traits.lineage);
  if (own != kind.runs.end()) {
    text +=
        fmt::format(", {} by {} on {}", format_integer(own->second), traits.stack, traits.device);
  }
  std::vector<std::string> reasons;
  for (const Trait& trait : listed(traits)) {
    const int sources = sources_of(kind, trait);
    if (novelty(sources) > 0) reasons.push_back(lacking(trait, sources));
  }
  if (traits.devices > kind.most_devices) {
    reasons.push_back(fmt::format("none on more than {} devices",
                                  format_integer(static_cast<std::int64_t>(kind.most_devices))));
  }
  if (traits.parameters > kind.most_parameters) {
    reasons.push_back(
        fmt::format("none of more than {} parameters", format_count(kind.most_parameters)));
  }
  if (!reasons.empty()) text += fmt::format("; {}: wider", fmt::join(reasons, ", "));
  return text;
}

}  // namespace

double width_of(const Widening& widening, const RunTraits& traits,
                const std::function<int(const Trait&)>& sources, double most_devices,
                double most_parameters) {
  std::array<double, trait_group_names.size()> most{};
  for (const Trait& trait : listed(traits)) {
    double& at = most[static_cast<std::size_t>(trait.group)];
    at = std::max(at, novelty(sources(trait)));
  }
  const auto of = [&most](TraitGroup group) { return most[static_cast<std::size_t>(group)]; };
  const double beyond = std::max(doublings(traits.devices, most_devices),
                                 doublings(traits.parameters, most_parameters));
  return std::pow(widening.stack, of(TraitGroup::stack)) *
         std::pow(widening.device, of(TraitGroup::device)) *
         std::pow(widening.model, std::max(of(TraitGroup::family), of(TraitGroup::mechanism))) *
         std::pow(widening.doubling, beyond);
}

ErrorBand band_of(const ResidualTable& table, const RunTraits& traits) {
  const KindResiduals& kind = table.of(traits.experts);
  const KindResiduals& known = kind.count.runs > 0 ? kind : table.of(!traits.experts);
  const double width = width_of(
      table.widening, traits, [&kind](const Trait& trait) { return sources_of(kind, trait); },
      kind.most_devices, kind.most_parameters);
  const auto lineage = known.lineages.find(traits.lineage);
  const Percentiles& own = lineage != known.lineages.end() ? lineage->second : known;
  return {std::exp(own.low * width), std::exp(own.high * width), table.pair_spread,
          unknown_of(kind, traits),  unmeasured_features(kind),  basis_of(kind, traits)};
}

namespace {

constexpr std::array<std::string_view, 2> kind_names{"dense", "experts"};
constexpr std::array<std::pair<const char*, double Widening::*>, 4> widening_names{
    {{"stack", &Widening::stack},
     {"device", &Widening::device},
     {"model", &Widening::model},
     {"doubling", &Widening::doubling}}};
constexpr std::array<std::pair<const char*, MeanErrors UnseenErrors::*>, 5> unseen_names{
    {{"in_sample", &UnseenErrors::in_sample},
     {"source", &UnseenErrors::source},
     {"family", &UnseenErrors::family},
     {"device", &UnseenErrors::device},
     {"stack", &UnseenErrors::stack}}};

double figure(MapReader& reader, std::string_view key, double least, double most) {
  return reader.required_number(key, Dimension::count, least, most);
}

RunCount read_count(MapReader& reader) {
  reader.required("runs");
  reader.required("sources");
  return {static_cast<int>(*reader.integer("runs", {0, 1'000'000})),
          static_cast<int>(*reader.integer("sources", {0, 1'000'000}))};
}

MeanErrors read_errors(const Value& value, const std::string& what) {
  MapReader reader(value, what);
  MeanErrors e;
  e.sources = figure(reader, "sources", 0, 1e6);
  e.dense = figure(reader, "dense", 0, 1e6);
  e.experts = figure(reader, "experts", 0, 1e6);
  e.experts_by_run = figure(reader, "experts_by_run", 0, 1e6);
  reader.finish();
  return e;
}

UnseenErrors read_unseen(const Value& value) {
  MapReader reader(value, "unseen");
  UnseenErrors unseen;
  for (const auto& [name, field] : unseen_names)
    unseen.*field = read_errors(reader.required(name), name);
  for (const auto& entry : reader.required("by_source").entries) {
    MapReader one(entry.value, "source " + quote(entry.key));
    unseen.by_source[entry.key] = {figure(one, "error", 0, 1e6), figure(one, "covered", 0, 100)};
    one.finish();
  }
  reader.finish();
  return unseen;
}

SiteSpread read_sites(const Value& value) {
  MapReader reader(value, "sites");
  SiteSpread s;
  reader.required("sources");
  s.sources = static_cast<int>(*reader.integer("sources", {1, 1'000'000}));
  s.time = figure(reader, "time", 1e-6, 10);
  s.noise = figure(reader, "noise", 1e-6, 10);
  s.noise_spread = figure(reader, "noise_spread", 1e-6, 10);
  s.low = figure(reader, "low", 0.01, 100);
  s.high = figure(reader, "high", 0.01, 100);
  reader.finish();
  return s;
}

std::string sites_yaml(const SiteSpread& s) {
  return fmt::format(
      "sites:\n  sources: {}\n  time: {:.4f}\n  noise: {:.4f}\n  noise_spread: {:.4f}\n  low: "
      "{:.4f}\n  high: {:.4f}\n",
      s.sources, s.time, s.noise, s.noise_spread, s.low, s.high);
}

PeakResiduals::Spread read_spread(MapReader& reader) {
  PeakResiduals::Spread spread;
  spread.count = read_count(reader);
  spread.middle = figure(reader, "middle", -10, 10);
  spread.scale = figure(reader, "scale", 1e-6, 10);
  return spread;
}

PeakResiduals read_peaks(const Value& value) {
  MapReader reader(value, "peaks");
  PeakResiduals peaks;
  peaks.all = read_spread(reader);
  peaks.unmeasured = figure(reader, "unmeasured", 1, 100);
  for (const auto& entry : reader.required("stacks").entries) {
    MapReader one(entry.value, "stack " + quote(entry.key));
    peaks.stacks[entry.key] = read_spread(one);
    one.finish();
  }
  reader.finish();
  return peaks;
}

void read_traits(MapReader& reader, KindResiduals& kind) {
  for (std::size_t g = 0; g < trait_group_names.size(); ++g) {
    const auto group = static_cast<TraitGroup>(g);
    const Value* counts = group == TraitGroup::plan ? reader.optional(trait_group_names[g])
                                                    : &reader.required(trait_group_names[g]);
    if (counts == nullptr) continue;
    for (const auto& entry : counts->entries) {
      MapReader one(entry.value, quote(entry.key));
      kind.traits[{group, entry.key}] = read_count(one);
      one.finish();
    }
  }
  for (const auto& stack : reader.required("runs_by_stack").entries) {
    MapReader inner(stack.value, "stack " + quote(stack.key));
    for (const auto& device : stack.value.entries) {
      inner.required(device.key);
      kind.runs[{stack.key, device.key}] =
          static_cast<int>(*inner.integer(device.key, {1, 1'000'000}));
    }
    inner.finish();
  }
}

void read_percentiles(MapReader& reader, Percentiles& own) {
  own.count = read_count(reader);
  own.low = figure(reader, "low", -10, 0);
  own.high = figure(reader, "high", 0, 10);
  own.covered = figure(reader, "covered", 0, 100);
}

KindResiduals read_kind(const Value& value, std::string_view name) {
  MapReader reader(value, std::string(name));
  KindResiduals kind;
  read_percentiles(reader, kind);
  if (const Value* lineages = reader.optional("lineages")) {
    for (const auto& entry : lineages->entries) {
      MapReader one(entry.value, "lineage " + quote(entry.key));
      read_percentiles(one, kind.lineages[entry.key]);
      one.finish();
    }
  }
  kind.most_devices = figure(reader, "most_devices", 0, 1e12);
  kind.most_parameters = figure(reader, "most_parameters", 0, 1e18);
  read_traits(reader, kind);
  reader.finish();
  return kind;
}

std::string errors_yaml(const MeanErrors& e) {
  return fmt::format(
      "{{sources: {:.2f}, dense: {:.2f}, experts: {:.2f}, experts_by_run: {:.2f}}}\n", e.sources,
      e.dense, e.experts, e.experts_by_run);
}

// Quotes a key so that YAML parses it back.
std::string key_yaml(const std::string& name) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.'; };
  if (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
      std::ranges::all_of(name, plain))
    return name + ":";
  return json_string(name) + ":";
}

std::string unseen_yaml(const UnseenErrors& unseen) {
  std::string text = "unseen:\n";
  for (const auto& [name, field] : unseen_names)
    text += fmt::format("  {}: {}", name, errors_yaml(unseen.*field));
  text += unseen.by_source.empty() ? "  by_source: {}\n" : "  by_source:\n";
  for (const auto& [name, own] : unseen.by_source) {
    text += fmt::format("    {} {{error: {:.2f}, covered: {:.1f}}}\n", key_yaml(name), own.error,
                        own.covered);
  }
  return text;
}

std::string peaks_yaml(const PeakResiduals& peaks) {
  const auto& all = peaks.all;
  std::string text = fmt::format(
      "peaks:\n  runs: {}\n  sources: {}\n  middle: {:.4f}\n  scale: {:.4f}\n  unmeasured: "
      "{:.2f}\n",
      all.count.runs, all.count.sources, all.middle, all.scale, peaks.unmeasured);
  text += peaks.stacks.empty() ? "  stacks: {}\n" : "  stacks:\n";
  for (const auto& [name, own] : peaks.stacks) {
    text += fmt::format("    {} {{runs: {}, sources: {}, middle: {:.4f}, scale: {:.4f}}}\n",
                        key_yaml(name), own.count.runs, own.count.sources, own.middle, own.scale);
  }
  return text;
}

std::string kind_yaml(const KindResiduals& kind) {
  std::string text = fmt::format(
      "  runs: {}\n  sources: {}\n  low: {:.4f}\n  high: {:.4f}\n  covered: {:.1f}\n  "
      "most_devices: "
      "{:.0f}\n  most_parameters: {:.0f}\n",
      kind.count.runs, kind.count.sources, kind.low, kind.high, kind.covered, kind.most_devices,
      kind.most_parameters);
  if (!kind.lineages.empty()) text += "  lineages:\n";
  for (const auto& [name, own] : kind.lineages) {
    text += fmt::format(
        "    {} {{runs: {}, sources: {}, low: {:.4f}, high: {:.4f}, covered: {:.1f}}}\n",
        key_yaml(name), own.count.runs, own.count.sources, own.low, own.high, own.covered);
  }
  for (std::size_t g = 0; g < trait_group_names.size(); ++g) {
    std::string own;
    for (const auto& [trait, count] : kind.traits) {
      if (trait.group != static_cast<TraitGroup>(g)) continue;
      own += fmt::format("    {} {{runs: {}, sources: {}}}\n", key_yaml(trait.name), count.runs,
                         count.sources);
    }
    text += fmt::format("  {}:{}\n{}", trait_group_names[g], own.empty() ? " {}" : "", own);
  }
  text += kind.runs.empty() ? "  runs_by_stack: {}\n" : "  runs_by_stack:\n";
  std::string last;
  for (const auto& [own, runs] : kind.runs) {
    if (own.first != last) text += fmt::format("    {}\n", key_yaml(own.first));
    last = own.first;
    text += fmt::format("      {} {}\n", key_yaml(own.second), runs);
  }
  return text;
}

}  // namespace

ResidualTable read_residuals(const Value& root) {
  MapReader reader(root, "residuals");
  ResidualTable table;
  for (std::size_t k = 0; k < kind_names.size(); ++k)
    table.kinds[k] = read_kind(reader.required(kind_names[k]), kind_names[k]);
  MapReader widening(reader.required("widening"), "widening");
  for (const auto& [name, field] : widening_names)
    table.widening.*field = figure(widening, name, 1, 100);
  widening.finish();
  table.pair_spread = figure(reader, "pair_spread", 1e-6, 10);
  if (const Value* sites = reader.optional("sites")) table.sites = read_sites(*sites);
  if (const Value* peaks = reader.optional("peaks")) table.peaks = read_peaks(*peaks);
  table.unseen = read_unseen(reader.required("unseen"));
  reader.finish();
  return table;
}

std::string to_yaml(const ResidualTable& table) {
  std::string text =
      "# What published runs say about the errors of predicted iteration times. Written by\n"
      "# shardplan validate configs/evidence --peaks configs/evidence/extra/pytorch-h100.yaml\n"
      "# --write-residuals configs/residuals.yaml\n"
      "# unseen: mean errors in per cent, by the constants of configs/ and by constants fitted "
      "without\n# a run's source, model family, device, stack. low, high: 5th and 95th percentile "
      "of\n# log(measured / predicted) for a source not seen; covered: per cent of runs inside, by "
      "a table\n# without their source; widening: factors on the logarithm for what was never "
      "measured.\n# pair_spread: between plans of one workload, scale of a Student t distribution "
      "of 3 degrees\n# of freedom.";
  if (table.sites) {
    text +=
        " sites: runs of one source on one device by one stack; standard deviations of what\n# "
        "they are off by in common and each by itself; low, high: factors on the sides of the\n# "
        "interval that these give a site of which two runs are known.";
  }
  if (table.peaks) {
    text +=
        " peaks: of memory, median and scale of a\n# Student t distribution of 3 degrees of "
        "freedom of log(measured / predicted); unmeasured:\n# factor on the scale for a stack "
        "without a published peak.";
  }
  text += "\n";
  text += unseen_yaml(table.unseen) + "widening:\n";
  for (const auto& [name, field] : widening_names)
    text += fmt::format("  {}: {:.4f}\n", name, table.widening.*field);
  text += fmt::format("pair_spread: {:.4f}\n", table.pair_spread);
  if (table.sites) text += sites_yaml(*table.sites);
  if (table.peaks) text += peaks_yaml(*table.peaks);
  for (std::size_t k = 0; k < kind_names.size(); ++k)
    text += fmt::format("{}:\n{}", kind_names[k], kind_yaml(table.kinds[k]));
  return text;
}

struct ResidualFiles {
  struct Loaded {
    std::optional<ResidualTable> table;
    std::string fault;
  };
  std::map<std::string, Loaded> loaded;
};

namespace {

// `validate` writes the table anew and has read it before.
constexpr ReadLimits own_table{.bytes = config_limits.bytes, .own = true};

ResidualFiles::Loaded load(const std::string& file) {
  try {
    return {read_residuals(load_yaml(file, own_table)), ""};
  } catch (const ConfigError& fault) {
    return {{}, fault.what()};
  }
}

const ResidualFiles::Loaded* first_table(const ConfigPath& path) {
  for (const auto& directory : path.directories) {
    const std::string file = joined_path(directory, "residuals.yaml");
    if (!path.residuals) path.residuals = std::make_shared<ResidualFiles>();
    auto& files = path.residuals->loaded;
    auto at = files.find(file);
    if (at == files.end()) {
      if (!path_exists(file)) continue;
      at = files.emplace(file, load(file)).first;
    }
    return &at->second;
  }
  return nullptr;
}

}  // namespace

const ResidualTable* find_residuals(const ConfigPath& path) {
  const auto* first = first_table(path);
  return first != nullptr && first->table ? &*first->table : nullptr;
}

ErrorBand find_band(const ConfigPath& path, const RunTraits& traits) {
  const auto* first = first_table(path);
  if (first == nullptr) return {};
  if (first->table) return band_of(*first->table, traits);
  ErrorBand unknown;
  unknown.basis = "interval: the widest, the table of residuals is no use: " + first->fault;
  return unknown;
}

PeakErrors peak_errors_of(const PeakResiduals& peaks, const std::string& stack) {
  const std::string name = stack.empty() ? "this stack" : shortened(stack);
  const std::string basis = fmt::format("chance that it fits: by {} measured peaks",
                                        format_integer(peaks.all.count.runs));
  const auto own = peaks.stacks.find(stack);
  if (own != peaks.stacks.end()) {
    const PeakResiduals::Spread& spread = own->second;
    return {spread.middle, spread.scale, true,
            fmt::format("{}, {} by {}", basis, format_integer(spread.count.runs), name)};
  }
  return {peaks.all.middle, peaks.all.scale * peaks.unmeasured, false,
          fmt::format("{}, none by {}: wider", basis, name)};
}

PeakErrors find_peak_errors(const ConfigPath& path, const std::string& stack) {
  const auto* first = first_table(path);
  if (first == nullptr) return {};
  if (first->table && first->table->peaks) return peak_errors_of(*first->table->peaks, stack);
  PeakErrors unknown;
  unknown.basis =
      first->table
          ? "chance that it fits: residuals.yaml has no peaks, so it is a guess"
          : "chance that it fits: a guess, the table of residuals is no use: " + first->fault;
  return unknown;
}

double probability_faster(double a, double b, double pair_spread) {
  return student_t3(std::log(b / a) / pair_spread);
}

}  // namespace costmodel
