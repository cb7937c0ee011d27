#include "runtime/ranks/staged_transport.hpp"

namespace runtime {

void StagedTransport::send(int to, int tag, std::span<const std::byte> message) {
  if (memory_.host() || message.empty()) return transport_.send(to, tag, message);
  std::vector<std::byte> staged(message.size());
  memory_.read(message.data(), staged);
  transport_.send(to, tag, staged);
}

void StagedTransport::recv(int from, int tag, std::span<std::byte> message) {
  if (memory_.host() || message.empty()) return transport_.recv(from, tag, message);
  memory_.write(message.data(), message.size(),
                [&](std::span<std::byte> staged) { transport_.recv(from, tag, staged); });
}

}  // namespace runtime
