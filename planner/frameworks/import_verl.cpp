#include "planner/frameworks/import_verl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/path.hpp"
#include "planner/exchange/hub_names.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/overrides_text.hpp"
#include "planner/frameworks/setting_fields.hpp"

namespace planner {

using namespace costmodel;

namespace {

class VerlImport : public SettingsImport {
 public:
  VerlImport(const std::string& text, const std::string& file)
      : SettingsImport(JobFormat::verl,
                       {read_overrides(text, file).fields, framework_words("verl").harmless}),
        supervised_(text.find("sft_trainer") != std::string::npos),
        megatron_(text.find("actor.megatron.") != std::string::npos ||
                  text.find("actor.strategy=megatron") != std::string::npos ||
                  text.find("ppo_megatron_trainer") != std::string::npos),
        stem_(stem_of(file)) {}

  void read() {
    miss_cluster(job);
    read_model();
    read_machine();
    read_batch();
    put("training", "precision", "bf16");
    read_stack();
    const std::string recomputes =
        megatron_ ? actor("megatron.override_transformer_config.recompute_granularity", "none")
        : fields_.flag(supervised_ ? "model.enable_gradient_checkpointing"
                                   : "actor_rollout_ref.model.enable_gradient_checkpointing",
                       true)
            ? "full"
            : "none";
    put("plan", "recompute",
        recomputes == "full" || recomputes == "selective" ? recomputes : "none");
    read_adapters();
    job.notes.emplace_back(
        supervised_ ? "supervised fine-tuning"
                    : "the actor's update alone: rollout, reward, reference and critic are left "
                      "out; every sequence is as long as the longest");
    leave_out_rest();
  }

 private:
  static constexpr std::string_view of_actor = "actor_rollout_ref.actor.";

  std::string actor(const std::string& field, std::string_view otherwise) {
    return fields_.word(std::string(of_actor) + field, otherwise);
  }
  // What the script does not know is the trainer's default, and a note.
  std::int64_t of(const std::string& field, std::int64_t otherwise, std::int64_t least = 1) {
    const SetField* set = fields_.find(field);
    if (set == nullptr || set->unknown.empty()) return fields_.number(field, otherwise, least);
    job.notes.push_back(
        fmt::format("{} is {}, as its value is {}", field, otherwise, shortened(set->unknown)));
    return otherwise;
  }
  std::int64_t size(const char* field) {  // of the actor's plan; null is its default
    const std::string name = std::string(of_actor) + field;
    return fields_.word(name, "null") == "null" ? 1 : of(name, 1);
  }

  // Of Ulysses: fsdp_sft_trainer has the setting at the top, sft_trainer among its engine's.
  std::int64_t sequence_ranks() {
    const std::string field = "ulysses_sequence_parallel_size";
    if (!supervised_) return size(field.c_str());
    return std::max(of(field, 1), of("engine." + field, 1));
  }

  void read_model() {
    // Of a path with variables its last part is enough.
    const SetField* set =
        fields_.find(supervised_ ? "model.partial_pretrain" : "actor_rollout_ref.model.path");
    if (set == nullptr && supervised_)
      set = fields_.find("model.path");  // of sft_trainer's engines
    std::string name = set == nullptr || set->values.empty() ? "" : set->values.front();
    miss_key(job, "model", "base",
             fmt::format("{}: --set model=NAME, or its config.json: --set model=./config.json",
                         name.empty() ? "no setting names the model" : shortened(name)));
    // Scripts whose model is in a variable are called after it.
    if (name.empty() || name.starts_with('$')) name = stem_;
    name_model(job, std::move(name));
  }

  void read_machine() {
    const std::int64_t devices =
        product({of("trainer.nnodes", 1), of("trainer.n_gpus_per_node", 8)});
    tp_ = megatron_ ? size("megatron.tensor_model_parallel_size") : 1;
    pp_ = megatron_ ? size("megatron.pipeline_model_parallel_size") : 1;
    cp_ = megatron_ ? size("megatron.context_parallel_size") : sequence_ranks();
    const std::int64_t ep = megatron_ ? size("megatron.expert_model_parallel_size") : 1;
    put("cluster", "devices", devices);
    put("plan", "tp", tp_);
    put("plan", "pp", pp_);
    if (cp_ > 1) put("plan", "cp", cp_);
    if (cp_ > 1) put("plan", "cp_comm", megatron_ ? "p2p" : "a2a");
    if (ep > 1) put("plan", "ep", ep);
    const std::int64_t etp = megatron_ ? size("megatron.expert_tensor_parallel_size") : 1,
                       vpp = megatron_ ? size("megatron.virtual_pipeline_model_parallel_size") : 1;
    if (ep > 1) put("plan", "etp", etp);
    if (vpp > 1) put("plan", "vpp", vpp);
    put("plan", "zero", megatron_ ? 1 : 3);
    dp_ = std::max<std::int64_t>(1, devices / product({tp_, pp_, cp_}));
    const std::string part = megatron_ ? "megatron." : "fsdp_config.";
    const bool states = actor(part + "optimizer_offload", "false") == "true",
               weights = actor(part + "param_offload", "false") == "true";
    read_host_optimizer();
    // They are on the devices while the actor is updated.
    if (states || weights)
      job.notes.emplace_back("what is offloaded between updates is on the devices in one");
  }

  // Megatron-LM's optimizer on the host, while the actor is updated as well.
  void read_host_optimizer() {
    const std::string of_optimizer = "optim.override_optimizer_config.";
    const bool on_host =
        megatron_ &&
        fields_.flag(std::string(of_actor) + of_optimizer + "optimizer_cpu_offload", false);
    if (on_host) put("plan", "offload", "optimizer");
    if (on_host && actor(of_optimizer + "optimizer_offload_fraction", "1") != "1") {
      leave_out(
          fields_.written(std::string(of_actor) + of_optimizer + "optimizer_offload_fraction"),
          "all of the optimizer is taken as on the host");
    }
  }

  // No stack of Hugging Face shards sequences over devices, as verl's Ulysses does.
  void read_stack() {
    const bool sequences = !megatron_ && cp_ > 1;
    rank_ = of(supervised_ ? "model.lora_rank" : "actor_rollout_ref.model.lora_rank", 0, 0);
    if (sequences && rank_ > 0) {
      Value stack;
      stack.set("base", scalar_value("peft"));
      for (const auto& [key, value] :
           {std::pair{"data_parallel_only", "false"}, std::pair{"context_parallel", "true"}})
        stack.set(key, scalar_value(value));
      job.scenario.find("training")->set("stack", std::move(stack));
      job.notes.emplace_back("the stack peft is measured with FSDP alone, not with Ulysses");
      return;
    }
    put("training", "stack", megatron_ ? "megatron-core-2025" : sequences ? "torchtitan" : "peft");
    if (sequences)
      job.notes.emplace_back("stack torchtitan stands for FSDP with Ulysses' exchange");
  }

  void read_batch() {
    const std::int64_t length =
        supervised_ ? of("data.max_length", 1024)
                    : of("data.max_prompt_length", 512) + of("data.max_response_length", 512);
    put("training", "sequence", length);
    const std::int64_t prompts =
        supervised_ ? of("data.train_batch_size", 256)
                    : std::min(of("actor_rollout_ref.actor.ppo_mini_batch_size", 256),
                               of("data.train_batch_size", 1024));
    const std::int64_t batch =
        product({prompts, supervised_ ? 1 : of("actor_rollout_ref.rollout.n", 1)});
    std::int64_t micro = supervised_
                             ? of("data.micro_batch_size_per_gpu", 4)
                             : of("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", 0, 0);
    if (micro == 0) {
      micro = 1;
      const std::int64_t tokens =
          of("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", length) * cp_;
      if (fields_.flag("actor_rollout_ref.actor.use_dynamic_bsz", false))
        micro = std::max<std::int64_t>(1, tokens / length);
      job.notes.push_back(
          fmt::format("micro-batches of {}: as many full sequences as the tokens "
                      "of a device hold",
                      micro));
    }
    const std::int64_t each = std::max<std::int64_t>(1, batch / dp_);
    while (each % micro != 0) --micro;
    put("plan", "micro_batch", micro);
    put("training", "global_batch", product({each, dp_}));
  }

  void read_adapters() {
    if (megatron_ || (cp_ > 1 && rank_ == 0)) return;
    Value tuning;
    tuning.set("method", scalar_value(rank_ > 0 ? "lora" : "full"));
    if (rank_ > 0) tuning.set("rank", scalar_value(std::to_string(rank_)));
    if (rank_ > 0) tuning.set("targets", scalar_value("all-linear"));
    job.scenario.find("training")->set("fine_tuning", std::move(tuning));
  }

  bool supervised_, megatron_;
  std::string stem_;
  std::int64_t tp_ = 1, pp_ = 1, cp_ = 1, dp_ = 1;
  std::int64_t rank_ = 0;  // of adapters; 0: none
};

}  // namespace

bool holds_verl(const std::string& text) { return text.find("verl.trainer") != std::string::npos; }

ImportedJob import_verl(const std::string& text, const std::string& file) {
  VerlImport in(text, file);
  in.read();
  return std::move(in.job);
}

}  // namespace planner
