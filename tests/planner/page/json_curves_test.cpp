#include "planner/page/json_curves.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/planner/support/few_plans.hpp"
#include "tests/planner/support/pages.hpp"
#include "tests/sanitized.hpp"

namespace json_curves_test {

using nlohmann::ordered_json;
using pages::both;
using pages::Both;
using pages::has;
using planner::curves_section;
using planner::swept_axes;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("one key is a curve with a dot for each answer, gaps where there is none") {
  const program::Scratch scratch;
  const Both swept = both("sweep tiny-gpt-cpu --over micro_batch=1,2,3,4", scratch);
  CHECK(swept_axes(swept.json) == std::vector<std::string>{"micro_batch"});
  CHECK(count_of(swept.page, "class=\"dot compute\"") == 3);
  CHECK(has(swept.page, "iteration over micro_batch"));
  CHECK_FALSE(has(swept.page, "<figure class=\"heat\">"));
}

TEST_CASE("a sweep of serving draws tokens a second and the time of a token") {
  const program::Scratch scratch;
  const Both one = both("sweep serve-llama-7b-nvlink-4 --over tp=1,2,3,4", scratch);
  CHECK(swept_axes(one.json) == std::vector<std::string>{"tp"});
  CHECK(count_of(one.page, "class=\"dot compute\"") == 2 * 3);
  CHECK(has(one.page, "output tokens/s over tp"));
  CHECK(has(one.page, "time a token over tp"));
  const Both two =
      both("sweep serve-llama-7b-nvlink-4 --over serving.requests=8,64 --over tp=1,4", scratch);
  CHECK(has(two.page, "<figure class=\"heat\">"));
  CHECK(has(two.page, "time a token over serving.requests and tp"));
}

TEST_CASE("dp is an axis where it is swept, and else a result; its points tell it") {
  const program::Scratch scratch;
  const Both swept = both("sweep tiny-gpt-cpu --over dp=1,2,4 --set cluster.devices=4", scratch);
  CHECK(swept_axes(swept.json) == std::vector<std::string>{"dp"});
  REQUIRE(swept.json.size() == 3);
  CHECK(swept.json[0]["dp"] == 1);  // p 2 · d 1 on 4 devices: no plan, but dp is known
  CHECK(swept.json[0]["iteration_s"].is_null());
  CHECK(swept.json[1]["dp"] == 2);
  CHECK(swept.json[2]["dp"] == 4);
  CHECK(swept_axes(both("sweep tiny-gpt-cpu --over pp=1,2,4 --set plan.dp=1", scratch).json) ==
        std::vector<std::string>{"pp"});
}

TEST_CASE("two keys are a heat map, with a cell of every answer") {
  const program::Scratch scratch;
  const Both swept =
      both("sweep tiny-gpt-cpu --over micro_batch=1,2,3 --over recompute=none,full", scratch);
  CHECK(has(swept.page, "<figure class=\"heat\">"));
  const auto from = swept.page.find("<figure class=\"heat\">");
  const std::string map = swept.page.substr(from, swept.page.find("</figure>", from) - from);
  CHECK(count_of(map, "<rect ") == 4);
  CHECK(count_of(map, "<span>–</span>") == 2);
}

TEST_CASE("over devices: speed-up, efficiency and the knee, in JSON, note and picture") {
  const program::Scratch scratch;
  scratch.write("s.yaml",
                "model: llama-3-8b\ncluster: {base: dgx-h100, devices: 8}\nplan: auto\n"
                "training: {global_batch: 16, sequence: 8192, stack: megatron-core-2025}\n" +
                    few_plans::if_sanitized);
  const std::string over = "sweep s.yaml --over cluster.devices=8,32,128,256,4000";
  const Both strong = both(over, scratch);
  CHECK(strong.json[0]["efficiency"] == 1);
  REQUIRE(strong.json.size() == 5);
  CHECK(strong.json[4]["efficiency"].is_null());  // 4,000 devices do not divide the batch
  for (std::size_t i = 1; i < 4; ++i) {
    const double ratio =
        strong.json[i]["tokens_per_s"].get<double>() / strong.json[0]["tokens_per_s"].get<double>();
    CHECK(strong.json[i]["speedup"].get<double>() == doctest::Approx(ratio).epsilon(1e-3));
    pages::check_figure(strong.page, strong.json[i]["efficiency"]);
  }
  const auto benefit = [](const ordered_json& point) {  // what scaling.hpp defines the knee by
    return point["knee"].is_null()
               ? 0
               : point["speedup"].get<double>() * point["efficiency"].get<double>();
  };
  const auto knee = std::ranges::max_element(strong.json, {}, benefit) - strong.json.begin();
  REQUIRE(knee < 3);  // few sequences for each device: the most devices are past it
  for (std::size_t i = 0; i < 4; ++i)
    CHECK((strong.json[i]["knee"] == true) == (static_cast<std::ptrdiff_t>(i) == knee));
  CHECK(count_of(strong.page, "class=\"dot marked compute\"") == 2);
  CHECK(has(strong.page, "parallel efficiency"));

  const Both weak = both("sweep s.yaml --over cluster.devices=8,16,32,64 --weak", scratch);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(weak.json[i]["efficiency"].get<double>() > 0.9);
    CHECK(weak.json[i]["iteration_s"].get<double>() <
          1.3 * weak.json[0]["iteration_s"].get<double>());
  }
  const Both lines =
      both("sweep s.yaml --over micro_batch=1,2 --over cluster.devices=8,16,32", scratch);
  CHECK(count_of(lines.page, "<figure class=\"chart\">") == 2);
  CHECK(has(lines.page, "micro_batch 2</span>"));
  CHECK(has(lines.page, "<figure class=\"heat\">"));
}

TEST_CASE("--format svg is the picture alone, and says where there is none") {
  const program::Scratch scratch;
  const auto drawn = [&](const std::string& over) {
    return program::run(program::words_of("sweep tiny-gpt-cpu --format svg" + over), scratch);
  };
  const std::string one = " --over micro_batch=1,2,3", two = " --over recompute=none,full";
  const auto curve = drawn(one), map = drawn(one + two);
  pages::check_balanced(curve.out);
  CHECK(count_of(curve.out, "class=\"dot compute\"") == 2);
  CHECK(curve.out.ends_with("</svg>\n"));
  CHECK(count_of(map.out, "<rect ") == 4);
  for (const std::string& none : {one + two + " --over pp=1,2", std::string(" --over dp=3,5")}) {
    const auto refused = drawn(none);
    CHECK(refused.status == 2);
    CHECK(has(refused.err, "there is no picture of more than two keys"));
  }
}

TEST_CASE("what is no sweep, or has no answer, has no chart") {
  for (const char* other : {"{}", "[]", "[1]", R"([{"tp": 1, "m": 2, "iteration_s": 1}])",
                            R"([{"tp": 1, "m": null, "iteration_s": null},
                                {"tp": 2, "m": null, "iteration_s": null}])"}) {
    CAPTURE(std::string(other));
    CHECK(curves_section(ordered_json::parse(other)).empty());
  }
}

}  // namespace json_curves_test
