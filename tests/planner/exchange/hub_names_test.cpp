// Models by the names that hubs, folders and recipes have for them.
#include "planner/exchange/hub_names.hpp"

#include <doctest/doctest.h>

#include <string>

#include "costmodel/config/search_path.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace hub_names_test {

namespace {

// The model that a name on a hub stands for among all that are shipped; empty: none.
std::string shipped(const std::string& name) {
  planner::ImportedJob job;
  job.missing = {{"model.base", ""}};
  planner::name_model(job, name);
  planner::set_model_of_recipe(job, costmodel::config_names(fixtures::configs(), "models"));
  const costmodel::Value* model = job.scenario.find("model");
  return model == nullptr ? "" : model->text;
}

}  // namespace

TEST_CASE("a recipe's name has its model and its devices, where the file has neither") {
  const auto of = [](const std::string& recipe) {
    planner::ImportedJob job;
    costmodel::Value cluster;
    cluster.set("devices", costmodel::scalar_value(std::string(planner::to_be_replaced)));
    job.scenario.set("cluster", cluster);
    job.missing = {{"model.base", ""}, {"cluster.devices", ""}};
    job.recipes = {"my_config", recipe};
    planner::set_model_of_recipe(job, {"llama-3-8b", "llama-3.1-405b", "qwen2-7b", "qwen2-72b"});
    return job;
  };
  const auto large = of("llama31_405b_pretrain_256gpu_h100_bf16_config");
  CHECK(large.scenario.find("model")->text == "llama-3.1-405b");
  CHECK(large.scenario.find("cluster")->find("devices")->text == "256");
  CHECK(large.missing.empty());
  CHECK(of("qwen2_72b").scenario.find("model")->text == "qwen2-72b");
  CHECK(of("qwen2_7b").scenario.find("model")->text == "qwen2-7b");
  CHECK(of("llama3_8b").missing.size() == 1);  // the devices
  CHECK(of("qwen2_720b").missing.size() == 2);
  CHECK(of("").missing.size() == 2);
}

TEST_CASE("names of hubs and folders, with what training and packing add to them") {
  CHECK(shipped("Qwen/Qwen2.5-7B-Instruct") == "qwen2-7b");
  CHECK(shipped("meta-llama/Meta-Llama-3-8B") == "llama-3-8b");
  CHECK(shipped("NousResearch/Llama-2-7b-hf/") == "llama-2-7b");
  CHECK(shipped("microsoft/Phi-3-mini-4k-instruct") == "phi-3-mini");  // a number after a sign
  CHECK(shipped("axolotl-quants/Llama-4-Scout-17B-16E-Linearized-bnb-nf4-bf16") == "llama-4-scout");
  CHECK(shipped("deepseek-ai/DeepSeek-V3-0324") == "deepseek-v3");
  CHECK(shipped("deepseek-ai/DeepSeek-R1") == "deepseek-v3");
  CHECK(shipped("deepseek-ai/DeepSeek-R1-Distill-Llama-8B") == "llama-3.1-8b");
  CHECK(shipped("microsoft/phi-1_5") == "phi-1.5");
  CHECK(shipped("EleutherAI/pythia-1.4b-deduped") == "pythia-1.4b");
  CHECK(shipped("zai-org/GLM-4.6V-Flash") == "glm-4.1v-9b");
}

TEST_CASE("a model with images or sound is its language model, and its towers are left out") {
  CHECK(shipped("zai-org/GLM-4.5V") == "glm-4.5-air");
  CHECK(shipped("Qwen/Qwen2.5-Omni-7B") == "qwen2-7b");
  planner::ImportedJob job;
  planner::name_model(job, "OpenGVLab/InternVL3-8B");
  REQUIRE(job.left_out.size() == 1);
  CHECK(job.left_out.front().starts_with("the towers of InternVL3-8B"));
}

TEST_CASE("a name that has a model's, size and all, further on") {
  CHECK(shipped("Skywork/Skywork-Reward-V2-Qwen3-8B") == "qwen3-8b");
  CHECK(shipped("NousResearch/Hermes-3-Llama-3.1-8B") == "llama-3.1-8b");
  CHECK(shipped("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16") == "nemotron-3-nano-30b");
  CHECK(shipped("CohereForAI/c4ai-command-r7b-12-2024") == "command-r7b");
  CHECK(shipped("someone/chinese-gpt2") == "");  // no size
}

TEST_CASE("other models whose names begin so too are not taken for one") {
  CHECK(shipped("Qwen/Qwen3-80B") == "");
  CHECK(shipped("microsoft/Phi-4.5") == "");
  CHECK(shipped("microsoft/Phi-4-multimodal-instruct") == "");
  CHECK(shipped("deepseek-ai/DeepSeek-R1-Distill-Other-9B") == "");
  CHECK(shipped("moonshotai/Kimi-K2.5") == "");
  CHECK(shipped("meta-llama/Llama-3.2-11B-Vision") == "");
  CHECK(shipped("/path/to/model") == "");
  CHECK(shipped("deepseek_v3-debugmodel") == "");
  CHECK(shipped("deepseek_v3_DebugModel_MTP") == "");
  CHECK(shipped("") == "");
}

}  // namespace hub_names_test
