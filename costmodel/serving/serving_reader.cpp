#include "costmodel/serving/serving_reader.hpp"

#include <fmt/format.h>

#include <cmath>

#include "costmodel/base/path.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/serving/engine.hpp"
#include "costmodel/serving/serving_keys.hpp"

namespace costmodel {

namespace {

EngineSpec read_stack(MapReader& reader, const ConfigPath& path, const std::string& device) {
  if (reader.optional("stack") == nullptr) {
    throw ConfigError(
        reader.mark(), "serving lacks the key 'stack', the engine",
        fmt::format("add stack: one of {}", fmt::join(config_names(path, "engines"), ", ")));
  }
  const ResolvedConfig written = resolve_config(path, "engines", reader.required("stack"));
  EngineSpec engine = read_engine(written.value, written.name, device);
  engine.constants = fitted(engine.prior, find_serving_fit(path), engine.family, device);
  return engine;
}

void require_load(const ServingSpec& s, MapReader& reader) {
  if (s.concurrency > 0 && s.arrival_rate > 0) {
    throw ConfigError(reader.mark_of("arrival_rate"), "arrival_rate beside concurrency",
                      "leave one of them out: a load is open or closed");
  }
  if (s.concurrency == 0 && s.arrival_rate <= 0 && s.requests == 0) {
    throw ConfigError(reader.mark(), "serving says no load",
                      "add concurrency: 64, arrival_rate: 2.5 or requests: 1000");
  }
}

// What vLLM itself refuses: a step with less room than the sequences that may run, each of which
// decodes a token in it, and a prompt that no step holds whole (vllm/config, SchedulerConfig,
// "max_num_batched_tokens must be greater than or equal to max_num_seqs" and "... is smaller than
// max_model_len").
void require_room_in_step(const ServingSpec& s, const MapReader& serving) {
  const ServingLimits& limits = s.limits;
  if (!s.seqs_open && !s.tokens_open && limits.max_num_batched_tokens < limits.max_num_seqs) {
    throw ConfigError(
        serving.mark_of("max_num_batched_tokens"),
        fmt::format("a step of {} tokens has no room for {} requests that each decode one",
                    limits.max_num_batched_tokens, limits.max_num_seqs),
        fmt::format("raise max_num_batched_tokens to {} or more, or lower max_num_seqs",
                    limits.max_num_seqs));
  }
  const std::int64_t prompt = least_step(s);
  if (!s.tokens_open && prompt > limits.max_num_batched_tokens) {
    throw ConfigError(
        serving.mark_of("max_num_batched_tokens"),
        fmt::format("a step of {} tokens holds no prompt of {} whole, and chunked_prefill is "
                    "off",
                    limits.max_num_batched_tokens, prompt),
        fmt::format("raise max_num_batched_tokens to {} or more, or write chunked_prefill: true",
                    prompt));
  }
}

ServingLimits usual_limits(const EngineSpec& engine, const ModelSpec& model,
                           const DeviceSpec& device) {
  constexpr Bytes large(70 * 1073741824.0);
  const bool small = device.memory < large || device.name.starts_with("a100");
  if (small && engine.small_limits) return *engine.small_limits;
  return model.latent_attention() ? engine.latent_limits.value_or(engine.limits) : engine.limits;
}

bool lacks_bf16(const DeviceSpec& device) {
  return device.peak_of(Precision::bf16).value <= 0 && device.peak_of(Precision::fp16).value > 0;
}

// Engines take a checkpoint as it is.
WeightFormat published_weights(const ModelSpec& model) {
  const auto name = checkpoint_names[static_cast<std::size_t>(model.checkpoint)];
  const auto at = std::ranges::find(weight_format_names, name);
  return static_cast<WeightFormat>(at - weight_format_names.begin());
}

// Absent, an engine takes the model's length; longer requests are taken to be served all the same.
// Engines refuse more than the model takes (vllm/config/model.py, _get_and_verify_max_len).
void require_length(const ModelSpec& model, const Value& serving, ServingSpec& s) {
  const std::int64_t longest = longest_request(s);
  const Value* written = serving.find("max_model_len");
  s.length_open = s.max_model_len == 0;
  s.length_usual = written == nullptr;
  if (written == nullptr) s.max_model_len = std::max(model.context_length, longest);
  if (written != nullptr && model.context_length > 0 && s.max_model_len > model.context_length) {
    throw ConfigError(
        written->mark,
        fmt::format("max_model_len {} exceeds the model's context_length {}",
                    format_integer(s.max_model_len), format_integer(model.context_length)),
        "lower it, or raise model.context_length where its positions are scaled");
  }
  if (s.max_model_len == 0) s.max_model_len = longest;  // auto
  if (s.max_model_len >= longest) return;
  throw ConfigError(written->mark,
                    fmt::format("requests of {} tokens, prompt and answer, exceed max_model_len {}",
                                format_integer(longest), format_integer(s.max_model_len)),
                    fmt::format("raise it to {}, or shorten input_tokens or output_tokens",
                                format_integer(longest)));
}

ServingSpec read_spec(const Value& value, const ConfigPath& path, const ModelSpec& model,
                      const DeviceSpec& device) {
  MapReader reader(value, "serving");
  ServingSpec s;
  s.engine = read_stack(reader, path, device.name);
  s.limits = usual_limits(s.engine, model, device);
  s.weights = published_weights(model);
  const auto open = [&](const char* key) {
    return value.find(key) == nullptr || reader.is_auto(key);
  };
  s.seqs_open = open("max_num_seqs");
  s.tokens_open = open("max_num_batched_tokens");
  s.weights_open = reader.is_auto("weights");
  read_keys(reader, serving_rows(), s);
  // There an engine is started with fp16: vLLM refuses bf16 (platforms/cuda.py,
  // check_if_supports_dtype).
  if (lacks_bf16(device)) {
    if (s.weights == WeightFormat::bf16) s.weights = WeightFormat::fp16;
    if (s.kv_cache == CacheFormat::bf16) s.kv_cache = CacheFormat::fp16;
  }
  if (s.weights == WeightFormat::mxfp4 && model.experts == 0) {
    throw ConfigError(reader.mark_of("weights"), "weights mxfp4: engines keep experts alone so",
                      "write nvfp4 or int4, or choose a model with experts");
  }
  require_load(s, reader);
  reader.finish();
  require_room_in_step(s, reader);
  require_length(model, value, s);
  return s;
}

// Dollars need a price, and tokens a load that asks for them.
void require_goal(const ServingScenario& s, const MapReader& serving) {
  const ServingGoal& goal = s.serving.goal;
  const double price = s.cluster.operation.usd_per_device_hour;
  if ((goal.usd_per_hour > 0 || goal.usd_per_million > 0) && price <= 0) {
    throw ConfigError(serving.mark_of("budget"), "a budget, and the cluster has no price",
                      "add cluster.price.usd_per_device_hour, what a device costs an hour");
  }
  if (goal.usd_per_hour > 0 && goal.usd_per_hour < price) {
    throw ConfigError(serving.mark_of("budget"),
                      fmt::format("{:.4g} dollars an hour pay for no device: one costs {:.4g}",
                                  goal.usd_per_hour, price),
                      fmt::format("allow at least {:.4g}", price));
  }
  const double asked = s.serving.arrival_rate * s.serving.output.mean;
  if (s.serving.arrival_rate > 0 && asked < goal.output_per_s) {
    throw ConfigError(
        serving.mark_of("throughput_target"),
        fmt::format("a target of {:.4g} tokens/s, and the requests that arrive ask for {:.4g}",
                    goal.output_per_s, asked),
        "raise arrival_rate, or write concurrency in its place: what a plan can do at most");
  }
}

ServingPlan read_serving_plan(const Value& value) {
  MapReader reader(value, "plan");
  if (value.find("base") != nullptr && !reader.is_auto("base")) {
    throw ConfigError(reader.mark_of("base"), "the base of a plan is auto or nothing",
                      "write {base: auto, tp: 8, ...}, or leave it out");
  }
  reader.optional("base");
  ServingPlan plan;
  plan.mark = value.mark;
  const auto size = [&](std::string_view name, Mark& mark) -> std::optional<int> {
    mark = reader.mark_of(name);
    const bool open = reader.is_auto(name) && reader.optional(name) != nullptr;
    return open ? std::nullopt : reader.integer(name, {1, 16'384});
  };
  plan.tp = size("tp", plan.tp_mark);
  plan.pp = size("pp", plan.pp_mark);
  plan.ep = size("ep", plan.ep_mark);
  plan.dp = size("dp", plan.dp_mark);
  const Value* apart = reader.optional("disaggregation");
  plan.together = apart != nullptr && apart->is_scalar() && apart->text == "none";
  if (apart != nullptr && !plan.together && !(apart->is_scalar() && apart->text == "auto")) {
    plan.disaggregation.emplace();
    read_map(*apart, "disaggregation", disaggregation_rows(), *plan.disaggregation);
  }
  reader.finish();
  return plan;
}

// What the step's op list has no decode for.
void require_served(const ModelSpec& model, const Mark& mark) {
  const bool generates = !model.encoder_decoder() && model.causal;
  if (model.attends_by_place() && generates && model.layer_pattern.empty()) return;
  throw ConfigError(
      mark,
      "serving of state-space, hybrid, encoder-decoder and bidirectional models, and of sparse "
      "attention, has no model",
      "name a decoder with attention in every layer");
}

// Devices without products in the format would take for ever.
void require_rate(const ServingSpec& s, const DeviceSpec& device, const MapReader& serving) {
  const auto has = [&](Precision p) { return device.peak_of(p).value > 0; };
  const bool wide = s.weights == WeightFormat::fp32;
  if (wide ? has(Precision::fp32) : has(Precision::bf16) || has(Precision::fp16)) return;
  throw ConfigError(
      serving.mark_of("weights"),
      fmt::format("device {} has no rate of {} products", device.name, wide ? "fp32" : "16-bit"),
      wide ? "write weights: bf16" : "write weights: fp32 and kv_cache: fp32");
}

// Rotary models take any length; of learned positions there are only so many.
void require_positions(const ServingScenario& s) {
  if (s.model.positions != Positions::learned || s.model.max_positions == 0) return;
  const std::int64_t tokens = longest_request(s.serving);
  if (tokens <= s.model.max_positions) return;
  throw ConfigError(s.input_mark,
                    fmt::format("prompts and answers of {} tokens exceed the model's {} learned "
                                "positions",
                                tokens, s.model.max_positions),
                    "shorten input_tokens or output_tokens, or override model max_positions");
}

}  // namespace

std::int64_t least_step(const ServingSpec& s) {
  const bool cut = s.engine.family != "vllm" || s.limits.chunked_prefill || s.decode_only;
  return cut ? 0 : static_cast<std::int64_t>(std::ceil(s.input.mean * (1 - s.prefix_hit_share)));
}

std::int64_t longest_request(const ServingSpec& s) {
  const auto longest = [](const LengthSpec& length) {
    constexpr double most_requests = 0.999;
    const double tail = length.p95 > 0 ? length_quantile(length, most_requests) : 0;
    return static_cast<std::int64_t>(std::ceil(std::max({length.mean, length.most, tail})));
  };
  return longest(s.input) + longest(s.output);
}

ServingScenario read_serving(const Value& root, const std::string& name, const ConfigPath& path) {
  MapReader reader(root, "scenario");
  ServingScenario s;
  s.name = name;
  s.file = root.mark.file;
  const Value& workload = reader.required("workload");
  if (!is_serving(root)) {
    throw ConfigError(workload.mark, "the workload of serving is inference",
                      "write workload: inference");
  }
  Scenario parts;
  read_parts(reader, path, parts);
  s.model_text = parts.model_text;
  s.cluster_text = parts.cluster_text;
  s.model = std::move(parts.model);
  s.cluster = std::move(parts.cluster);
  require_served(s.model, reader.mark_of("model"));
  if (!s.cluster.groups.empty()) {
    throw ConfigError(reader.mark_of("cluster"), "serving on several kinds of devices has no model",
                      "name a cluster of one kind");
  }
  const Value& written = reader.required("serving");
  const MapReader serving(
      written, "serving", names_of(serving_rows()),
      "stack: vllm-0.9, input_tokens: 1024, output_tokens: 256, concurrency: 32");
  s.serving = read_spec(written, path, s.model, s.cluster.device);
  s.input_mark = serving.mark_of("input_tokens");
  const std::string& family = s.serving.engine.family;
  if (family != "vllm" && family != "sglang") {  // checkpoints of their own, narrow throughout
    s.model.unquantized_attention = s.model.unquantized_dense = false;
    s.model.unquantized_layers = 0;
  }
  require_positions(s);
  require_rate(s.serving, s.cluster.device, serving);
  s.batch_mark = serving.mark_of("max_num_seqs");
  s.bound_mark = serving.mark_of("latency_bound");
  require_goal(s, serving);
  Value none;
  none.mark = root.mark;
  const Value* plan = reader.optional("plan");
  const bool open = plan == nullptr || (plan->is_scalar() && plan->text == "auto");
  s.plan = read_serving_plan(open ? none : *plan);
  for (const auto* key : {"name", "title", "notes", "source", "command", "assumed"})
    reader.optional(key);
  reader.finish();
  return s;
}

ServingScenario load_serving(const std::string& file, const ConfigPath& path,
                             const std::vector<std::string>& assignments) {
  return read_serving(scenario_tree(file, path, assignments), stem_of(file), path);
}

std::string sizes_fault(const ServingSizes& sizes, const ModelSpec& model,
                        const ClusterSpec& cluster) {
  if (model.common_heads() % sizes.tp != 0) {
    return fmt::format("{} attention heads are not divisible by tp {}", model.heads_text(),
                       sizes.tp);
  }
  const bool dense = model.moe_layers(0, model.layers) < model.layers;
  if (dense && model.ffn_hidden % sizes.tp != 0)
    return fmt::format("MLPs of {} columns are not divisible by tp {}", model.ffn_hidden, sizes.tp);
  if (sizes.pp > model.layers)
    return fmt::format("pp {} exceeds the {} layers", sizes.pp, model.layers);
  if (sizes.ep > 1) {
    if (model.experts == 0) return "ep without experts";
    const std::int64_t all = std::int64_t{sizes.tp} * sizes.dp;
    if (sizes.tp % sizes.ep != 0 && sizes.ep != all) {
      return fmt::format("ep {} neither divides tp {} nor is tp x dp = {}", sizes.ep, sizes.tp,
                         all);
    }
    if (sizes.ep > sizes.tp && sizes.pp > 1) return "experts over replicas and pp at once";
    if (sizes.ep > model.experts || (sizes.ep <= sizes.tp && model.experts % sizes.ep != 0))
      return fmt::format("{} experts are not divisible by ep {}", model.experts, sizes.ep);
  }
  if (model.experts > 0 && sizes.ep <= sizes.tp &&
      model.expert_ffn_hidden % (sizes.tp / sizes.ep) != 0) {
    return fmt::format("experts of {} columns are not divisible by tp {}", model.expert_ffn_hidden,
                       sizes.tp);
  }
  if (sizes.devices() > cluster.devices) {
    return fmt::format("tp {} x pp {} x dp {} = {} devices of {}", sizes.tp, sizes.pp, sizes.dp,
                       sizes.devices(), cluster.devices);
  }
  return "";
}

ServingSizes sizes_of(const ServingScenario& s) {
  ServingSizes sizes{s.plan.tp.value_or(1), s.plan.pp.value_or(1), s.plan.ep.value_or(1), 1};
  sizes.dp = s.plan.dp.value_or(std::max<std::int64_t>(1, s.cluster.devices / sizes.replica()));
  const std::string fault = sizes_fault(sizes, s.model, s.cluster);
  if (fault.empty()) return sizes;
  const Mark& mark = fault.find("ep ") == 0 || fault.find("experts") != std::string::npos
                         ? s.plan.ep_mark
                     : fault.starts_with("pp ") ? s.plan.pp_mark
                                                : s.plan.tp_mark;
  throw ConfigError(mark.file.empty() ? s.plan.mark : mark, fault,
                    "choose sizes that divide, or leave plan out and ask `shardplan plan`");
}

}  // namespace costmodel
