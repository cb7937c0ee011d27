#include "planner/page/timeline_picture.hpp"

#include <doctest/doctest.h>

#include "costmodel/schedule/action.hpp"
#include "tests/planner/support/pages.hpp"

namespace timeline_picture_test {

using costmodel::Event;
using costmodel::Seconds;
using costmodel::Stream;
using costmodel::Timeline;
using pages::has;

Event event(int rank, Stream stream, const char* name, double start, double end) {
  return {rank, stream, name, Seconds(start), Seconds(end)};
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

TEST_CASE("a slice lies where its event does, in millionths of the iteration") {
  const Timeline timeline{
      2,
      {event(0, Stream::compute, "0F0", 0, 1),
       event(0, Stream::pipeline_transfer, "0SEND_F0", 1, 1.5),
       event(0, Stream::compute, "0F2", 1.5, 2), event(0, Stream::compute, "0F1", 2, 3),
       event(1, Stream::compute, "1B0", 3, 4),
       event(1, Stream::data_parallel, "gradient reduction", 4, 6),
       event(1, Stream::optimizer, "optimizer step", 6, 7),
       event(1, Stream::optimizer, "host and stragglers", 7, 8)}};
  const std::string html = planner::timeline_html(timeline);
  pages::check_balanced(html);
  CHECK(has(html, "data-end=\"8\" data-rows=\"2\""));
  CHECK(has(html,
            "data-what=\"forward\" data-names=\"0F0|0F2\" d=\"M0 7m0 0h125000m62500 0h62500\""));
  CHECK(has(html, "slices forward odd"));
  CHECK(has(html, "data-names=\"0SEND_F0\" d=\"M0 16m125000 0h62500\""));
  CHECK(has(html, "data-what=\"backward\" data-names=\"1B0\" d=\"M0 27m375000 0h125000\""));
  for (const char* words : {"data-parallel communication", "optimizer", "host and slow nodes",
                            "transfer to another rank"})
    CHECK(has(html, std::string("</i>") + words));
  CHECK_FALSE(has(html, "</i>weight gradient"));
  CHECK_FALSE(has(html, "class=\"gap\""));
}

TEST_CASE("a backward is an input gradient where weight gradients are apart") {
  const std::string html = planner::timeline_html(
      {1, {event(0, Stream::compute, "0B0", 0, 1), event(0, Stream::compute, "0W0", 1, 2)}});
  CHECK(has(html, "</i>input gradient"));
  CHECK(has(html, "</i>weight gradient"));
  CHECK_FALSE(has(html, "</i>backward"));
}

TEST_CASE("a long timeline is drawn in part, and says so") {
  Timeline timeline{1, {}};
  constexpr int slices = 50'000;
  for (int i = 0; i < slices; ++i) {
    const auto name = costmodel::to_text({costmodel::ActionKind::forward, 0, i});
    timeline.events.push_back(event(0, Stream::compute, name.c_str(), i, i + 1));
  }
  const std::string html = planner::timeline_html(timeline);
  CHECK(count(html, "class=\"gap\"") == 2);
  CHECK(has(html, "19,998 slices of 50,000"));
  CHECK(count(html, " 0h") == planner::most_slices / 3 * 3 + 1);  // one in the script
  for (const char* name : {"\"0F0|", "|0F25000|", "|0F49998\"", "|0F49999\""})
    CHECK(has(html, name));
  CHECK_FALSE(has(html, "|0F12000|"));
  CHECK(html.size() < 1'000'000);
}

TEST_CASE("without events there is no picture") {
  CHECK(planner::timeline_html({}).empty());
  CHECK(planner::timeline_html({3, {event(0, Stream::compute, "0F0", 0, 0)}}).empty());
}

TEST_CASE("still drawings: one scale, the first ranks, what lies beyond left out") {
  const Timeline timeline{
      3,
      {event(0, Stream::compute, "0F0", 0, 1), event(1, Stream::compute, "1B0", 2, 4),
       event(1, Stream::compute, "1F1", 5, 6), event(2, Stream::compute, "2F0", 1, 2)}};
  const std::string html = planner::still_timeline_html(timeline, Seconds(5), 2);
  pages::check_balanced(html);
  CHECK(has(html, "viewBox=\"0 0 1000000 40\""));
  CHECK(has(html, "d=\"M0 7m0 0h200000\""));
  CHECK(has(html, "data-names=\"\" d=\"M0 27m400000 0h400000\""));
  CHECK_FALSE(has(html, "1F1"));
  CHECK_FALSE(has(html, "2F0"));
  CHECK_FALSE(has(html, "<script"));
  CHECK(planner::still_timeline_html({}, Seconds(5), 2).empty());
  CHECK(planner::still_timeline_html(timeline, Seconds(0), 2).empty());
  const std::string axis = planner::still_axis_html(Seconds(5));
  pages::check_balanced(axis);
  CHECK(has(axis, "left:0.000%\">0 s</span>"));
  CHECK(has(axis, "left:20.000%\">1 s</span>"));
  CHECK(count(axis, "<span") == 5);
  const std::string both = planner::timelines_legend(
      {timeline, {1, {event(0, Stream::optimizer, "optimizer step", 0, 1)}}, {}});
  for (const char* words : {"forward", "backward", "optimizer"})
    CHECK(has(both, std::string("</i>") + words));
}

TEST_CASE("rows of anything are named, coloured by their slices' names, and move by the script") {
  const Timeline timeline{
      2,
      {event(0, Stream::compute, "one", 0, 1), event(1, Stream::compute, "two", 1, 2),
       event(1, Stream::compute, "three", 2, 4)}};
  const planner::SliceKinds kinds{{"one", {"compute", "first of all"}},
                                  {"two", {"reduction", "a thin one", true}}};
  const std::string html = planner::rows_html(timeline, {"a<b", "below"}, kinds);
  pages::check_balanced(html);
  CHECK(has(html, "data-end=\"4\" data-rows=\"2\" data-labels=\"a&lt;b|below\""));
  CHECK(has(html, "class=\"slices compute\" stroke-width=\"12\" data-row=\"0\""));
  CHECK(has(html, "class=\"slices reduction\" stroke-width=\"5\" data-row=\"1\""));
  CHECK(has(html, "data-what=\"not attributed\" data-names=\"three\""));
  CHECK(planner::rows_html({}, {}, kinds).empty());
}

}  // namespace timeline_picture_test
