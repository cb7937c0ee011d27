// Schedules from files: both forms read back, and each fault is told at its cell.
#include "costmodel/schedule/schedule_file.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "costmodel/schedule/zero_bubble.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace schedule_file_test {

using namespace costmodel;

namespace {

PipelineTimes even(int stages) {
  PipelineTimes times;
  for (auto* list : {&times.forward, &times.backward, &times.weight_gradient})
    list->assign(static_cast<std::size_t>(stages), Seconds(1));
  return times;
}

Schedule generated(ScheduleKind kind, int p, int v, int m) {
  const auto n = static_cast<std::size_t>(p * v);
  return generate(kind, p, v, m, even(p * v),
                  {std::vector<double>(n, 1.0 / v), std::vector<double>(n, 1.0 / v)});
}

std::string fault(const std::string& text) {
  return fixtures::config_error([&] { parse_schedule_file(text, "my.csv"); });
}

}  // namespace

TEST_CASE("what is written reads back, in both forms, and takes as long") {
  for (std::size_t i = 0; i < schedule_names().size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    CAPTURE(schedule_name(kind));
    if (row_of(kind).two_way) continue;  // a file has each stage on one rank
    for (const int p : {2, 3, 4}) {
      const int v = row_of(kind).fewest_chunks;
      const Schedule schedule = generated(kind, p, v, 2 * p);
      for (const std::string& text : {to_csv(schedule), to_text(schedule)}) {
        const ListedSchedule again = parse_schedule_file(text, "my.csv");
        CHECK(again.schedule.actions == schedule.actions);
        CHECK(again.schedule.ranks == p);
        CHECK(again.schedule.chunks == v);
        CHECK(again.schedule.micro_batches == 2 * p);
        CHECK(is_listed(again.schedule.kind));
        CHECK(splits_backward(again.schedule.kind) == splits_backward(kind));
        CHECK(again.whole_rounds == row_of(kind).whole_rounds);
        CHECK(row_of(again.schedule.kind).folded == row_of(kind).folded);
        if (!row_of(kind).waits) continue;  // as a file it does
        const PipelineTimes times = even(p * v);
        CHECK(to_text(simulate_timeline(compile(again.schedule), times)) ==
              to_text(simulate_timeline(compile(schedule), times)));
      }
    }
  }
}

TEST_CASE("PyTorch's words: B is whole, I and W its halves, an empty cell is an idle step") {
  const auto whole = parse_schedule_file("0F0,0F1,,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1\r\n", "my.csv");
  CHECK(to_text(whole.schedule) == "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  const auto split = parse_schedule_file("0F0, 0I0,\"0W0\"\n1F0,1B0\n\n", "my.csv");
  CHECK(to_text(split.schedule) == "0F0 0B0 0W0\n1F0 1B0+1W0\n");
  CHECK(to_csv(split.schedule) == "0F0,0I0,0W0\n1F0,1B0\n");
  // Stage p stands on rank p - 1: the V.
  const auto folded = parse_schedule_file("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n", "my.csv");
  CHECK(row_of(folded.schedule.kind).folded);
  CHECK(folded.schedule.chunks == 2);
}

TEST_CASE("a schedule that nobody generates is bounded by fill, work and drain") {
  const auto listed = parse_schedule_file("0F1 0F0 0B0 0B1\n1F1 1F0 1B0 1B1\n", "my.txt");
  PipelineTimes times = even(2);
  times.weight_gradient.clear();
  std::vector<double> scratch;
  const Seconds run = simulate_makespan(compile(listed.schedule), times, scratch);
  const Seconds bound = pipeline_lower_bound(listed.schedule.kind, 2, 1, 2, times);
  CHECK(bound.value > 0);
  CHECK(bound <= run);
}

TEST_CASE("every fault is told with its place, its reason and a remedy") {
  const auto told = [](const std::string& text, const std::string& message) {
    const std::string error = fault(text);
    CAPTURE(error);
    CHECK(error.starts_with(message));
    CHECK(fixtures::contains(error, "; "));
  };
  told("0F0,0X0\n", "my.csv:1:5: rank 0, cell 2: '0X0' is not an action; write [stage][F|B|I|W]");
  told("0F0,0SEND_F0,0B0\n", "my.csv:1:5: rank 0, cell 2: '0SEND_F0' is not an action");
  told("0F0 0I0\n", "my.csv:1:5: rank 0, cell 2: '0I0' is not an action; write [stage][F|B|W]");
  told("0F0,99999999999F0\n", "my.csv:1:5: rank 0, cell 2: '99999999999F0' is not an action");
  told("0F0,,0B0\n1B0,1F0\n",
       "my.csv:2:1: rank 1, cell 1 (1B0): backward stands before its forward; move it behind 1F0");
  told("0F0,0W0,0I0\n",
       "my.csv:1:5: rank 0, cell 2 (0W0): weight gradient stands before its "
       "backward; move it behind 0B0");
  told("0F0,0B0,0F0\n", "my.csv:1:9: rank 0, cell 3 (0F0): runs a second time; leave it out");
  told("0F0,1F0,0B0\n1B0\n",
       "my.csv:1:5: rank 0, cell 2 (1F0): stage 1 does not live on rank 0; "
       "move it to rank 1");
  told("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n",
       "my.csv:1:5: rank 0, cell 2 (1F1): stages 0 and 1 are both on rank 0, as in DualPipe, which "
       "a file cannot say; set plan.schedule: dualpipe");
  told("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n",
       "my.csv:1:12: rank 0, the end: 1 actions are missing, 0B1 the first of them; add 0B1");
  told("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", "my.csv:1:5: rank 0, cell 2 (0B0): waits for ever");
  told("0F0,0B0\n1F0,1B0\n2F0,2B0,3F0,3B0\n",
       "my.csv: stages 0 to 3 do not divide among the 3 rows");
  told("", "my.csv: the schedule has no rows");
  told("0F0,0B0,999999F999999\n", "my.csv: 1000000 stages and 1000000 micro-batches are too many");
}

TEST_CASE("hostile text is refused, never an internal error") {
  fixtures::Random random(3);
  const std::string letters = "0123FBIW, \n\"-xSEND_";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = random.integer(0, 60); i > 0; --i)
      text += letters[static_cast<std::size_t>(
          random.integer(0, static_cast<int>(letters.size()) - 1))];
    try {
      const ListedSchedule listed = parse_schedule_file(text, "my.csv");
      CHECK_FALSE(validate(listed.schedule).has_value());
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).starts_with("my.csv"));
    }
  }
}

}  // namespace schedule_file_test
