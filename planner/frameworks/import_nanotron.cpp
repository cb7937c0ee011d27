#include "planner/frameworks/import_nanotron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "planner/exchange/lines.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/setting_fields.hpp"

namespace planner {

using namespace costmodel;

namespace {

// nanotron's own names of what its model adds to a llama.
bool is_its_own(const std::string& key) {
  return key.starts_with("_") || key.starts_with("is_") || key == "moe_config" ||
         key == "flex_attention_mask" || key == "no_rope_layer" || key == "z_loss_coefficient" ||
         key == "z_loss_enabled" || key == "sliding_window_size" || key == "rope_interleaved";
}

class NanotronImport : public SettingsImport {
 public:
  NanotronImport(const std::string& text, const std::string& file)
      : SettingsImport(JobFormat::nanotron, {read_yaml(here_document(text, "YAML"), file),
                                             framework_words("nanotron").harmless}),
        map_(parse_yaml(here_document(text, "YAML"), file)) {}

  void read() {
    read_model();
    const std::int64_t tp = fields_.number("parallelism.tp", 1),
                       pp = fields_.number("parallelism.pp", 1),
                       cp = fields_.number("parallelism.context_parallel_size", 1),
                       dp = fields_.number("parallelism.dp", 1),
                       ep = fields_.number("parallelism.expert_parallel_size", 1);
    miss_cluster(job);
    put("cluster", "devices", product({tp, pp, cp, dp}));
    put("plan", "tp", tp);
    put("plan", "pp", pp);
    put("plan", "dp", dp);
    if (cp > 1) put("plan", "cp", cp);
    if (ep > 1) put("plan", "ep", ep);
    const std::int64_t micro = fields_.number("tokens.micro_batch_size", 1),
                       each = fields_.number("tokens.batch_accumulation_per_replica", 1);
    put("plan", "micro_batch", micro);
    put("training", "global_batch", product({micro, each, dp}));
    put("training", "sequence", fields_.number("tokens.sequence_length", 1));
    read_training(tp, pp);
    leave_out_rest();
  }

 private:
  // Its vocabulary is padded to a multiple of this and of the tensor-parallel ranks.
  void read_model() {
    const Value* model = map_.find("model");
    const Value* config = model == nullptr ? nullptr : model->find("model_config");
    if (config == nullptr || !config->is_map()) {
      return miss_key(job, "model", "base", "the file has no model.model_config: --set model=NAME");
    }
    Value fields;
    fields.mark = config->mark;
    const bool qwen = config->find("is_qwen2_config") != nullptr;
    fields.set("model_type", scalar_value(qwen ? "qwen2" : "llama"));
    for (const auto& [key, mark, value] : config->entries) {
      if (!is_its_own(key)) fields.set(key, value);
      const bool off = value.kind == Value::Kind::null || value.text == "false";
      const bool experts = key == "moe_config" || key.starts_with("moe_num_experts");
      if ((experts || key == "no_rope_layer") && !off) {
        throw ConfigError(mark, fmt::format("{} of nanotron is not read here", key),
                          "write the model yourself: --set model=FILE");
      }
    }
    std::vector<std::string> notes;
    Value ours = to_value(read_model_map(fields, notes));
    const std::int64_t multiple = product({fields_.number("model.make_vocab_size_divisible_by", 1),
                                           fields_.number("parallelism.tp", 1)}),
                       words = fields_.number("model.model_config.vocab_size", 1);
    ours.set("vocab", scalar_value(std::to_string((words + multiple - 1) / multiple * multiple)));
    // Its own model has these of any family (models/qwen.py).
    const Value *window = config->find("sliding_window_size"),
                *bias = config->find("attention_bias");
    if (window != nullptr && window->is_scalar())
      ours.set("sliding_window", scalar_value(window->text, window->mark));
    if (qwen) {
      const bool biased = bias != nullptr && bias->text == "true";
      ours.set("qkv_bias", scalar_value(biased ? "true" : "false"));
    }
    job.scenario.set("model", std::move(ours));
    for (std::string& note : notes) job.notes.push_back(std::move(note));
  }

  static ModelSpec read_model_map(const Value& fields, std::vector<std::string>& notes) {
    return costmodel::read_model(from_hf_config(fields, notes), "nanotron");
  }

  void read_training(std::int64_t tp, std::int64_t pp) {
    const std::string type = fields_.word("model.dtype", "bfloat16");
    put("training", "precision", type == "bfloat16" ? "bf16" : type == "float16" ? "fp16" : "fp32");
    put("training", "stack", "nanotron");
    const bool sums = fields_.flag("optimizer.accumulate_grad_in_fp32", false);
    put("training", "gradient_precision", sums ? "fp32" : "bf16");
    const std::string optimizer = fields_.word("optimizer.optimizer_factory.name", "adamW");
    if (optimizer == "sgd") {
      put("training", "optimizer", "plain-sgd");  // torch's without momentum (helpers.py)
    } else if (optimizer != "adamW") {
      leave_out(fields_.written("optimizer.optimizer_factory.name"), "taken as adam");
    }
    put("plan", "zero", fields_.number("optimizer.zero_stage", 0, 0));
    const bool scatters = fields_.word("parallelism.tp_mode", "ALL_REDUCE") == "REDUCE_SCATTER";
    if (tp > 1) put("plan", "sequence_parallel", scatters);
    const bool waits = !fields_.flag("parallelism.tp_linear_async_communication", true);
    if (tp > 1 && scatters && waits) {
      leave_out(fields_.written("parallelism.tp_linear_async_communication"), "taken as true");
    }
    const bool recomputes = fields_.flag("parallelism.recompute_layer", false);
    put("plan", "recompute", recomputes ? "full" : "none");
    if (pp > 1) {
      const std::string engine = fields_.word("parallelism.pp_engine", "1f1b");
      put("plan", "schedule", engine == "afab" ? "gpipe" : "1f1b");
    }
  }

  Value map_;
};

}  // namespace

bool holds_nanotron(const std::string& text) {
  return has_line(text, "parallelism:") && has_line(text, "tokens:") && has_line(text, "model:");
}

ImportedJob import_nanotron(const std::string& text, const std::string& file) {
  NanotronImport in(text, file);
  in.read();
  return std::move(in.job);
}

}  // namespace planner
