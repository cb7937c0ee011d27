#include "planner/page/json_page.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace json_page_test {

using pages::has;
using program::run;
using program::Scratch;
using program::words_of;

TEST_CASE("the page of a search is the same each time: no seconds of the machine are on it") {
  const Scratch scratch;
  const auto page = [&] { return run(words_of("plan tiny-gpt-cpu --format html"), scratch).out; };
  CHECK(page() == page());
}

TEST_CASE("--page writes the page beside any other format") {
  const Scratch scratch;
  for (const char* command :
       {"plan tiny-gpt-cpu --reproducible", "evaluate tiny-gpt-cpu", "explain tiny-gpt-cpu",
        "simulate tiny-gpt-cpu", "sweep tiny-gpt-cpu --over dp=1,2",
        "compare tiny-gpt-cpu --with plan=auto"}) {
    CAPTURE(command);
    const std::string words = command;
    const auto plain = run(words_of(words), scratch);
    const auto beside = run(words_of(words + " --page p.html"), scratch);
    CHECK(beside.out == plain.out);
    const std::string page = scratch.read("p.html");
    pages::check_page(page);
    CHECK(page == run(words_of(words + " --format html"), scratch).out);
  }
  CHECK(run(words_of("evaluate tiny-gpt-cpu --page none/p.html"), scratch).status == 2);
}

TEST_CASE("a report of any other command is shown as it is") {
  const Scratch scratch;
  const auto trace = run(words_of("simulate tiny-gpt-cpu --format json"), scratch);
  const auto rows = run(words_of("sweep tiny-gpt-cpu --over dp=1,2 --format json"), scratch);
  const costmodel::Scenario scenario =
      costmodel::load_scenario(SHARDPLAN_SOURCE_DIR "/configs/scenarios/tiny-gpt-cpu.yaml",
                               {{SHARDPLAN_SOURCE_DIR "/configs"}}, {});
  for (const std::string& json :
       {trace.out, rows.out, std::string("[]"), std::string("{}"), std::string("null"),
        std::string("[1, null, {}, [[]]]"), std::string("{\"plans\": [], \"best\": null}"),
        std::string("{\"plans\": 3, \"time\": [], \"memory\": {\"stages\": [1, {}]}}")}) {
    CAPTURE(json.substr(0, 80));
    pages::check_page(planner::page_html(json, scenario));
  }
  CHECK(has(planner::page_html("{\"new_figure\": 0.25}", scenario),
            "<data value=\"0.25\" data-pointer=\"/new_figure\">0.25</data>"));
  CHECK_THROWS(planner::page_html("no JSON", scenario));
}

TEST_CASE("the page of a run of so many tokens has its days, dollars and goodput, and causal MFU") {
  const Scratch scratch;
  scratch.write("s.yaml",
                "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 16, price: "
                "{usd_per_device_hour: 2.5}}\n"
                "training: {global_batch: 64, sequence: 8192}\nplan: {dp: 16, zero: 2}\n");
  for (const std::string command : {"plan s.yaml --strategy grid", "evaluate s.yaml"}) {
    CAPTURE(command);
    const auto made = run(words_of(command + " --tokens 1T --quiet --format html"), scratch);
    const auto tiles = made.out.substr(0, made.out.find("<section>"));
    for (const char* words : {" days</data></b><span>with failures, for ", "<b><data value=",
                              "for the device hours of the run", "goodput: the share of the time",
                              "causal MFU, as Megatron-LM logs: "})
      CHECK_MESSAGE(has(tiles, words), words);
    CHECK(has(made.out, "<h2>The training run</h2>"));
    CHECK(has(made.out, "<h2>Failures and checkpoints</h2>"));
  }
}

TEST_CASE("a key of the plan that no line of the page knows stands in its section") {
  const costmodel::Scenario scenario =
      costmodel::load_scenario(SHARDPLAN_SOURCE_DIR "/configs/scenarios/tiny-gpt-cpu.yaml",
                               {{SHARDPLAN_SOURCE_DIR "/configs"}}, {});
  const std::string page = planner::page_html(
      R"({"plan": {"tp": 1, "dispatcher": "hybridep", "dispatcher_multiprocessors": 32,
                   "expert_overlap": true, "recompute": {"modules": ["mlp", "moe"]}}})",
      scenario);
  pages::check_page(page);
  for (const char* line :
       {"<dt>dispatcher</dt><dd>hybridep</dd>",
        "<dt>dispatcher multiprocessors</dt><dd><data value=\"32\" "
        "data-pointer=\"/plan/dispatcher_multiprocessors\">32</data></dd>",
        "<dt>expert overlap</dt><dd>yes</dd>", "<dt>recompute</dt><dd>modules mlp, moe</dd>"})
    CHECK_MESSAGE(has(page, line), line);
  CHECK_FALSE(has(page, "Further figures"));
}

}  // namespace json_page_test
