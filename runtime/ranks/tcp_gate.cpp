#include "runtime/ranks/tcp_gate.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <utility>

namespace runtime {

namespace asio = boost::asio;
using asio::ip::tcp;

struct TcpGate::Stranger {
  Socket socket;
  TcpNonce challenge;
  TcpClaim claim;
};

TcpGate::TcpGate(asio::io_context& io, const TcpHandshake& handshake, int world)
    : io_(io), handshake_(handshake), world_(world) {}

TcpGate::~TcpGate() { close(); }

// Waits for the handlers of what it cancels, which refer to this gate.
void TcpGate::close() {
  Code ignored;
  for (Acceptor& acceptor : acceptors_) acceptor.close(ignored);
  for (const auto& stranger : strangers_) stranger->socket.close(ignored);
  io_.restart();
  while (pending_ > 0) io_.run_one();
  acceptors_.clear();
  strangers_.clear();
}

TcpGate::Code TcpGate::listen(const std::vector<asio::ip::address>& addresses, int port) {
  close();
  fault_ = {};
  Code code;
  for (const auto& address : addresses) {
    code = open({address, static_cast<unsigned short>(port)});
    const bool foreign = code == asio::error::address_family_not_supported ||
                         code == boost::system::errc::address_not_available;
    if (!code || foreign) continue;
    acceptors_.clear();
    return code;
  }
  if (acceptors_.empty()) return code;
  for (Acceptor& acceptor : acceptors_) accept(acceptor);
  return {};
}

TcpGate::Code TcpGate::open(const tcp::endpoint& at) {
  Acceptor acceptor(io_);
  Code code, ignored;
  acceptor.open(at.protocol(), code);
  if (!code) acceptor.set_option(Acceptor::reuse_address(true), ignored);
  if (!code && at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), ignored);
  if (!code) acceptor.bind(at, code);
  if (!code) acceptor.listen(asio::socket_base::max_listen_connections, code);
  if (!code) acceptors_.push_back(std::move(acceptor));
  return code;
}

tcp::endpoint TcpGate::place() const {
  return acceptors_.empty() ? tcp::endpoint() : acceptors_.front().local_endpoint();
}

std::optional<TcpGate::Guest> TcpGate::next() {
  if (guests_.empty()) return std::nullopt;
  std::optional<Guest> guest(std::move(guests_.front()));
  guests_.pop_front();
  return guest;
}

void TcpGate::accept(Acceptor& at) {
  ++pending_;
  at.async_accept([this, &at](const Code& code, Socket socket) {
    --pending_;
    if (!at.is_open()) return;
    if (code && code != asio::error::connection_aborted && !makes_room(code)) {
      fault_ = code;
      return;
    }
    if (!code) serve(std::move(socket));
    accept(at);
  });
}

// After an error that a stranger less may mend.
bool TcpGate::makes_room(const Code& code) {
  if (code != asio::error::no_descriptors || strangers_.empty()) return false;
  drop_first();
  return true;
}

void TcpGate::drop_first() {
  Code ignored;
  strangers_.front()->socket.close(ignored);
  strangers_.pop_front();
}

// What is sent here fits into the buffers of a new connection: it never waits.
void TcpGate::serve(Socket socket) {
  const auto stranger = std::make_shared<Stranger>(Stranger{std::move(socket), random_nonce(), {}});
  Code gone;
  stranger->socket.non_blocking(true, gone);
  stranger->socket.send(asio::buffer(stranger->challenge), 0, gone);
  if (gone) return;
  if (strangers_.size() >= spare + static_cast<std::size_t>(world_)) drop_first();
  strangers_.push_back(stranger);
  ++pending_;
  asio::async_read(stranger->socket, asio::buffer(&stranger->claim, sizeof stranger->claim),
                   [this, stranger](const Code& code, std::size_t) {
                     --pending_;
                     std::erase(strangers_, stranger);
                     if (!code) judge(*stranger);
                   });
}

void TcpGate::judge(Stranger& stranger) {
  const TcpHello& hello = stranger.claim.hello;
  if (!handshake_.of_this_run(hello)) return;
  const TcpVerdict verdict = handshake_.verdict(stranger.challenge, stranger.claim);
  const bool welcome = verdict.word == TcpVerdict::Word::welcome;
  if (!welcome && hello.rank >= 0 && hello.rank < world_) with_another_token_.insert(hello.rank);
  Code gone;
  stranger.socket.send(asio::buffer(&verdict, sizeof verdict), 0, gone);
  if (welcome && !gone) guests_.push_back({std::move(stranger.socket), hello});
}

}  // namespace runtime
