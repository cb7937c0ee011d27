#include "planner/frameworks/json_import_deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using costmodel::ConfigError;
using costmodel::scalar_value;
using costmodel::Value;

namespace {

// What changes neither time nor memory of an iteration, or is read below: top-level keys, and keys
// of a map after a dot.
constexpr std::array<std::string_view, 22> read_or_harmless{
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "optimizer",
    "scheduler",
    "gradient_clipping",
    "steps_per_print",
    "wall_clock_breakdown",
    "dump_state",
    "fp16",
    "bf16",
    "data_types.grad_accum_dtype",
    "zero_optimization.stage",
    "zero_optimization.overlap_comm",
    "zero_optimization.reduce_scatter",
    "zero_optimization.contiguous_gradients",
    "tensor_parallel.autotp_size",
    "activation_checkpointing",
    "tensorboard",
    "wandb",
    "csv_monitor",
    "comet"};

bool is_known(const std::string& key) {
  return std::ranges::find(read_or_harmless, key) != read_or_harmless.end();
}

class DeepSpeedImport {
 public:
  explicit DeepSpeedImport(const Json& config) : config_(config) {
    job.format = JobFormat::deepspeed;
    for (const char* part : {"model", "cluster", "training", "plan"}) job.scenario.set(part, {});
  }

  const Json* find(const char* map, const char* key) const {
    const auto found = config_.find(map);
    if (found == config_.end() || !found->is_object()) return nullptr;
    const auto inner = found->find(key);
    return inner == found->end() ? nullptr : &*inner;
  }
  bool is_on(const char* map, const char* key) const {
    const Json* value = find(map, key);
    return value != nullptr && value->is_boolean() && value->get<bool>();
  }
  void put(const char* part, const std::string& key, const std::string& text) {
    job.scenario.find(part)->set(key, scalar_value(text));
  }
  void miss(const char* part, const std::string& key, std::string remedy) {
    put(part, key, std::string(to_be_replaced));
    job.missing.push_back({fmt::format("{}.{}", part, key), std::move(remedy)});
  }
  // A whole number of the file; "auto" and what is absent are missing.
  void put_number(const Json* value, const char* part, const std::string& key, const char* name) {
    if (value != nullptr && value->is_number_integer())
      return put(part, key, std::to_string(value->get<std::int64_t>()));
    miss(part, key, fmt::format("{} is {}", name, value == nullptr ? "not said" : "no number"));
  }
  const Json* top(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() ? nullptr : &*found;
  }
  void list_others() {
    for (const auto& [key, value] : config_.items()) {
      if (is_known(key)) continue;
      if (!value.is_object()) {
        leave_out(key, value);
        continue;
      }
      for (const auto& [inner, of] : value.items()) {
        const std::string name = fmt::format("{}.{}", key, inner);
        if (!is_known(name)) leave_out(name, of);
      }
    }
  }

  ImportedJob job;

 private:
  void leave_out(const std::string& key, const Json& value) {
    const bool off = value.is_boolean() && !value.get<bool>();
    if (off || value.is_null()) return;
    const bool nested = std::any_of(value.begin(), value.end(),
                                    [](const Json& inner) { return inner.is_structured(); });
    const std::string text =
        nested ? "..." : value.dump(-1, ' ', true, Json::error_handler_t::replace);
    job.left_out.push_back(fmt::format("{}: {}: no key says it", costmodel::shortened(key),
                                       costmodel::shortened(text)));
  }
  const Json& config_;
};

// "auto" leaves it to Hugging Face's trainer.
void read_precision(DeepSpeedImport& in) {
  for (const char* format : {"bf16", "fp16"}) {
    if (in.is_on(format, "enabled")) return in.put("training", "precision", format);
  }
  for (const char* format : {"bf16", "fp16"}) {
    const Json *map = in.top(format), *enabled = in.find(format, "enabled");
    const bool said = map == nullptr || (map->is_object() && enabled == nullptr) ||
                      (enabled != nullptr && enabled->is_boolean());
    if (said) continue;
    return in.miss("training", "precision",
                   fmt::format("{}.enabled is neither true nor false", format));
  }
  in.put("training", "precision", "fp32");
}

void read_training(DeepSpeedImport& in) {
  in.put_number(in.top("train_batch_size"), "training", "global_batch", "train_batch_size");
  in.miss("training", "sequence", "tokens of a sequence, which ds_config.json does not say");
  read_precision(in);
  if (const Json* type = in.find("data_types", "grad_accum_dtype");
      type != nullptr && type->is_string()) {
    in.put("training", "gradient_precision", type->get<std::string>());
  }
  if (const Json* type = in.find("optimizer", "type"); type != nullptr && type->is_string()) {
    const auto name = type->get<std::string>();
    const bool sgd = name == "SGD";
    in.put("training", "optimizer", sgd ? "sgd" : "adam");
    if (!sgd && name.find("Adam") == std::string::npos) {
      in.job.left_out.push_back(
          fmt::format("optimizer.type {}: taken as adam", costmodel::shortened(name)));
    }
  }
  in.put("training", "stack", "deepspeed-2021");
  // On by default at stage 3 only (deepspeed/runtime/zero/config.py, overlap_comm).
  const Json *stage = in.find("zero_optimization", "stage"),
             *asked = in.find("zero_optimization", "overlap_comm");
  const bool usual = stage != nullptr && stage->is_number_integer() && *stage == 3;
  const bool decided = asked != nullptr && asked->is_boolean();
  const bool overlaps = decided ? in.is_on("zero_optimization", "overlap_comm") : usual;
  Value overlap;
  overlap.set("overlap_grad_reduce", scalar_value(overlaps ? "true" : "false"));
  in.job.scenario.find("training")->set("overlap", overlap);
}

// The devices are what multiplies micro-batch and accumulation to the batch, where pp is 1.
void read_plan(DeepSpeedImport& in) {
  const Json* micro = in.top("train_micro_batch_size_per_gpu");
  in.put_number(micro, "plan", "micro_batch", "train_micro_batch_size_per_gpu");
  const Json* stage = in.find("zero_optimization", "stage");
  in.put("plan", "zero", "0");
  if (stage != nullptr) in.put_number(stage, "plan", "zero", "zero_optimization.stage");
  const Json* tensor = in.find("tensor_parallel", "autotp_size");
  if (tensor != nullptr) in.put_number(tensor, "plan", "tp", "tensor_parallel.autotp_size");
  const bool recompute = in.top("activation_checkpointing") != nullptr;
  in.put("plan", "recompute", recompute ? "full" : "none");
  if (recompute) {
    in.job.notes.emplace_back(
        "activation_checkpointing is taken as full recomputation: the file says how it is done, "
        "and "
        "the model's code where");
  }
  const Json *batch = in.top("train_batch_size"), *steps = in.top("gradient_accumulation_steps");
  const auto number = [](const Json* value) {
    const bool whole = value != nullptr && value->is_number_integer();
    const auto n = whole ? value->get<std::int64_t>() : 0;
    return n > 0 && n < 1'000'000'000 ? n : 0;
  };
  const std::int64_t share = number(micro) * number(steps);
  if (share == 0 || number(batch) == 0 || number(batch) % share != 0)
    return in.miss("cluster", "devices", "the number of devices, which the batch does not tell");
  const std::int64_t dp = number(batch) / share;
  in.put("plan", "dp", std::to_string(dp));
  in.put("cluster", "devices", std::to_string(dp * std::max<std::int64_t>(1, number(tensor))));
  in.job.notes.emplace_back(
      "the devices follow from batch, micro-batch and accumulation, for one pipeline stage: "
      "ds_config.json does not say how many the script builds");
}

}  // namespace

bool holds_deepspeed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{' &&
         (text.find("\"zero_optimization\"") != std::string::npos ||
          text.find("\"train_micro_batch_size_per_gpu\"") != std::string::npos ||
          text.find("\"train_batch_size\"") != std::string::npos);
}

ImportedJob import_deepspeed(const std::string& text, const std::string& file) {
  const Json config = Json::parse(text, nullptr, false);
  if (config.is_discarded() || !config.is_object())
    throw ConfigError({file, 0, 0}, "is not a JSON object", "give a ds_config.json");
  DeepSpeedImport in(config);
  in.miss("model", "base", "the model, which ds_config.json does not say: --set model=NAME");
  in.miss("cluster", "base",
          "which devices they are, ds_config.json does not say: add --cluster NAME (see `shardplan "
          "list clusters`)");
  read_plan(in);
  read_training(in);
  in.list_others();
  return std::move(in.job);
}

}  // namespace planner
