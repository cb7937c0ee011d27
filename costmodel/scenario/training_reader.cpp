#include "costmodel/scenario/training_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/config/key.hpp"
#include "costmodel/plan/kernel_set_reader.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "costmodel/scenario/fine_tuning_reader.hpp"
#include "costmodel/scenario/scenario.hpp"

namespace costmodel {

namespace {

using T = TrainingSpec;

// What is read, and what a key may need beside its map.
struct Reading {
  TrainingSpec training;
  const Value& map;
  const ModelSpec& model;
  const ConfigPath& path;
  const Value* plan = nullptr;  // of the same scenario, where one is written
};

constexpr IntegerRange tokens{1, 100'000'000};

const Keys<T>& batch_rows() {
  static const auto keys = key::rows<T>(
      key::required(key::whole<T>("global_batch", &T::global_batch, {1, 1'000'000'000},
                                  "sequences of an iteration")),
      key::required(key::tokens<T>("sequence", &T::sequence, tokens,
                                   "tokens of a sequence; with an encoder, of its sequence")));
  return keys;
}

void read_decoder_sequence(MapReader& reader, Reading& r) {
  T& t = r.training;
  if (!r.model.encoder_decoder()) {
    if (reader.optional("decoder_sequence") == nullptr) return;
    throw ConfigError(reader.mark_of("decoder_sequence"),
                      "decoder_sequence is of a model with an encoder and a decoder",
                      "leave it out, or choose a model of kind t5");
  }
  const auto own = reader.tokens("decoder_sequence", tokens);
  t.decoder_sequence = own.value_or(t.sequence);
  if (!own)
    t.assumed.push_back(fmt::format("decoder_sequence {} (as sequence; none given)", t.sequence));
}

void read_precision(MapReader& reader, Reading& r) {
  if (const auto p = reader.one_of("precision", precision_names)) {
    r.training.precision = static_cast<Precision>(*p);
  } else {
    r.training.assumed.push_back("precision bf16 (none given)");
  }
}

// The stack, and what it decides where the keys after it say nothing.
void read_named_stack(MapReader& reader, Reading& r) {
  T& t = r.training;
  const Value* written = reader.optional("stack");
  const std::string assumed = stack_assumed(r.map, r.plan);
  const Value usual = scalar_value(assumed, reader.mark());
  const bool none = written == nullptr || changes_named("stack", *written);
  const ResolvedConfig stack =
      resolve_config(r.path, "stacks",
                     written == nullptr ? usual : (none ? on_top_of(usual, *written) : *written));
  t.stack = read_stack(stack.value, stack.name);
  StackKernels& kernels = t.stack.kernels;
  for (KernelSet* set : {&kernels.eager, &kernels.compiled, &kernels.adapters}) {
    if (set->empty()) continue;
    const ResolvedConfig file =
        resolve_config(r.path, "kernels", scalar_value(set->name, stack.value.mark));
    *set = read_kernel_set(file.value, file.name);
  }
  if (none) t.assumed.push_back(fmt::format("stack {} (none given)", assumed));
  t.overlap = t.stack.overlap;
  t.gradient_precision = t.stack.memory.gradient_precision;
  if (t.precision == Precision::bf16 && t.stack.memory.bf16_optimizer) {
    t.gradient_precision = Precision::fp32;
    t.stack.defaults.zero = std::max(t.stack.defaults.zero, 1);
  }
  if (t.precision == Precision::fp32) t.gradient_precision = Precision::fp32;
}

// `none` is as good as nothing.
Key<T> or_none(Key<T> row) {
  return key::or_word<T>(std::move(row), "none", [](MapReader& reader, std::string_view name, T&) {
    return reader.text(name) == "none";
  });
}

// Tokens of the whole run, as people write them.
Key<T> run_tokens_row() {
  return key::special<T>(
      "tokens", key::fixed_text("a number, also as 300B or 15T"),
      "tokens of the whole training run, whose days are then told", [](MapReader& reader, T& t) {
        const auto text = reader.text("tokens");
        if (!text) return;
        const auto count = parse_count(*text);
        constexpr double most = 1e18;
        if (!count || *count < 1 || *count > most) {
          throw ConfigError(reader.mark_of("tokens"),
                            fmt::format("tokens: {} is not a number of tokens", quote(*text)),
                            "write one from 1 to 1e18, as 300B or 15T");
        }
        t.run_tokens = *count;
      });
}

// One of the formats between two, which tensors of a kind have.
template <class Put>
Key<T> format_row(const char* name, Precision first, Precision last, const char* help, Put put) {
  const auto from = static_cast<std::size_t>(first), to = static_cast<std::size_t>(last) + 1;
  const auto words = std::span(precision_names).subspan(from, to - from);
  return key::special<T>(
      name, [words] { return words_text(words); }, help,
      [=](MapReader& reader, T& t) {
        if (const auto p = reader.one_of(name, words)) put(t, static_cast<Precision>(from + *p));
      });
}

// What follows the stack: the precisions of gradients, of attention, of gathered weights and of
// the optimizer's moments, and how many rows experts compute.
const Keys<T>& further_rows() {
  constexpr double most = 1000;
  static const auto keys = key::rows<T>(
      format_row("gradient_precision", Precision::fp32, Precision::bf16,
                 "of the accumulation buffer; absent: the stack's",
                 [](T& t, Precision p) { t.gradient_precision = p; }),
      format_row("moment_precision", Precision::fp32, Precision::bf16,
                 "of the optimizer's moments; absent: fp32",
                 [](T& t, Precision p) { t.moment_precision = p; }),
      format_row("attention_precision", Precision::fp16, Precision::fp8,
                 "of attention's products; absent: 16 bits",
                 [](T& t, Precision p) { t.narrow_attention = is_narrow(p); }),
      format_row("parameter_gather_precision", Precision::fp16, Precision::mxfp8,
                 "in which sharded weights are gathered and kept; absent: bf16",
                 [](T& t, Precision p) { t.gather_precision = p; }),
      key::word<T>(
          "loss", [](T& t) -> LossKernel& { return t.stack.kernels.loss; }, loss_kernel_names,
          "kernel of the loss; absent: the stack's"),
      or_none(key::number<T>("capacity_factor", &T::capacity_factor, 0.01, most,
                             "rows of an expert relative to the mean; absent: dropless")),
      or_none(key::number<T>("expert_buffer_factor", &T::expert_buffer_factor, 1, most,
                             "static buffers of experts of this many times the mean rows")),
      or_none(key::number<T>("expert_imbalance", &T::expert_imbalance, 1, most,
                             "rows of the fullest rank relative to the mean; absent: 1")),
      key::flag<T>("paged_stash", &T::paged_stash,
                   "rows kept of such buffers are copied to a pool"),
      key::flag<T>("fused_grouped_mlp", &T::fused_grouped_mlp,
                   "both products of the experts and what lies between are one kernel each"),
      run_tokens_row(), key::map<T>("overlap", &T::overlap, overlap_keys()));
  return keys;
}

// Packed samples need attention that knows where each begins.
void check_packing(const MapReader& reader, const TrainingSpec& t, const ModelSpec& m) {
  const auto refuse = [&](bool broken, const std::string& what, const char* remedy) {
    if (broken) throw ConfigError(reader.mark_of("packing"), what, remedy);
  };
  refuse(!t.stack.offers.packing || t.stack.kernels.attention == AttentionKernel::unfused,
         fmt::format("stack {} does not pack samples", t.stack.name),
         "set packing: false, or choose another training.stack: megatron-bridge, nemo-2025 or "
         "peft");
  const char* const what = m.unpacked();
  refuse(what != nullptr,
         fmt::format("packed samples with {} are not modelled", what != nullptr ? what : ""),
         "set packing: false, or choose another model");
}

void read_packing(MapReader& reader, Reading& r) {
  TrainingSpec& t = r.training;
  const bool packed = reader.boolean("packing").value_or(false);
  const Value* samples = reader.optional("sample_tokens");
  if (samples == nullptr) {
    if (!packed) return;
    throw ConfigError(reader.mark_of("packing"), "packing: how long are the samples?",
                      "write sample_tokens: {mean: 500, p95: 1500}, or {min, max}, or a number");
  }
  if (packed) check_packing(reader, t, r.model);
  const LengthSpec lengths = read_length(*samples, "sample_tokens");
  const double longest = std::max(lengths.mean, lengths.least);
  if (longest > static_cast<double>(t.sequence)) {
    throw ConfigError(samples->mark,
                      fmt::format("samples of {:g} tokens on average are cut at sequence: {}",
                                  longest, t.sequence),
                      "write a longer training.sequence, or shorter samples");
  }
  t.packing = packing_of(lengths, t.sequence, packed);
}

void read_routing(MapReader& reader, Reading& r) {
  const Value* written = reader.optional("expert_load");
  if (written == nullptr || (written->is_scalar() && written->text == "none")) return;
  if (r.model.experts == 0) {
    throw ConfigError(written->mark, "expert_load is of a model with experts",
                      "leave it out, or choose a model of kind moe");
  }
  const Value* imbalance = reader.optional("expert_imbalance");
  if (imbalance != nullptr && imbalance->text != "none") {
    throw ConfigError(imbalance->mark, "expert_imbalance with expert_load: both are loads of ranks",
                      "leave one of them out");
  }
  r.training.expert_load = read_expert_load(*written, r.model.experts, r.training.capacity_factor);
}

// Reads the capacity before it.
Key<Reading> routing_row() {
  return key::special<Reading>(
      "expert_load", [] { return std::string(expert_load_help) + ", none"; },
      "rows that the router gives each expert, relative to each other (a symmetric Dirichlet "
      "distribution, Zipf's law with exponent s, or a file with a line a layer), of which "
      "capacity_factor cuts the excess; absent: as expert_imbalance",
      read_routing);
}

Keys<Reading> packing_rows() {
  using R = Reading;
  return key::rows<R>(
      key::special<R>("sample_tokens", key::fixed_text(length_help),
                      "length of the samples of a fine-tuning, cut at sequence; absent: every "
                      "sequence is full",
                      read_packing),
      key::special<R>("packing", key::fixed_text("true, false"),
                      "several samples share a sequence; absent: false, each is padded to one",
                      [](MapReader&, R&) {}));
}

Key<Reading> fine_tuning_row() {
  Key<Reading> row{"fine_tuning", "", key::fixed_text("a map"), [](MapReader& reader, Reading& r) {
                     read_fine_tuning(reader, r.model, r.training);
                   }};
  row.parts = fine_tuning_keys;
  return row;
}

// A number of what one of the towers reads, or its size, which no other model has.
Key<Reading> tower_row(std::string_view name, TowerInput input,
                       std::array<std::int64_t, 2> TowerUse::*field, IntegerRange range,
                       std::string_view help) {
  return key::special<Reading>(
      name, [range] { return whole_text(range); }, help,
      [=](MapReader& reader, Reading& r) {
        const auto value = reader.integer(name, range);
        const auto at = static_cast<std::size_t>(input);
        const auto towers = towers_of(r.model);
        const bool has = std::ranges::count(towers, input, &TowerSpec::input) > 0;
        if (value && !has) {
          throw ConfigError(
              reader.mark_of(name),
              fmt::format("{} is of a model with a tower for {}", name, tower_names[at]),
              fmt::format("leave it out, or give model.{}", tower_names[at]));
        }
        if (value) (r.training.towers.*field)[at] = *value;
        if (has && !value && field == &TowerUse::number)
          r.training.assumed.push_back(fmt::format("{} 1 (none given)", name));
      });
}

// What the towers make are tokens of the sequence.
void check_tower_tokens(const MapReader& reader, const Reading& r) {
  const TowerUse& use = r.training.towers;
  double all = 0;
  for (const TowerSpec& tower : towers_of(r.model)) {
    all += static_cast<double>(use.number_of(tower)) *
           static_cast<double>(tokens_of(tower, use.size_of(tower)).language);
  }
  if (all <= static_cast<double>(r.training.sequence)) return;
  throw ConfigError(
      reader.mark_of("sequence"),
      fmt::format("the towers make {:.0f} tokens of a sequence of {}", all, r.training.sequence),
      "lengthen training.sequence, or lower images, image_size, audio_clips or audio_seconds");
}

void read_frozen(MapReader& reader, Reading& r) {
  const Value* const list = reader.optional("frozen");
  if (list == nullptr) return;
  const std::vector<std::string> known(model_piece_names.begin(), model_piece_names.end());
  if (list->kind != Value::Kind::sequence) {
    throw ConfigError(list->mark, "frozen is a list of parts",
                      fmt::format("write some of [{}]", words_text(model_piece_names)));
  }
  const auto towers = towers_of(r.model);
  for (const Value& item : list->items) {
    const std::string word = read_text(item, "frozen");
    const auto at = std::ranges::find(model_piece_names, word);
    if (at == model_piece_names.end()) {
      throw ConfigError(item.mark, fmt::format("frozen: {} is no part", quote(word)),
                        known_names(word, known));
    }
    const auto piece = static_cast<ModelPiece>(at - model_piece_names.begin());
    const bool there =
        piece == ModelPiece::projector
            ? !towers.empty()
            : std::ranges::count(towers, static_cast<TowerInput>(piece), &TowerSpec::input) > 0;
    if (!there) {
      throw ConfigError(item.mark, fmt::format("frozen: the model has no {}", word),
                        "leave it out");
    }
    r.training.fine_tuning.frozen |= bit_of(piece);
  }
}

Keys<Reading> tower_rows() {
  using enum TowerInput;
  return key::rows<Reading>(
      tower_row("images", vision, &TowerUse::number, {0, 100'000},
                "of a sequence; 0: the tower is left out; absent: 1"),
      tower_row("image_size", vision, &TowerUse::size, {1, 16'384},
                "side of an image in pixels; absent: model.vision.image_size"),
      tower_row("audio_clips", audio, &TowerUse::number, {0, 100'000},
                "of a sequence; 0: the tower is left out; absent: 1"),
      tower_row("audio_seconds", audio, &TowerUse::size, {1, 36'000},
                "of a clip; absent: model.audio.seconds"),
      key::special<Reading>(
          "frozen", [] { return "a list of " + words_text(model_piece_names); },
          "parts that are not trained: layers and stem of a tower, and the projectors; with "
          "adapters all of them",
          read_frozen));
}

const Keys<Reading>& training_rows() {
  using R = Reading;
  static const Keys<R> keys = joined<R>(
      key::of_part<R>(&R::training, batch_rows()),
      key::rows<R>(
          key::special<R>(
              "decoder_sequence", [] { return whole_text(tokens); },
              "tokens of the decoder, of kind t5; absent: as sequence", read_decoder_sequence),
          key::special<R>(
              "precision", [] { return words_text(precision_names); },
              "of weights, activations and products; absent: bf16", read_precision),
          key::word<R>(
              "optimizer", [](R& r) -> Optimizer& { return r.training.optimizer; }, optimizer_names,
              "sgd has momentum, plain-sgd none; absent: adam"),
          key::special<R>("stack", key::fixed_text("a name in configs/stacks, a file, or a map"),
                          "the framework and its version; absent: megatron-core-2026",
                          read_named_stack)),
      key::of_part<R>(&R::training, further_rows()), packing_rows(),
      key::rows<R>(routing_row(), fine_tuning_row()), tower_rows());
  return keys;
}

// Workspaces are a part of what a device keeps outside of tensors.
void require_context(const ModelSpec& model, const ClusterSpec& cluster, const StackSpec& stack,
                     const Mark& mark) {
  for (const ClusterSpec& group : groups_of(cluster)) {
    const Bytes part = workspaces(model, group.device, stack.memory);
    if (part <= stack.memory.context) continue;
    throw ConfigError(
        mark,
        fmt::format("workspaces of stack {} take {} on device {} (memory.workspace_bytes {}), more "
                    "than its context_bytes, {}, which they are part of",
                    shortened(stack.name), format_bytes(part), shortened(group.device.name),
                    format_bytes(group.device.workspace), format_bytes(stack.memory.context)),
        "set the stack's memory.workspaces or expert_workspaces lower, or its memory.context_bytes "
        "higher");
  }
}

// Whether a size of `plan` other than data parallelism's is written and above 1.
bool splits_model(const Value* plan) {
  if (plan == nullptr) return false;
  return std::ranges::any_of(std::array{"tp", "pp", "cp", "ep"}, [&](const char* key) {
    const Value* size = plan->find(key);
    return size != nullptr && size->is_scalar() && parse_count(size->text).value_or(1) > 1;
  });
}

}  // namespace

namespace {

// What is written of experts means nothing to a model without any.
void leave_out_experts(const ModelSpec& model, TrainingSpec& t) {
  if (model.experts > 0) return;
  const TrainingSpec usual;
  const auto leave_out = [&](const char* key, auto TrainingSpec::*field) {
    if (t.*field != usual.*field)
      t.assumed.push_back(fmt::format("{} left out: the model has no experts", key));
    t.*field = usual.*field;
  };
  leave_out("capacity_factor", &TrainingSpec::capacity_factor);
  leave_out("expert_buffer_factor", &TrainingSpec::expert_buffer_factor);
  leave_out("paged_stash", &TrainingSpec::paged_stash);
  leave_out("expert_imbalance", &TrainingSpec::expert_imbalance);
  leave_out("fused_grouped_mlp", &TrainingSpec::fused_grouped_mlp);
}

// Nor graphs of parts that the model lacks.
void leave_out_graphs(const ModelSpec& model, TrainingSpec& t) {
  const auto leave_out = [&t](const char* scope, bool Overlap::*graph, const char* lack) {
    if (!(t.overlap.*graph)) return;
    t.assumed.push_back(
        fmt::format("overlap.cuda_graph: {} left out: the model has no {}", scope, lack));
    t.overlap.*graph = false;
  };
  if (model.state_size == 0) leave_out("mamba", &Overlap::graph_scan, "scans");
  if (model.experts == 0) leave_out("moe_router", &Overlap::graph_router, "experts");
}

}  // namespace

std::string stack_assumed(const Value& training, const Value* plan) {
  const Value* tuning = training.find("fine_tuning");
  const Value* method = tuning != nullptr && tuning->is_map() ? tuning->find("method") : nullptr;
  const bool adapters = method != nullptr && (method->text == "lora" || method->text == "qlora");
  if (!adapters) return usual_stack;
  return splits_model(plan) ? splitting_adapter_stack : usual_adapter_stack;
}

TrainingSpec read_training(const Value& map, const ConfigPath& path, const ModelSpec& model,
                           const ClusterSpec& cluster, const Value* plan) {
  MapReader reader(map, "training", names_of(training_rows()), "global_batch: 128, sequence: 4096");
  Reading reading{{}, map, model, path, plan};
  read_keys(reader, training_rows(), reading);
  reader.finish();
  check_tower_tokens(reader, reading);
  StackKernels& kernels = reading.training.stack.kernels;
  if (reading.training.overlap.compile && kernels.compiled_loss && map.find("loss") == nullptr)
    kernels.loss = *kernels.compiled_loss;
  require_precision(cluster, reading.training.precision, reader.mark_of("precision"));
  require_context(model, cluster, reading.training.stack, reader.mark_of("stack"));
  const TrainingSpec& t = reading.training;
  if (t.moment_precision != Precision::fp32 && !has_moment_precision(t.optimizer)) {
    throw ConfigError(reader.mark_of("moment_precision"),
                      fmt::format("{} has no moments of {}", to_string(t.optimizer),
                                  to_string(t.moment_precision)),
                      "leave moment_precision out, or set optimizer: adam");
  }
  leave_out_experts(model, reading.training);
  leave_out_graphs(model, reading.training);
  return std::move(reading.training);
}

std::vector<KeyText> training_keys() { return described(training_rows(), "training."); }

}  // namespace costmodel
