#include "planner/frameworks/megatron_stacks.hpp"

#include <fmt/format.h>

namespace planner {

// A decoder with a vision tower has --decoder-seq-length as well (Megatron-LM,
// examples/multimodal), one of mimo --encoder-seq-length.
bool has_two_stacks(const MegatronArguments& arguments) {
  const auto has = [&](const char* flag) { return arguments.find(flag) != nullptr; };
  return has("--decoder-num-layers") || has("--pipeline-model-parallel-split-rank") ||
         (has("--encoder-seq-length") && has("--decoder-seq-length"));
}

void read_stacks_model(MegatronImport& in) {
  if (!has_two_stacks(in.arguments())) return;
  std::erase_if(in.job.scenario.find("model")->entries,
                [](const costmodel::Value::Entry& entry) { return entry.key == "layers"; });
  const std::int64_t all = in.whole("--num-layers", 0);
  const std::int64_t encoder = in.whole("--encoder-num-layers", all);
  const std::int64_t decoder = in.whole("--decoder-num-layers", encoder);
  in.find("--vocab-extra-ids");  // sentinels: the padded vocabulary has them
  if (encoder < 1) {
    in.miss("model.encoder_layers",
            "the arguments have neither --num-layers nor --encoder-num-layers");
    return;
  }
  in.put("model.encoder_layers", fmt::format("{}", encoder));
  in.put("model.decoder_layers", fmt::format("{}", decoder));
}

void read_stacks_training(MegatronImport& in) {
  if (!has_two_stacks(in.arguments())) {
    const std::int64_t own = in.whole("--decoder-seq-length", 0);
    // validate_args takes --encoder-seq-length for --seq-length; mimo's data packs text and images
    // into --total-seq-length (examples/mimo).
    const std::int64_t packed = in.whole("--total-seq-length", in.whole("--encoder-seq-length", 0));
    if (own == 0 && packed > 0) in.put("training.sequence", fmt::format("{}", packed));
    if (own == 0) return;
    in.put("training.sequence", fmt::format("{}", own));
    in.note(
        "--decoder-seq-length is that of a language model with a tower before it, which is left "
        "out: the language model alone is read");
    return;
  }
  const std::int64_t sequence = in.whole("--encoder-seq-length", in.whole("--seq-length", 0));
  if (sequence > 0) in.put("training.sequence", fmt::format("{}", sequence));
  const std::int64_t decoder = in.whole("--decoder-seq-length", sequence);
  if (decoder > 0) in.put("training.decoder_sequence", fmt::format("{}", decoder));
}

void read_stacks_plan(MegatronImport& in) {
  if (!has_two_stacks(in.arguments())) return;
  const std::int64_t ranks = in.whole("--pipeline-model-parallel-size", 1);
  const std::int64_t before = in.whole("--encoder-pipeline-model-parallel-size", 0);
  if (before > 0) {
    in.put("plan.pp", fmt::format("{}", before + ranks));
    in.put("plan.split_rank", fmt::format("{}", before));
  }
  const std::int64_t own = in.whole("--encoder-tensor-model-parallel-size", 0);
  if (own > 0 && own != in.whole("--tensor-model-parallel-size", 1)) {
    in.leave_out("--encoder-tensor-model-parallel-size",
                 "both stacks are taken as --tensor-model-parallel-size has it");
  }
  const MegatronArgument* split = in.find("--pipeline-model-parallel-split-rank");
  if (split == nullptr || before > 0) return;
  if (ranks == 1) {
    in.leave_out("--pipeline-model-parallel-split-rank", "there is one pipeline rank");
    return;
  }
  in.put("plan.split_rank", fmt::format("{}", in.whole("--pipeline-model-parallel-split-rank", 0)),
         split->mark);
}

}  // namespace planner
