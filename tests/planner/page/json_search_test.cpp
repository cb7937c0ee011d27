#include "planner/page/json_search.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/pages.hpp"

namespace json_search_test {

using pages::both;
using pages::Both;
using pages::check_evaluation;
using pages::check_figure;
using pages::has;
using program::Scratch;

TEST_CASE("the page of a search has every main figure of its JSON, and its sentences") {
  const Scratch scratch;
  const Both found = both("plan gpt3-175b-selene --front", scratch);
  check_evaluation(found.page, found.json["plans"][0]);
  for (const auto& step : found.json["one_step_away"]) {
    check_figure(found.page, step["iteration_s"]);
    check_figure(found.page, step["peak_bytes"]);
  }
  for (const auto& plan : found.json["plans"]) {
    check_figure(found.page, plan["time"]["iteration_s"]);
    if (plan == found.json["plans"][0]) continue;
    check_figure(found.page, plan["probability_faster_than_best"]);
    CHECK(has(found.page, plan["against_best"].get<std::string>()));
  }
  for (const auto& plan : found.json["front"]) check_figure(found.page, plan["headroom_bytes"]);
  check_figure(found.page, found.json["certificate"]["lower_bound_s"]);
  check_figure(found.page, found.json["searched"]["pruned"]);
  CHECK(has(found.page, "Proved: under this cost model"));
  CHECK(has(found.page, "Why this plan"));
  CHECK(has(found.page, found.json["plans"][0]["notes"][0].get<std::string>()));
}

TEST_CASE("where nothing fits, the page says what stands in the way and what would help") {
  const Scratch scratch;
  scratch.write("<script>x.yaml",
                "model: {base: gpt3-175b, title: \"<script>alert('1')</script>\"}\n"
                "cluster: {base: dgx-a100, devices: 8}\n"
                "training: {global_batch: 64, sequence: 2048}\n");
  const Both none = both("plan <script>x.yaml", scratch, 3);
  CHECK(has(none.page, "No plan fits."));
  CHECK(has(none.page, "What stands in the way"));
  CHECK(has(none.page, "What would help"));
  CHECK(has(none.page, "&lt;script&gt;alert("));
  CHECK_FALSE(has(none.page, "<script>alert"));
  CHECK_FALSE(has(none.page, "<script>x"));
}

}  // namespace json_search_test
