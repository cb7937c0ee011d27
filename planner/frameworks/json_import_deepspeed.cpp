#include "planner/frameworks/json_import_deepspeed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/json_text.hpp"
#include "costmodel/base/unit_text.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

using Json = nlohmann::ordered_json;
using namespace costmodel;

namespace {

bool is_known(const std::string& key) {
  return std::ranges::count(framework_words("deepspeed").harmless, key) > 0;
}

class DeepSpeedImport {
 public:
  DeepSpeedImport(const Json& config, const std::string& text, const std::string& file)
      : config_(config), text_(text), file_(file) {
    job = job_of(JobFormat::deepspeed);
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
    put_key(job, part, key, text);
  }
  // A map of one share.
  void put_share(const char* part, const std::string& key, const char* name, double share) {
    Value map;
    map.set(name, scalar_value(fmt::format("{}", share)));
    job.scenario.find(part)->set(key, map);
  }
  void miss(const char* part, const std::string& key, std::string remedy) {
    miss_key(job, part, key, std::move(remedy));
  }
  // A whole number of the file; "auto" and what is absent are missing.
  void put_number(const Json* value, const char* part, const std::string& key, const char* name,
                  std::int64_t least = 1, std::int64_t most = 1'000'000'000'000) {
    if (value != nullptr && value->is_number()) {
      const bool whole = value->is_number_integer();
      const auto number = whole ? value->get<std::int64_t>() : 0;
      if (!whole || number < least || number > most) {
        throw ConfigError(mark_of(name), fmt::format("{} is {}", name, json_line(*value)),
                          fmt::format("write a whole number from {} to {}", least, most));
      }
      return put(part, key, std::to_string(number));
    }
    const bool open = value != nullptr && value->is_string() && value->get<std::string>() == "auto";
    miss(part, key,
         fmt::format("{} is {}", name,
                     value == nullptr ? "not said"
                     : open           ? "auto: the Trainer's or accelerate's own "
                                        "arguments decide it"
                                      : "no number"));
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

  // Where "outer.inner" stands: the first of the name, behind its map's.
  Mark mark_of(const std::string& name) const {
    std::size_t at = 0;
    for (std::size_t from = 0; from < name.size();) {
      const std::size_t dot = std::min(name.find('.', from), name.size());
      const std::size_t found = text_.find('"' + name.substr(from, dot - from) + '"', at);
      if (found != std::string::npos) at = found;
      from = dot + 1;
    }
    return mark_at(text_, file_, at);
  }
  static Mark mark_at(const std::string& text, const std::string& file, std::size_t at) {
    const std::string before = text.substr(0, at);
    const auto lines = std::ranges::count(before, '\n');
    const std::size_t begin = before.rfind('\n');
    return {file, static_cast<int>(lines) + 1,
            static_cast<int>(begin == std::string::npos ? at : at - begin - 1) + 1};
  }

  ImportedJob job;

 private:
  void leave_out(const std::string& key, const Json& value) {
    const bool off = value.is_boolean() && !value.get<bool>();
    if (off || value.is_null()) return;
    const bool nested =
        std::ranges::any_of(value, [](const Json& inner) { return inner.is_structured(); });
    const std::string text = nested ? "..." : json_line(value);
    job.left_out.push_back(fmt::format("{}: {}: no key says it", shortened(key), shortened(text)));
  }
  const Json& config_;
  const std::string &text_, &file_;
};

// What a launch script says around its ds_config.json.
struct Around {
  std::int64_t devices = 0, stages = 0, experts = 0, sequence_ranks = 0, tensor = 0;  // 0: not said
  bool megatron = false, sequence_parallel = false;
};

// The number behind the last of these words; 0 for none.
std::int64_t number_after(const std::string& text, std::string_view word) {
  const std::size_t found = text.rfind(word);
  if (found == std::string::npos) return 0;
  const char* begin = text.data() + found + word.size();
  std::int64_t number = 0;
  std::from_chars(begin, text.data() + text.size(), number);
  return number > 0 && number < 1'000'000'000 ? number : 0;
}

Around around(const std::string& script) {
  Around out;
  const std::int64_t nodes = number_after(script, "--num_nodes ");
  out.devices = nodes * number_after(script, "--num_gpus ");
  out.stages = number_after(script, "num_stages=");
  out.experts = number_after(script, "ep_size=");
  out.sequence_ranks = number_after(script, "sequence_parallel_size=");
  out.tensor = number_after(script, "--tensor-model-parallel-size ");
  out.megatron = out.tensor > 0;
  out.sequence_parallel = script.find("--sequence-parallel") != std::string::npos;
  return out;
}

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

// A size of the file, else of the script around it.
std::int64_t size_of(const Json* value, std::int64_t otherwise) {
  const bool integer = value != nullptr && value->is_number_integer();
  const auto number = integer ? value->get<std::int64_t>() : 0;
  return number > 0 && number < 1'000'000'000 ? number : otherwise;
}

void read_training(DeepSpeedImport& in, const Around& script) {
  // The product of the others, as DeepSpeed takes it where it is not written.
  const Value* replicas = in.job.scenario.find("plan")->find("dp");
  const bool open = in.top("gradient_accumulation_steps") == nullptr;
  const std::int64_t share = size_of(in.top("train_micro_batch_size_per_gpu"), 0) *
                             size_of(in.top("gradient_accumulation_steps"), open ? 1 : 0);
  const double dp = replicas == nullptr ? 0 : parse_count(replicas->text).value_or(0);
  in.job.accumulation = size_of(in.top("gradient_accumulation_steps"), 1);
  if (in.top("train_batch_size") == nullptr && share > 0 && dp > 0) {
    in.put("training", "global_batch", fmt::format("{:.0f}", static_cast<double>(share) * dp));
  } else {
    in.put_number(in.top("train_batch_size"), "training", "global_batch", "train_batch_size");
  }
  in.miss("training", "sequence", "tokens of a sequence, which ds_config.json does not say");
  read_precision(in);
  if (const Json* type = in.find("data_types", "grad_accum_dtype");
      type != nullptr && type->is_string()) {
    in.put("training", "gradient_precision", type->get<std::string>());
  }
  if (const Json* type = in.find("optimizer", "type"); type != nullptr && type->is_string()) {
    const auto name = type->get<std::string>();
    const bool sgd = name == "SGD", muon = name == "Muon";
    in.put("training", "optimizer", sgd ? "sgd" : muon ? "muon" : "adam");
    if (!sgd && !muon && name.find("Adam") == std::string::npos) {
      in.job.left_out.push_back(fmt::format("optimizer.type {}: taken as adam", shortened(name)));
    }
  }
  for (const char* usual : {"reduce_scatter", "contiguous_gradients"}) {
    const Json* value = in.find("zero_optimization", usual);
    if (value != nullptr && value->is_boolean() && !value->get<bool>())
      in.job.left_out.push_back(fmt::format("zero_optimization.{}: taken as true", usual));
  }
  in.put("training", "stack", script.megatron ? "megatron-deepspeed-2022" : "deepspeed");
  // On by default at stage 3 only (deepspeed/runtime/zero/config.py, overlap_comm).
  const Json *stage = in.find("zero_optimization", "stage"),
             *asked = in.find("zero_optimization", "overlap_comm");
  const bool usual = stage != nullptr && stage->is_number_integer() && *stage == 3;
  const bool decided = asked != nullptr && asked->is_boolean();
  const bool overlaps = decided ? in.is_on("zero_optimization", "overlap_comm") : usual;
  Value overlap;
  overlap.set("overlap_grad_reduce", scalar_value(overlaps ? "true" : "false"));
  // Its gathers have a stream of their own with it (runtime/zero/parameter_offload.py).
  if (usual && !overlaps) overlap.set("overlap_param_gather", scalar_value("false"));
  in.job.scenario.find("training")->set("overlap", overlap);
}

void read_recomputation(DeepSpeedImport& in) {
  const bool recompute = in.top("activation_checkpointing") != nullptr;
  in.put("plan", "recompute", recompute ? "full" : "none");
  if (!recompute) return;
  in.job.notes.emplace_back(
      "activation_checkpointing is taken as full recomputation: the file says how it is done, and "
      "the model's code where");
}

// ZeRO's stage, 0 where none is said.
std::int64_t zero_stage(DeepSpeedImport& in) {
  return size_of(in.find("zero_optimization", "stage"), 0);
}

// MiCS: groups of data-parallel and context ranks that each hold all shards.
void read_groups(DeepSpeedImport& in, std::int64_t dp, std::int64_t cp) {
  const Json* size = in.find("zero_optimization", "mics_shard_size");
  const std::int64_t shards = size_of(size, dp * cp), groups = dp * cp / shards;
  if (shards * groups != dp * cp || dp % groups != 0) {
    in.job.left_out.push_back(fmt::format(
        "zero_optimization.mics_shard_size {}: does not divide the {} ranks", shards, dp * cp));
  } else if (groups > 1 && zero_stage(in) != 3) {
    in.job.left_out.emplace_back(
        "zero_optimization.mics_shard_size: MiCS is of stage 3, which is not set");
  } else if (groups > 1) {
    in.put("plan", "dp_replicate", std::to_string(groups));
  }
}

// Where a part of the states is kept: none, cpu or nvme.
std::string kept_on(DeepSpeedImport& in, const char* key) {
  const Json* part = in.find("zero_optimization", key);
  if (part == nullptr || !part->is_object()) return "none";
  const Json named = part->value("device", Json("none"));
  const bool known = named == "none" || named == "cpu" || named == "nvme";
  if (!known) {
    throw ConfigError(in.mark_of("device"), fmt::format("device is {}", json_line(named)),
                      "write none, cpu or nvme");
  }
  return named.get<std::string>();
}

// What is kept in host memory or on drives; parameters go with the optimizer's states.
void read_offload(DeepSpeedImport& in) {
  const std::string states = kept_on(in, "offload_optimizer"),
                    parameters = kept_on(in, "offload_param");
  if (states == "none" && parameters == "none") return;
  const Json* part = in.find("zero_optimization", "offload_optimizer");
  const double ratio = states != "none" && part->contains("ratio") && part->at("ratio").is_number()
                           ? part->at("ratio").get<double>()
                           : 1;
  const bool drives = states == "nvme" || parameters == "nvme", both = parameters != "none";
  if ((both || drives) && ratio < 1) {
    in.job.left_out.emplace_back(
        "zero_optimization.offload_optimizer.ratio: with offload_param or NVMe all states are "
        "taken as kept there");
  }
  if (drives) {
    // States without a place of their own are taken as those that they are the states of.
    const auto place = [](const std::string& device) { return device == "nvme" ? "nvme" : "host"; };
    const auto& own = states != "none" ? states : parameters;
    Value map;
    map.set("optimizer", scalar_value("1"));
    if (both) map.set("parameters", scalar_value("1"));
    map.set("to", scalar_value(place(own)));
    if (both && parameters != own) map.set("parameters_to", scalar_value(place(parameters)));
    in.job.scenario.find("plan")->set("offload", map);
    return;
  }
  if (!both && ratio < 1) return in.put_share("plan", "offload", "optimizer", ratio);
  in.put("plan", "offload", both ? "parameters" : "optimizer");
}

// ZeRO++, of stage 3 alone.
void read_zero_plus_plus(DeepSpeedImport& in) {
  const bool sharded = zero_stage(in) == 3;
  const auto left_out = [&in](const char* key) {
    in.job.left_out.push_back(
        fmt::format("zero_optimization.{}: ZeRO++ is of stage 3, which is not set", key));
  };
  constexpr const char* partition = "zero_hpz_partition_size";
  const Json* size = in.find("zero_optimization", partition);
  if (size != nullptr && sharded) {
    in.put_number(size, "plan", partition, "zero_optimization.zero_hpz_partition_size");
  } else if (size_of(size, 1) > 1) {
    left_out(partition);
  }
  for (const char* key : {"zero_quantized_weights", "zero_quantized_gradients"}) {
    if (!in.is_on("zero_optimization", key)) continue;
    if (sharded) {
      in.put("plan", key, "true");
    } else {
      left_out(key);
    }
  }
}

// The devices are those of the launch, else what multiplies micro-batch and accumulation to the
// batch, times the sizes of the other axes.
void read_devices(DeepSpeedImport& in, const Around& script, std::int64_t model, std::int64_t cp) {
  const std::int64_t share = size_of(in.top("train_micro_batch_size_per_gpu"), 0) *
                             size_of(in.top("gradient_accumulation_steps"), 0);
  const std::int64_t batch = size_of(in.top("train_batch_size"), 0);
  const bool told = share > 0 && batch > 0 && batch % share == 0;
  const std::int64_t ranks = script.devices > 0 && script.devices % model == 0
                                 ? script.devices / model
                                 : (told ? batch / share : 0);
  if (ranks == 0)
    return in.miss("cluster", "devices", "the number of devices, which the batch does not tell");
  in.put("plan", "dp", std::to_string(ranks));
  in.put("cluster", "devices", std::to_string(ranks * model));
  read_groups(in, ranks, cp);
  if (script.devices > 0) return;
  in.job.notes.emplace_back(
      "the devices follow from batch, micro-batch and accumulation, for the sizes that are said: "
      "ds_config.json does not say what the script builds");
}

void read_plan(DeepSpeedImport& in, const Around& script) {
  in.put_number(in.top("train_micro_batch_size_per_gpu"), "plan", "micro_batch",
                "train_micro_batch_size_per_gpu");
  in.put("plan", "zero", "0");
  if (const Json* stage = in.find("zero_optimization", "stage"); stage != nullptr)
    in.put_number(stage, "plan", "zero", "zero_optimization.stage", 0, 3);
  read_zero_plus_plus(in);
  read_offload(in);
  const Json *split = in.find("tensor_parallel", "autotp_size"),
             *stages = in.find("pipeline", "stages");
  if (split != nullptr) in.put_number(split, "plan", "tp", "tensor_parallel.autotp_size");
  if (split == nullptr && script.tensor > 0) in.put("plan", "tp", std::to_string(script.tensor));
  const std::int64_t tp = size_of(split, std::max<std::int64_t>(1, script.tensor));
  const std::int64_t pp = size_of(stages, std::max<std::int64_t>(1, script.stages));
  const std::int64_t cp = std::max<std::int64_t>(1, script.sequence_ranks);
  if (pp > 1) in.put("plan", "pp", std::to_string(pp));
  if (script.experts > 1) in.put("plan", "ep", std::to_string(script.experts));
  if (script.sequence_parallel) in.put("plan", "sequence_parallel", "true");
  if (cp > 1) {
    in.put("plan", "cp", std::to_string(cp));
    in.put("plan", "cp_comm", "a2a");
  }
  read_recomputation(in);
  read_devices(in, script, tp * pp * cp, cp);
}

Json parsed(const std::string& text, const std::string& file) {
  Json config = parse_json(text, file);
  if (config.is_object()) return config;
  throw ConfigError({file, 0, 0}, "is not a JSON object", "give a ds_config.json");
}

}  // namespace

bool holds_deepspeed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool object = first != std::string::npos && text[first] == '{';
  const bool script = holds_document(text, "JSON");
  return (object || script) &&
         (text.find("\"zero_optimization\"") != std::string::npos ||
          text.find("\"train_micro_batch_size_per_gpu\"") != std::string::npos ||
          text.find("\"train_batch_size\"") != std::string::npos);
}

ImportedJob import_deepspeed(const std::string& text, const std::string& file) {
  const std::string document = here_document(text, "JSON");
  const Json config = parsed(document, file);
  const Around script = holds_document(text, "JSON") ? around(text) : Around{};
  DeepSpeedImport in(config, document, file);
  in.miss("model", "base", "the model, which ds_config.json does not say: --set model=NAME");
  in.miss("cluster", "base",
          "which devices they are, ds_config.json does not say: add --cluster NAME (see `shardplan "
          "list clusters`)");
  read_plan(in, script);
  read_training(in, script);
  in.list_others();
  return std::move(in.job);
}

}  // namespace planner
