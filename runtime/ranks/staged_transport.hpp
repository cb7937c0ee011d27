// Sends tensors in device memory over a transport that reads host memory only: each message is
// staged through host memory. Tensors in host memory pass through unchanged.
#pragma once

#include <span>

#include "runtime/backend/memory.hpp"
#include "runtime/backend/transport.hpp"

namespace runtime {

class StagedTransport : public Transport {
 public:
  // Both outlive this. Messages lie in `memory`.
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
