// What is printed of a log.
#include "planner/report/log_report.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/costmodel/support/fixtures.hpp"

namespace log_report_test {

using namespace planner;
using costmodel::Seconds;
using fixtures::contains;

TEST_CASE("each sign has a text of its own") {
  std::set<std::string_view> texts;
  for (std::size_t i = 0; i < sign_kind_count; ++i) {
    const auto text = sign_text(static_cast<SignKind>(i));
    CHECK_FALSE(text.empty());
    CHECK(texts.insert(text).second);
  }
}

TEST_CASE("drift, restarts, signs and ranks that differ") {
  TrainingLog log{.framework = "Megatron-LM"};
  log.pace.counted = 20;
  log.pace.shape = SeriesShape::growing;
  log.pace.growth = 3.6;
  log.pace.early = Seconds(11);
  log.pace.late = Seconds(25);
  log.restarts = 2;
  log.signs = {{SignKind::net_socket, 3, 7, "NET/Socket : Using \x1b[31m"}};
  log.ranks = {{0, costmodel::Bytes(4e10), {}}, {4, costmodel::Bytes(6e10), {}}};
  const std::string text = log_text(log, {});
  CHECK(contains(text, "An iteration takes 3.6 s more than the one before it: from 11 s to 25 s."));
  CHECK(contains(text, "went back 2 times"));
  CHECK(contains(text, "Line 7 and 2 more: NCCL's network is TCP."));
  CHECK_FALSE(contains(text, "\x1b"));
  CHECK(contains(text, "Rank 4 allocates 55.88 GiB at most, rank 0 37.25 GiB."));
  log.pace.shape = SeriesShape::stepped;
  log.pace.since = 42;
  CHECK(contains(log_text(log, {}), "From iteration 42 on it takes 25 s, 11 s before."));
}

TEST_CASE("refusals with their remedies") {
  const std::string text =
      refusal_text({{"other-job", "the log is of another job", "Mend it."}}, {});
  CHECK(contains(text, "This cannot be judged: the log is of another job."));
  CHECK(contains(text, "Mend it."));
}

}  // namespace log_report_test
