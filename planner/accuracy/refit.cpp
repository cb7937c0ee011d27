#include "planner/accuracy/refit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"
#include "planner/accuracy/validation.hpp"

namespace planner {

using costmodel::ConfigError;
using costmodel::ConfigPath;
using costmodel::MapReader;
using costmodel::Value;

namespace {

struct Place {
  std::string kind, name;
};

Place place_of(const std::string& file, const costmodel::Mark& mark) {
  const auto slash = file.find('/');
  if (slash == std::string::npos) {
    throw ConfigError(mark, fmt::format("{} names no configuration", costmodel::quote(file)),
                      "write KIND/NAME, such as devices/a100-sxm4-80gb");
  }
  return {file.substr(0, slash), file.substr(slash + 1)};
}

Value& loaded_file(const std::string& file, const ConfigPath& path) {
  const Place place = place_of(file, {});
  const std::string at = costmodel::find_config(path, place.kind, place.name, {});
  return loaded(path, at);
}

// The value at a dotted path; an item of a list is named by its `name`.
Value* at_key(Value& root, const std::string& key) {
  Value* at = &root;
  for (std::size_t from = 0; at != nullptr;) {
    const auto dot = key.find('.', from);
    const std::string part = key.substr(from, dot == std::string::npos ? dot : dot - from);
    if (at->kind == Value::Kind::sequence) {
      const auto item = std::find_if(at->items.begin(), at->items.end(), [&](const Value& v) {
        const Value* name = v.find("name");
        return name != nullptr && name->text == part;
      });
      at = item == at->items.end() ? nullptr : &*item;
    } else {
      at = at->find(part);
    }
    if (dot == std::string::npos) break;
    from = dot + 1;
  }
  return at;
}

// A quantity of any dimension, in its base unit.
double number_of(const Value& value, const std::string& key) {
  using costmodel::Dimension;
  for (const auto dimension : {Dimension::count, Dimension::time, Dimension::size,
                               Dimension::bandwidth, Dimension::rate}) {
    const auto parsed = costmodel::parse_quantity(value.text, dimension);
    if (parsed.value) return *parsed.value;
  }
  throw ConfigError(value.mark,
                    fmt::format("{}: {} is not a number", costmodel::shortened(key),
                                costmodel::quote(value.text)),
                    "name a key that holds a number");
}

// Files with different values of a constant keep their ratio.
void set_constant(const FittedConstant& c, double value, const ConfigPath& path) {
  for (std::size_t f = 0; f < c.files.size(); ++f) {
    Value* at = at_key(loaded_file(c.files[f], path), c.key);
    if (at == nullptr) continue;
    *at = costmodel::scalar_value(fmt::format("{:.6g}", value * c.ratio[f]), at->mark);
  }
}

// Runs with a measured time, their errors under the current constants, and the runs that each
// constant affects.
class Fit {
 public:
  Fit(const std::vector<std::string>& operands, std::vector<FittedConstant> constants,
      const ConfigPath& path)
      : constants_(std::move(constants)), path_(path) {
    for (EvidenceRun& run : read_evidence_runs(operands)) {
      if (!run.measured.iteration || !run.contradicted.empty()) continue;
      const std::size_t source = source_index(run.source);
      runs_.push_back(std::move(run));
      source_.push_back(source);
    }
    for (const auto& c : constants_) set_constant(c, c.value, path_);  // as they will be written
    errors_.resize(runs_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) errors_[i] = error_of(i);
    find_moved();
  }

  // `step`: the initial step in a constant's logarithm; it halves when neither direction improves.
  void search(std::optional<std::size_t> left_out, int rounds, double step) {
    left_out_ = left_out;
    forget();
    std::vector<double> steps(constants_.size(), step);
    constexpr double finest = 0.002;
    for (int round = 0; round < rounds; ++round) {
      const bool pairs = round % 4 == 3;
      for (std::size_t c = 0; c < constants_.size(); ++c) {
        if (steps[c] < finest || !touches(c)) continue;
        if (!improve(c, steps[c]) && !(pairs && improve_pairs(c, steps))) steps[c] /= 2;
      }
      if (*std::max_element(steps.begin(), steps.end()) < finest) break;
    }
  }

  std::map<std::string, double> by_source() const {
    std::map<std::string, double> mean;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (const auto m = source_mape(s)) mean[sources_[s]] = *m;
    }
    return mean;
  }

  std::optional<double> source_mape(std::size_t source) const {
    double sum = 0;
    int count = 0;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (source_[i] != source || std::isnan(errors_[i])) continue;
      sum += std::abs(std::expm1(errors_[i]));
      ++count;
    }
    if (count == 0) return {};
    return 100 * sum / count;
  }

  void restore(const std::vector<FittedConstant>& values, const std::vector<double>& errors) {
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      if (constants_[c].value == values[c].value) continue;
      set_constant(values[c], values[c].value, path_);
    }
    constants_ = values;
    errors_ = errors;
  }

  const std::vector<FittedConstant>& constants() const { return constants_; }
  const std::vector<double>& errors() const { return errors_; }
  const std::vector<std::string>& sources() const { return sources_; }

 private:
  std::size_t source_index(const std::string& source) {
    const auto at = std::find(sources_.begin(), sources_.end(), source);
    if (at != sources_.end()) return static_cast<std::size_t>(at - sources_.begin());
    sources_.push_back(source);
    return sources_.size() - 1;
  }

  double error_of(std::size_t i) const {
    const auto predicted = predicted_iteration(runs_[i], path_);
    return predicted ? std::log(*predicted / *runs_[i].measured.iteration) : NAN;
  }

  void find_moved() {
    moved_.resize(constants_.size());
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      FittedConstant& constant = constants_[c];
      const double nudged = constant.value * 1.05 > constant.high && constant.value > constant.low
                                ? constant.value * 0.95
                                : constant.value * 1.05;
      set_constant(constant, nudged, path_);
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        if (!std::isnan(errors_[i]) && error_of(i) != errors_[i]) moved_[c].push_back(i);
      }
      constant.runs = static_cast<int>(moved_[c].size());
      set_constant(constant, constant.value, path_);
    }
  }

  // A constant that only the left-out source determines is set to its prior.
  void forget() {
    if (!left_out_) return;
    for (std::size_t c = 0; c < constants_.size(); ++c) {
      if (touches(c)) continue;
      constants_[c].value = std::clamp(constants_[c].prior, constants_[c].low, constants_[c].high);
      set_constant(constants_[c], constants_[c].value, path_);
      for (const std::size_t i : moved_[c]) errors_[i] = error_of(i);
    }
  }

  bool touches(std::size_t c) const {
    if (!left_out_) return !moved_[c].empty();
    return std::any_of(moved_[c].begin(), moved_[c].end(),
                       [&](std::size_t i) { return source_[i] != *left_out_; });
  }

  // Mean over sources of the mean |log error|, with a parabola near zero for each run, plus the
  // priors.
  double objective() const {
    std::vector<double> sum(sources_.size()), count(sources_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (std::isnan(errors_[i]) || source_[i] == left_out_) continue;
      constexpr double soft = 0.02, large = 0.5;
      const double e = std::min(std::abs(errors_[i]), large);
      sum[source_[i]] += e < soft ? e * e / (2 * soft) + soft / 2 : e;
      count[source_[i]] += 1;
    }
    double total = 0;
    for (std::size_t s = 0; s < sources_.size(); ++s)
      if (count[s] > 0) total += std::pow(count[s], 0.25) * sum[s] / count[s];
    for (const auto& c : constants_) {
      if (c.spread > 0) total += 0.004 * std::pow(std::log(c.value / c.prior) / c.spread, 2);
    }
    return total;
  }

  static constexpr double least_gain = 2e-5;

  // Moves of several constants at once: (constant, logarithm of the factor).
  using Move = std::vector<std::pair<std::size_t, double>>;

  bool improve(std::size_t c, double step) { return accept({{c, step}}) || accept({{c, -step}}); }

  // Constants of one file compensate each other: a higher rate for a later start.
  bool improve_pairs(std::size_t c, const std::vector<double>& steps) {
    for (std::size_t o = c + 1; o < constants_.size(); ++o) {
      if (constants_[o].files != constants_[c].files || !touches(o)) continue;
      for (const double sign : {1.0, -1.0}) {
        const double large = std::max(steps[c], 0.01), other = sign * std::max(steps[o], 0.01);
        if (accept({{c, large}, {o, other}}) || accept({{c, -large}, {o, -other}})) return true;
      }
    }
    return false;
  }

  bool accept(const Move& move) {
    const double now = objective();
    std::vector<std::size_t> moved;
    for (const auto& [c, step] : move)
      moved.insert(moved.end(), moved_[c].begin(), moved_[c].end());
    std::sort(moved.begin(), moved.end());
    moved.erase(std::unique(moved.begin(), moved.end()), moved.end());
    std::vector<double> kept, values;
    for (const std::size_t i : moved) kept.push_back(errors_[i]);
    for (const auto& [c, step] : move) {
      values.push_back(constants_[c].value);
      constants_[c].value =
          std::clamp(constants_[c].value * std::exp(step), constants_[c].low, constants_[c].high);
      set_constant(constants_[c], constants_[c].value, path_);
    }
    for (const std::size_t i : moved) errors_[i] = error_of(i);
    if (objective() < now - least_gain) return true;
    for (std::size_t k = 0; k < move.size(); ++k) {
      constants_[move[k].first].value = values[k];
      set_constant(constants_[move[k].first], values[k], path_);
    }
    for (std::size_t k = 0; k < moved.size(); ++k) errors_[moved[k]] = kept[k];
    return false;
  }

  std::vector<FittedConstant> constants_;
  const ConfigPath& path_;
  std::vector<EvidenceRun> runs_;
  std::vector<std::size_t> source_;
  std::vector<std::string> sources_;
  std::vector<double> errors_;                   // log(predicted / measured); NaN: no prediction
  std::vector<std::vector<std::size_t>> moved_;  // runs each constant moves
  std::optional<std::size_t> left_out_;
};

double mean_of(const std::map<std::string, double>& values) {
  double sum = 0;
  for (const auto& [name, value] : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::vector<FittedConstant> read_constants(const std::string& constants_file,
                                           const ConfigPath& path) {
  const Value root = costmodel::load_yaml(constants_file);
  MapReader reader(root, "constants");
  const Value& list = reader.required("constants");
  reader.optional("notes");
  reader.finish();
  if (list.kind != Value::Kind::sequence || list.items.empty()) {
    throw ConfigError(list.mark, "constants is not a list of constants",
                      "write - {name: ..., in: [KIND/NAME, ...], key: ...}");
  }
  std::vector<FittedConstant> constants;
  for (const Value& item : list.items) {
    MapReader one(item, "constant");
    FittedConstant c;
    c.name = read_text(one.required("name"), "name");
    for (const Value& name : one.required("in").items) c.files.push_back(read_text(name, "in"));
    c.key = read_text(one.required("key"), "key");
    const auto number = [&](const char* key) {
      return one.number(key, costmodel::Dimension::count, 0, 1e15);
    };
    c.low = number("low").value_or(1e-12);
    c.high = number("high").value_or(1e12);
    c.prior = number("prior").value_or(0);
    c.spread = number("spread").value_or(0);
    if (const Value* from = one.optional("from")) c.from = read_text(*from, "from");
    one.finish();
    if (c.low > c.high) {
      throw ConfigError(one.mark_of("low"),
                        fmt::format("low {:g} is above high {:g}", c.low, c.high), "exchange them");
    }
    if (c.files.empty()) throw ConfigError(item.mark, "in: is empty", "name KIND/NAME");
    for (const auto& file : c.files) {
      const Value* now = at_key(loaded_file(file, path), c.key);
      if (now == nullptr) {
        throw ConfigError(item.mark,
                          fmt::format("{} has no key {}", costmodel::shortened(file),
                                      costmodel::shortened(c.key)),
                          "name a key that the file holds");
      }
      const double value = number_of(*now, c.key);
      if (file == c.files.front()) c.value = value;
      c.ratio.push_back(value / c.value);
    }
    if (c.prior == 0) c.prior = c.value;
    constants.push_back(c);
  }
  return constants;
}

RefitResult refit(const std::vector<std::string>& operands,
                  const std::vector<FittedConstant>& constants, const ConfigPath& path,
                  bool cross_validate, const std::function<void(const std::string&)>& progress) {
  constexpr int rounds = 60, rounds_left_out = 8;
  constexpr double step = 0.08, step_left_out = 0.04;  // a source left out starts near its fit
  Fit fit(operands, constants, path);
  RefitResult result;
  result.before = fit.by_source();
  result.macro_before = mean_of(result.before);
  const auto tell = [&progress](const std::string& words) {
    if (progress) progress(words);
  };
  tell(fmt::format("fitting {} constants", constants.size()));
  fit.search({}, rounds, step);
  result.constants = fit.constants();
  result.after = fit.by_source();
  result.macro_after = mean_of(result.after);
  if (!cross_validate) return result;
  const auto best = fit.constants();
  const auto errors = fit.errors();
  for (std::size_t s = 0; s < fit.sources().size(); ++s) {
    if (!result.after.contains(fit.sources()[s])) continue;
    tell(fmt::format("leaving out {} ({} of {})", fit.sources()[s], s + 1, fit.sources().size()));
    fit.search(s, rounds_left_out, step_left_out);
    result.left_out[fit.sources()[s]] = fit.source_mape(s).value_or(0);
    fit.restore(best, errors);
  }
  result.macro_left_out = mean_of(result.left_out);
  return result;
}

std::string to_string(const RefitResult& r) {
  std::string text =
      fmt::format("{:44} {:>12} {:>12} {:>6}\n", "constant", "prior", "fitted", "runs");
  for (const auto& c : r.constants) {
    text += fmt::format("{:44} {:12.5g} {:12.5g} {:6}\n", costmodel::printable(c.name), c.prior,
                        c.value, c.runs);
  }
  text += fmt::format("\n{:28} {:>8} {:>8} {:>9}\n", "source, mean error %", "before", "after",
                      "left out");
  const auto left = [&](const std::string& source) {
    const auto at = r.left_out.find(source);
    return at == r.left_out.end() ? std::string("-") : fmt::format("{:.2f}", at->second);
  };
  for (const auto& [source, before] : r.before) {
    const auto after = r.after.find(source);
    text += fmt::format("{:28} {:8.2f} {:8.2f} {:>9}\n", costmodel::printable(source), before,
                        after == r.after.end() ? 0.0 : after->second, left(source));
  }
  text += fmt::format("{:28} {:8.2f} {:8.2f} {:>9}\n", "mean over sources", r.macro_before,
                      r.macro_after,
                      r.left_out.empty() ? "-" : fmt::format("{:.2f}", r.macro_left_out));
  return text;
}

}  // namespace planner
