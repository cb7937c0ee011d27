#include "planner/frameworks/import_torchtitan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/letter_case.hpp"
#include "costmodel/base/path.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/launcher_words.hpp"
#include "planner/frameworks/python_settings.hpp"
#include "planner/frameworks/torchtitan_fields.hpp"
#include "planner/frameworks/torchtitan_flavors.hpp"
#include "planner/frameworks/trainer_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

bool is_python(const std::string& text) {
  if (holds_document(text, "TOML")) return false;
  return holds_document(text, "PYTHON") || has_line(text, "def ") ||
         has_line(text, "from torchtitan") || has_line(text, "config.");
}

Launched launched_in(const std::string& text, const std::string& file) {
  if (!holds_document(text, "TOML") && !holds_document(text, "PYTHON")) return {};
  const ShellScript script = read_shell(text, file);
  for (const auto& words : script.commands) {
    for (const auto& word : words)
      if (word.text == "torchrun") return launched_by(script, words);
  }
  return {};
}

// The degrees of parallelism; dp is replicated x sharded.
struct Degrees {
  std::int64_t replicated = 1, sharded = -1;  // -1: what the other degrees leave
  std::int64_t tp = 1, cp = 1, pp = 1;
  std::int64_t data = 0;  // 0: not said
};

class TorchtitanImport : public SettingsImport {
 public:
  TorchtitanImport(std::vector<SetField> fields, std::int64_t devices)
      : SettingsImport(JobFormat::torchtitan, TorchtitanFields(std::move(fields))),
        devices_(devices) {
    tokens_ = fields_.has("training.num_tokens_per_microbatch_per_dp_rank") ||
              fields_.has("training.num_tokens_per_train_step");
  }

  void read() {
    read_model();
    read_degrees();
    read_batch();
    read_precision();
    read_recomputation();
    read_experts();
    read_pipeline();
    read_rest();
    leave_out_rest();
  }

 private:
  void miss(const char* part, const std::string& key, std::string remedy) {
    miss_key(job, part, key, std::move(remedy));
  }

  void read_model() {
    const std::string name = fields_.word("model.name", ""),
                      flavor = fields_.word("model.flavor", "");
    flavor_ = flavor_named(name, flavor);
    if (flavor_ != nullptr) {
      job.scenario.set("model", scalar_value(std::string(flavor_->model)));
      return;
    }
    const std::string said =
        name.empty() && flavor.empty()
            ? "which no setting names"
            : fmt::format("torchtitan's {} {}", shortened(name), shortened(flavor));
    miss("model", "base",
         fmt::format("the model, {}: --set model=NAME (see `shardplan list models`)", said));
    const bool on_hub = flavor.find('/') != std::string::npos;
    if (!flavor.empty()) name_model(job, on_hub ? flavor : name + "-" + flavor);
  }

  void read_degrees() {
    d_.replicated = fields_.number("parallelism.data_parallel_replicate_degree", 1);
    d_.sharded = fields_.number("parallelism.data_parallel_shard_degree", -1, -1);
    d_.tp = fields_.number("parallelism.tensor_parallel_degree", 1);
    d_.cp = fields_.number("parallelism.context_parallel_degree", 1);
    d_.pp = fields_.number("parallelism.pipeline_parallel_degree", 1);
    miss_cluster(job);
    const std::int64_t model = product({d_.tp, d_.cp, d_.pp});
    if (d_.sharded > 0) {
      d_.data = product({d_.replicated, d_.sharded});
    } else if (devices_ > 0 && devices_ % product({model, d_.replicated}) == 0) {
      d_.data = devices_ / model;
    }
    if (d_.data == 0) {
      miss("cluster", "devices", "the number of devices, of which data parallelism takes the rest");
    } else {
      put("cluster", "devices", product({d_.data, model}));
      put("plan", "dp", d_.data);
    }
    put("plan", "tp", d_.tp);
    put("plan", "pp", d_.pp);
    read_context();
    read_sharding();
    const bool sharded = fields_.flag("parallelism.enable_sequence_parallel", true);
    if (d_.tp > 1) put("plan", "sequence_parallel", sharded);
  }

  void read_context() {
    put("plan", "cp", d_.cp);
    const std::string rotates =
        fields_.word("parallelism.context_parallel_rotate_method", "allgather");
    if (d_.cp > 1) put("plan", "cp_comm", rotates == "alltoall" ? "p2p" : "all_gather");
  }

  // DDP is ZeRO 0; FSDP ZeRO 3, or 2 where gathered parameters stay.
  void read_sharding() {
    const std::string policy = fields_.word("parallelism.fsdp_reshard_after_forward", "default");
    const bool shards = d_.sharded != 1 || d_.cp > 1;
    put("plan", "zero", !shards ? "0" : policy == "never" ? "2" : "3");
    whole_in_pipeline_ = policy != "always";
    if (shards && fields_.flag("training.enable_cpu_offload", false))
      put("plan", "offload", "parameters");
    if (shards && d_.replicated > 1) put("plan", "dp_replicate", d_.replicated);
  }

  void read_batch() {
    if (tokens_) return read_tokens();
    const std::int64_t local = fields_.number("training.local_batch_size", 8);
    const std::int64_t micro =
        d_.pp == 1 ? local : fields_.number("parallelism.pipeline_parallel_microbatch_size", 1);
    const std::int64_t global = fields_.number("training.global_batch_size", -1, -1);
    put("plan", "micro_batch", micro);
    put("training", "sequence", fields_.number("training.seq_len", 2048));
    put_batch(global > 0 ? global : d_.data > 0 ? product({local, d_.data}) : 0);
    note_flushes(global, local);
  }

  // Of late 2026, where batches count tokens.
  void read_tokens() {
    const std::int64_t tokens =
        fields_.number("training.num_tokens_per_microbatch_per_dp_rank", 16384);
    const std::int64_t step = fields_.number("training.num_tokens_per_train_step", -1, -1);
    const std::int64_t context = fields_.number("training.max_context_length", 2048);
    const std::int64_t micros =
        d_.pp == 1 ? 1 : fields_.number("parallelism.num_pp_microbatches", 1);
    put("training", "sequence", context);
    if (tokens % context != 0) {
      miss("plan", "micro_batch",
           fmt::format("{} tokens are no whole number of sequences of {}", tokens, context));
    } else {
      put("plan", "micro_batch", tokens / context);
    }
    const std::int64_t all = step > 0 ? step : d_.data > 0 ? product({tokens, micros, d_.data}) : 0;
    put_batch(all % context == 0 ? all / context : 0);
    note_flushes(step, product({tokens, micros}));
  }

  void put_batch(std::int64_t sequences) {
    if (sequences > 0) return put("training", "global_batch", sequences);
    miss("training", "global_batch", "the sequences of an iteration");
  }

  void note_flushes(std::int64_t global, std::int64_t local) {
    const std::int64_t a_step = d_.data > 0 ? product({local, d_.data}) : 0;
    if (d_.pp == 1 || global <= 0 || (a_step > 0 && global <= a_step)) return;
    if (a_step == 0) {
      job.notes.emplace_back(
          "a rank runs the pipeline anew for each local batch; here it is one run of all "
          "micro-batches");
      return;
    }
    job.notes.push_back(
        fmt::format("gradients of {} runs of the pipeline are accumulated; here it is one run of "
                    "all micro-batches",
                    global / a_step));
  }

  // Of TOML by their names ("quantize.linear.float8"), of Python by their classes
  // ("Float8LinearConverter").
  std::string read_converters() {
    const bool full = fields_.word("training.mixed_precision_param", "bfloat16") == "float32";
    const SetField* converters = fields_.find("model.converters");
    std::string precision = full ? "fp32" : "bf16";
    if (converters == nullptr) return precision;
    bool products = false, experts = false;
    for (const auto& one : converters->values) {
      const std::string kind = lower_case(one);
      const auto holds = [&](const char* word) { return kind.find(word) != std::string::npos; };
      const bool float8 = holds("float8"), four = holds("nvfp4");
      if (!float8 && !four && !holds("mxfp8") && !kind.ends_with("mx")) {
        leave_out("model.converters = " + shortened(one), "no key says it");
        continue;
      }
      precision = float8 ? "fp8" : four ? "nvfp4" : "mxfp8";
      (holds("grouped") || holds("moe") ? experts : products) = true;
    }
    if (!converters->unknown.empty())
      leave_out(fields_.written("model.converters"), "the list is not written in the call");
    if (flavor_ != nullptr && flavor_->experts > 0 && products != experts) {
      job.notes.push_back(fmt::format("only {} are converted: all products are priced in {}",
                                      products ? "products outside the experts" : "the experts'",
                                      precision));
    }
    return precision;
  }

  // Which parts of the model a converter leaves out, or which it converts.
  void read_converted_parts(bool narrow) {
    static constexpr std::array<std::string_view, 9> usual{
        "output", "lm_head",   "router.gate",    "experts",     "auto_filter_small_kn",
        "layers", "attention", "shared_experts", "feed_forward"};
    for (const char* where :
         {"quantize.linear.float8.filter_fqns", "quantize.linear.mx.filter_fqns",
          "quantize.grouped_mm.float8.fqns", "quantize.grouped_mm.mx.fqns"}) {
      const SetField* set = fields_.find(where);
      const bool shipped = set == nullptr || (set->unknown.empty() &&
                                              std::ranges::all_of(set->values, [](const auto& one) {
                                                return std::ranges::find(usual, one) != usual.end();
                                              }));
      if (!shipped && narrow)
        leave_out(fields_.written(where), "what is converted is taken as in the shipped files");
    }
  }

  void read_precision() {
    const std::string precision = read_converters();
    put("training", "precision", precision);
    put("training", "gradient_precision",
        fields_.word("training.mixed_precision_reduce", "float32") == "bfloat16" ? "bf16" : "fp32");
    const std::string linear = "quantize.linear.float8.";
    fields_.flag(linear + "precompute_float8_dynamic_scale_for_fsdp", false);
    const bool gathers = fields_.flag(linear + "enable_fsdp_float8_all_gather", false);
    if (precision == "fp8" && gathers) put("training", "parameter_gather_precision", "fp8");
    read_converted_parts(precision != "bf16" && precision != "fp32");
    if (fields_.word("training.dtype", "float32") == "bfloat16")
      leave_out(fields_.written("training.dtype"), "no key says training without fp32 parameters");
  }

  void read_recomputation() {
    const SetField* policy = fields_.find("activation_checkpoint");
    const std::string option = fields_.word("activation_checkpoint.selective_ac_option", "2");
    std::string mode = fields_.word("activation_checkpoint.mode",
                                    policy == nullptr && !tokens_ ? "selective" : "none");
    if (policy != nullptr && !policy->values.empty()) {
      const std::string& name = policy->values.front();
      const bool settings = name.find("ActivationCheckpointConfig") != std::string::npos;
      if (name.find("Full") != std::string::npos) {
        mode = "full";
      } else if (name == "SelectiveAC" || name.ends_with("SelectiveAC.Config")) {
        mode = "selective";  // TOML's of each operator: every second product is recomputed
      } else if (!settings && name != "null") {
        leave_out("activation_checkpoint = " + shortened(name), "no key says this policy");
      }
    } else if (policy == nullptr && tokens_) {
      job.notes.emplace_back("no setting says activation_checkpoint: taken as none");
    }
    if (mode == "selective" && option != "2" && option != "op") {
      leave_out(fields_.written("activation_checkpoint.selective_ac_option"),
                "no key says every so many layers; taken as every second");
    }
    if (mode == "memory_budget") {
      fields_.find("activation_checkpoint.memory_budget");
      leave_out("activation_checkpoint.mode = memory_budget",
                "no key says what the compiler recomputes; taken as none");
    }
    const bool known = mode == "full" || mode == "selective";
    put("plan", "recompute", known ? mode : "none");
  }

  void read_experts() {
    const bool said = fields_.has("parallelism.expert_parallel_degree") ||
                      fields_.has("parallelism.expert_tensor_parallel_degree");
    const std::int64_t ep = fields_.number("parallelism.expert_parallel_degree", 1);
    const std::int64_t etp =
        fields_.number("parallelism.expert_tensor_parallel_degree", ep == 1 ? d_.tp : 1);
    // An argument of the call that builds the model since 2026.
    const char* const where = fields_.has("model.moe_comm_backend")
                                  ? "model.moe_comm_backend"
                                  : "parallelism.expert_parallel_comm_backend";
    const std::string backend = fields_.word(where, "standard");
    const bool experts = flavor_ == nullptr ? said : flavor_->experts > 0;
    if (!experts) return;
    put("plan", "ep", ep);
    put("plan", "etp", etp);
    flex_dispatcher_ = backend == "deepep" || backend == "hybridep";
    const bool known = backend == "standard" || flex_dispatcher_;
    if (!known) leave_out(fields_.written(where), "taken as standard");
    put("plan", "dispatcher", flex_dispatcher_ ? backend : "alltoall");
  }

  void read_pipeline() {
    const std::string name = fields_.word("parallelism.pipeline_parallel_schedule", "1F1B");
    const SetField* parts = fields_.find("parallelism.module_fqns_per_model_part");
    if (parts == nullptr)
      parts = fields_.find("parallelism.pipeline_parallel_module_fqns_per_model_part");
    const std::int64_t each = fields_.number("parallelism.pipeline_parallel_layers_per_stage", 0);
    const std::int64_t first =
        fields_.number("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0);
    const std::int64_t last =
        fields_.number("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0);
    if (d_.pp == 1) return;
    read_schedule(name);
    const bool single = name == "1F1B" || name == "GPipe";
    std::vector<std::int64_t> layers;
    if (parts != nullptr) {
      for (const auto& part : parts->values) layers.push_back(layers_in(part));
      if (std::ranges::count(layers, 0) == std::ssize(layers)) {
        leave_out(fields_.written(parts->field), "names no layers: stages are taken as even");
        layers.clear();
      }
    } else if (flavor_ != nullptr) {
      const std::int64_t all = flavor_->layers + first + last;
      layers = split(each > 0 ? (all + each - 1) / each : d_.pp * (single ? 1 : 2), first, last);
    }
    put_layers(layers, single);
  }

  void read_schedule(const std::string& name) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> schedules{
        {{"1F1B", "1f1b"},
         {"GPipe", "gpipe"},
         {"Interleaved1F1B", "interleaved"},
         {"ZBVZeroBubble", "zero-bubble-v"}}};
    for (const auto& [theirs, ours] : schedules)
      if (name == theirs) return put("plan", "schedule", std::string(ours));
    leave_out(fields_.written("parallelism.pipeline_parallel_schedule"),
              "no schedule of a plan; taken as interleaved");
    put("plan", "schedule", "interleaved");
  }

  static std::int64_t layers_in(const std::string& modules) {
    std::int64_t layers = 0;
    for (std::size_t at = modules.find("layers."); at != std::string::npos;
         at = modules.find("layers.", at + 1))
      ++layers;
    return layers;
  }

  // generate_llm_fqn_per_model_part: embedding and output count as so many layers, and the first
  // stages take what does not divide.
  std::vector<std::int64_t> split(std::int64_t stages, std::int64_t first,
                                  std::int64_t last) const {
    const std::int64_t all = flavor_->layers + first + last;
    if (stages < 2 || stages > flavor_->layers) return {};
    std::vector<std::int64_t> layers(static_cast<std::size_t>(stages), all / stages);
    for (std::int64_t i = 0; i < all % stages; ++i) ++layers[static_cast<std::size_t>(i)];
    layers.front() -= first;
    layers.back() -= last;
    return layers;
  }

  void put_layers(const std::vector<std::int64_t>& layers, bool single) {
    const auto stages = static_cast<std::int64_t>(layers.size());
    const bool fits = stages > 0 && stages % d_.pp == 0 && std::ranges::min(layers) > 0 &&
                      (!single || stages == d_.pp);
    if (!fits) {
      put("plan", "vpp", single ? "1" : "2");
      job.notes.push_back(
          fmt::format("which layers the {} stages have, no setting says that is "
                      "understood here: taken as even",
                      d_.pp * (single ? 1 : 2)));
      return;
    }
    put("plan", "vpp", stages / d_.pp);
    if (std::ranges::min(layers) == std::ranges::max(layers)) return;
    Value list;
    list.kind = Value::Kind::sequence;
    for (const std::int64_t count : layers)
      list.items.push_back(scalar_value(fmt::format("{}", count)));
    job.scenario.find("plan")->set("stage_layers", list);
  }

  void read_rest() {
    Value overlap;
    const auto on = [&overlap](const char* key, bool value) {
      overlap.set(key, scalar_value(value ? "true" : "false"));
    };
    const SetField* policy = fields_.find("compile");
    const bool compiles =
        fields_.flag("compile.enable", policy != nullptr && !policy->values.empty() &&
                                           policy->values.front() != "null" && tokens_);
    const bool asynchronous = fields_.flag("parallelism.enable_async_tensor_parallel", false) ||
                              fields_.flag("compile.enable_async_tensor_parallel", false);
    const SetField* parts = fields_.find("compile.components");
    const bool model =
        parts == nullptr || std::ranges::find(parts->values, "model") != parts->values.end();
    on("compile", compiles && model);
    on("async_tp", asynchronous && compiles && model);
    if (tokens_) on("cuda_graph", !fields_.flag("training.disable_cuda_graphs", false));
    job.scenario.find("training")->set("overlap", overlap);
    const std::string optimizer = fields_.word("optimizer.name", "AdamW");
    if (!optimizer.starts_with("Adam"))
      leave_out(fields_.written("optimizer.name"), "taken as adam");
    put_stack();
  }

  // torchtitan's stack, with what these settings ask of it beyond what its file offers.
  void put_stack() {
    Value stack;
    const auto ask = [&stack](const char* key, const char* value) {
      stack.set(key, scalar_value(value));
    };
    const Value* schedule = job.scenario.find("plan")->find("schedule");
    if (d_.pp > 1 && !whole_in_pipeline_) ask("whole_in_pipeline", "false");
    if (schedule != nullptr && schedule->text == "zero-bubble-v") ask("zero_bubble", "true");
    if (flex_dispatcher_) {
      Value experts;
      experts.set("flex_dispatcher", scalar_value("true"));
      experts.set("source", scalar_value("expert_parallel_comm_backend"));
      stack.set("experts", experts);
    }
    if (stack.is_map()) ask("base", "torchtitan");
    job.scenario.find("training")
        ->set("stack", stack.is_map() ? stack : scalar_value("torchtitan"));
  }

  std::int64_t devices_;
  bool tokens_ = false;  // late 2026: batches count tokens
  bool whole_in_pipeline_ = true, flex_dispatcher_ = false;
  Degrees d_;
  const TorchtitanFlavor* flavor_ = nullptr;
};

bool holds_torchtitan_command(const std::string& text) {
  const auto holds = [&](const char* word) { return text.find(word) != std::string::npos; };
  return holds("torchtitan.train") || holds("torchtitan/train.py") || holds("run_train.sh");
}

// A command of torchtitan: its fields, those of the configuration that it names in front.
struct TorchtitanCommand {
  std::vector<SetField> fields;
  std::int64_t devices = 0;  // 0: not known
  std::string config;        // "llama3_8b"
  bool read = false;         // of its file, which lies with the command
};

// "KEY=VALUE KEY=VALUE".
std::vector<SetField> fields_in(std::string_view settings) {
  std::vector<SetField> fields;
  while (!settings.empty()) {
    const std::size_t end = std::min(settings.find(' '), settings.size());
    const std::size_t equals = settings.find('=');
    fields.push_back({std::string(settings.substr(0, equals)),
                      {std::string(settings.substr(equals + 1, end - equals - 1))},
                      {},
                      "",
                      ""});
    settings.remove_prefix(std::min(end + 1, settings.size()));
  }
  return fields;
}

std::string shell_variable(const ShellScript& script, const char* name) {
  const auto found = script.variables.find(name);
  const bool known = found != script.variables.end() && found->second.size() == 1;
  return known ? found->second.front().text : "";
}

TorchtitanCommand read_torchtitan_command(const std::string& text, const std::string& file) {
  const ShellScript script = read_shell(text, file);
  const auto starts = [](const ShellWord& word) { return holds_torchtitan_command(word.text); };
  TorchtitanCommand command;
  for (const ShellWords& words : script.commands) {
    const auto program = std::ranges::find_if(words, starts);
    if (program == words.end()) continue;
    command.devices = launched_by(script, words).world_size;
    command.fields = flags_of({program + 1, words.end()});
  }
  std::string config = shell_variable(script, "CONFIG_FILE");
  if (config.empty()) config = shell_variable(script, "CONFIG");
  std::erase_if(command.fields, [&](const SetField& set) {
    const bool names =
        set.name == "config" || set.name == "job.config_file" || set.name == "job.config-file";
    if (names && !set.values.empty()) config = set.values.front();
    return names || set.name == "module";
  });
  if (const std::string count = shell_variable(script, "NGPU"); command.devices == 0)
    command.devices = std::strtol(count.c_str(), nullptr, 10);
  command.config = stem_of(config);
  auto named = config.ends_with(".toml") ? read_named(config, file) : std::nullopt;
  command.read = named.has_value();
  std::vector<SetField> all =
      named ? std::move(*named) : fields_in(shipped_settings(command.config));
  for (SetField& set : command.fields) {
    set.field = set.name;
    std::ranges::replace(set.field, '-', '_');
    all.push_back(std::move(set));
  }
  command.fields = std::move(all);
  return command;
}

ImportedJob import_torchtitan_command(const std::string& text, const std::string& file) {
  TorchtitanCommand command = read_torchtitan_command(text, file);
  const bool known = !shipped_settings(command.config).empty();
  TorchtitanImport in(std::move(command.fields), std::max<std::int64_t>(0, command.devices));
  in.read();
  if (command.read) return std::move(in.job);
  in.job.notes.push_back(
      known
          ? fmt::format("what the command leaves out is that of {}, as torchtitan shipped it in "
                        "2025",
                        command.config)
          : fmt::format("the settings of {} are not known here, and no file of them lies with this "
                        "one: torchtitan's defaults stand instead",
                        command.config.empty() ? "the configuration" : shortened(command.config)));
  if (!known) name_model(in.job, command.config);
  return std::move(in.job);
}

}  // namespace

bool holds_torchtitan(const std::string& text) {
  // A key of [training] or [model] that is torchtitan's own, so that a file with a wrong value is
  // refused where it stands and not for what it lacks.
  constexpr std::array own{"seq_len", "local_batch_size", "global_batch_size", "flavor", "steps"};
  const bool named = std::ranges::any_of(
      own, [&](const char* key) { return text.find(key) != std::string::npos; });
  const bool toml = has_line(text, "[parallelism]") || (has_line(text, "[training]") && named);
  const bool python = text.find("ParallelismConfig(") != std::string::npos ||
                      text.find("config.parallelism.") != std::string::npos ||
                      (text.find("torchtitan") != std::string::npos &&
                       text.find("Trainer.Config") != std::string::npos);
  return toml || python || (holds_torchtitan_command(text) && text.find("--") != std::string::npos);
}

ImportedJob import_torchtitan(const std::string& text, const std::string& file) {
  const bool fields_alone = has_line(text, "[training]") || has_line(text, "[parallelism]");
  if (!fields_alone && !is_python(text) && holds_torchtitan_command(text))
    return import_torchtitan_command(text, file);
  const std::int64_t devices = launched_in(text, file).world_size;
  std::vector<SetField> fields = is_python(text)
                                     ? read_python_settings(here_document(text, "PYTHON"), file)
                                     : read_toml(here_document(text, "TOML"), file);
  TorchtitanImport in(std::move(fields), devices);
  in.read();
  return std::move(in.job);
}

}  // namespace planner
