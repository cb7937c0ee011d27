// The launch script, as bash reads it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "planner/frameworks/export_megatron.hpp"
#include "planner/frameworks/launch_script.hpp"
#include "planner/frameworks/megatron_flags.hpp"
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
  CHECK(has(words, "511"));  // and the end-of-document token: 512
  scenario.cluster.devices_per_node = 16;
  const auto single = words_of(planner::launch_script(out, scenario, plan));
  CHECK(Strings(single.begin(), single.begin() + 5) ==
        Strings{"--nproc-per-node", "16", "--nnodes", "1", "pretrain_gpt.py"});
  for (const auto& argument : out.arguments)
    CHECK_MESSAGE(has(words, argument.substr(0, argument.find(' '))), argument);
}

}  // namespace launch_script_test
