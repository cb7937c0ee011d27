#include "costmodel/machine/collective_table.hpp"

#include <algorithm>
#include <array>

namespace costmodel {

const CollectiveTable* table_of(const std::vector<CollectiveTable>& tables, CollectiveKind kind,
                                int ranks) {
  const auto found = std::ranges::find_if(tables, [&](const CollectiveTable& table) {
    return table.kind == kind && table.ranks == ranks;
  });
  return found == tables.end() ? nullptr : &*found;
}

std::optional<Seconds> measured_collective(const std::vector<CollectiveTable>& tables,
                                           CollectiveKind kind, Bytes message, int ranks) {
  const CollectiveTable* table = table_of(tables, kind, ranks);
  if (table == nullptr) return std::nullopt;
  const std::array size{std::max(message.value, table->curve.axes.front().front())};
  return Seconds(size.front() / rate_at(table->curve, size));
}

}  // namespace costmodel
