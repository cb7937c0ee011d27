#include "planner/page/json_rest.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace json_key_test {

using planner::title_of;

namespace {

std::string shown(const char* key, const nlohmann::ordered_json& number) {
  const std::string html = planner::keyed_figure(key, number);
  const std::size_t from = html.find('>') + 1;
  return html.substr(from, html.find('<', from) - from);
}

}  // namespace

TEST_CASE("a key says the unit of its number") {
  CHECK(shown("iteration_s", 17.14) == "17.14 s");
  CHECK(shown("between_failures_s", 864000) == "10 days");
  CHECK(shown("peak_bytes", 1024) == "1 KiB");
  CHECK(shown("bytes_per_prompt", 2048) == "2 KiB");
  CHECK(shown("gap_pct", 1.5) == "1.50 %");
  CHECK(shown("mfu", 0.412) == "41.2 %");
  CHECK(shown("bubble_fraction", 0.05) == "5.0 %");
  CHECK(shown("probability_faster_than_next", 0.5) == "50.0 %");
  CHECK(shown("usd", 70770.97) == "$70,771");
  CHECK(shown("usd_per_device_hour", 2.5) == "$2.5");
  CHECK(shown("budget_usd", 12) == "$12");
  CHECK(shown("days_with_failures", 36.86) == "36.86 days");
  CHECK(shown("model_flops_per_iteration", 2.5e15) == "2.5 PFLOP");
}

TEST_CASE("what is no unit is a plain number: a rate's time, a letter, a count") {
  CHECK(shown("tokens_per_s", 315263.2) == "315,263");
  CHECK(shown("s", 4096) == "4,096");
  CHECK(shown("micro_batches", 16) == "16");
  CHECK(shown("tokens", 1e12) == "1 T");
  CHECK(shown("", 0.25) == "0.25");
}

TEST_CASE("a title is the key without its unit") {
  CHECK(title_of("checkpoint_every_s") == "checkpoint every");
  CHECK(title_of("total_bytes") == "total");
  CHECK(title_of("interval_days") == "interval");
  CHECK(title_of("days_with_failures") == "days with failures");
  CHECK(title_of("tokens_per_s") == "tokens per s");
  CHECK(title_of("days") == "days");
  CHECK(title_of("mfu") == "MFU");
}

}  // namespace json_key_test
