// Every command's text in lines of 100 and of 80 columns: none is longer, and no word is cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "costmodel/cli/help.hpp"
#include "planner/batch/json_row.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/planner/support/in_process.hpp"

namespace line_width_test {

using planner::unlimited_width;

namespace {

// Every kind of table and sentence. Those with the same beginning are of other scenarios.
const char* const commands[]{
    "plan gpt3-175b-selene",
    "plan mixtral-8x7b-16-h100 --top 3 --front --sensitivity --upgrades",
    "plan llama-65b-qlora-48gb",
    "plan tiny-gpt-cpu --set plan=auto --strategy alpa",
    "plan mixtral-8x7b-16-h100 --set cluster.devices=2",
    "plan codeparrot-110m --tokens 300B --deadline 60d",
    "evaluate gpt3-175b-selene --set plan.tp=4",
    "evaluate t5-11b-split",
    "evaluate llama-3-8b-sft-packed",
    "evaluate deepseek-v3-h800 --sensitivity",
    "explain gpt3-6.7b-two-nodes",
    "explain deepseek-v3-h800",
    "explain t5-11b-split",
    "explain llama-3-70b-lora-h100",
    "explain-job gpt3-175b-selene --set plan.tp=8 --set plan.pp=24",
    "sweep gpt3-6.7b-two-nodes --over tp=1,2,4,8,16 --over micro_batch=1,2,3",
    "sweep gpt3-6.7b-two-nodes --over cluster.devices=16,32,64 --set plan=auto",
    "compare gpt3-175b-selene gpt3-175b-1024-a100 mixtral-8x7b-16-h100",
    "compare gpt3-175b-selene --with plan.tp=4 --with plan.tp=8",
    "simulate gpt3-6.7b-two-nodes",
    "simulate tiny-gpt-schedule --compare",
    "groups gpt3-175b-selene",
    "groups --tp 2 --pp 4 --dp 20",
    "groups --tp 4 --pp 2 --layout vllm",
    "collective all-reduce --bytes 1GiB --ranks 64 --cluster dgx-h100",
    "collective all-reduce --bytes 8:8GiB:2 --ranks 64 --cluster dgx-h100",
    "collective all --bytes 64MiB --ranks 16 --stride 8 --cluster dgx-h100",
    "validate " SHARDPLAN_SOURCE_DIR "/configs/evidence/bloom-176b.yaml --rows",
    "validate " SHARDPLAN_SOURCE_DIR "/configs/evidence/megatron-core-2024.yaml",
    "validate " SHARDPLAN_SOURCE_DIR "/configs/evidence/serving/vllm-rtx-4090.yaml --rows",
    "list models",
    "list devices",
    "list clusters",
    "list stacks",
    "list engines",
    "list scenarios",
    "list keys",
    "plan serve-llama-70b-32x-h100",
    "evaluate serve-llama-7b-pcie-2",
    "evaluate serve-llama-7b-pcie-2 --set model=llama-3.1-405b",
    "explain serve-llama-7b-pcie-2",
    "compare serve-llama-7b-pcie-2 serve-llama-7b-pcie-4",
    "sweep serve-llama-7b-pcie-2 --over serving.concurrency=1,8",
};

std::string text_of(const std::string& command, std::size_t width) {
  const bool timed = command.starts_with("plan ");
  return in_process::run("shardplan " + command + (timed ? " --reproducible" : ""),
                         {.width = width})
      .text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Charts and lists of ranks are made anew for each width, and a table says what it leaves out.
std::string words_kept(std::string text) {
  for (const char* sign : {"█", "|"}) text = program::replaced(text, sign, "");
  for (const auto& [begin, end] : {std::pair{"(not shown in ", "all)"}, {"stands for ", " "}}) {
    for (std::size_t at; (at = text.find(begin)) != std::string::npos;)
      text.erase(at, text.find(end, at + std::strlen(begin)) + std::strlen(end) - at);
  }
  return text;
}

bool is_chart(const std::string& word) {
  return word.find_first_not_of("fBwxdo.") == std::string::npos ||
         word.find_first_not_of("0123456789,[]") == std::string::npos;
}

void check_width(const std::string& text, std::size_t width) {
  for (const std::string& line : lines_of(text)) {
    CAPTURE(line);
    CHECK(planner::display_width(line) <= width);
  }
}

// Of words as long as a narrow table's cell a part may stand on a line of its own.
void check_words(const std::string& text, const std::string& all) {
  const auto words = words_in(all);
  const std::set<std::string> known(words.begin(), words.end());
  constexpr std::size_t long_word = 24;
  for (const std::string& word : words_in(words_kept(text))) {
    if (known.contains(word) || is_chart(word)) continue;
    CAPTURE(word);
    CHECK(std::ranges::any_of(known, [&](const std::string& other) {
      return other.size() > long_word && fixtures::contains(other, word);
    }));
  }
}

}  // namespace

TEST_CASE("no line of any report is longer than the terminal, and no word is cut") {
  for (const std::string command : commands) {
    CAPTURE(command);
    const std::string all = text_of(command, unlimited_width);
    REQUIRE(!all.empty());
    for (const std::size_t width : {100, 80}) {
      CAPTURE(width);
      const std::string text = text_of(command, width);
      check_width(text, width);
      check_words(text, all);
    }
  }
}

TEST_CASE("Markdown, CSV and JSON have lines of any width") {
  for (const std::string format : {"md", "csv", "json"}) {
    const std::string command = "sweep gpt3-6.7b-two-nodes --over tp=1,2 --format " + format;
    CHECK(in_process::run("shardplan " + command, {.width = 80}).text ==
          in_process::run("shardplan " + command).text);
  }
}

TEST_CASE("an exported script keeps its lines") {
  const std::string command = "export gpt3-6.7b-two-nodes --to megatron";
  CHECK(text_of(command, 40) == text_of(command, unlimited_width));
}

TEST_CASE("an index of a batch, and help, have narrow lines too") {
  const std::string message =
      "scenarios/llama.yaml:3:5: no cluster 'dgx-h10'; did you mean 'dgx-h100'? known: many more";
  const auto row = planner::index_row("llama-3-70b-with-a-long-name", "plan --strategy layouts",
                                      planner::JobState::failed, "", message);
  const std::string index = planner::to_text(planner::index_table({row}, true), 0, 80);
  check_width(index, 80);
  CHECK(fixtures::contains(index, "failed"));
  for (const auto& command : planner::shardplan().commands) {
    for (const std::size_t width : {100, 80, 40}) {
      CAPTURE(command.name);
      check_width(costmodel::help_of(planner::shardplan(), &command, width), width);
      check_width(costmodel::help_of(planner::shardplan(), nullptr, width), width);
    }
  }
}

}  // namespace line_width_test
