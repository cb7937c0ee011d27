#include "planner/page/serving_page.hpp"

#include <doctest/doctest.h>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;

TEST_CASE("The page has tiles, the curve and the reasons, and loads nothing") {
  const auto s = served::usual("{tp: 2, dp: 2}");
  const std::string html = serving_page(s, planned_estimate(s), {});
  for (const char* part :
       {"<figure class=\"chart\">", " in flight: ", "output tokens/s, 90 % interval", "next tokens",
        "Where a token", "From tp 1 to tp 2", "prompts of 512 tokens"})
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("\\n") == std::string::npos);
  for (const char* address : {"http:", "https:"}) CHECK(html.find(address) == std::string::npos);
}

TEST_CASE("A search's page has the ranking, or what would help") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64", "llama-2-7b",
                            "dgx-h100", 2, "{}");
  CHECK(serving_search_page(s, search_serving(s, 2), {}).find("Ranking") != std::string::npos);
  s.serving.bound.ttft = costmodel::Seconds(1e-5);
  CHECK(serving_search_page(s, search_serving(s, 2), {}).find("No plan keeps what is asked") !=
        std::string::npos);
}

TEST_CASE("A name of the user's cannot write HTML, and one point has no curve") {
  auto s = served::usual();
  s.model.title = "<b>mine</b>";
  CHECK(serving_page(s, planned_estimate(s), {}).find("<b>mine") == std::string::npos);
  CHECK(load_chart({{}}).empty());
}
