#include "costmodel/scenario/model_operand.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "costmodel/config/everyday_name.hpp"
#include "costmodel/machine/cluster_groups.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/scenario/scenario_parts.hpp"
#include "costmodel/scenario/training_reader.hpp"

namespace costmodel {

namespace {

// Llama 3's first batch (arXiv:2407.21783, section 3.4.1), and the sequence that goes with it.
constexpr std::int64_t usual_tokens = std::int64_t{4} << 20, usual_sequence = 4096;
// Bounds, so that two devices do not accumulate 1,024 sequences and 2,048 have one each.
constexpr std::int64_t most_per_device = 16;

std::int64_t sequence_for(const ModelSpec& model) {
  const bool bounded = model.positions == Positions::learned && model.max_positions > 0;
  return bounded ? std::min(usual_sequence, model.max_positions) : usual_sequence;
}

// The first of bf16, fp16 and fp32 in which all devices compute.
Precision precision_for(const ClusterSpec& cluster) {
  for (const Precision p : {Precision::bf16, Precision::fp16}) {
    const auto computes = [p](const ClusterSpec& group) {
      return group.device.peak_of(p).value > 0;
    };
    if (std::ranges::all_of(groups_of(cluster), computes)) return p;
  }
  return Precision::fp32;
}

// A key of `training` that is absent, and why it is what it is.
void assume(Value& root, const char* key, const std::string& value, const std::string& why) {
  Value training;
  if (Value* written = root.find("training")) training = *written;
  if (training.find(key) != nullptr) return;
  training.set(key, scalar_value(value, root.mark));
  root.set("training", std::move(training));
  Value assumed, lines;
  if (Value* written = root.find("assumed")) assumed = *written;
  if (const Value* written = assumed.find("training")) lines = *written;
  lines.kind = Value::Kind::sequence;
  lines.items.push_back(scalar_value(fmt::format("{} {} ({})", key, value, why)));
  assumed.set("training", std::move(lines));
  root.set("assumed", std::move(assumed));
}

}  // namespace

std::int64_t usual_batch(std::int64_t sequence, std::int64_t devices) {
  const std::int64_t each = usual_tokens / std::max<std::int64_t>(1, sequence * devices);
  return std::clamp<std::int64_t>(each, 1, most_per_device) * devices;
}

bool is_model(const Value& file) {
  if (!file.is_map()) return false;
  const auto has = [&](const char* key) { return file.find(key) != nullptr; };
  constexpr std::array of_scenario{"model", "cluster", "training", "plan", "workload", "serving"};
  constexpr std::array of_model{"kind", "layers", "hidden", "base"};
  return is_hf_config(file) ||
         (std::ranges::none_of(of_scenario, has) && std::ranges::any_of(of_model, has));
}

std::string operand_file(const std::string& operand, const ConfigPath& path) {
  if (path_exists(operand)) return operand;
  const auto scenarios = config_names(path, "scenarios");
  const bool is_yaml = operand.ends_with(".yaml") || operand.ends_with(".yml");
  const std::string name = is_yaml ? stem_of(operand) : operand;
  const bool bare = operand.find('/') == std::string::npos;
  if (bare && std::ranges::count(scenarios, name) > 0) return scenario_file(operand, path);
  const auto models = is_yaml ? std::vector<std::string>{} : models_called(path, operand);
  if (models.size() == 1) return find_config(path, "models", models.front(), {});
  if (models.size() > 1) {
    throw ConfigError({}, fmt::format("{} may be several models", quote(operand)),
                      fmt::format("name one of {}", fmt::join(models, ", ")));
  }
  if (!bare && (is_yaml || operand.ends_with(".json"))) return operand;  // reading it says more
  std::vector<std::string> known = config_names(path, "models");
  known.insert(known.end(), scenarios.begin(), scenarios.end());
  const std::string near = nearest_name(name.substr(name.rfind('/') + 1), known);
  throw ConfigError(
      {}, fmt::format("there is no file {}, and no scenario or model of that name", quote(operand)),
      (near.empty() ? "" : fmt::format("did you mean {}? ", quote(near))) +
          "`shardplan list models` and `shardplan list scenarios` have all");
}

void assume_training(Value& root, const ConfigPath& path) {
  Scenario parts;
  MapReader reader(root, "scenario");
  read_parts(reader, path, parts);
  assume(root, "sequence", fmt::format("{}", sequence_for(parts.model)),
         "none given; --sequence N");
  MapReader training(*root.find("training"), "training");
  const std::int64_t sequence =
      training.tokens("sequence", {1, 100'000'000}).value_or(usual_sequence);
  const std::int64_t devices = parts.cluster.devices, batch = usual_batch(sequence, devices);
  assume(root, "global_batch", fmt::format("{}", batch),
         fmt::format("none given: {} a device; Llama 3's 4 Mi tokens, arXiv:2407.21783, within 1 "
                     "and {} a device; --batch N",
                     batch / devices, most_per_device));
  assume(root, "precision", std::string(to_string(precision_for(parts.cluster))),
         "none given; --precision P");
  assume(root, "stack", stack_assumed(*root.find("training"), root.find("plan")),
         "none given; --framework NAME");
}

}  // namespace costmodel
