// The limits of a search: values and lists of values, and their keys as they are listed.
#include "costmodel/scenario/search_reader.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "costmodel/config/yaml.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace search_reader_test {

using namespace costmodel;

namespace {

SearchLimits read(const std::string& text) { return read_search(parse_yaml(text, "s.yaml")); }

std::string fault(const std::string& text) {
  return fixtures::config_error([&] { read(text); });
}

}  // namespace

TEST_CASE("an empty map sets no limit") {
  const SearchLimits limits = read("{}");
  CHECK(limits.max_tp == 0);
  CHECK(limits.top == 5);
  CHECK(limits.rows == RankingRows::families);
  CHECK(limits.simpler_within == 0.01);
  CHECK(limits.zero.empty());
  CHECK(limits.schedules.empty());
}

TEST_CASE("a value stands for a list of one") {
  CHECK(read("{zero: 2}").zero == std::vector{2});
  CHECK(read("{zero: [0, 3]}").zero == std::vector{0, 3});
  CHECK(read("{recompute: [none, full]}").recompute ==
        std::vector{Recomputation::none, Recomputation::full});
  CHECK(read("{schedules: gpipe}").schedules == std::vector{ScheduleKind::gpipe});
  CHECK(read("{max_tp: 8, memory_margin: 0.1}").max_tp == 8);
  CHECK(read("{rows: plans}").rows == RankingRows::plans);
  CHECK(read("{simpler_within: 0}").simpler_within == 0);
}

TEST_CASE("a chance wanted takes the place of the margin, so that one of them is given") {
  CHECK_FALSE(read("{max_tp: 8}").memory_confidence);
  CHECK(read("{memory_confidence: 0.9}").memory_confidence == 0.9);
  CHECK(fixtures::contains(fault("{memory_confidence: 1}"), "allowed: 0 to 0.999"));
  CHECK(fault("{memory_margin: 0.1, memory_confidence: 0.9}") ==
        "s.yaml:1:17: search.memory_margin and search.memory_confidence are both given; leave one "
        "out: the margin follows from the confidence");
}

TEST_CASE("what is no value of a list is told at its place") {
  CHECK(fault("{zero: [1, 4]}") ==
        "s.yaml:1:12: zero: 4 is out of range; allowed: whole numbers 0 to 3");
  CHECK(fault("{recompute: {full: 1}}") ==
        "s.yaml:1:13: recompute is a map; write a value or a list [...]");
  CHECK(fixtures::contains(fault("{recompute: [ful]}"), "recompute: 'ful' is not known"));
  CHECK(fixtures::contains(fault("{max_tpp: 1}"), "search has no key 'max_tpp'"));
}

TEST_CASE("the keys are listed with what they may be") {
  const auto keys = search_keys();
  const auto zero = std::ranges::find(keys, "search.zero", &KeyText::name);
  REQUIRE(zero != keys.end());
  CHECK(zero->allowed == "0 to 3, or a list of them");
  CHECK(std::ranges::count(keys, "search.max_tp", &KeyText::name) == 1);
}

}  // namespace search_reader_test
