// The launch script, as bash reads it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "planner/frameworks/export_megatron.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_words.hpp"
#include "tests/planner/support/megatron_cases.hpp"
#include "tests/run_program.hpp"

namespace launch_script_test {

using costmodel::ParallelPlan;
using costmodel::Scenario;
using megatron::has;
using megatron::small_plan;
using megatron::Strings;
using megatron::tiny_llama;

namespace {

// What bash hands to torchrun, a word a line.
Strings words_of(const std::string& script) {
  const program::Scratch scratch;
  const auto file = scratch.path() / "script.sh";
  scratch.write("script.sh", "torchrun() { printf '%s\\n' \"$@\"; }\n" + script);
  FILE* pipe = popen(("env NODE_RANK=1 MASTER_ADDR=first bash " + file.string()).c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  CHECK(pclose(pipe) == 0);
  Strings words;
  for (std::size_t from = 0, to = 0; (to = text.find('\n', from)) != std::string::npos;
       from = to + 1)
    words.push_back(text.substr(from, to - from));
  return words;
}

// A script as Megatron-LM sees it: the values behind each flag, and the environment.
struct Started {
  Started(const Strings& words, std::string text) : script(std::move(text)) {
    for (const auto& word : words) {
      if (word.starts_with("--")) {
        flag = &flags[word];
      } else if (flag != nullptr) {
        flag->push_back(word);
      }
    }
  }
  bool has(const std::string& name) const { return flags.contains(name); }
  bool has(const std::string& name, const std::string& value) const {
    return has(name) && megatron::has(flags.at(name), value);
  }
  bool has_other_than(const std::string& name, const Strings& known) const {
    return has(name) && !std::ranges::all_of(flags.at(name), [&](const std::string& value) {
             return megatron::has(known, value);
           });
  }
  bool exports(const std::string& variable) const {
    return script.find("export " + variable + "\n") != std::string::npos;
  }

  std::map<std::string, Strings> flags;
  std::string script;
  Strings* flag = nullptr;
};

// What Megatron-LM asserts against (NVIDIA/Megatron-LM @d98e8a64dd, as core 0.19), and words that
// break it.
struct Assertion {
  const char* place;
  bool (*broken)(const Started&);
  Strings breaks;
};

const std::array<Assertion, 5> assertions{{
    {"megatron/training/arguments.py:1697",
     [](const Started& s) {
       return s.has("--cross-entropy-loss-fusion") && s.has("--cross-entropy-fusion-impl", "te");
     },
     {"--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl", "te"}},
    {"megatron/training/arguments.py:1961",
     [](const Started& s) {
       return s.has("--cuda-graph-impl", "transformer_engine") &&
              s.exports("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True") &&
              !s.exports("NCCL_GRAPH_REGISTER=0");
     },
     {"--cuda-graph-impl", "transformer_engine"}},
    {"megatron/training/arguments.py:2047",
     [](const Started& s) {
       return s.has_other_than("--cuda-graph-scope", {"full", "attn", "mlp", "moe", "moe_router",
                                                      "moe_preprocess", "mamba"});
     },
     {"--cuda-graph-scope", "attn mlp"}},
    {"megatron/core/transformer/transformer_config.py:1959",
     [](const Started& s) {
       return s.has_other_than(
           "--recompute-modules",
           {"core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"});
     },
     {"--recompute-modules", "layernorm mlp"}},
    {"megatron/core/transformer/transformer_config.py:1874",
     [](const Started& s) {
       return s.has("--moe-expert-rank-capacity-factor") &&
              s.has("--moe-flex-dispatcher-backend", "hybridep") &&
              !s.has("--use-transformer-engine-op-fuser");
     },
     {"--moe-expert-rank-capacity-factor", "1.5", "--moe-flex-dispatcher-backend", "hybridep"}},
}};

Started started(const std::string& yaml) {
  const Scenario scenario = scenarios::read(yaml);
  const ParallelPlan plan = resolve_plan(scenario);
  const auto script =
      planner::launch_script(planner::export_megatron(scenario, plan), scenario, plan);
  return {words_of(script), script};
}

}  // namespace

TEST_CASE("the arguments of the script are accepted too") {
  const Scenario scenario = tiny_llama();
  const auto plan = small_plan();
  const auto words =
      words_of(planner::launch_script(planner::export_megatron(scenario, plan), scenario, plan));
  const auto begin = std::find(words.begin(), words.end(), "pretrain_gpt.py");
  REQUIRE(begin != words.end());
  for (auto word = begin; word != words.end(); ++word) {
    if (word->starts_with("--")) CHECK_MESSAGE(planner::is_megatron_flag(*word), *word);
  }
}

TEST_CASE("the script hands bash the very words") {
  Scenario scenario = tiny_llama();
  scenario.name = "two\nlines; rm -rf $HOME";
  ParallelPlan plan = small_plan();
  plan.stage_layers = {5, 3};
  const auto out = planner::export_megatron(scenario, plan);
  const auto words = words_of(planner::launch_script(out, scenario, plan));
  REQUIRE(words.size() > 10);
  const Strings start(words.begin(), words.begin() + 6);
  CHECK(start == Strings{"--nproc-per-node", "8", "--nnodes", "2", "--node-rank", "1"});
  CHECK(has(words, "Et*5|t*3,L"));
  CHECK(has(words, "first"));
  CHECK(has(words, "NullTokenizer"));
  CHECK(has(words, "512"));  // and the end-of-document token: 512
  scenario.cluster.devices_per_node = 16;
  const auto single = words_of(planner::launch_script(out, scenario, plan));
  CHECK(Strings(single.begin(), single.begin() + 5) ==
        Strings{"--nproc-per-node", "16", "--nnodes", "1", "pretrain_gpt.py"});
  for (const auto& argument : out.arguments)
    CHECK_MESSAGE(has(words, argument.substr(0, argument.find(' '))), argument);
}

TEST_CASE("what Megatron-LM asserts against is told from what it takes") {
  const std::string script = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n";
  for (const auto& words : assertions) {
    for (const auto& assertion : assertions) {
      INFO(words.place, " by ", assertion.place);
      CHECK(assertion.broken(Started(words.breaks, script)) == (&assertion == &words));
    }
  }
}

TEST_CASE("scripts of ten models by the default stacks hold nothing that Megatron-LM refuses") {
  struct Job {
    const char *model, *plan, *modules, *scopes;
  };
  constexpr std::array<Job, 10> jobs{{
      {"llama-3.1-8b", "tp: 2, sequence_parallel: true", "layernorm, mlp", "[attn, mlp]"},
      {"llama-3.1-70b", "tp: 8, pp: 4, vpp: 5, sequence_parallel: true", "core_attn, mlp", "[mlp]"},
      {"qwen3-8b", "tp: 2, sequence_parallel: true", "layernorm, mlp", "[attn]"},
      {"qwen2-7b", "pp: 2", "layernorm, mlp", "[attn, mlp]"},
      {"mistral-7b", "tp: 1", "layernorm, mlp", "true"},
      {"nemotron-4-15b", "tp: 8, sequence_parallel: true", "layernorm, mlp", "[attn, mlp]"},
      {"gpt3-175b", "tp: 8, pp: 8, sequence_parallel: true", "layernorm, mlp", "[attn]"},
      {"mixtral-8x7b", "ep: 8", "moe_act, layernorm", "[attn, moe_router, moe_preprocess]"},
      {"qwen3-30b-a3b", "pp: 2, ep: 8, dispatcher: hybridep", "moe_act, layernorm",
       "[attn, moe_router, moe_preprocess]"},
      {"deepseek-v2-lite", "ep: 8", "mla_up_proj, moe_act", "[attn, mlp]"},
  }};
  for (const auto& job : jobs) {
    for (const char* stack : {"megatron-core-2025", "megatron-core-2026"}) {
      for (const char* graphs : {"false", job.scopes}) {
        const std::string yaml = fmt::format(
            "model: {}\ncluster: {{base: dgx-h100, devices: 64}}\ntraining: {{global_batch: 512, "
            "sequence: 2048, precision: bf16, stack: {}, overlap: {{cuda_graph: {}}}}}\n"
            "plan: {{{}, zero: 1, micro_batch: 1, recompute: {{modules: [{}]}}}}\n",
            job.model, stack, graphs, job.plan, job.modules);
        INFO(yaml);
        const Started script = started(yaml);
        CHECK(script.has("--cross-entropy-fusion-impl", "native"));
        CHECK(script.flags.at("--recompute-modules").size() == 2);
        for (const auto& assertion : assertions)
          CHECK_MESSAGE(!assertion.broken(script), assertion.place);
      }
    }
  }
}

TEST_CASE("shipped scenarios of the default stacks start as well") {
  for (const char* name : {"mixtral-8x7b-16-h100", "llama-3-8b-sft-packed", "tiny-gpt-cpu"}) {
    INFO(name);
    const auto file = fixtures::configs().directories.front() + "/scenarios/" + name + ".yaml";
    const Scenario scenario = costmodel::load_scenario(file, fixtures::configs(), {});
    const ParallelPlan plan = resolve_plan(scenario);
    const auto script =
        planner::launch_script(planner::export_megatron(scenario, plan), scenario, plan);
    const Started words(words_of(script), script);
    for (const auto& assertion : assertions)
      CHECK_MESSAGE(!assertion.broken(words), assertion.place);
  }
}

}  // namespace launch_script_test
