// Configurations of torchtitan as scenarios; and plans that are exported and come back the same.
#include "planner/frameworks/import_torchtitan.hpp"
#include "costmodel/config/toml.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/plan/plan_keys.hpp"
#include "planner/frameworks/file_settings.hpp"
#include "tests/planner/support/round_trips.hpp"
#include "tests/planner/support/torchtitan_cases.hpp"
#include "tests/run_program.hpp"
#include "tests/sanitized.hpp"

namespace import_torchtitan_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using planner::import_torchtitan;
using planner::ImportedJob;
using planner::TorchtitanVersion;

namespace {

Scenario scenario_of(ImportedJob job, const std::string& cluster) {
  planner::set_cluster(job, cluster);
  CHECK_MESSAGE(job.missing.empty(), (job.missing.empty() ? "" : job.missing.front().key));
  return scenarios::read(to_yaml(job));
}

std::string of(const ImportedJob& job, const char* part, const char* key) {
  const costmodel::Value* value = job.scenario.find(part)->find(key);
  return value == nullptr ? "absent" : value->text;
}

// What comes back: stages as a list where they differ, and no sharding over one replica.
ParallelPlan as_read(ParallelPlan plan, const Scenario& in) {
  if (plan.pp > 1) {
    std::vector<int> layers;
    for (int k = 0; k < plan.virtual_stages(); ++k) layers.push_back(layers_of(plan, in.model, k));
    plan.stage_layers = layers;
  }
  if (plan.replicas() == 1) plan.zero = 0;
  if (!planner::has_uneven_stages(plan)) plan.stage_layers.clear();
  if (in.model.experts == 0) plan.experts = {};
  return plan;
}

void check_training(const Scenario& in, const Scenario& out) {
  const auto &a = in.training, &b = out.training;
  CHECK(a.global_batch == b.global_batch);
  CHECK(a.sequence == b.sequence);
  CHECK(a.precision == b.precision);
  CHECK(a.gather_precision == b.gather_precision);
  CHECK(a.gradient_precision == b.gradient_precision);
  CHECK(a.optimizer == b.optimizer);
  for (const auto flag :
       {&costmodel::Overlap::overlap_grad_reduce, &costmodel::Overlap::overlap_param_gather,
        &costmodel::Overlap::tp_comm_overlap, &costmodel::Overlap::pp_overlap,
        &costmodel::Overlap::async_tp, &costmodel::Overlap::compile,
        &costmodel::Overlap::cuda_graph})
    CHECK(a.overlap.*flag == b.overlap.*flag);
  CHECK(a.stack.kernels.attention == b.stack.kernels.attention);
  CHECK(a.stack.offers.zero_bubble >= b.stack.offers.zero_bubble);
}

void check_back(const Scenario& in, const ParallelPlan& plan, TorchtitanVersion version) {
  const auto exported = planner::export_torchtitan(in, plan, version);
  torchtitan::check_keys(exported, version);
  REQUIRE(planner::holds_torchtitan(exported.script));
  const ImportedJob job = import_torchtitan(exported.script, "x.sh");
  CHECK(job.format == planner::JobFormat::torchtitan);
  CHECK_MESSAGE(job.left_out.empty(), (job.left_out.empty() ? "" : job.left_out.front()));
  CHECK_MESSAGE(job.notes.empty(), (job.notes.empty() ? "" : job.notes.front()));
  const Scenario out = scenario_of(job, "dgx-gb200");
  CHECK(out.cluster.devices == plan.devices());
  CHECK(round_trips::sizes(in) == round_trips::sizes(out));
  CHECK(to_yaml(to_value(resolve_plan(out))) == to_yaml(to_value(as_read(plan, in))));
  check_training(in, out);
  if (plan.pp > 1 && plan.zero == 3 && plan.replicas() > 1)
    CHECK(in.training.stack.zero.whole_in_pipeline == out.training.stack.zero.whole_in_pipeline);
}

int round_trips_of(int count, TorchtitanVersion version) {
  int accepted = 0;
  for (std::uint32_t seed = 1; accepted < count && seed < 40'000; ++seed) {
    random_scenario::Draw draw(seed);
    const std::string yaml = torchtitan::drawn_job(draw, version == TorchtitanVersion::python);
    try {
      const Scenario in = scenarios::read(yaml);
      const ParallelPlan plan = resolve_plan(in);
      if (!planner::torchtitan_violations(in, plan, version).empty()) continue;
      ++accepted;
      INFO("seed ", seed, "\n", yaml);
      check_back(in, plan, version);
    } catch (const costmodel::ConfigError& error) {
      const std::string what = error.what();
      CHECK_MESSAGE(what.starts_with("test.yaml") == true, what);
    }
  }
  return accepted;
}

constexpr const char* toml =
    "[job]\ndump_folder = \"./outputs\"\n\n"
    "[model]\nname = \"llama3\"\nflavor = \"70B\"\nhf_assets_path = \"./assets\"\n\n"
    "[optimizer]\nname = \"AdamW\"\nlr = 1.5e-4\n\n"
    "[training]\nlocal_batch_size = 8\nseq_len = 8192\nsteps = 1000\ndataset = \"c4\"\n\n"
    "[parallelism]\ndata_parallel_replicate_degree = 1\ndata_parallel_shard_degree = -1\n"
    "tensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n\n"
    "[activation_checkpoint]\nmode = \"full\"\n\n[compile]\nenable = true\n";

}  // namespace

TEST_CASE("a TOML as torchtitan has them: what it leaves to the launch is missing" *
          doctest::skip(!costmodel::reads_toml())) {
  const ImportedJob job = import_torchtitan(toml, "llama3_70b.toml");
  CHECK(job.scenario.find("model")->text == "llama-3.1-70b");
  CHECK(of(job, "plan", "tp") == "8");
  CHECK(of(job, "plan", "zero") == "3");
  CHECK(of(job, "plan", "dp") == "absent");
  CHECK(of(job, "plan", "recompute") == "full");
  CHECK(of(job, "plan", "micro_batch") == "8");
  CHECK(of(job, "training", "global_batch") == "REPLACE");
  CHECK(job.scenario.find("training")->find("overlap")->find("async_tp")->text == "true");
  CHECK(job.left_out.empty());
  REQUIRE(job.missing.size() == 3);
  CHECK(job.missing[1].key == "cluster.devices");
}

TEST_CASE("what no key says is left out by name; wrong values are refused where they stand" *
          doctest::skip(!costmodel::reads_toml())) {
  const std::string text = std::string(toml) + "early_stop = 1\n[parallelism2]\nx = 1\n";
  const ImportedJob job = import_torchtitan(text, "x.toml");
  REQUIRE(job.left_out.size() == 2);
  CHECK(job.left_out[0] == "compile.early_stop = 1: no key says it");
  CHECK_THROWS_WITH_AS(
      import_torchtitan("[parallelism]\ntensor_parallel_degree = 0\n", "x.toml"),
      "x.toml:2:1: 'parallelism.tensor_parallel_degree = 0' is no whole number from 1; write 1 or "
      "more, or leave it out",
      costmodel::ConfigError);
  CHECK(planner::holds_torchtitan("[training]\nlocal_batch_size = \"eight\"\n"));
  CHECK_FALSE(planner::holds_torchtitan("[training]\nepochs = 3\n"));
  CHECK_THROWS_WITH_AS(
      import_torchtitan("[training]\nlocal_batch_size = \"eight\"\n", "x.toml"),
      doctest::Contains("x.toml:2:1: 'training.local_batch_size = eight' is no whole number"),
      costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(import_torchtitan("[parallelism]\ntensor = = 3\n", "x.toml"),
                       doctest::Contains("x.toml:2:"), costmodel::ConfigError);
  CHECK_THROWS_WITH_AS(import_torchtitan("[compile]\nenable = \"yes\"\n[parallelism]\n", "x.toml"),
                       doctest::Contains("'compile.enable = yes' is neither true nor false"),
                       costmodel::ConfigError);
}

TEST_CASE("a pipeline that runs anew for each local batch is noted as one run" *
          doctest::skip(!costmodel::reads_toml())) {
  const auto notes = [](const std::string& more) {
    return import_torchtitan(
               "[training]\nlocal_batch_size = 4\nglobal_batch_size = 64\n"
               "[parallelism]\npipeline_parallel_degree = 2\n" +
                   more,
               "x.toml")
        .notes;
  };
  const auto noted = [&](const std::string& more, const char* part) {
    return std::ranges::any_of(
        notes(more), [&](const std::string& note) { return note.find(part) != std::string::npos; });
  };
  CHECK(noted("data_parallel_shard_degree = -1\n", "anew for each local batch"));
  CHECK(noted("data_parallel_shard_degree = 4\n", "gradients of 4 runs of the pipeline"));
  CHECK_FALSE(noted("data_parallel_shard_degree = 16\n", "run"));
}

TEST_CASE("a loss that is compiled alone compiles no model" *
          doctest::skip(!costmodel::reads_toml())) {
  const ImportedJob job = import_torchtitan(
      "[parallelism]\n[compile]\nenable = true\ncomponents = [\"loss\"]\n", "x.toml");
  CHECK(job.scenario.find("training")->find("overlap")->find("compile")->text == "false");
  CHECK(job.left_out.empty());
}

TEST_CASE("hybrid sharding is a key; budgets of memory and other schedules are named as left out" *
          doctest::skip(!costmodel::reads_toml())) {
  const ImportedJob job = import_torchtitan(
      "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
      "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"DualPipeV\"\n"
      "[activation_checkpoint]\nmode = \"memory_budget\"\n",
      "x.toml");
  CHECK(job.left_out.size() == 2);
  CHECK(of(job, "plan", "dp_replicate") == "2");
  CHECK(of(job, "plan", "dp") == "8");
  CHECK(of(job, "cluster", "devices") == "16");
  CHECK(of(job, "plan", "recompute") == "none");
}

TEST_CASE("stages by weights of embedding and output, as torchtitan splits them" *
          doctest::skip(!costmodel::reads_toml())) {
  const ImportedJob job = import_torchtitan(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\n"
      "data_parallel_shard_degree = 1\npipeline_parallel_degree = 4\n",
      "x.toml");
  // 34 of 32 layers, embedding and output over four stages: 9, 9, 8, 8, of which one each is none.
  const costmodel::Value* layers = job.scenario.find("plan")->find("stage_layers");
  REQUIRE(layers != nullptr);
  std::string counts;
  for (const auto& item : layers->items) counts += item.text + " ";
  CHECK(counts == "8 9 8 7 ");
}

TEST_CASE("a Python configuration is read without being executed") {
  const ImportedJob job = import_torchtitan(
      "from torchtitan.models.llama3 import model_registry\n\n"
      "def llama3_8b_fsdp8_tp2():\n"
      "    return Trainer.Config(\n"
      "        model_spec=model_registry(\"8B\", attn_backend=\"flex\"),\n"
      "        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=2 * 8192,\n"
      "            num_tokens_per_train_step=64 * 8192, max_context_length=8192),\n"
      "        parallelism=ParallelismConfig(data_parallel_shard_degree=8,\n"
      "            tensor_parallel_degree=2, fsdp_defer_gradient_reduction=True),\n"
      "        activation_checkpoint=FullAC.Config(),\n"
      "    )\n",
      "x.py");
  CHECK(job.scenario.find("model")->text == "llama-3.1-8b");
  CHECK(of(job, "plan", "dp") == "8");
  CHECK(of(job, "plan", "micro_batch") == "2");
  CHECK(of(job, "training", "global_batch") == "64");
  CHECK(of(job, "plan", "recompute") == "full");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front() == "parallelism.fsdp_defer_gradient_reduction = true: no key says it");
}

TEST_CASE("selective recomputation of a Python configuration is TOML's of each operator") {
  const ImportedJob job = import_torchtitan(
      "from torchtitan.models.llama3 import model_registry\n"
      "config = Trainer.Config(model_spec=model_registry(\"8B\"),\n"
      "    training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=8192),\n"
      "    parallelism=ParallelismConfig(), activation_checkpoint=SelectiveAC.Config())\n",
      "x.py");
  CHECK(of(job, "plan", "recompute") == "selective");
  CHECK(job.left_out.empty());
}

TEST_CASE("converters and the exchange of experts of the call that builds a Python model") {
  const auto built = [](const std::string& arguments) {
    return import_torchtitan(
        "from torchtitan.models.deepseek_v3 import model_registry\n"
        "def recipe():\n"
        "    config = Trainer.Config(model_spec=model_registry(\"16B\", "
        "moe_comm_backend=\"deepep\",\n"
        "        converters=[Float8LinearConverter.Config()]))\n"
        "    config.parallelism = ParallelismConfig(expert_parallel_degree=8)\n"
        "    config.model_spec = model_registry(\"16B\", attn_backend=\"flex\"" +
            arguments + ")\n",
        "x.py");
  };
  const std::string experts =
      ", converters=[\n Float8LinearConverter.Config(filter_fqns=[\"lm_head\"], emulate=f(1)),\n"
      " Float8GroupedExpertsConverter.Config(model_compile_enabled=(a.b and \"c\" in d))]";
  CHECK(of(built(""), "training", "precision") == "bf16");  // the last call's, which has none
  CHECK(of(built(""), "plan", "dispatcher") == "alltoall");
  CHECK(of(built(experts), "training", "precision") == "fp8");
  CHECK(built(experts).left_out.empty());
  const ImportedJob linear = built(", converters=[MXFP8LinearConverter.Config()]");
  CHECK(of(linear, "training", "precision") == "mxfp8");
  CHECK(linear.notes.front() ==
        "only products outside the experts are converted: all products are priced in mxfp8");
  const ImportedJob four = built(", converters=[NVFP4LinearConverter.Config(fqns=fqns)]");
  CHECK(of(four, "training", "precision") == "nvfp4");
  CHECK(four.left_out.front().starts_with("converter.NVFP4Linear.fqns = fqns: what is converted"));
  CHECK(built(", converters=mine").left_out.front() ==
        "model.converters = mine: the list is not written in the call");
  for (const char* backend : {"hybridep", "deepep"})
    CHECK(of(built(std::string(", moe_comm_backend=\"") + backend + "\""), "plan", "dispatcher") ==
          backend);
  const ImportedJob other = built(", moe_comm_backend=\"minimal_async_ep\", num_mtp_layers=1");
  REQUIRE(other.left_out.size() == 2);
  CHECK(other.left_out.front() == "model.moe_comm_backend = minimal_async_ep: taken as standard");
  CHECK(other.left_out.back().starts_with("model.num_mtp_layers = 1: "));
}

TEST_CASE("a command: the configuration that torchtitan ships, and what is set after it") {
  const std::string script =
      "#!/bin/bash\nNGPU=16 "
      "CONFIG_FILE=\"./torchtitan/models/llama3/train_configs/llama3_8b.toml\" "
      "./run_train.sh --parallelism.tensor_parallel_degree 2 --training.local-batch-size=4\n";
  CHECK(holds_torchtitan(script));
  const ImportedJob job = import_torchtitan(script, "x.sh");
  CHECK(job.scenario.find("model")->text == "llama-3.1-8b");
  CHECK(of(job, "cluster", "devices") == "16");
  CHECK(of(job, "training", "sequence") == "8192");
  CHECK(of(job, "plan", "tp") == "2");
  CHECK(of(job, "plan", "micro_batch") == "4");
  CHECK(of(job, "plan", "recompute") == "selective");
  const ImportedJob own = import_torchtitan(
      "srun torchrun --nnodes 2 --nproc_per_node 8 -m torchtitan.train --module qwen3 --config "
      "qwen3_8b_mine --training.seq_len 4096\n",
      "x.sh");
  CHECK(of(own, "cluster", "devices") == "16");
  CHECK(own.recipes.back() == "qwen3_8b_mine");
  CHECK(own.notes.back().starts_with("the settings of qwen3_8b_mine are not known here"));
}

TEST_CASE("a command's TOML is read where it lies with the script" *
          doctest::skip(!costmodel::reads_toml())) {
  const program::Scratch folder;
  folder.write("mine.toml",
               "[training]\nseq_len = 8192\nlocal_batch_size = 2\n"
               "[parallelism]\ntensor_parallel_degree = 4\n");
  for (const char* command :
       {"CONFIG_FILE=${CONFIG_FILE:-\"./mine.toml\"}\ntorchrun --nproc_per_node 8 -m "
        "torchtitan.train "
        "--job.config_file ${CONFIG_FILE}\n",
        "torchrun --nproc_per_node 8 -m torchtitan.train --job.config_file mine.toml\n"}) {
    const ImportedJob job = import_torchtitan(command, (folder.path() / "tt.sh").string());
    CHECK_MESSAGE(of(job, "training", "sequence") == "8192", command);
    CHECK_MESSAGE(of(job, "plan", "tp") == "4", command);
    CHECK_MESSAGE(of(job, "plan", "micro_batch") == "2", command);
  }
}

TEST_CASE("200 random plans that torchtitan 0.2.2 takes come back from its TOML" *
          doctest::skip(!costmodel::reads_toml())) {
  const int count = sanitized ? 15 : 200;
  CHECK(round_trips_of(count, TorchtitanVersion::toml) == count);
}

TEST_CASE("200 random plans that torchtitan takes come back from its Python configuration") {
  const int count = sanitized ? 15 : 200;
  CHECK(round_trips_of(count, TorchtitanVersion::python) == count);
}

}  // namespace import_torchtitan_test
