#include "planner/page/timeline_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/schedule/action.hpp"
#include "planner/page/svg_bar.hpp"
#include "planner/page/timeline_script.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr double whole_width = 1e6;  // units of the picture, which the page stretches
constexpr int row_height = 20, lane = 7, lane_height = 12, strip = 16, strip_height = 5;

using Kind = SliceKind;

namespace kinds {
constexpr Kind forward{"forward", "forward"}, backward{"backward", "backward"},
    input_gradient{"backward", "input gradient"}, weight_gradient{"gradient", "weight gradient"},
    activations{"transfer", "send of activations", true},
    gradients{"transfer", "send of gradients", true}, both{"cp", "forward and backward together"},
    reduction{"reduction", "data-parallel communication"}, optimizer{"optimizer", "optimizer"},
    rest{"other", "host and slow nodes"}, unknown{"span", "not attributed"};
}  // namespace kinds

Kind kind_of(const Event& event, const std::optional<Action>& action, bool split) {
  if (event.stream == Stream::data_parallel) return kinds::reduction;
  if (event.stream == Stream::optimizer)
    return event.name.starts_with("optimizer") ? kinds::optimizer : kinds::rest;
  if (event.stream == Stream::pipeline_transfer) {
    return action && action->kind == ActionKind::send_backward ? kinds::gradients
                                                               : kinds::activations;
  }
  const bool cell = event.name.find('+') != std::string::npos;
  if (cell && event.name.find('F') != std::string::npos) return kinds::both;
  if (cell) return kinds::backward;
  if (!action || action->kind == ActionKind::forward) return kinds::forward;
  if (action->kind == ActionKind::weight_gradient) return kinds::weight_gradient;
  return split ? kinds::input_gradient : kinds::backward;
}

struct Gap {
  Seconds from, to;
};

struct Drawn {
  std::vector<const Event*> events;
  std::vector<Gap> gaps;  // not drawn
};

Drawn drawn_of(const Timeline& timeline) {
  Drawn drawn;
  std::vector<const Event*> all;
  for (const Event& event : timeline.events)
    if (event.end > event.start) all.push_back(&event);
  if (all.size() <= most_slices) return {std::move(all), {}};
  std::ranges::stable_sort(all, [](const Event* a, const Event* b) { return a->start < b->start; });
  constexpr std::size_t part = most_slices / 3;
  const std::array starts{std::size_t{0}, (all.size() - part) / 2, all.size() - part};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(starts[i]);
    drawn.events.insert(drawn.events.end(), from, from + part);
    if (i > 0) drawn.gaps.push_back({all[starts[i - 1] + part]->start, all[starts[i]]->start});
  }
  return drawn;
}

// Slices of a row that look alike, as one path of horizontal lines: "m812 0h400", from the end of
// the one before. Neighbouring micro-batches lie on different paths, which differ in shade.
struct Path {
  std::string lines, names;
  std::int64_t at = 0;
};
using PathKey = std::tuple<int, std::string_view, bool>;  // rank, words of the kind, odd

struct Paths {
  std::map<PathKey, Path> all;
  std::map<std::string_view, Kind> kinds;  // by their words
};

void add_slice(Paths& paths, const Event& event, const Kind& kind, bool odd, double end) {
  paths.kinds.emplace(kind.words, kind);
  Path& path = paths.all[{event.rank, kind.words, odd}];
  const auto place = [&](Seconds time) {
    return std::int64_t{std::llround(whole_width * (time.value / end))};
  };
  const std::int64_t from = place(event.start), to = std::max(from + 1, place(event.end));
  path.lines += fmt::format("m{} 0h{}", from - path.at, to - from);
  path.names += (path.names.empty() ? "" : "|") + event.name;
  path.at = to;
}

Paths paths_of(const Drawn& drawn, double end) {
  Paths paths;
  const bool split = std::ranges::any_of(drawn.events, [](const Event* event) {
    const auto action = parse_action(event->name);
    return action && action->kind == ActionKind::weight_gradient;
  });
  for (const Event* event : drawn.events) {
    const auto action = parse_action(event->name.substr(0, event->name.find('+')));
    add_slice(paths, *event, kind_of(*event, action, split), action && action->micro_batch % 2 == 1,
              end);
  }
  return paths;
}

std::string picture(const Paths& paths, const Drawn& drawn, int ranks, double end) {
  const int height = row_height * ranks;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"what each "
      "pipeline rank does when\">\n",
      whole_width, height);
  for (const Gap& gap : drawn.gaps) {
    const double from = whole_width * (gap.from.value / end),
                 to = whole_width * (gap.to.value / end);
    svg += fmt::format("<rect class=\"gap\" x=\"{:.0f}\" width=\"{:.0f}\" height=\"{}\"></rect>\n",
                       from, to - from, height);
  }
  for (const auto& [key, path] : paths.all) {
    const auto& [rank, words, odd] = key;
    const Kind& kind = paths.kinds.at(words);
    svg += fmt::format(
        "<path class=\"slices {}{}\" stroke-width=\"{}\" data-row=\"{}\" data-what=\"{}\" "
        "data-names=\"{}\" d=\"M0 {}{}\"></path>\n",
        kind.colour, odd ? " odd" : "", kind.in_strip ? strip_height : lane_height, rank, words,
        html_text(path.names), row_height * rank + (kind.in_strip ? strip : lane), path.lines);
  }
  return svg + "</svg>\n";
}

std::string row_labels(int ranks) {
  constexpr int most_labels = 32;
  const int each = (ranks + most_labels - 1) / most_labels;
  std::string html = "<div class=\"ranks\" aria-hidden=\"true\">";
  for (int rank = 0; rank < ranks; rank += each)
    html += fmt::format("<span style=\"top:{:.3f}%\">{}</span>", 100.0 * rank / ranks, rank);
  return html + "</div>\n";
}

std::string legend(const Paths& paths) {
  std::string html = "<div class=\"legend\">";
  for (const Kind& kind :
       {kinds::forward, kinds::backward, kinds::input_gradient, kinds::both, kinds::weight_gradient,
        kinds::reduction, kinds::optimizer, kinds::rest}) {
    if (paths.kinds.contains(kind.words))
      html += fmt::format("<span>{}{}</span>", swatch(kind.colour), kind.words);
  }
  if (paths.kinds.contains(kinds::activations.words) ||
      paths.kinds.contains(kinds::gradients.words))
    html += "<span>" + swatch(kinds::activations.colour) + "transfer to another rank</span>";
  return html + "</div>\n";
}

}  // namespace

namespace {

// `row`: its height in pixels. `rows`: the attribute with the rows' names, or nothing.
std::string moving(const std::string& svg, const std::string& labels, const std::string& rows,
                   int count, double row, double end) {
  return fmt::format(
             "<div class=\"timeline\" data-end=\"{}\" data-rows=\"{}\"{}>\n<div class=\"keys\" "
             "hidden><button type=\"button\" data-key=\"+\" title=\"zoom in (key "
             "+)\">+</button><button type=\"button\" data-key=\"-\" title=\"zoom out (key "
             "-)\">−</button><button type=\"button\" data-key=\"0\" title=\"all of it (key "
             "0)\">all</button><span>Click it, then wheel or + and − zoom, dragging or arrows "
             "move, 0 shows all.</span></div>\n<div class=\"plot\">{}<div class=\"area\" "
             "tabindex=\"0\" style=\"height:{:.0f}px\">\n",
             end, count, rows, labels, count * row) +
         svg +
         "<div class=\"names\" aria-hidden=\"true\"></div><div class=\"tip\" role=\"status\" "
         "hidden></div></div>\n<div class=\"ticks\" aria-hidden=\"true\"></div></div>\n</div>\n";
}

std::string moved_by_script() {
  return "<script>\n" + std::string(timeline_script()) + "</script>\n";
}

std::string cut_note(const Drawn& drawn, std::size_t events) {
  if (drawn.gaps.empty()) return "";
  return fmt::format(" Start, middle and end are drawn, {} slices of {}",
                     format_integer(static_cast<std::int64_t>(drawn.events.size())),
                     format_integer(static_cast<std::int64_t>(events)));
}

}  // namespace

std::string timeline_html(const Timeline& timeline) {
  const Drawn drawn = drawn_of(timeline);
  const double end = timeline.end().value;
  if (drawn.events.empty() || !(end > 0) || timeline.ranks < 1) return "";
  const Paths paths = paths_of(drawn, end);
  const std::string cut = cut_note(drawn, timeline.events.size());
  std::string html = fmt::format(
      "<p class=\"note\">{} from the first start to the last end; a row for each pipeline rank, "
      "neighbouring micro-batches in two shades, transfers in the strip below. All devices of a "
      "rank do the same at the same time.{}{}</p>\n",
      format_seconds(timeline.end()), cut,
      cut.empty() ? "" : "; <code>shardplan simulate --trace FILE</code> writes all.");
  constexpr double usual = 24, least = 7, screen = 560;
  html += moving(picture(paths, drawn, timeline.ranks, end), row_labels(timeline.ranks), "",
                 timeline.ranks, std::clamp(screen / timeline.ranks, least, usual), end);
  return html + legend(paths) + moved_by_script();
}

std::string rows_html(const Timeline& rows, const std::vector<std::string>& labels,
                      const SliceKinds& kinds) {
  const Drawn drawn = drawn_of(rows);
  const double end = rows.end().value;
  if (drawn.events.empty() || !(end > 0) || labels.empty()) return "";
  Paths paths;
  for (const Event* event : drawn.events) {
    const auto kind = kinds.find(event->name);
    add_slice(paths, *event, kind == kinds.end() ? kinds::unknown : kind->second, false, end);
  }
  const std::size_t widest = std::ranges::max(labels, {}, &std::string::size).size();
  std::string names,
      words = fmt::format("<div class=\"ranks\" style=\"min-width:{}ch\" aria-hidden=\"true\">",
                          widest);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const double place = 100.0 * static_cast<double>(row) / static_cast<double>(labels.size());
    words += fmt::format("<span style=\"top:{:.3f}%\">{}</span>", place, html_text(labels[row]));
    names += (names.empty() ? "" : "|") + html_text(labels[row]);
  }
  constexpr double height = 64;
  const std::string cut = cut_note(drawn, rows.events.size());
  std::string html = cut.empty() ? "" : "<p class=\"note\">" + cut.substr(1) + ".</p>\n";
  html += moving(picture(paths, drawn, rows.ranks, end), words + "</div>\n",
                 fmt::format(" data-labels=\"{}\"", names), rows.ranks, height, end);
  html += "<div class=\"legend\">";
  for (const auto& [text, kind] : paths.kinds)
    html += fmt::format("<span>{}{}</span>", swatch(kind.colour), text);
  return html + "</div>\n" + moved_by_script();
}

std::string still_timeline_html(const Timeline& timeline, Seconds scale, int ranks) {
  Timeline shown = timeline;
  shown.ranks = std::min(shown.ranks, ranks);
  std::erase_if(shown.events, [&](const Event& event) {
    return event.rank >= shown.ranks || event.start >= scale;
  });
  const Drawn drawn = drawn_of(shown);
  if (drawn.events.empty() || !(scale > Seconds(0))) return "";
  Paths paths = paths_of(drawn, scale.value);
  for (auto& [key, path] : paths.all) path.names.clear();  // nobody asks for them
  constexpr double row = 16;
  return fmt::format("<div class=\"plot\">{}<div class=\"area still\" style=\"height:{:.0f}px\">\n",
                     row_labels(shown.ranks), row * shown.ranks) +
         picture(paths, drawn, shown.ranks, scale.value) + "</div></div>\n";
}

std::string still_axis_html(Seconds scale) {
  constexpr double most = 8;  // ticks
  double step = std::pow(10, std::floor(std::log10(scale.value / most)));
  for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
    if (step * most < scale.value) step *= factor;
  std::string html =
      "<div class=\"plot\"><div class=\"ranks\"></div><div class=\"ticks\" aria-hidden=\"true\">";
  for (int i = 0; i * step < scale.value; ++i) {
    html += fmt::format("<span style=\"left:{:.3f}%\">{}</span>", 100 * i * step / scale.value,
                        i == 0 ? "0 s" : format_seconds(Seconds(i * step)));
  }
  return html + "</div></div>\n";
}

std::string timelines_legend(const std::vector<Timeline>& timelines) {
  Paths all;
  for (const Timeline& timeline : timelines) {
    const double end = timeline.end().value;
    if (end > 0) all.kinds.merge(paths_of(drawn_of(timeline), end).kinds);
  }
  return legend(all);
}

}  // namespace planner
