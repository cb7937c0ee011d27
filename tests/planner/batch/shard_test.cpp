#include "planner/batch/shard.hpp"

#include <doctest/doctest.h>

#include "costmodel/base/error.hpp"

namespace shard_test {

using planner::is_part_of_journal;
using planner::journal_name;
using planner::read_shard;
using planner::Shard;

TEST_CASE("shards have every item once, and sizes that differ by one at most") {
  for (std::size_t count = 1; count <= 5; ++count) {
    for (std::size_t i = 0; i < 12; ++i) {
      int holders = 0;
      for (std::size_t k = 1; k <= count; ++k) holders += Shard{k, count}.has(i) ? 1 : 0;
      CHECK(holders == 1);
    }
  }
}

TEST_CASE("a shard is read, and has a journal of its own") {
  const Shard shard = read_shard("2/4");
  CHECK(shard.index == 2);
  CHECK(shard.count == 4);
  CHECK_FALSE(shard.is_all());
  CHECK(read_shard("1/1").is_all());
  CHECK(journal_name(shard) == "journal-2-of-4.jsonl");
  CHECK(is_part_of_journal(journal_name(shard)));
  CHECK_FALSE(is_part_of_journal(journal_name({})));
}

TEST_CASE("what is no shard is refused with what is one") {
  for (const char* text :
       {"", "0/4", "5/4", "2", "2/", "/4", "2/4/8", "-1/4", "1/1000000", "a/b"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_shard(text), doctest::Contains("write 1/4"), costmodel::ConfigError);
  }
}

}  // namespace shard_test
