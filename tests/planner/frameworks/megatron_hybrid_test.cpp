// Hybrids in Megatron-LM's letters, in and out.
#include "planner/frameworks/megatron_hybrid.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/model/parameter_count.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_log.hpp"
#include "planner/frameworks/megatron_script.hpp"
#include "tests/costmodel/support/scenarios.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/planner/support/round_trips.hpp"

namespace megatron_hybrid_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using megatron::of_script;
using planner::ImportedJob;

namespace {

Scenario scenario_of(ImportedJob job) {
  planner::set_cluster(job, "dgx-h100");
  planner::assume_missing(job, 8);
  CHECK(job.missing.empty());
  return scenarios::read(to_yaml(job));
}

const std::string job_flags =
    "--num-attention-heads 16 --seq-length 4096 --max-position-embeddings 4096 --bf16 "
    "--micro-batch-size 1 --disable-bias-linear --untie-embeddings-and-output-weights "
    "--position-embedding-type none --normalization RMSNorm ";
const std::string sizes = job_flags +
                          "--hidden-size 2048 --ffn-hidden-size 8192 --vocab-size 131072 "
                          "--attention-dropout 0 --hidden-dropout 0 ";
const std::string experts = sizes +
                            "--squared-relu --num-experts 16 --moe-router-topk 2 "
                            "--moe-ffn-hidden-size 1024 ";

// The value of a key of the model, and what was left out.
std::string key_of(const ImportedJob& job, const std::string& key) {
  const auto* value = job.scenario.find("model")->find(key);
  return value == nullptr ? "" : value->text;
}

std::string left_out(const ImportedJob& job) {
  std::string all;
  for (const auto& one : job.left_out) all += one + "\n";
  return all;
}

// What comes back from the script of a job's plan; holds it against what went out.
std::vector<std::string> there_and_back(const Scenario& in) {
  const ParallelPlan plan = resolve_plan(in);
  const auto exported = planner::export_megatron(in, plan);
  const ImportedJob job = of_script(planner::launch_script(exported, in, plan));
  CHECK(left_out(job).empty());
  round_trips::check_same(in, scenario_of(job), plan);
  return exported.arguments;
}

std::vector<std::string> there_and_back(const std::string& arguments) {
  return there_and_back(scenario_of(of_script("pretrain_hybrid.py " + arguments)));
}

std::string times(int count, std::string_view piece) {
  std::string all;
  for (int i = 0; i < count; ++i) all += piece;
  return all;
}

// A model file of Megatron-LM's examples/post_training/modelopt/conf/nvidia (d98e8a64dd): the flags
// in which it differs from the others, and its size.
struct ModelFile {
  std::string name, flags, pattern;
  double parameters, active = 0;
};

const std::string plain_attention = "--position-embedding-type none ";
const std::string rotary =
    "--use-rotary-position-embeddings --no-position-embedding --rotary-percent 0.5 ";
const std::string router =
    "--moe-router-score-function sigmoid --moe-grouped-gemm --moe-router-enable-expert-bias "
    "--moe-router-dtype fp32 --moe-router-load-balancing-type seq_aux_loss "
    "--moe-token-dispatcher-type alltoall --moe-permute-fusion ";

// Sizes: of Nano 9B v2 and of Nemotron 3 Nano those of their weights on Hugging Face; the others'
// published ones are rounded (4B, 8.1B, 47B, 56B; 120B with 12B active, 550B with 55B).
std::vector<ModelFile> model_files() {
  const std::string five = "M-M-M-M-M", eight = times(8, "M-");
  const std::string eights = "M-M-M-M*-" + times(3, five + "*-") + "M-M-M-M-M-";
  return {
      {"Nemotron-H-4B-Instruct",
       rotary + "--rotary-base 10000 --hidden-size 3072 --ffn-hidden-size 12288 --kv-channels 128 "
                "--num-attention-heads 32 --num-query-groups 8 --mamba-head-dim 64 "
                "--mamba-num-heads 112 --mamba-num-groups 8 --mamba-state-dim 128",
       eights, 4'489'223'040.},
      {"Nemotron-H-8B-Base-8K",
       rotary + "--rotary-base 500000 --hidden-size 4096 --ffn-hidden-size 21504 "
                "--num-attention-heads 32 --num-query-groups 8 --mamba-head-dim 64 "
                "--mamba-num-heads 128 --mamba-num-groups 8 --mamba-state-dim 128",
       eights, 8'100'852'736.},
      {"Nemotron-H-47B-Reasoning-128K",
       plain_attention +
           "--hidden-size 8192 --ffn-hidden-size 30720 --num-attention-heads 64 "
           "--kv-channels 128 --num-query-groups 8 --mamba-head-dim 64 --mamba-num-heads 256 "
           "--mamba-num-groups 8 --mamba-state-dim 256",
       eight + "M*-" + times(9, "M-") + "M*-" + times(2, five + "*-") +
           "M-M-M-M-M-M-M---MM---M-M*-M-M-M-M-M-",
       46'791'554'816.},
      {"Nemotron-H-56B-Base-8K",
       plain_attention + "--mamba-state-dim 256 --hidden-size 8192 --num-attention-heads 64 "
                         "--num-query-groups 8 --ffn-hidden-size 32768 --kv-channels 128 "
                         "--tensor-model-parallel-size 8",
       "M-M-M-M*-" + times(9, five + "*-") + "M-M-M-M-M-", 56'324'350'464.},
      {"NVIDIA-Nemotron-Nano-9B-v2",
       plain_attention +
           "--hidden-size 4480 --ffn-hidden-size 15680 --num-attention-heads 40 "
           "--kv-channels 128 --num-query-groups 8 --mamba-head-dim 80 --mamba-num-heads 128 "
           "--padded-vocab-size 131072",
       "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-", 8'888'227'328.},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
       plain_attention + router +
           "--num-experts 128 --moe-router-topk 6 --moe-router-topk-scaling-factor 2.5 "
           "--moe-shared-expert-intermediate-size 3712 --mamba-num-heads 64 --hidden-size 2688 "
           "--num-attention-heads 32 --num-query-groups 2 --ffn-hidden-size 1856 "
           "--kv-channels 128",
       "MEMEM*" + times(4, "EMEMEM*") + "EMEMEMEM*EMEMEMEME", 31'577'937'344., 3'580'073'408.},
      {"NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
       plain_attention + router +
           "--num-experts 512 --moe-router-topk 22 --moe-router-topk-scaling-factor 5.0 "
           "--moe-shared-expert-intermediate-size 5376 --moe-latent-size 1024 "
           "--is-hybrid-model --mamba-num-heads 128 --hidden-size 4096 "
           "--num-attention-heads 32 --num-query-groups 2 --ffn-hidden-size 2688 "
           "--kv-channels 128 --attention-dropout 0 --hidden-dropout 0",
       "MEMEMEM*" + times(2, "EMEMEMEM*") + times(4, "EMEMEMEMEM*") + "EMEMEMEM*EMEMEMEME",
       120'668'687'360., 12'770'216'960.},
      {"NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
       plain_attention + router +
           "--num-experts 512 --moe-router-topk 22 --moe-router-topk-scaling-factor 5.0 "
           "--moe-shared-expert-intermediate-size 10240 --moe-latent-size 2048 "
           "--is-hybrid-model --mamba-num-heads 256 --num-layers 108 --hidden-size 8192 "
           "--num-attention-heads 64 --num-query-groups 2 --ffn-hidden-size 5120 "
           "--kv-channels 128",
       "MEMEMEM*" + times(3, "EMEMEM*EMEMEMEM*EMEMEMEM*") + "EMEMEM*EMEMEMEM*EMEMEMEME",
       549'308'968'960., 56'058'818'560.}};
}

}  // namespace

TEST_CASE("Nemotron-H's and Nemotron 3's model files come in, with their parameters, and go out") {
  for (const ModelFile& file : model_files()) {
    CAPTURE(file.name);
    const ImportedJob job = of_script(
        "HF_MODEL_CKPT=nvidia/" + file.name + "\nMODEL_ARGS=\" \\\n --hybrid-override-pattern " +
        file.pattern + " \\\n --micro-batch-size 1 --bf16 --disable-bias-linear " + file.flags +
        " --untie-embeddings-and-output-weights --normalization RMSNorm --squared-relu "
        "--group-query-attention --seq-length 8192 --max-position-embeddings 8192 \"\n");
    CHECK(left_out(job).empty());
    const Scenario s = scenario_of(job);
    CHECK(parameter_count(s.model) == doctest::Approx(file.parameters).epsilon(1e-12));
    if (file.active > 0)
      CHECK(active_parameter_count(s.model) == doctest::Approx(file.active).epsilon(1e-12));
    there_and_back(s);
  }
}

TEST_CASE("a pattern has a letter a layer, with sizes of scans where it has scans") {
  const ImportedJob scans = of_script(sizes + "--hybrid-layer-pattern M-M*");
  CHECK(key_of(scans, "mamba_heads") == "64");
  CHECK(key_of(scans, "ssm_groups") == "8");
  const ImportedJob none = of_script(sizes + "--hybrid-layer-pattern '*-*-'");
  CHECK(key_of(none, "layer_pattern") == "*-*-");
  CHECK(key_of(none, "mamba_head_dim").empty());
  there_and_back(sizes + "--squared-relu --hybrid-layer-pattern '*-*-'");
  there_and_back(sizes + "--squared-relu --hybrid-layer-pattern MMMM");
  CHECK(key_of(of_script(sizes + "--num-layers 2 --hybrid-layer-pattern 'M|*'"), "layers").empty());
  const ImportedJob other = of_script(sizes + "--hybrid-layer-pattern M-M* --num-layers 10");
  CHECK(left_out(other) == "--num-layers 10: the pattern has 4 layers\n");
  const auto refused = [&](const std::string& pattern) {
    return of_script(sizes + "--hybrid-layer-pattern '" + pattern + "'");
  };
  CHECK_THROWS_WITH(refused("MD"), doctest::Contains("has D, sparse attention"));
  CHECK_THROWS_WITH(refused("MX"), doctest::Contains("other letters than M, *, -, E, G and +"));
  CHECK_THROWS_WITH(refused("*+"), doctest::Contains("has both * and +"));
  CHECK_THROWS_WITH(refused("|/*-"), doctest::Contains("has no layers"));
}

TEST_CASE("stages: bars, or counts of the first and the last rank") {
  const std::string two = sizes + "--squared-relu --pipeline-model-parallel-size 2 ";
  const auto list = [](const Scenario& s) { return resolve_plan(s).stage_layers; };
  const Scenario bars = scenario_of(
      of_script(two + "--hybrid-layer-pattern 'M-M*M-|M*|M-|M*' --global-batch-size 8"));
  CHECK(list(bars) == std::vector<int>{6, 2, 2, 2});
  const Scenario first = scenario_of(
      of_script(two + "--hybrid-layer-pattern M-M*M-M* --decoder-first-pipeline-num-layers 3"));
  CHECK(list(first) == std::vector<int>{3, 5});
  CHECK(megatron::has(there_and_back(first), "--hybrid-layer-pattern M-M|*M-M*"));
}

TEST_CASE("deprecated ratios spread attention and MLPs among scans") {
  // core/models/hybrid/hybrid_layer_allocation.py, pattern_from_ratios
  CHECK(planner::pattern_of_ratios(16, .25, .25) == "MM*-MM*-M*M-M*M-");
  CHECK(planner::pattern_of_ratios(18, .3, .18) == "MM*M-*MM*MM-*MM*M-");
  CHECK(planner::pattern_of_ratios(13, .29, .3) == "M-*MM*-*M-*M-");
  CHECK(planner::pattern_of_ratios(4, 0, 0) == "MMMM");
  const std::string ratios =
      "--num-layers 16 --hybrid-attention-ratio 0.25 --hybrid-mlp-ratio 0.25 ";
  CHECK(key_of(of_script(sizes + ratios), "layer_pattern") == "MM*-MM*-M*M-M*M-");
  CHECK(key_of(of_script(sizes + "--num-layers 3 --spec a.mamba_layer_specs mamba_stack_spec"),
               "layer_pattern") == "MMM");
  CHECK_THROWS_WITH(of_script(sizes + "--num-layers 4 --hybrid-attention-ratio 1.5"),
                    doctest::Contains("is no ratio of layers"));
  CHECK(of_script(sizes + "--is-hybrid-model").missing.front().key == "model.layer_pattern");
  // Logs of every model print ratios.
  const std::string bars = "------------------------";
  const auto log =
      planner::read_megatron_log(bars + " arguments " + bars +
                                     "\n  num_layers ........ 4\n  hybrid_attention_ratio ........ "
                                     "0.0\n" +
                                     bars + " end of arguments " + bars + "\n",
                                 "x.log");
  CHECK_FALSE(planner::is_hybrid(log));
}

TEST_CASE("multi-token prediction is attention and the last layer's feed-forward, at each depth") {
  const auto of = [&](const std::string& more) { return of_script(experts + more); };
  const std::string two = "--hybrid-layer-pattern MEM*EME/*E/*E ";
  CHECK(key_of(of(two), "mtp_layers") == "2");
  CHECK(key_of(of("--hybrid-override-pattern MEM*EME --mtp-num-layers 2 "
                  "--mtp-hybrid-override-pattern '*E'"),
               "mtp_layers") == "2");
  CHECK(key_of(of("--hybrid-layer-pattern 'MEM*EM-/*-'"), "mtp_layers") == "1");
  CHECK(left_out(of(two + "--mtp-use-repeated-layer")) ==
        "--mtp-use-repeated-layer: each depth has weights of its own here\n");
  const ImportedJob scans = of("--hybrid-layer-pattern MEM*EME/MM");
  CHECK(key_of(scans, "mtp_layers").empty());
  CHECK(left_out(scans).ends_with("mtp_layers of such a model are *E\n"));
  CHECK(left_out(of_script(sizes + "--hybrid-layer-pattern 'M-*-/*-'"))
            .ends_with("mtp_layers of such a model needs experts\n"));
  // Without its layers in the pattern Megatron-LM predicts no further tokens.
  const ImportedJob none = of("--hybrid-layer-pattern MEM*EME --mtp-num-layers 2");
  CHECK(key_of(none, "mtp_layers").empty());
  CHECK(left_out(none) == "--mtp-num-layers 2: the pattern has no layers of prediction\n");
  CHECK_THROWS_WITH(of("--hybrid-layer-pattern MEM*EME/*E/MM"),
                    doctest::Contains("differ by depth"));
  CHECK(megatron::has(there_and_back(experts + two), "--mtp-num-layers 2"));
}

TEST_CASE("gated delta nets, and latent attention") {
  const std::string delta = sizes + "--swiglu --hybrid-layer-pattern G-G* ";
  const ImportedJob usual = of_script(delta);
  CHECK(key_of(usual, "linear_num_key_heads") == "16");
  CHECK(key_of(usual, "linear_num_value_heads") == "32");
  const auto out = there_and_back(delta + "--linear-key-head-dim 64 --linear-conv-kernel-dim 3");
  CHECK(megatron::has(out, "--linear-key-head-dim 64"));
  CHECK(megatron::has(out, "--linear-conv-kernel-dim 3"));
  CHECK(left_out(of_script(sizes + "--hybrid-layer-pattern MG- --linear-conv-kernel-dim 3")) ==
        "--linear-conv-kernel-dim 3: taken as 4, as scans have it\n");
  const auto latent = there_and_back(sizes +
                                     "--squared-relu --hybrid-layer-pattern M-M+ --kv-lora-rank "
                                     "512 --q-lora-rank 1536 --qk-head-dim 128 "
                                     "--qk-pos-emb-head-dim 64 --v-head-dim 128");
  CHECK(megatron::has(latent, "--hybrid-layer-pattern M-M+"));
  // The letters decide, not the switch.
  CHECK(key_of(of_script(sizes + "--hybrid-layer-pattern M-M* --multi-latent-attention"),
               "kv_lora_rank")
            .empty());
}

}  // namespace megatron_hybrid_test
