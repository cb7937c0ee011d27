#include "runtime/transport_mpi.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#ifdef SHARDPLAN_WITH_MPI
#include <mpi.h>
#include <sys/prctl.h>
#include <time.h>

#include <chrono>
#include <limits>
#include <list>
#include <new>
#include <utility>
#include <vector>

#include "runtime/tags.hpp"
#endif

namespace runtime {

namespace {

std::optional<long> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  long value = 0;
  const auto [end, fault] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (fault != std::errc() || end != view.data() + view.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<Launched> named_by(const char* rank, const char* world) {
  const auto r = number_in(rank), w = number_in(world);
  if (!r || !w || *r >= *w) return std::nullopt;
  return Launched{static_cast<int>(*r), static_cast<int>(*w)};
}

}  // namespace

std::optional<Launched> launched() {
  if (const auto by = named_by("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) return by;
  if (const auto by = named_by("PMI_RANK", "PMI_SIZE")) return by;
  // A batch script and an interactive shell of Slurm have the highest step numbers, and are none.
  constexpr long first_special_step = 0xfffffff0;
  const auto step = number_in("SLURM_STEP_ID");
  if (!step || *step >= first_special_step) return std::nullopt;
  return named_by("SLURM_PROCID", "SLURM_NTASKS");
}

#ifndef SHARDPLAN_WITH_MPI

std::string mpi_missing() {
  return "this build has no MPI: configure it where CMake finds one (Debian: libopenmpi-dev)";
}

int run_mpi(const MpiOptions&, const std::function<void(Transport&)>&) {
  fmt::print(stderr, "shardplan: {}\n", mpi_missing());
  return 4;
}

#else

std::string mpi_missing() { return ""; }

namespace {

using Clock = std::chrono::steady_clock;

// Where MPI says that it failed, this rank says so.
void check(int code, int rank, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunFault(rank, fmt::format("rank {}: {} failed: {}", rank, what,
                                   std::string_view(text, static_cast<std::size_t>(length))));
}

// Calls `done` until it is true, soon at first and then every 50 us, since ranks may share cores.
// False when that took longer than `patience`.
template <class Done>
bool poll(costmodel::Seconds patience, Done done) {
  constexpr int eager = 100;
  constexpr timespec pause{0, 50'000};
  const auto deadline = Clock::now() + std::chrono::duration<double>(patience.value);
  for (int tries = 0; !done(); ++tries) {
    if (tries < eager) continue;
    if (Clock::now() > deadline) return false;
    nanosleep(&pause, nullptr);
  }
  return true;
}

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiOptions& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    prctl(PR_SET_TIMERSLACK, 1UL);  // a pause of 50 us is not one of 100
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void send(int to, int tag, std::span<const std::byte> message) override {
    check_rank(to, "sends to");
    Sent& sent = sent_.emplace_back(std::vector(message.begin(), message.end()));
    check(MPI_Isend(sent.copy.data(), count_of(message.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD,
                    &sent.request),
          rank_, "MPI_Isend");
    progress();
  }

  void recv(int from, int tag, std::span<std::byte> message) override {
    check_rank(from, "waits for");
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    const bool came = poll(options_.patience, [&] {
      int there = 0;
      progress();
      check(MPI_Improbe(from, tag, MPI_COMM_WORLD, &there, &found, &status), rank_, "MPI_Improbe");
      return there != 0;
    });
    if (!came) throw waited_too_long(from, tag, "");
    int bytes = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &bytes), rank_, "MPI_Get_count");
    if (static_cast<std::size_t>(bytes) != message.size())
      throw RunFault(from, fmt::format("rank {} sent {} bytes to rank {}, which wants {}: {}", from,
                                       bytes, rank_, message.size(), tag_text(tag)));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Imrecv(message.data(), bytes, MPI_BYTE, &found, &request), rank_, "MPI_Imrecv");
    if (!poll(options_.patience, [&] { return progress(), completed(request); }))
      throw waited_too_long(from, tag, " to come whole");
  }

  bool progress() override {
    std::erase_if(sent_, [&](Sent& sent) { return completed(sent.request); });
    return !sent_.empty();
  }

  // All ranks have come to their end and all messages are gone: MPI_Finalize, which has no
  // patience, finds nobody missing.
  void end() {
    for (int distance = 1; distance < size_; distance *= 2) {
      send((rank_ + distance) % size_, end_tag(), {});
      recv((rank_ + size_ - distance) % size_, end_tag(), {});
    }
    if (!poll(options_.patience, [&] { return !progress(); }))
      throw RunFault(rank_, fmt::format("rank {}: {} messages were not received within {:g} s",
                                        rank_, sent_.size(), options_.patience.value));
  }

 private:
  // `copy` is MPI's until `request` is complete.
  struct Sent {
    explicit Sent(std::vector<std::byte> message) : copy(std::move(message)) {}
    std::vector<std::byte> copy;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  bool completed(MPI_Request& request) const {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), rank_, "MPI_Test");
    return done != 0;
  }

  int count_of(std::size_t bytes) const {
    if (bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return static_cast<int>(bytes);
    throw RunFault(rank_, fmt::format("rank {} sends {} bytes at once, more than MPI can count",
                                      rank_, bytes));
  }

  void check_rank(int other, const char* what) const {
    if (other >= 0 && other < size_) return;
    throw RunFault(rank_, fmt::format("rank {} {} rank {}, but the world has {} ranks", rank_, what,
                                      other, size_));
  }

  RunFault waited_too_long(int from, int tag, const char* how) const {
    return {from, fmt::format("rank {} waited {:g} s for {} from rank {}{}", rank_,
                              options_.patience.value, tag_text(tag), from, how)};
  }

  const MpiOptions options_;
  int rank_ = 0, size_ = 1;
  std::list<Sent> sent_;
};

[[noreturn]] void abort_run(const std::string& sentence) {
  fmt::print(stderr, "shardplan: {}\n", sentence);
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 4);
  std::_Exit(4);
}

// What `program` throws, as a sentence that names this rank.
std::string run(MpiTransport& transport, const std::function<void(Transport&)>& program) {
  const int rank = transport.rank();
  try {
    program(transport);
    transport.end();
    return "";
  } catch (const RunFault& fault) {
    return fault.what();
  } catch (const std::bad_alloc&) {
    return fmt::format("rank {}: memory ran out", rank);
  } catch (const std::exception& fault) {
    return fmt::format("rank {}: {}", rank, fault.what());
  } catch (...) {
    return fmt::format("rank {}: failed without saying why", rank);
  }
}

}  // namespace

int run_mpi(const MpiOptions& options, const std::function<void(Transport&)>& program) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    fmt::print(stderr, "shardplan: MPI_Init_thread failed\n");
    return 4;
  }
  MpiTransport transport(options);
  const std::string fault = run(transport, program);
  if (!fault.empty()) abort_run(fault);
  MPI_Finalize();
  return 0;
}

#endif

}  // namespace runtime
