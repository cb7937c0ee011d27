// The listening end of a rank while ranks find one another: serves everyone who connects beside one
// another, and hands over those who prove that they are ranks of this run.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "runtime/ranks/tcp_handshake.hpp"

namespace runtime {

// Works while its io_context runs. A stranger gets a challenge and a buffer for one claim, and
// waits for nobody; it has no deadline, since nobody waits for it. The longest silent one is
// dropped when there are more than the ranks of the run and `spare`, or when this process runs out
// of file descriptors.
class TcpGate {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using Acceptor = boost::asio::ip::tcp::acceptor;
  using Code = boost::system::error_code;
  static constexpr std::size_t spare = 64;

  struct Guest {
    Socket socket;
    TcpHello hello;
  };

  // `handshake` outlives the gate.
  TcpGate(boost::asio::io_context& io, const TcpHandshake& handshake, int world);
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  // Listens at those of the addresses that this host has, and no longer elsewhere. Returns an error
  // when it has none of them or the port is taken at one. Port 0: any that is free.
  Code listen(const std::vector<boost::asio::ip::address>& addresses, int port);
  // Where it listens; any address and port 0 while it does not.
  boost::asio::ip::tcp::endpoint place() const;

  // Whether there is a guest, or an error that keeps others from coming.
  bool has_news() const { return !guests_.empty() || fault_; }
  std::optional<Guest> next();
  Code fault() const { return fault_; }
  // The ranks that someone with another token claimed to be.
  const std::set<int>& with_another_token() const { return with_another_token_; }

 private:
  struct Stranger;

  Code open(const boost::asio::ip::tcp::endpoint& at);
  void accept(Acceptor& at);
  bool makes_room(const Code& code);
  void drop_first();
  void serve(Socket socket);
  void judge(Stranger& stranger);
  void close();

  boost::asio::io_context& io_;
  const TcpHandshake& handshake_;
  const int world_;
  int pending_ = 0;  // operations whose handlers refer to this gate
  std::list<Acceptor> acceptors_;
  std::deque<std::shared_ptr<Stranger>> strangers_;  // the first has waited longest
  std::deque<Guest> guests_;
  std::set<int> with_another_token_;
  Code fault_;
};

}  // namespace runtime
