#include "costmodel/scenario/fine_tuning_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/plan/trained_parameters.hpp"

namespace costmodel {

namespace {

using F = FineTuning;

constexpr std::array<std::string_view, 2> adapter_precision_names{"bf16", "fp32"};  // by the flag

constexpr std::span<const std::string_view> methods() {
  return std::span(fine_tuning_names).subspan(1);
}

// The targets that a word names, those of `all-linear` as far as the model has them.
constexpr std::string_view all_linear = "all-linear", attention = "attention";

// Products of the model that have no adapters here; null: none.
const char* without_adapters(const ModelSpec& model) {
  return model.latent_attention() ? "latent attention"
         : model.recurrent()      ? "layers that keep a state"
         : model.windows_differ() ? "windows with sizes of their own"
                                  : nullptr;
}

std::string listed_remedy(const ModelSpec& model) {
  const unsigned targets = adapter_targets(model);
  if (targets == attention_targets) return "set targets: attention";
  return fmt::format("set targets: [{}]", fmt::join(names_of_targets(targets), ", "));
}

unsigned listed_targets(const Value& list) {
  unsigned targets = 0;
  for (const Value& item : list.items) {
    const std::string name = read_text(item, "targets");
    const auto at = std::ranges::find(adapter_target_names, name);
    if (at == adapter_target_names.end()) {
      throw ConfigError(item.mark, fmt::format("targets: {} is no projection", quote(name)),
                        known_names(name, std::vector<std::string>(adapter_target_names.begin(),
                                                                   adapter_target_names.end())));
    }
    targets |= 1U << static_cast<unsigned>(at - adapter_target_names.begin());
  }
  return targets;
}

unsigned read_targets(const Value& value, const ModelSpec& model) {
  if (value.is_scalar() && value.text == attention && !model.latent_attention())
    return attention_targets;
  if (value.is_scalar() && (value.text == all_linear || value.text == attention)) {
    const char* const lacks = without_adapters(model);
    if (lacks == nullptr) return adapter_targets(model);
    throw ConfigError(value.mark, fmt::format("targets: adapters of {} are not modelled", lacks),
                      listed_remedy(model));
  }
  if (value.kind != Value::Kind::sequence || value.items.empty()) {
    throw ConfigError(value.mark, "targets is a list of projections, or a word for one",
                      fmt::format("write some of [{}], or attention, or all-linear",
                                  words_text(adapter_target_names)));
  }
  const unsigned targets = listed_targets(value);
  const unsigned lacks = targets & ~adapter_targets(model);
  if (lacks == 0) return targets;
  const auto first = static_cast<std::size_t>(std::countr_zero(lacks));
  if ((lacks & attention_targets) != 0) {
    throw ConfigError(value.mark, "targets: adapters of latent attention are not modelled",
                      listed_remedy(model));
  }
  throw ConfigError(value.mark,
                    fmt::format("targets: the model's MLP has no {}", adapter_target_names[first]),
                    "leave it out, or set targets: all-linear");
}

const Keys<F>& plain_rows() {
  static const auto keys = key::rows<F>(
      key::required(key::special<F>(
          "method", [] { return words_text(methods()); },
          "full: all weights; lora: adapters beside a frozen base; qlora: a quantised one",
          [](MapReader& reader, F& f) {
            if (const auto at = reader.one_of("method", methods()))
              f.method = static_cast<FineTuningMethod>(*at + 1);
          })),
      key::whole<F>("rank", &F::rank, {1, 1 << 16}, "r of the adapters; absent: 16"),
      key::number<F>("alpha", &F::alpha, 1e-6, 1e6,
                     "their result is scaled by alpha / rank; absent: 32"),
      key::special<F>(
          "targets",
          [] {
            return "a list of " + words_text(adapter_target_names) + "; attention, all-linear";
          },
          "projections with an adapter; absent: all-linear", [](MapReader&, F&) {}),
      key::word<F>("base_precision", &F::base, base_precision_names,
                   "in which the frozen base is kept; absent: bf16, of qlora nf4"),
      key::word<F>(
          "adapter_precision", [](F& f) -> bool& { return f.fp32_adapters; },
          adapter_precision_names, "of adapters; absent: the stack's"),
      key::flag<F>("double_quantization", &F::double_quantization,
                   "nf4's scales are quantised too: 4.127 bits a value, else 4.5; absent: true"),
      key::number<F>("dropout", &F::dropout, 0, 0.99, "of what adapters read; absent: 0"),
      key::flag<F>(
          "all_to_all", &F::all_to_all,
          "with sequence parallelism what a row-parallel product's adapter adds is sent to "
          "the ranks of its tokens alone (NeMo's a2a_experimental); absent: the stack's"));
  return keys;
}

bool is_written(const Value& map, std::string_view key) {
  const Value* value = map.find(key);
  return value != nullptr && value->kind != Value::Kind::null;
}

// Throws ConfigError at the key.
void refuse(const MapReader& reader, std::string_view key, bool broken, const std::string& what,
            const std::string& remedy) {
  if (broken) throw ConfigError(reader.mark_of(key), what, remedy);
}

void check_precisions(const MapReader& reader, const Value& map, const F& f,
                      const TrainingSpec& t) {
  const bool lora = f.method == FineTuningMethod::lora;
  refuse(reader, "base_precision", lora && f.base == BasePrecision::nf4,
         "a frozen base of 4 bits is what qlora means",
         "set method: qlora, or base_precision: bf16");
  refuse(reader, "base_precision", !lora && f.base == BasePrecision::bf16,
         "the base of qlora is quantised", "set base_precision: nf4 or fp8, or method: lora");
  refuse(reader, "double_quantization",
         is_written(map, "double_quantization") && f.base != BasePrecision::nf4,
         "double_quantization is of a base in nf4", "leave it out, or set base_precision: nf4");
  refuse(reader, "method", t.precision == Precision::fp32,
         "adapters beside products in fp32 are not modelled",
         "set training.precision: bf16, fp16 or fp8");
  refuse(reader, "base_precision", is_narrow(t.precision) && f.base == BasePrecision::nf4,
         fmt::format("a base in nf4 is dequantised to 16 bits, not to {}", to_string(t.precision)),
         "set training.precision: bf16 or fp16, or base_precision: fp8");
  refuse(reader, "method", t.gather_precision != Precision::bf16,
         "parameter_gather_precision is of weights that are trained",
         "leave it out; base_precision says in what the frozen ones are kept");
  refuse(reader, "method", !t.stack.offers.adapters,
         fmt::format("stack {} has no adapters", t.stack.name),
         "choose another training.stack: peft, megatron-bridge or nemo-2025");
  refuse(reader, "base_precision", f.base == BasePrecision::nf4 && !t.stack.offers.nf4,
         fmt::format("stack {} has no base of 4 bits", t.stack.name),
         "set training.stack: peft, or base_precision: fp8");
}

void check_model(const MapReader& reader, const F& f, const ModelSpec& m) {
  const char* const what = m.encoder_decoder() ? "an encoder-decoder model"
                           : m.mtp_layers > 0  ? "multi-token prediction"
                           : !m.causal         ? "a bidirectional encoder"
                           : !adapts_layers(m) ? "layers without attention or MLP"
                                               : nullptr;
  refuse(reader, "method", what != nullptr,
         fmt::format("adapters of {} are not modelled", what != nullptr ? what : ""),
         "set method: full, or choose another model");
  for (std::size_t i = 0; i < adapter_target_names.size(); ++i) {
    const auto target = static_cast<AdapterTarget>(i);
    if (!f.has(target)) continue;
    const ProjectionSize size = projection_size(m, target);
    const bool of_expert = m.experts > 0 && (attention_targets & bit_of(target)) == 0;
    const std::int64_t most =
        of_expert ? std::min(m.expert_width(), m.expert_ffn_hidden) : std::min(size.n, size.k);
    refuse(reader, "rank", f.rank > most,
           fmt::format("rank {} is above the {} rows or columns of {}", f.rank, most,
                       adapter_target_names[i]),
           fmt::format("choose at most {}", most));
  }
}

// Of a stack without master weights of adapters, gradients are as wide as these.
void settle_adapters(const MapReader& reader, const Value& map, bool gradients_written, F& f,
                     TrainingSpec& t) {
  const bool plain = t.stack.memory.plain_adapters;
  refuse(reader, "adapter_precision", f.fp32_adapters && !plain,
         fmt::format("stack {} keeps adapters in {}", t.stack.name, to_string(t.precision)),
         "leave it out");
  if (!is_written(map, "adapter_precision")) f.fp32_adapters = plain;
  if (plain && !f.fp32_adapters && !gradients_written) t.gradient_precision = t.precision;
}

void only_method(const MapReader& reader, const Value& map) {
  for (const Key<F>& row : plain_rows()) {
    if (row.name == "method") continue;
    refuse(reader, row.name, is_written(map, row.name),
           fmt::format("{} is of adapters, method: full has none", row.name),
           "leave it out, or set method: lora or qlora");
  }
}

}  // namespace

void read_fine_tuning(MapReader& reader, const ModelSpec& model, TrainingSpec& training) {
  const Value* written = reader.optional("fine_tuning");
  if (written == nullptr) return;
  MapReader own(*written, "fine_tuning", names_of(plain_rows()), "method: lora");
  F& f = training.fine_tuning;
  read_keys(own, plain_rows(), f);
  const Value* targets = own.optional("targets");
  own.finish();
  if (!f.adapts()) return only_method(own, *written);
  if (f.method == FineTuningMethod::qlora && !is_written(*written, "base_precision"))
    f.base = BasePrecision::nf4;
  check_precisions(own, *written, f, training);
  settle_adapters(own, *written, reader.optional("gradient_precision") != nullptr, f, training);
  const auto& offers = training.stack.offers;
  f.quantised_experts = !offers.nf4 || offers.expert_adapters;
  if (targets != nullptr) {
    f.targets = read_targets(*targets, model);
  } else {
    f.targets = adapter_targets(model);
    const char* const lacks = without_adapters(model);
    refuse(own, "method", lacks != nullptr,
           fmt::format("adapters of {} are not modelled", lacks != nullptr ? lacks : ""),
           listed_remedy(model));
  }
  // PEFT's all-linear is of modules.
  const bool listed = targets != nullptr && !targets->is_scalar();
  if (offers.nf4 && !offers.expert_adapters && model.experts > 0 && !listed)
    f.targets &= attention_targets;
  refuse(own, targets != nullptr ? "targets" : "method",
         model.experts > 0 && (f.targets & ~attention_targets) != 0 && !offers.expert_adapters,
         fmt::format("adapters of experts are not modelled for stack {}", training.stack.name),
         model.latent_attention() ? "set targets: [o]" : "set targets: attention");
  // What is not of whole products is CanonicalLoRA's (Megatron-Bridge, peft/canonical_lora.py).
  f.joint = training.stack.offers.joint_adapters &&
            std::ranges::all_of(joint_targets, [&](unsigned product) {
              const unsigned there = product & adapter_targets(model), some = there & f.targets;
              return some == 0 || some == there;
            });
  refuse(own, "all_to_all", f.all_to_all && !training.stack.offers.exchanged_adapters,
         fmt::format("stack {} gathers what adapters add", training.stack.name),
         "leave it out, or set training.stack: nemo-2025");
  if (!is_written(*written, "all_to_all")) f.all_to_all = training.stack.offers.exchanged_adapters;
  check_model(own, f, model);
}

std::vector<KeyText> fine_tuning_keys() { return described(plain_rows(), "."); }

}  // namespace costmodel
