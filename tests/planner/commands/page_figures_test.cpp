// Every figure of a report's JSON stands on its page. A figure is a number of the JSON; it stands
// on the page when an element says its text to the last digit and its JSON pointer (RFC 6901), and
// holds something to read:
//     <data value="17.140302606851797" data-pointer="/time/iteration_s">17.14 s</data>
// The pointer makes equal numbers different figures: a 1 that is shown as tp does not stand for pp.
// Which unit is read is json_key_test's. Nothing is exempt, not even what is drawn: --reproducible
// leaves out the seconds of the machine that searched, which no page has.
#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/planner/support/few_plans.hpp"
#include "tests/planner/support/pages.hpp"

namespace page_figures_test {

using pages::both;
using program::run;
using program::Scratch;
using program::words_of;

namespace {

void check_all_figures(const nlohmann::ordered_json& json, const std::string& page,
                       std::size_t least) {
  const auto shown = pages::figures_of(page);
  std::size_t figures = 0;
  const auto flat = nlohmann::json(json).flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (!value.is_number() || pointer.ends_with("/format_version")) continue;
    ++figures;
    CHECK_MESSAGE(shown.contains(pointer + " " + value.dump()), pointer, " ", value.dump());
  }
  CHECK(figures >= least);  // else the test would pass on a report of nothing
}

const std::string scenario =
    "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16}\n"
    "training: {global_batch: 64, sequence: 8192, stack: megatron-core-2025}\n";

struct Case {
  std::string command;
  std::size_t least;  // figures of its JSON
  int status = 0;
};

void check(const Case& one) {
  CAPTURE(one.command);
  const Scratch scratch;
  scratch.write("s.yaml", scenario + few_plans::if_sanitized);
  const auto [json, page] = both(one.command, scratch, one.status);
  check_all_figures(json, page, one.least);
}

}  // namespace

TEST_CASE("a search's page has every figure, what was asked for included") {
  for (const Case& one :
       {Case{"plan s.yaml --reproducible --strategy grid", 300},
        Case{"plan s.yaml --reproducible --strategy grid --tokens 100B --deadline 60d "
             "--budget 1M --set cluster.price.usd_per_device_hour=2",
             350},
        Case{"plan tiny-gpt-cpu --reproducible --front --sensitivity --upgrades", 300},
        Case{"plan llama-3-8b-a100-h100 --reproducible", 100},
        Case{"plan s.yaml --reproducible --set model=llama-3.1-405b", 4, 3}})
    check(one);
}

TEST_CASE("the page of one plan has every figure, with experts, adapters and packing too") {
  for (const Case& one :
       {Case{"evaluate gpt3-175b-selene --tokens 300B", 80, 3},
        Case{"evaluate deepseek-v3-h800 --tokens 1T", 300},
        Case{"evaluate llama-3-70b-lora-h100", 60}, Case{"evaluate llama-3-8b-sft-packed", 60},
        Case{"explain deepseek-v3-h800", 10}})
    check(one);
}

TEST_CASE("pages of many points, scenarios and schedules have every figure") {
  for (const Case& one :
       {Case{"sweep tiny-gpt-cpu --over micro_batch=1,2,3", 14},
        Case{"sweep s.yaml --over cluster.devices=16,32", 14},
        Case{"compare tiny-gpt-cpu --with plan.micro_batch=1 --with plan=auto", 150},
        Case{"simulate gpt3-6.7b-two-nodes --compare", 50}})
    check(one);
}

TEST_CASE("pages of serving have every figure") {
  for (const Case& one :
       {Case{"evaluate serve-llama-7b-nvlink-2", 60}, Case{"plan serve-llama-7b-nvlink-2", 60},
        Case{"explain serve-llama-7b-nvlink-2", 2},
        Case{"sweep serve-llama-7b-nvlink-2 --over serving.concurrency=8,16", 10},
        Case{"compare serve-llama-7b-nvlink-2 --with serving.concurrency=16", 10}})
    check(one);
}

TEST_CASE("the page of published runs has every figure, with --rows those of each run") {
  const Scratch scratch;
  const std::string command =
      "validate " SHARDPLAN_SOURCE_DIR "/configs/evidence/megascale.yaml --quiet --rows --format ";
  const auto json = run(words_of(command + "json"), scratch),
             page = run(words_of(command + "html"), scratch);
  REQUIRE(json.status == 0);
  check_all_figures(nlohmann::ordered_json::parse(json.out), page.out, 60);
}

TEST_CASE("the index page of a batch has every figure of index.json") {
  const Scratch scratch;
  scratch.write("one.yaml", "command: evaluate\n" + scenario + "plan: {dp: 16, zero: 2}\n");
  scratch.write("swept.yaml", "command: sweep --over zero=1,2\n" + scenario + "plan: {dp: 16}\n");
  scratch.write("wrong.yaml", "model: none\n");
  const auto done = run(words_of("batch one.yaml swept.yaml wrong.yaml --out r"), scratch);
  REQUIRE(done.status == 4);
  check_all_figures(nlohmann::ordered_json::parse(scratch.read("r/index.json")),
                    scratch.read("r/index.html"), 15);
}

}  // namespace page_figures_test
