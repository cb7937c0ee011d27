#include "planner/commands/collective_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/base/unit_text.hpp"
#include "costmodel/plan/mesh.hpp"
#include "planner/report/collective_report.hpp"
#include "planner/report/json_report.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr const char* usual_sizes = "8:8GiB:2";  // what nccl-tests' README runs

std::vector<CollectiveKind> kinds_of(const std::string& name) {
  if (name == "all") return {primitives.begin(), primitives.end()};
  std::vector<std::string> known{"all"};
  for (const CollectiveKind kind : primitives) {
    known.emplace_back(collective_names[static_cast<std::size_t>(kind)]);
    if (known.back() == name) return {kind};
  }
  throw ConfigError({}, fmt::format("shardplan: there is no primitive {}", quote(name)),
                    costmodel::known_names(name, known));
}

[[noreturn]] void wrong_bytes(const std::string& text, const std::string& wrong,
                              const std::string& remedy) {
  throw ConfigError(mark_of_argument("--bytes", text), wrong, remedy);
}

double size_of(const std::string& word, const std::string& text) {
  const auto parsed = parse_quantity(word, Dimension::size);
  constexpr double most = 1e15;
  if (!parsed.value || !(*parsed.value >= 1 && *parsed.value <= most)) {
    wrong_bytes(text, fmt::format("{} is not a size in bytes", quote(word)),
                "example: --bytes 1GiB, from 1 B to 1 PB; or --bytes 8:8GiB:2");
  }
  return *parsed.value;
}

std::int64_t count_of(const char* flag, const std::string& text, std::int64_t least,
                      std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t n = digits && text.size() <= 7 ? std::stoll(text) : 0;
  constexpr std::int64_t most = 1'000'000;
  if (n < least || n > most) {
    throw ConfigError(mark_of_argument(flag, text), "is not a number of ranks",
                      fmt::format("allowed: {} to {}", least, format_integer(most)));
  }
  return n;
}

// The last rank of the group has to be on the cluster.
CollectiveGroup group_of(const Session& session, const ClusterSpec& cluster, std::int64_t stride) {
  const std::int64_t ranks =
      count_of("--ranks", session.options.ranks, 2, cluster.devices / stride);
  return {cluster, layout_of(static_cast<int>(ranks), stride, cluster)};
}

std::string many_text(const Session& session, const std::vector<CollectivePrice>& prices,
                      const CollectiveGroup& group) {
  const Table table = collective_table(prices);
  const bool markdown = session.style.markup == Markup::markdown;
  return escaped(collective_heading(group), session.style) + "\n\n" +
         (markdown ? to_markdown(table) : to_text(table, 0, session.style.style.width));
}

std::string text_of(const Session& session, const std::vector<CollectivePrice>& prices,
                    const CollectiveGroup& group) {
  switch (session.options.format) {
    case Format::json: return collective_json(prices, group);
    case Format::csv: return to_csv(collective_rows(prices));
    default:
      return prices.size() > 1 ? many_text(session, prices, group)
                               : collective_report(prices.front(), group, session.style);
  }
}

void check_flags(const Options& options) {
  refuse_if(options.cluster.empty(), "collective lacks --cluster NAME",
            "add --cluster dgx-h100; `shardplan list clusters` shows all");
  refuse_if(!options.assignments.empty(), "--set changes a scenario, and collective has none",
            "leave --set out; --cluster takes a file, too");
  refuse_if(options.table && !options.bytes.empty(), "--table has sizes of its own",
            "leave it or --bytes out; --bytes FROM:TO:FACTOR makes a table too");
  refuse_if(!options.table && options.bytes.empty(), "collective lacks --bytes SIZE",
            "add --bytes 1GiB, --bytes 8:8GiB:2 or --table");
}

}  // namespace

std::vector<Bytes> message_sizes(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t colon = std::min(text.find(':', from), text.size());
    words.push_back(text.substr(from, colon - from));
    from = colon + 1;
  }
  if (words.size() == 1) return {Bytes(size_of(words[0], text))};
  if (words.size() != 3)
    wrong_bytes(text, "is neither SIZE nor FROM:TO:FACTOR", "example: --bytes 8:8GiB:2");
  const double first = size_of(words[0], text), last = size_of(words[1], text);
  const auto factor = parse_quantity(words[2], Dimension::count);
  if (!factor.value || !(*factor.value >= 1.01)) {
    wrong_bytes(text, fmt::format("{} is not a factor", quote(words[2])),
                "allowed: 1.01 and more, as 2");
  }
  if (last < first) wrong_bytes(text, "ends before it begins", "write the smaller size first");
  std::vector<Bytes> sizes;
  for (double size = first; size <= last; size *= *factor.value) sizes.emplace_back(size);
  return sizes;
}

CommandResult collective_command(const Session& session) {
  const Options& options = session.options;
  const auto kinds = kinds_of(options.operands.front());
  check_flags(options);
  const std::int64_t stride = count_of("--stride", options.stride, 1, 1);
  const std::int64_t asked = count_of("--ranks", options.ranks, 2, 0) * stride;
  const auto sizes = message_sizes(options.table ? usual_sizes : options.bytes);
  const ClusterSpec as_written = cluster_named(session, options.cluster, 0);
  // One group alone: six ranks are neighbours on a node of eight, and no later group straddles two.
  const ClusterSpec cluster = asked > 0 ? resized(as_written, asked) : as_written;
  const CollectiveGroup group = group_of(session, cluster, stride);
  refuse_if(group.layout.size < 2, "fewer than two ranks have nothing to exchange",
            "give --ranks 2 or more, or a smaller --stride");
  std::vector<CollectivePrice> prices;
  for (const Bytes size : sizes)
    for (const CollectiveKind kind : kinds) prices.push_back(priced(kind, size, group));
  CommandResult result{0, text_of(session, prices, group), {}};
  if (asked > as_written.devices) {
    result.warnings.push_back(fmt::format("{} has {} devices: its last tier is taken to join {}",
                                          options.cluster, format_integer(as_written.devices),
                                          format_integer(asked)));
  }
  return result;
}

}  // namespace planner
