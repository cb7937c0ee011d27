#include "runtime/backend/transport.hpp"

#include <fmt/format.h>

namespace runtime {

void require_size(const Transport& transport, int ranks, const std::string& what) {
  if (transport.size() == ranks) return;
  throw RunFault(transport.rank(),
                 fmt::format("{} wants {} ranks, {} were started", what, ranks, transport.size()));
}

}  // namespace runtime
