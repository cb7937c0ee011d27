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
  CHECK(has(planner::page_html("{\"new_figure\": 0.25}", scenario), "<data value=\"0.25\">"));
  CHECK_THROWS(planner::page_html("no JSON", scenario));
}

}  // namespace json_page_test
