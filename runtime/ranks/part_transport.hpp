// A sub-world: consecutive ranks of a world, renumbered from 0.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/backend/transport.hpp"

namespace runtime {

class PartTransport : public Transport {
 public:
  // Ranks [first, first + size) of `whole`, which outlives this; its rank is one of them.
  PartTransport(Transport& whole, int first, int size)
      : whole_(whole), first_(first), size_(size) {}

  int rank() const override { return whole_.rank() - first_; }
  int size() const override { return size_; }
  void stop() override { whole_.stop(); }
  void send(int to, int tag, std::span<const std::byte> message) override {
    whole_.send(first_ + to, tag, message);
  }
  void recv(int from, int tag, std::span<std::byte> message) override {
    whole_.recv(first_ + from, tag, message);
  }
  void expect(int from, int tag, std::size_t bytes) override {
    whole_.expect(first_ + from, tag, bytes);
  }
  void heed() override { whole_.heed(); }
  bool progress() override { return whole_.progress(); }

 private:
  Transport& whole_;
  const int first_, size_;
};

}  // namespace runtime
