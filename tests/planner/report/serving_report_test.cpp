#include "planner/report/serving_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/costmodel/serving/support/served.hpp"

using namespace planner;
using doctest::Contains;

namespace {
std::string report_of(const costmodel::ServingScenario& s, const ReportStyle& style = {}) {
  return serving_heading(s, style) + serving_report(s, planned_estimate(s), {}, style);
}
bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("The report tells rate, latencies, memory, price, parts, load and why") {
  const std::string text = report_of(served::usual("{tp: 2, dp: 2}"));
  for (const char* part :
       {"Serving Llama 2 7B", "32 requests in flight", "tp 2 · pp 1 · ep 1 · dp 2", "Throughput",
        "90 % interval", "First token", "Next tokens", "whole requests", "not known: --set",
        "weights read", "collectives", "Latency over load", "From tp 1 to tp 2", "Assumed"})
    CHECK_MESSAGE(holds(text, part), part);
  auto priced = served::usual();
  priced.cluster.operation.usd_per_device_hour = 2;
  CHECK(holds(report_of(priced), "dollars a million output tokens"));
}

TEST_CASE("Markdown has headings and lists") {
  const std::string text = report_of(served::usual(), {Markup::markdown, {}});
  CHECK(text.starts_with("## Serving"));
  CHECK(holds(text, "\n### Why\n"));
  CHECK(holds(text, "| part"));
}

TEST_CASE("What does not fit is told with what it takes") {
  const auto s = served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", "llama-2-70b",
                                  "dgx-h100", 1, "{dp: 1}");
  const std::string text = report_of(s);
  CHECK(holds(text, "Does not fit: "));
  CHECK_FALSE(holds(text, "Throughput"));
}

TEST_CASE("The parts add up to the whole") {
  const auto e = planned_estimate(served::usual());
  double share = 0;
  for (const auto& row : token_table(e).rows) share += std::stod(row[2]);
  CHECK(share == doctest::Approx(100).epsilon(0.01));
}

TEST_CASE("A search is reported with its ranking, and without a plan with remedies") {
  auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64", "llama-2-7b",
                            "dgx-h100", 8, "{}");
  CHECK(holds(serving_search_report(s, search_serving(s, 3), {}, {}), "Proved"));
  s.serving.bound.ttft = costmodel::Seconds(1e-5);
  const std::string none = serving_search_report(s, search_serving(s, 3), {}, {});
  CHECK(holds(none, "No plan keeps what is asked"));
  CHECK(holds(none, "serving.latency_bound.ttft_s="));
}

TEST_CASE("Rows for programs are plain numbers") {
  const auto s = served::scenario("input_tokens: 512, output_tokens: 128, concurrency: 64",
                                  "llama-2-7b", "dgx-h100", 2, "{}");
  const auto found = search_serving(s, 2);
  const Table table = serving_ranking_rows(found.best);
  REQUIRE(table.rows.size() == found.best.size());
  for (const auto& row : table.rows) {
    CHECK(row.size() == table.columns.size());
    CHECK(row[7].find(',') == std::string::npos);
    CHECK(std::stod(row[10]) == doctest::Approx(found.best[0].estimate.tpot.mean).epsilon(2));
  }
}

TEST_CASE("What comes of rounding is no row") {
  auto e = planned_estimate(served::usual());
  const auto rows = token_table(e).rows.size();
  e.token.transfers = costmodel::Seconds(1e-18);
  CHECK(token_table(e).rows.size() == rows);
}

TEST_CASE("A batch that most requests wait for is said to be one") {
  auto s = served::usual();
  s.serving.limits.max_num_seqs = 4;
  CHECK(holds(report_of(s), "Of 32 requests in flight 28 wait for a place in a batch of 4"));
  CHECK_FALSE(holds(report_of(served::usual()), "wait for a place"));
}

TEST_CASE("The price lies between those of the throughput's interval") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 1;  // which every plan of the interval answers
  s.cluster.operation.usd_per_device_hour = 3;
  costmodel::ServingFit fit;
  fit.intervals[0] = {0.6, 1.6};
  const std::string text = serving_report(s, planned_estimate(s), fit, {});
  const std::string unit = " dollars a million output tokens (90 % interval ";
  const auto at = text.find(unit);
  REQUIRE(at != std::string::npos);
  const std::string price =
      text.substr(text.rfind(' ', at - 1) + 1, at - text.rfind(' ', at - 1) - 1);
  CHECK(text.substr(at + unit.size()).starts_with(price + " to " + price + ")"));
}

TEST_CASE("An overloaded plan is said to be one, with what its figures are of") {
  auto s = served::usual();
  s.serving.concurrency = 0;
  s.serving.arrival_rate = 1000;
  const std::string text = report_of(s);
  CHECK(holds(text, "Overloaded  1,000 requests a second arrive"));
  CHECK(holds(text, "the queue grows without end"));
  CHECK(holds(text, "throughput and next tokens are those of full batches"));
}
