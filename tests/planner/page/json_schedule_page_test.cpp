// All schedules of a scenario on one page.
#include "planner/page/json_schedule_page.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "costmodel/base/unit_text.hpp"
#include "costmodel/schedule/schedule_kind.hpp"
#include "tests/planner/support/in_process.hpp"
#include "tests/planner/support/pages.hpp"

namespace json_schedule_page_test {

using pages::has;

namespace {

// Of a pipeline of 4.
std::string page_of(int micro_batches) {
  return in_process::printed(
      "simulate gpt3-6.7b-two-nodes --compare --format html --set "
      "training.global_batch=" +
      std::to_string(2 * micro_batches));
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("every schedule has a row and a drawing, all on one scale") {
  const std::string page = page_of(16);
  pages::check_page(page);
  CHECK(count(page, "<h3>") == costmodel::schedule_names().size());
  CHECK(count(page, "class=\"area still\"") == costmodel::schedule_names().size());
  CHECK(count(page, "class=\"ticks\"") == 1);
  CHECK(has(page, "On one scale of time"));
  CHECK_FALSE(has(page, "Not possible for this plan"));
  CHECK(has(page, ", cut off at the right</h3>"));  // serial alone
  CHECK(count(page, "cut off") == 1);
  CHECK_FALSE(has(page, "<script"));
  for (const char* words : {"forward", "input gradient", "weight gradient", "backward",
                            "forward and backward together", "transfer to another rank"})
    CHECK(has(page, std::string("</i>") + words));
}

TEST_CASE("table and drawing have one time, and text and page say what it is") {
  // Ranks that do not wait for one another: what is drawn is longer than the iteration.
  const std::string command =
      "simulate gpt3-6.7b-two-nodes --compare --set training.stack=zero-bubble-fork "
      "--set training.global_batch=32";
  const std::string page = in_process::printed(command + " --format html"),
                    text = in_process::printed(command);
  const auto json = nlohmann::json::parse(in_process::printed(command + " --format json"));
  std::size_t titles = 0;
  for (const auto& row : json["schedules"]) {
    if (row.contains("refused")) continue;
    const std::string time = format_seconds(costmodel::Seconds(row["iteration_s"].get<double>()));
    CHECK(has(page, ">" + time + "</data>"));
    CHECK_MESSAGE(has(page, "<h3>" + row["schedule"].get<std::string>() + ": " + time + ","), time);
    ++titles;
  }
  CHECK(titles > 8);
  CHECK(has(page, planner::schedule_times_note()));
  CHECK(has(text, planner::schedule_times_note()));
}

TEST_CASE("what there is no order for says why") {
  const std::string page = page_of(4);
  pages::check_page(page);
  CHECK(has(page, "<li>dualpipe: dualpipe needs an even number"));
  CHECK(has(page, "Not possible for this plan"));
}

TEST_CASE("an encoder and a decoder: what there is, and why not the rest") {
  const std::string page = in_process::printed("simulate t5-11b-split --compare --format html");
  pages::check_page(page);
  CHECK(has(page, "1f1b is the quickest: 1."));
  CHECK(count(page, "<h3>") == 4);
  CHECK(has(page,
            "v-min: schedule v-min of an encoder-decoder model is not modelled; set "
            "schedule: 1f1b or gpipe"));
}

}  // namespace json_schedule_page_test
