#include "costmodel/machine/collective_table_reader.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "costmodel/config/map_reader.hpp"
#include "costmodel/machine/rate_table_reader.hpp"

namespace costmodel {

namespace {

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
