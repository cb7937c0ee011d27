// Messages of tensors that live where the transport cannot read: each goes by way of the host's
// memory. Tensors of the host's own pass as they are.
#pragma once

#include <span>
#include <vector>

#include "runtime/backend/memory.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

class StagedTransport : public Transport {
 public:
  // Both outlive this. Messages given to this one lie in `memory`.
  StagedTransport(Transport& transport, Memory& memory) : transport_(transport), memory_(memory) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  void send(int to, int tag, std::span<const std::byte> message) override;
  void recv(int from, int tag, std::span<std::byte> message) override;
  void heed() override { transport_.heed(); }
  void stop() override { transport_.stop(); }
  bool progress() override { return transport_.progress(); }

 private:
  Transport& transport_;
  Memory& memory_;
};

}  // namespace runtime
