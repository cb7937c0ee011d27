#include "planner/frameworks/export_overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "planner/frameworks/override_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Arguments = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view backend_flag = "--attention-backend";
constexpr std::string_view transfers_flag = "--no-overlap-p2p-communication";

Arguments arguments_of(const MegatronExport& exported) {
  Arguments all;
  for (const auto& argument : exported.arguments) {
    const std::size_t space = argument.find(' ');
    all[argument.substr(0, space)] =
        space == std::string::npos ? std::string() : argument.substr(space + 1);
  }
  return all;
}

std::string list_of(std::string words) {
  std::ranges::replace(words, ' ', ',');
  return "[" + words + "]";
}

// transformer_config.py takes a number or a list, no expression.
std::string layers_with_experts_list(const ModelSpec& model) {
  std::string list;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    list += fmt::format("{}{}", layer > 0 ? "," : "", model.has_experts(layer) ? 1 : 0);
  return "[" + list + "]";
}

bool written_by_table(const OverrideWord& word) { return word.form < OverrideForm::import_on; }

class Fields {
 public:
  Fields(Arguments arguments, OverrideTarget target)
      : arguments_(std::move(arguments)), bridge_(target == OverrideTarget::bridge) {}

  void put(std::string_view field, std::string value) {
    if (!field.empty() && written_.insert(std::string(field)).second)
      out.list.push_back({std::string(field), std::move(value)});
  }
  void put(std::string_view bridge, std::string_view nemo, std::string value) {
    put(bridge_ ? bridge : nemo, std::move(value));
  }
  bool has(std::string_view flag) const { return arguments_.contains(flag); }

  void write_table() {
    for (const auto& word : override_words()) {
      if (written_by_table(word) && !field_of(word).empty()) write(word);
    }
  }

  // Arguments that no row of this column says.
  void list_others() {
    for (const auto& argument : arguments_) {
      const std::string& flag = argument.first;
      const bool said = std::ranges::any_of(override_words(), [&](const OverrideWord& word) {
        const std::string_view field = field_of(word);
        const bool itself = written_by_table(word) || word.form == OverrideForm::together;
        return word.flag == flag && (itself ? !field.empty() : written_.contains(field));
      });
      if (said) continue;
      const std::string& value = argument.second;
      out.without.push_back(fmt::format("{}{}{}", flag, value.empty() ? "" : " ", value));
    }
  }

  OverrideExport out;

 private:
  std::string_view field_of(const OverrideWord& word) const {
    return bridge_ ? word.bridge : word.nemo;
  }

  // Two flags may turn off one field.
  bool said(std::string_view field) const {
    return std::ranges::any_of(override_words(), [&](const OverrideWord& word) {
      return written_by_table(word) && field_of(word) == field && has(word.flag);
    });
  }

  void write(const OverrideWord& word) {
    const std::string_view field = field_of(word);
    const bool on = said(field);
    if (!on && !word.always) return;
    const auto argument = arguments_.find(word.flag);
    const std::string value = argument == arguments_.end() ? std::string() : argument->second;
    switch (word.form) {
      case OverrideForm::on: return put(field, on ? "true" : "false");
      case OverrideForm::off: return put(field, on ? "false" : "true");
      case OverrideForm::torch:
        return put(field, value == "bf16" ? "torch.bfloat16" : "torch.float32");
      case OverrideForm::list: return put(field, list_of(value));
      default: break;
    }
    if (!value.empty()) put(field, value);
  }

  Arguments arguments_;
  bool bridge_;
  std::set<std::string, std::less<>> written_;
};

void write_activation(Fields& fields) {
  const bool gelu = fields.has("--quick-geglu");
  const bool gated = fields.has("--swiglu") || gelu;
  fields.put("model.gated_linear_unit", "model.config.gated_linear_unit", gated ? "true" : "false");
  const std::string_view name = gelu                           ? "quick_gelu"
                                : gated                        ? "silu"
                                : fields.has("--squared-relu") ? "squared_relu"
                                                               : "gelu";
  // Megatron-Bridge knows them by name (utils/activation_map.py), NeMo's recipes take functions.
  const std::string_view from = gelu                     ? "megatron.core.fusions.fused_bias_geglu."
                                : name == "squared_relu" ? "megatron.core.activations."
                                                         : "torch.nn.functional.";
  fields.put("model.activation_func", "", std::string(name));
  fields.put("", "model.config.activation_func", std::string(from) + std::string(name));
}

// YaRN's numbers have other names in the configuration of latent attention, whose own factor is 40.
void write_yarn(const ModelSpec& m, Fields& fields) {
  const bool latent = m.latent_attention(), yarn = m.rope_scaling == RopeScaling::yarn;
  const auto put = [&](const std::string& name, double value) {
    const std::string text = fmt::format("{}", value);
    if (value > 0 && latent) fields.put("model." + name, "model.config." + name, text);
    if (value > 0 && !latent) fields.put("model.yarn_" + name, "", text);
  };
  if (latent && !yarn) put("rotary_scaling_factor", 1);
  if (!yarn) return;
  if (latent) fields.put("model.rope_type", "model.config.rope_type", "yarn");
  put("rotary_scaling_factor", m.rope_scaling_factor);
  put("original_max_position_embeddings", static_cast<double>(m.rope_original_positions));
  put("beta_fast", m.rope_beta_fast);
  put("beta_slow", m.rope_beta_slow);
  put("mscale", m.rope_mscale);
  put("mscale_all_dim", m.rope_mscale_all_dim);
}

// The kernel adds a bias to what it activates: a gate's half, or a GELU's argument
// (transformer_config.py). Megatron-LM's arguments leave it out of themselves elsewhere.
bool has_fused_activation(const ModelSpec& m) {
  return m.gated_mlp || (m.linear_bias && m.activation != ActivationFunction::squared_relu);
}

}  // namespace

bool has_unfused_attention(const MegatronExport& exported) {
  return std::ranges::find(exported.arguments, std::string(backend_flag) + " unfused") !=
         exported.arguments.end();
}

OverrideExport export_overrides(const MegatronExport& exported, const Scenario& scenario,
                                const ParallelPlan& plan, OverrideTarget target) {
  Arguments arguments = arguments_of(exported);
  arguments.erase(arguments.find(backend_flag));
  // Megatron-LM overlaps transfers of itself where stages are interleaved.
  const bool serial = plan.vpp == 1 || arguments.contains(transfers_flag);
  if (serial) arguments[std::string(transfers_flag)] = "";
  if (arguments.contains("--moe-layer-freq"))
    arguments["--moe-layer-freq"] = layers_with_experts_list(scenario.model);
  if (arguments.contains("--window-size"))
    arguments["--window-size"] = fmt::format("[{},0]", scenario.model.sliding_window - 1);
  if (!has_fused_activation(scenario.model)) arguments["--no-bias-gelu-fusion"] = "";
  // NeMo's core has this one backend, by a switch.
  const auto backend = arguments.find("--moe-flex-dispatcher-backend");
  const bool deepep =
      target == OverrideTarget::nemo && backend != arguments.end() && backend->second == "deepep";
  if (deepep) arguments.erase(backend);
  // NeMo's core reduces in fp32 with Megatron-FSDP as without.
  if (target == OverrideTarget::nemo) arguments.erase("--megatron-fsdp-main-grads-dtype");
  Fields fields(std::move(arguments), target);
  fields.write_table();
  if (deepep) fields.put("model.config.moe_enable_deepep", "true");
  write_activation(fields);
  write_yarn(scenario.model, fields);
  if (scenario.training.precision == Precision::fp32)
    fields.put("mixed_precision.fp32", "", "true");
  fields.put("model.batch_p2p_comm", "MegatronCommOverlapCallback.batch_p2p_comm",
             serial ? "true" : "false");
  if (scenario.model.latent_attention() && scenario.model.q_lora_rank == 0)
    fields.put("model.q_lora_rank", "model.config.q_lora_rank", "null");
  if (fields.has("--cpu-offloading-num-layers"))
    fields.put("model.cpu_offloading", "model.config.cpu_offloading", "true");
  if (fields.has("--cuda-graph-impl")) {
    fields.put("model.use_te_rng_tracker", "", "true");
    fields.put("rng.te_rng_tracker", "", "true");
    // The recipe's own scope is deprecated, and warns next to none too.
    fields.put("model.cuda_graph_modules", "", "[]");
    fields.put("model.cuda_graph_scope", "", "null");
  }
  if (fields.has("--use-megatron-fsdp")) {
    fields.put("", "trainer.strategy.fsdp", "megatron");
    // Its recipes' average is not Megatron-FSDP's (nemo/collections/llm/recipes/llama3_8b.py).
    fields.put("", "trainer.strategy.ddp.average_in_collective", "false");
  }
  // The recipe of NeMo has virtual stages of its own, Transformer Engine's own layer, which has no
  // experts, and norms whose weight is 1 + w.
  fields.put("", "model.config.layernorm_zero_centered_gamma", "false");
  fields.put("", "model.config.use_transformer_engine_full_layer_spec", "false");
  fields.put("", "trainer.strategy.virtual_pipeline_model_parallel_size", "null");
  fields.put("", "trainer.strategy.context_parallel_size", "1");
  fields.list_others();
  return std::move(fields.out);
}

}  // namespace planner
