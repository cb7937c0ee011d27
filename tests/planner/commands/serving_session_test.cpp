// Scenarios of serving at the command line.
#include "planner/commands/session.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/run_program.hpp"

namespace serving_session_test {

using program::run;
using program::words_of;

TEST_CASE("evaluate, explain, plan and export take a scenario of serving") {
  const program::Scratch scratch;
  const auto json = run(words_of("evaluate serve-llama-7b-pcie-2 --format json"), scratch);
  REQUIRE(json.status == 0);
  const auto told = nlohmann::json::parse(json.out);
  CHECK(told["plan"]["tp"] == 2);
  CHECK(run(words_of("explain serve-llama-7b-pcie-2"), scratch).out.find("t_kv") !=
        std::string::npos);
  const auto launch = run(words_of("export serve-llama-7b-pcie-2 --to vllm"), scratch);
  CHECK(launch.out.find("--tensor-parallel-size 2") != std::string::npos);
  scratch.write("serve.sh", launch.out);
  const auto back = run(words_of("import vllm serve.sh --cluster pcie-8x-a100"), scratch);
  CHECK(back.status == 0);
  CHECK(back.out.find("tp: 2") != std::string::npos);
}

TEST_CASE("The best plan is written as a scenario that evaluates to the same figures") {
  const program::Scratch scratch;
  const std::string open = "serve-llama-7b-nvlink-4 --set plan=auto --set serving.concurrency=64";
  const auto found = run(words_of("plan " + open + " --format json"), scratch);
  REQUIRE(found.status == 0);
  const auto best = nlohmann::json::parse(found.out)["plans"][0];
  REQUIRE(run(words_of("plan " + open + " --format yaml --out best.yaml"), scratch).status == 0);
  const auto again = run(words_of("evaluate best.yaml --format json"), scratch);
  REQUIRE(again.status == 0);
  CHECK(nlohmann::json::parse(again.out)["output_tokens_per_s"] == best["output_tokens_per_s"]);
}

TEST_CASE("DeepSeek on two servers fits in int8 and not in bf16") {
  const program::Scratch scratch;
  CHECK(run(words_of("evaluate serve-deepseek-v3-2x-atlas"), scratch).status == 0);
  const auto large =
      run(words_of("evaluate serve-deepseek-v3-2x-atlas --set serving.weights=bf16"), scratch);
  CHECK(large.status == 3);
  CHECK(large.out.find("Does not fit: ") < large.out.find("Plan "));
}

TEST_CASE("What nothing keeps ends with 3 and a remedy, what is wrong with 2 and a place") {
  const program::Scratch scratch;
  const auto none = run(
      words_of("plan serve-llama-7b-pcie-2 --set plan=auto --set serving.latency_bound.tpot_s=5ms"),
      scratch);
  CHECK(none.status == 3);
  CHECK(none.out.find("The shortest time a token") != std::string::npos);
  const auto wrong =
      run(words_of("plan serve-llama-7b-pcie-2 --set serving.latency_bound.tpot_s=1us"), scratch);
  CHECK(wrong.status == 2);
  CHECK(wrong.err.find("is below one pass") != std::string::npos);
  const auto html = run(words_of("evaluate serve-llama-7b-pcie-2 --format html"), scratch);
  CHECK(html.status == 0);
  CHECK(html.out.starts_with("<!doctype html>"));
  CHECK(run(words_of("export serve-llama-7b-pcie-2 --to megatron"), scratch).status == 2);
}

TEST_CASE(
    "A bound that only the closed form keeps is no answer: status 3, and the nearest is told") {
  const program::Scratch scratch;
  scratch.write("tight.yaml",
                "workload: inference\nmodel: llama-2-7b\ncluster: {base: dgx-h100, devices: 1}\n"
                "serving: {stack: vllm-0.9, input_tokens: 1024, output_tokens: 256, concurrency: "
                "64, latency_bound: {ttft_s: 0.05}}\n");
  const auto none = run(words_of("plan tight.yaml"), scratch);
  CHECK(none.status == 3);
  CHECK(none.out.find("No plan keeps what is asked") != std::string::npos);
  const auto kept =
      run(words_of("plan tight.yaml --set serving.latency_bound.ttft_s=0.5"), scratch);
  CHECK(kept.status == 0);
  CHECK(kept.out.find("first token 500 ms at most: kept (") != std::string::npos);
  const auto told = run(words_of("evaluate tight.yaml --set plan.tp=1"), scratch);
  CHECK(told.out.find("first token 50 ms at most: missed (") != std::string::npos);
}

TEST_CASE("A key of a plan that is auto is set beside it") {
  const program::Scratch scratch;
  const auto set = run(words_of("plan serve-llama-7b-nvlink-4 --set plan=auto --set plan.tp=2 "
                                "--format json"),
                       scratch);
  REQUIRE(set.status == 0);
  CHECK(nlohmann::json::parse(set.out)["plans"][0]["plan"]["tp"] == 2);
  const auto other =
      run(words_of("plan serve-llama-7b-nvlink-4 --set plan=best --set plan.tp=2"), scratch);
  CHECK(other.status == 2);
  CHECK(other.err.find("the base of a plan is auto or nothing") != std::string::npos);
}

TEST_CASE("Weights on the host: the remedy is one that works") {
  const program::Scratch scratch;
  const std::string scenario =
      "evaluate serve-llama-7b-nvlink-4 --set cluster.device=ascend-910b-64gb "
      "--set serving.cpu_offload_bytes=1e9";
  const auto refused = run(words_of(scenario), scratch);
  REQUIRE(refused.status == 2);
  const std::string sign = "--set '";
  const auto at = refused.err.find(sign) + sign.size();
  REQUIRE(at > sign.size());
  auto words = words_of(scenario);
  words.push_back("--set");
  words.push_back(refused.err.substr(at, refused.err.find('\'', at) - at));
  CHECK(run(words, scratch).status == 0);
}

TEST_CASE("groups of a scenario of serving are vLLM's") {
  const program::Scratch scratch;
  const auto told = run(words_of("groups serve-deepseek-v3-2x8-h100 --format json"), scratch);
  CHECK(told.status == 0);
  const auto text = run(words_of("groups serve-deepseek-v3-2x8-h100"), scratch);
  CHECK(text.out.find("rank = pp_rank t + tp_rank") != std::string::npos);
  CHECK(text.out.find("[0,8] [1,9]") != std::string::npos);
  const auto other = run(words_of("groups serve-deepseek-v3-2x8-h100 --layout megatron"), scratch);
  CHECK(other.status == 2);
  CHECK(other.err.find("leave --layout out") != std::string::npos);
}

TEST_CASE("compare takes scenarios of one workload") {
  const program::Scratch scratch;
  for (const char* both : {"compare gpt3-6.7b-two-nodes serve-llama-7b-nvlink-4",
                           "compare serve-llama-7b-nvlink-4 gpt3-6.7b-two-nodes"}) {
    const auto refused = run(words_of(both), scratch);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("compare scenarios of one workload") != std::string::npos);
  }
}

TEST_CASE("What belongs to reports of training is refused, not ignored") {
  const program::Scratch scratch;
  for (const char* flag : {"--sensitivity", "--upgrades", "--front", "--all", "--strategy grid"}) {
    CAPTURE(flag);
    const auto refused = run(words_of(std::string("plan serve-llama-7b-pcie-2 ") + flag), scratch);
    CHECK(refused.status == 2);
    CHECK(refused.err.find("goes with training") != std::string::npos);
  }
  const auto refused = run(words_of("explain serve-llama-7b-pcie-2 --memory"), scratch);
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--memory goes with training") != std::string::npos);
}

TEST_CASE("A batch has a row and a page of a scenario of serving") {
  const program::Scratch scratch;
  const std::string file = SHARDPLAN_SOURCE_DIR "/configs/scenarios/serve-llama-7b-pcie-2.yaml";
  for (const std::string command : {"plan", "evaluate"}) {
    const auto done =
        run({"batch", file, "--out", "reports-" + command, "--command", command, "--format", "csv"},
            scratch);
    CHECK(done.status == 0);
    CHECK(done.out.find("next tokens") != std::string::npos);
  }
}

TEST_CASE("validate knows evidence of serving") {
  const program::Scratch scratch;
  const std::string file = SHARDPLAN_SOURCE_DIR "/configs/evidence/serving/nim-1.8-llama-70b.yaml";
  const auto text = run(words_of("validate " + file + " --rows"), scratch);
  CHECK(text.status == 0);
  CHECK(text.out.find("Covered: output tokens/s by device and engine") != std::string::npos);
  CHECK(run(words_of("validate " + file + " --format csv"), scratch).out.find("time a token") !=
        std::string::npos);
}

TEST_CASE("Pools are planned, written back, and exported where the engine has words for them") {
  const program::Scratch scratch;
  const std::string name = "serve-llama-70b-32x-h100";
  const auto found = run(words_of("plan " + name + " --format json"), scratch);
  REQUIRE(found.status == 0);
  const auto best = nlohmann::json::parse(found.out)["plans"][0];
  REQUIRE(best["disaggregation"].is_object());
  CHECK(best["transfer"]["bytes_per_prompt"] > 0);
  REQUIRE(run(words_of("plan " + name + " --format yaml --out apart.yaml"), scratch).status == 0);
  const auto again = run(words_of("evaluate apart.yaml --format json"), scratch);
  REQUIRE(again.status == 0);
  const auto told = nlohmann::json::parse(again.out);
  CHECK(told["output_tokens_per_s"] == best["output_tokens_per_s"]);
  CHECK(told["disaggregation"] == best["disaggregation"]);
  const auto launch = run(words_of("export " + name + " --to vllm"), scratch);
  CHECK(launch.status == 0);
  CHECK(launch.out.find("--kv-transfer-config") != std::string::npos);
  CHECK(run(words_of("export apart.yaml --to vllm"), scratch).out == launch.out);
  CHECK(run(words_of("export apart.yaml --to vllm --set serving.stack=vllm-0.7"), scratch).status ==
        2);
  const auto csv = run(words_of("plan " + name + " --format csv"), scratch);
  CHECK(csv.out.find("prefill_tp") != std::string::npos);
}

TEST_CASE("Evidence of both kinds has two scorecards, as text alone") {
  const program::Scratch scratch;
  const std::string both =
      "validate " SHARDPLAN_SOURCE_DIR "/configs/evidence/dgx-cloud.yaml " SHARDPLAN_SOURCE_DIR
      "/configs/evidence/serving/vllm-custom-all-reduce.yaml";
  const auto json = run(words_of(both + " --format json"), scratch);
  CHECK(json.status == 2);
  CHECK(json.err.find("allowed: text, md") != std::string::npos);
  const auto text = run(words_of(both), scratch);
  CHECK(text.status == 0);
  CHECK(text.out.find("published runs of serving") != std::string::npos);
  CHECK(run(words_of(both + " --leave-one-source-out"), scratch).status == 2);
}

TEST_CASE("an engine that does not start with the model's length is planned with what is asked") {
  const program::Scratch scratch;
  const std::string job =
      "workload: inference\nmodel: llama-3.1-8b\ncluster: {base: pcie-8x-rtx-4090, devices: 1}\n"
      "serving: {stack: vllm-0.17, input_tokens: 1024, output_tokens: 256, concurrency: 8";
  scratch.write("open.yaml", job + "}\n");
  scratch.write("own.yaml", job + ", max_model_len: 131072}\n");
  const auto run = [&](const std::string& command) {
    return program::run(program::words_of(command), scratch);
  };
  const auto open = run("plan open.yaml");
  CHECK(open.status == 0);
  CHECK(open.err.find("max_model_len=auto, 1,280: the engine does not start") != std::string::npos);
  CHECK(open.out.find("Does not fit") == std::string::npos);
  scratch.write("found.yaml", run("plan open.yaml --format yaml").out);
  CHECK(run("evaluate found.yaml").status == 0);
  CHECK(run("plan own.yaml").status == 3);
  const auto settled = run("evaluate open.yaml");
  CHECK(settled.status == 0);
  CHECK(settled.out.find("max_model_len auto: 1,280 tokens") != std::string::npos);
}

TEST_CASE("a model by name is served on devices by name") {
  const program::Scratch scratch;
  const std::string job = "evaluate llama-3-8b --gpus 1xh100";
  const auto none = run(words_of(job + " --set workload=inference"), scratch);
  CHECK(none.status == 2);
  CHECK(none.err.find("add --set serving.stack=") != std::string::npos);
  const auto one = run(words_of(job + " --set serving.stack=vllm-0.17 --set "
                                      "serving.input_tokens=1000 --set serving.output_tokens=200 "
                                      "--set serving.concurrency=16"),
                       scratch);
  CHECK(one.status == 0);
  CHECK(one.out.find("Serving Llama 3 8B") == 0);
}

}  // namespace serving_session_test
