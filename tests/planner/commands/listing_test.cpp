#include "planner/commands/listing.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/costmodel/support/fixtures.hpp"

namespace listing_test {

using fixtures::config_error;
using fixtures::contains;
using planner::listing;

namespace {

std::set<std::string> names(const std::string& kind, const std::vector<std::string>& words) {
  std::set<std::string> all;
  for (const auto& row : listing(kind, words, fixtures::configs()).rows) all.insert(row.front());
  return all;
}

}  // namespace

TEST_CASE("words choose the rows that hold them all, in any column and case") {
  const auto all = names("models", {}), llama = names("models", {"LLAMA"});
  CHECK(llama.size() < all.size());
  for (const auto& name : llama) CHECK(all.contains(name));
  CHECK(llama.contains("llama-3-8b"));
  CHECK_FALSE(llama.contains("gpt2"));
  CHECK(names("models", {"llama", "70b"}) ==
        std::set<std::string>{"llama-2-70b", "llama-3-70b", "llama-3.1-70b"});
  CHECK(names("clusters", {"h800"}) == std::set<std::string>{"hgx-h800"});
}

TEST_CASE("keys are those of all files, engines' too") {
  CHECK(names("keys", {"plan.recompute"}).contains("plan.recompute"));
  CHECK(names("keys", {"host_step_s"}) == std::set<std::string>{"engine.host_step_s"});
}

TEST_CASE("where no row is left the nearest is named") {
  CHECK(contains(config_error([] { names("models", {"lamma-3-8b"}); }),
                 "list models has nothing with 'lamma-3-8b'; did you mean 'llama-3-8b'?"));
  CHECK(contains(config_error([] { names("keys", {"mbs"}); }), "did you mean 'plan.micro_batch'?"));
  CHECK(contains(config_error([] { names("modls", {}); }), "did you mean 'models'?"));
}

}  // namespace listing_test
