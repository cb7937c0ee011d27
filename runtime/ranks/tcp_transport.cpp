#include "runtime/ranks/tcp_transport.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>

#include "runtime/backend/tags.hpp"
#include "runtime/ranks/tcp_world.hpp"

namespace runtime {

namespace {

class TcpTransport : public Transport {
 public:
  TcpTransport(TcpWorld& world, std::size_t lane) : world_(world), lane_(lane) {}
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  void heed() override { world_.heed(); }
  void stop() override { world_.stop(stopped_); }

  Transport* beside() override {
    if (lane_ == 0 && !beside_) beside_ = std::make_unique<TcpTransport>(world_, 1);
    return beside_.get();
  }

  void send(int to, int tag, std::span<const std::byte> message) override {
    check(to, "sends to");
    world_.send(to, tag, message);
  }

  void recv(int from, int tag, std::span<std::byte> message) override {
    check(from, "waits for");
    const TcpWorld::Bytes came = world_.recv(from, tag, lane_, stopped_);
    if (came.size() != message.size()) {
      throw RunFault(from, fmt::format("rank {} sent {} bytes to rank {}, which wants {}: {}", from,
                                       came.size(), rank(), message.size(), tag_text(tag)));
    }
    if (!came.empty()) std::memcpy(message.data(), came.data(), came.size());
  }

  // All ranks have ended.
  void end() {
    for (int distance = 1; distance < size(); distance *= 2) {
      send((rank() + distance) % size(), end_tag(), {});
      recv((rank() + size() - distance) % size(), end_tag(), {});
    }
  }

 private:
  void check(int other, const char* what) const {
    if (other >= 0 && other < size()) return;
    throw RunFault(rank(), fmt::format("rank {} {} rank {}, but the world has {} ranks", rank(),
                                       what, other, size()));
  }

  TcpWorld& world_;
  const std::size_t lane_;
  bool stopped_ = false;  // the world's lock guards it
  std::unique_ptr<TcpTransport> beside_;
};

// The exception of `program` as a fault that names this rank.
std::optional<RunFault> fault_of(TcpTransport& transport,
                                 const std::function<void(Transport&)>& program) {
  const int rank = transport.rank();
  try {
    program(transport);
    transport.end();
    return std::nullopt;
  } catch (const RunFault& fault) {
    return fault;
  } catch (const std::bad_alloc&) {
    return RunFault(rank, fmt::format("rank {}: memory ran out", rank));
  } catch (const std::exception& fault) {
    return RunFault(rank, fmt::format("rank {}: {}", rank, fault.what()));
  } catch (...) {
    return RunFault(rank, fmt::format("rank {}: failed without saying why", rank));
  }
}

}  // namespace

void run_tcp(const TcpOptions& options, const std::function<void(Transport&)>& program) {
  const Meeting who = meeting();
  TcpWorld world(who, options.patience, options.on_cause);
  TcpTransport transport(world, 0);
  if (const auto fault = fault_of(transport, program)) {
    if (options.on_fault) options.on_fault(fault->what());
    world.give_up(fault->what());
    throw RunFault(*fault);
  }
  if (world.part()) return;
  throw RunFault(who.rank, fmt::format("rank {}: the others did not end within {:g} s", who.rank,
                                       options.patience.value));
}

}  // namespace runtime
