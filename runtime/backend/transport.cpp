#include "runtime/backend/transport.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace runtime {

void send_text(Transport& transport, int to, int tag, const std::string& text) {
  const std::uint64_t size = text.size();
  transport.send(to, tag, std::as_bytes(std::span(&size, 1)));
  transport.send(to, tag, std::as_bytes(std::span(text)));
}

std::string recv_text(Transport& transport, int from, int tag) {
  std::uint64_t size = 0;
  transport.recv(from, tag, std::as_writable_bytes(std::span(&size, 1)));
  std::string text(size, ' ');
  transport.recv(from, tag, std::as_writable_bytes(std::span(text)));
  return text;
}

void require_size(const Transport& transport, int ranks, const std::string& what) {
  if (transport.size() == ranks) return;
  throw RunFault(transport.rank(),
                 fmt::format("{} wants {} ranks, {} were started", what, ranks, transport.size()));
}

}  // namespace runtime
