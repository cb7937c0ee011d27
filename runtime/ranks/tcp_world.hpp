// One rank's TCP connections to all others, its mailbox, and the thread that sends and receives.
// Messages of one tag between two ranks arrive in order. The first cause of failure is broadcast,
// so that all ranks report the same one.
#pragma once

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "costmodel/base/units.hpp"
#include "runtime/backend/transport.hpp"
#include "runtime/ranks/tcp_rendezvous.hpp"

namespace runtime {

class TcpWorld {
 public:
  using Bytes = std::vector<std::byte>;

  // Called once, on the connections' thread, with the cause that ends the run, as soon as it is
  // known. Must not call the world.
  using OnCause = std::function<void(const std::string&)>;

  // Throws what meet() throws.
  TcpWorld(const Meeting& meeting, costmodel::Seconds patience, OnCause on_cause = {});
  ~TcpWorld();
  TcpWorld(const TcpWorld&) = delete;
  TcpWorld& operator=(const TcpWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // Thread-safe; see Transport. Each of a rank's two threads has a lane, 0 or 1; recv() waits until
  // the message arrives or stop() sets `stopped`.
  void send(int to, int tag, std::span<const std::byte> message);
  Bytes recv(int from, int tag, std::size_t lane, const bool& stopped);
  void stop(bool& stopped);
  void heed();

  // Announces that this rank sends no more. True when all others have announced it too, false when
  // the patience (timeout) is over first.
  bool part();
  // Ends the run with `sentence`, or with an earlier cause from another rank. Informs the others
  // and gives them a moment to read it before this process is gone.
  void give_up(const std::string& sentence);

 private:
  // The header of each message.
  struct Header {
    std::int64_t tag = 0;
    std::uint64_t size = 0;
  };
  // The message a thread waits for; rank -1: none.
  struct Waiting {
    int rank = -1, tag = -1;
  };
  struct Peer {
    explicit Peer(boost::asio::ip::tcp::socket its) : socket(std::move(its)) {}
    boost::asio::ip::tcp::socket socket;
    // The connection's thread alone uses these.
    Header header;
    Bytes coming;
    std::deque<Bytes> going;
    bool last = false;  // nothing more will be queued
    // The lock guards these.
    bool farewell = false, closed = false;
    std::size_t unsent = 0;  // messages
    std::optional<Waiting> answer;
  };
  using Lock = std::unique_lock<std::mutex>;

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool every_other(const std::function<bool(const Peer&)>& test) const;
  void work();
  void throw_if_given_up() const;
  std::optional<Bytes> taken(int from, int tag);
  std::optional<Bytes> wait_for(Lock& lock, int from, int tag, const bool& stopped, double seconds,
                                const std::function<bool()>& until = {});
  Bytes ask(Lock& lock, int from, int tag, std::size_t lane, const bool& stopped);
  void give(int to, int tag, std::span<const std::byte> message);
  void end_with(int to);
  void write(int to);
  void read_header(int from);
  void read_message(int from);
  void lost(int other);
  void end_by(const RunFault& cause);
  void arrived(int from, int tag, Bytes message);
  void heard(int from, std::string_view sentence);
  void answer(int to, std::size_t lane);

  const int rank_;
  const costmodel::Seconds patience_;
  const OnCause on_cause_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::deque<Peer> peers_;  // by rank; its own socket is closed
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::deque<Bytes>> mail_;  // by sender and tag
  std::array<Waiting, 2> waits_;
  std::optional<RunFault> cause_;
  std::optional<std::string> heard_;  // the cause, when another rank reported it
  bool ending_ = false;               // ranks may disconnect from now on
  std::thread thread_;
};

}  // namespace runtime
