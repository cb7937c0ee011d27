#include "costmodel/plan/expert_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/input_file.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/plan/length_spec.hpp"

namespace costmodel {

namespace {

constexpr std::int64_t drawn_experts = 1 << 16;
constexpr double least_a = 0.01, most_a = 1e6, most_s = 10;

std::int64_t drawn_layers(std::int64_t experts) {
  return std::max<std::int64_t>(1, drawn_experts / experts);
}

void divide_by_mean(std::vector<double>& loads) {
  const double mean =
      std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
  for (double& load : loads) load /= mean;
}

// The logarithm of a gamma variable: one of a small shape is often too small for a number.
double log_gamma_draw(double shape, Draws& draws) {
  const double boost = shape < 1 ? std::log(draws.uniform()) / shape : 0;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draws.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(draws.uniform()) < x * x / 2 + d * (1 - v + std::log(v)))
      return std::log(d * v) + boost;
  }
}

}  // namespace

ExpertLoads dirichlet_loads(std::int64_t experts, double a) {
  Draws draws;
  ExpertLoads layers(static_cast<std::size_t>(drawn_layers(experts)));
  for (auto& loads : layers) {
    loads.resize(static_cast<std::size_t>(experts));
    for (double& load : loads) load = log_gamma_draw(a, draws);
    const double largest = *std::ranges::max_element(loads);
    for (double& load : loads) load = std::exp(load - largest);
    divide_by_mean(loads);
  }
  return layers;
}

ExpertLoads skewed_loads(std::int64_t experts, double s) {
  Draws draws;
  std::vector<double> loads(static_cast<std::size_t>(experts));
  for (std::size_t i = 0; i < loads.size(); ++i)
    loads[i] = std::pow(static_cast<double>(i + 1), -s);
  divide_by_mean(loads);
  ExpertLoads layers(static_cast<std::size_t>(drawn_layers(experts)), loads);
  for (auto& layer : layers) {
    for (std::size_t i = layer.size(); i > 1; --i) {  // Fisher and Yates
      std::swap(layer[i - 1],
                layer[static_cast<std::size_t>(draws.uniform() * static_cast<double>(i))]);
    }
  }
  return layers;
}

double ExpertLoad::of_fullest(std::int64_t ranks) const {
  const auto found = std::ranges::find(fullest, ranks, &decltype(fullest)::value_type::first);
  SHARDPLAN_CHECK(found != fullest.end());
  return found->second;
}

ExpertLoad load_of_ranks(const ExpertLoads& layers, double capacity) {
  SHARDPLAN_CHECK(!layers.empty());
  const auto kept = [=](double load) { return capacity > 0 ? std::min(load, capacity) : load; };
  const auto count = static_cast<double>(layers.size());
  const std::size_t experts = layers.front().size();
  ExpertLoad load;
  for (std::size_t ranks = 1; ranks <= experts; ++ranks) {
    if (experts % ranks != 0) continue;
    const std::size_t own = experts / ranks;
    double sum = 0;
    for (const auto& loads : layers) {
      double fullest = 0;
      for (std::size_t first = 0; first < experts; first += own) {
        double rank = 0;
        for (std::size_t i = first; i < first + own; ++i) rank += kept(loads[i]);
        fullest = std::max(fullest, rank);
      }
      sum += fullest / static_cast<double>(own);
    }
    // Without the last bits, so that equal loads of any size are the mean.
    constexpr double digits = 1e12;
    load.fullest.emplace_back(ranks, std::round(sum / count * digits) / digits);
  }
  load.dropped = std::max(0.0, 1 - load.of_fullest(1));
  return load;
}

namespace {

std::string choices() { return fmt::format("write {}", expert_load_help); }

void require_loads(std::vector<double>& loads, std::int64_t experts, const Mark& mark) {
  if (static_cast<std::int64_t>(loads.size()) != experts) {
    throw ConfigError(mark,
                      fmt::format("expert_load has {} load{}, the model {} experts", loads.size(),
                                  loads.size() == 1 ? "" : "s", experts),
                      "give one load an expert");
  }
  if (std::ranges::all_of(loads, [](double load) { return load == 0; }))
    throw ConfigError(mark, "expert_load: all loads are 0", "give some expert a load");
  divide_by_mean(loads);
}

constexpr double most_load = 1e15;

ExpertLoads read_list(const Value& list, std::int64_t experts) {
  std::vector<double> loads;
  for (const Value& item : list.items)
    loads.push_back(read_number(item, "expert_load", Dimension::count, 0, most_load));
  require_loads(loads, experts, list.mark);
  return {loads};
}

std::vector<double> read_line(std::string line, const Mark& mark, bool begun) {
  std::ranges::replace(line, ',', ' ');
  std::istringstream words(line);
  std::vector<double> loads;
  for (std::string word; words >> word;) {
    double load = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), load);
    if (fault != std::errc() || end != word.data() + word.size() || !(load >= 0) ||
        load > most_load) {
      // Of a file that begins otherwise nothing is shown: it may be anything on this machine.
      throw ConfigError(
          mark,
          (begun || !loads.empty() ? quote(word) : "what stands here") + " is no load of an expert",
          "write numbers from 0 to 1e15, a line a layer");
    }
    loads.push_back(load);
  }
  return loads;
}

ExpertLoads read_histogram(const Value& file, std::int64_t experts) {
  const std::string path = file_from(file.mark, read_text(file, "histogram"));
  std::istringstream lines(read_file(path, measurement_limits));
  ExpertLoads layers;
  Mark mark{path, 0, 1};
  for (std::string line; std::getline(lines, line);) {
    ++mark.line;
    std::vector<double> loads = read_line(line.substr(0, line.find('#')), mark, !layers.empty());
    if (loads.empty()) continue;
    require_loads(loads, experts, mark);
    layers.push_back(std::move(loads));
  }
  if (layers.empty()) {
    throw ConfigError({path, 0, 0}, "has no loads of experts",
                      "write a line a layer, with a number an expert");
  }
  return layers;
}

}  // namespace

ExpertLoad read_expert_load(const Value& written, std::int64_t experts, double capacity) {
  const auto made = [&](const ExpertLoads& layers, std::string form) {
    ExpertLoad load = load_of_ranks(layers, capacity);
    load.form = std::move(form);
    return load;
  };
  if (written.kind == Value::Kind::sequence)
    return made(read_list(written, experts), "a load an expert");
  if (!written.is_map()) {
    throw ConfigError(written.mark, fmt::format("expert_load is {}", quote(written.text)),
                      choices());
  }
  MapReader map(written, "expert_load", {"dirichlet", "skew", "histogram"});
  const auto a = map.number("dirichlet", Dimension::count, least_a, most_a);
  const auto s = map.number("skew", Dimension::count, 0, most_s);
  const Value* file = map.optional("histogram");
  map.finish();
  if ((a ? 1 : 0) + (s ? 1 : 0) + (file != nullptr ? 1 : 0) != 1)
    throw ConfigError(written.mark, "expert_load has not one of its keys", choices());
  if (a) return made(dirichlet_loads(experts, *a), fmt::format("Dirichlet, {:g}", *a));
  if (s) return made(skewed_loads(experts, *s), fmt::format("skew {:g}", *s));
  return made(read_histogram(*file, experts), "a histogram");
}

}  // namespace costmodel
