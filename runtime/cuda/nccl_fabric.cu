#include "runtime/cuda/nccl_fabric.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>

#include "runtime/backend/shard.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/gpu_streams.hpp"
#include "runtime/cuda/nccl_library.hpp"

namespace runtime::cuda {

#ifndef SHARDPLAN_WITH_NCCL

FabricId make_nccl_id() { throw std::runtime_error(nccl_missing()); }
std::unique_ptr<Fabric> make_nccl_fabric(Streams&, const FabricRequest&) {
  throw std::runtime_error(nccl_missing());
}

#else

namespace {

const NcclLibrary& nccl() {
  const NcclLibrary& library = nccl_library();
  if (!library.missing.empty()) throw std::runtime_error(library.missing);
  return library;
}

std::string words(ncclResult_t status, ncclComm_t communicator) {
  std::string text = std::string("NCCL reports: ") + nccl().error_string(status);
  const char* const more = nccl().last_error(communicator);
  if (more != nullptr && more[0] != '\0') text += std::string(" (") + more + ")";
  return text;
}

ncclDataType_t type_of(Number number) {
  switch (number) {
    case Number::bf16: return ncclBfloat16;
    case Number::f16: return ncclFloat16;
    case Number::f32: break;
  }
  return ncclFloat32;
}

ncclRedOp_t operation_of(Reduction reduction) {
  return reduction == Reduction::sum ? ncclSum : ncclMax;
}

// Nothing here blocks inside NCCL: communicators are non-blocking, and an operation in progress is
// polled until it is done, the timeout is over, or the run was given up.
class NcclFabric : public Fabric {
 public:
  NcclFabric(GpuStreams& streams, const FabricRequest& request)
      : streams_(streams), request_(request), communicators_(request.seats.size(), nullptr) {
    try {
      make_world();
      for (std::size_t i = 0; i < communicators_.size(); ++i) make_round(i);
      for (std::size_t i = 0; i < communicators_.size(); ++i) try_round(i);
    } catch (...) {
      abort();
      throw;
    }
  }
  ~NcclFabric() override {
    if (std::uncaught_exceptions() > 0) abort();  // the other ranks may be gone
    for (ncclComm_t& one : communicators_) end(one);
    end(world_);
  }
  NcclFabric(const NcclFabric&) = delete;
  NcclFabric& operator=(const NcclFabric&) = delete;

  void send(int round, Stream stream, std::span<const std::byte> message) override {
    call(round, nccl().send(message.data(), message.size(), ncclInt8, other(round), of(round),
                            streams_.stream(stream)));
  }
  void recv(int round, Stream stream, std::span<std::byte> message) override {
    call(round, nccl().recv(message.data(), message.size(), ncclInt8, other(round), of(round),
                            streams_.stream(stream)));
  }
  void all_reduce(int round, Stream stream, const Vector& v, Reduction reduction) override {
    call(round, nccl().all_reduce(v.data, v.data, v.size, type_of(v.number),
                                  operation_of(reduction), of(round), streams_.stream(stream)));
  }
  void reduce_scatter(int round, Stream stream, const Vector& v, Reduction reduction) override {
    if (even(round, v)) {
      const Vector own = chunk(round, v, seat(round).position);
      return call(round, nccl().reduce_scatter(v.data, own.data, own.size, type_of(v.number),
                                               operation_of(reduction), of(round),
                                               streams_.stream(stream)));
    }
    each_chunk(round, v, [&](const Vector& part, int root) {
      return nccl().reduce(part.data, part.data, part.size, type_of(part.number),
                           operation_of(reduction), root, of(round), streams_.stream(stream));
    });
  }
  void all_gather(int round, Stream stream, const Vector& v) override {
    if (even(round, v)) {
      const Vector own = chunk(round, v, seat(round).position);
      return call(round, nccl().all_gather(own.data, v.data, own.size, type_of(v.number), of(round),
                                           streams_.stream(stream)));
    }
    each_chunk(round, v, [&](const Vector& part, int root) {
      return nccl().broadcast(part.data, part.data, part.size, type_of(part.number), root,
                              of(round), streams_.stream(stream));
    });
  }

  std::string fault() override {
    for (std::size_t i = 0; i < communicators_.size(); ++i) {
      if (communicators_[i] == nullptr) continue;
      ncclResult_t status = ncclSuccess;
      const ncclResult_t asked = nccl().async_error(communicators_[i], &status);
      if (asked != ncclSuccess) status = asked;
      if (status != ncclSuccess && status != ncclInProgress)
        return request_.seats[i].name + ": " + words(status, communicators_[i]);
    }
    return "";
  }

  void abort() noexcept override {
    for (ncclComm_t& one : communicators_) give_up(one);
    give_up(world_);
  }

 private:
  const FabricSeat& seat(int round) const {
    return request_.seats.at(static_cast<std::size_t>(round));
  }
  ncclComm_t of(int round) const { return communicators_.at(static_cast<std::size_t>(round)); }
  int other(int round) const { return 1 - seat(round).position; }
  Vector chunk(int round, const Vector& v, int index) const {
    const Chunk part = chunk_of(v.size, seat(round).size, index);
    return v.subspan(part.begin, part.size);
  }
  bool even(int round, const Vector& v) const {
    return v.size % static_cast<std::size_t>(seat(round).size) == 0;
  }

  // NCCL's own collectives require equal parts; for others, one operation per part, all in one
  // group.
  template <class Operation>
  void each_chunk(int round, const Vector& v, Operation operation) {
    call(round, nccl().group_start());
    for (int i = 0; i < seat(round).size; ++i) {
      const Vector part = chunk(round, v, i);
      if (!part.empty()) call(round, operation(part, i), false);
    }
    call(round, nccl().group_end());
  }

  void call(int round, ncclResult_t status, bool wait = true) {
    settle(of(round), status, seat(round).name, wait);
  }

  // Polls until the communicator has completed a call.
  void settle(ncclComm_t communicator, ncclResult_t status, const std::string& name,
              bool wait = true) {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(request_.patience.value);
    while (status == ncclInProgress && wait) {
      const ncclResult_t asked = nccl().async_error(communicator, &status);
      if (asked != ncclSuccess) status = asked;
      if (status != ncclInProgress) break;
      if (request_.heed) request_.heed();
      if (std::chrono::steady_clock::now() > deadline) {
        throw RunFault(request_.rank,
                       "rank " + std::to_string(request_.rank) + " waited " +
                           std::to_string(static_cast<int>(request_.patience.value)) +
                           " s for NCCL to connect " + name);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (status != ncclSuccess && status != ncclInProgress)
      throw std::runtime_error(name + ": " + words(status, communicator));
  }

  void make_world() {
    ncclUniqueId id;
    static_assert(sizeof(id) == sizeof(FabricId));
    std::memcpy(&id, request_.id.data(), sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    streams_.stream(Streams::compute);  // makes its GPU current for this thread
    const ncclResult_t status = nccl().init(&world_, request_.ranks, id, request_.rank, &config);
    settle(world_, status, "all ranks");
  }

  // The new communicator is ready when its parent has completed the split.
  void make_round(std::size_t round) {
    const FabricSeat& own = request_.seats[round];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t status = nccl().split(world_, own.group < 0 ? NCCL_SPLIT_NOCOLOR : own.group,
                                             own.position, &communicators_[round], &config);
    settle(world_, status, own.name);
    if (communicators_[round] != nullptr) settle(communicators_[round], ncclInProgress, own.name);
  }

  // NCCL connects two ranks at their first exchange, for which each waits for the other. That
  // happens here, in the order of the rounds, and not in the middle of a schedule.
  void try_round(std::size_t round) {
    const FabricSeat& own = request_.seats[round];
    if (own.group < 0) return;
    GpuMemory& memory = streams_.memory();
    const auto size = static_cast<std::size_t>(own.size);
    auto* const data = static_cast<float*>(memory.allocate(size * sizeof(float)));
    memory.clear(data, size * sizeof(float));
    const int i = static_cast<int>(round);
    const std::span<std::byte> message(reinterpret_cast<std::byte*>(data), sizeof(float));
    if (own.channel) {
      own.position == 0 ? send(i, Streams::compute, message) : recv(i, Streams::compute, message);
    } else {
      const Vector values(data, size);
      all_reduce(i, Streams::compute, values, Reduction::sum);
      reduce_scatter(i, Streams::compute, values, Reduction::sum);
      all_gather(i, Streams::compute, values);
    }
    memory.wait_until([&] {
      if (request_.heed) request_.heed();
      if (const std::string wrong = fault(); !wrong.empty()) throw std::runtime_error(wrong);
      return cudaStreamQuery(memory.stream()) != cudaErrorNotReady;
    });
    memory.wait();
    memory.release(data);
  }

  void end(ncclComm_t& communicator) noexcept {
    if (communicator == nullptr) return;
    try {
      settle(communicator, nccl().finalize(communicator), "the end");
      nccl().destroy(communicator);
    } catch (const std::exception&) {  // the run is over; there is nothing to recover
      nccl().abort(communicator);
    }
    communicator = nullptr;
  }

  static void give_up(ncclComm_t& communicator) noexcept {
    if (communicator != nullptr) nccl_library().abort(communicator);
    communicator = nullptr;
  }

  GpuStreams& streams_;
  const FabricRequest request_;
  ncclComm_t world_ = nullptr;
  std::vector<ncclComm_t> communicators_;  // by round; its elements are never moved
};

}  // namespace

FabricId make_nccl_id() {
  ncclUniqueId id;
  if (const ncclResult_t status = nccl().unique_id(&id); status != ncclSuccess)
    throw std::runtime_error(words(status, nullptr));
  FabricId bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

std::unique_ptr<Fabric> make_nccl_fabric(Streams& streams, const FabricRequest& request) {
  return std::make_unique<NcclFabric>(static_cast<GpuStreams&>(streams), request);
}

#endif

}  // namespace runtime::cuda
