#include "costmodel/machine/collective_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "costmodel/base/error.hpp"
#include "costmodel/config/map_reader.hpp"

namespace costmodel {

namespace {

const CollectiveTable* table_of(const std::vector<CollectiveTable>& tables, CollectiveKind kind,
                                int ranks) {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const CollectiveTable& table) {
    return table.kind == kind && table.ranks == ranks;
  });
  return found == tables.end() ? nullptr : &*found;
}

CollectiveTable read_collective_table(const Value& map) {
  MapReader reader(map, "measured collective");
  CollectiveTable table;
  reader.required("collective");
  const std::span kinds = std::span(collective_names).subspan(1);  // without "none"
  table.kind = static_cast<CollectiveKind>(*reader.one_of("collective", kinds) + 1);
  reader.required("ranks");
  table.ranks = static_cast<int>(*reader.integer("ranks", {2, 1'000'000}));
  table.curve = read_curve(reader, "bytes", "bytes_per_s");
  reader.finish();
  return table;
}

}  // namespace

std::optional<Seconds> measured_collective(const std::vector<CollectiveTable>& tables,
                                           CollectiveKind kind, Bytes message, int ranks) {
  const CollectiveTable* table = table_of(tables, kind, ranks);
  if (table == nullptr) return std::nullopt;
  const std::array size{std::max(message.value, table->curve.axes.front().front())};
  return Seconds(size.front() / rate_at(table->curve, size));
}

std::vector<CollectiveTable> read_collective_tables(const Value& list) {
  if (list.kind != Value::Kind::sequence)
    throw ConfigError(list.mark, "measured is not a list", "write a list of {collective, ...}");
  std::vector<CollectiveTable> tables;
  for (const Value& item : list.items) {
    CollectiveTable table = read_collective_table(item);
    if (table_of(tables, table.kind, table.ranks) != nullptr) {
      throw ConfigError(
          item.mark,
          fmt::format("{} of {} ranks has two tables",
                      collective_names[static_cast<std::size_t>(table.kind)], table.ranks),
          "keep one of them");
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

Value to_value(const std::vector<CollectiveTable>& tables) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const CollectiveTable& table : tables) {
    Value map;
    const auto name = collective_names[static_cast<std::size_t>(table.kind)];
    map.set("collective", scalar_value(std::string(name)));
    map.set("ranks", scalar_value(fmt::format("{}", table.ranks)));
    set_curve(map, table.curve, "bytes", "bytes_per_s");
    list.items.push_back(std::move(map));
  }
  return list;
}

}  // namespace costmodel
