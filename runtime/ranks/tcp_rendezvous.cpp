#include "runtime/ranks/tcp_rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/backend/transport.hpp"
#include "runtime/ranks/tcp_addresses.hpp"
#include "runtime/ranks/tcp_gate.hpp"
#include "runtime/ranks/tcp_handshake.hpp"
#include "runtime/ranks/tcp_messages.hpp"

namespace runtime {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto a_word = TcpWords::moment;
constexpr std::chrono::milliseconds between_tries{50};  // between two attempts
constexpr std::chrono::milliseconds settling{250};      // to collect causes that occur together

constexpr const char* open_ports =
    "each two ranks connect, at any port that is free: open all ports between their hosts";

constexpr const char* one_token = "give all ranks the same SHARDPLAN_TOKEN";

// Where a rank listens; rank 0's is known to all.
struct Address {
  std::string host = "-";
  int port = 0;
};

class Rendezvous {
 public:
  Rendezvous(asio::io_context& io, const Meeting& meeting, costmodel::Seconds patience)
      : io_(io),
        words_(io),
        meeting_(meeting),
        patience_(patience),
        deadline_(after(patience.value)),
        handshake_(meeting),
        gate_(io, handshake_, meeting.world) {
    for (int rank = 0; rank < meeting.world; ++rank) sockets_.emplace_back(io);
  }

  std::vector<tcp::socket> meet() {
    if (meeting_.world == 1) return std::move(sockets_);
    meeting_.rank == 0 ? receive_all() : join();
    for (tcp::socket& socket : sockets_) {
      if (!socket.is_open()) continue;
      socket.set_option(tcp::no_delay(true));
      socket.set_option(asio::socket_base::keep_alive(true));
    }
    return std::move(sockets_);
  }

 private:
  static Clock::time_point after(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(std::min(seconds, 1e9)));
  }

  RunFault fault(const std::string& what) const { return {meeting_.rank, what}; }

  std::string where() const {
    const std::string last =
        meeting_.ports.size() > 1 ? fmt::format(" to {}", meeting_.ports.back()) : "";
    return fmt::format("{}, port {}{}", meeting_.host, meeting_.ports.front(), last);
  }

  // Asks for rank 0's addresses until it has an answer or the deadline is over. Throws when ranks
  // may not meet there.
  void find_addresses() {
    error_code code;
    while ((hosts_ = addresses_of(meeting_, code)).empty() && Clock::now() < deadline_)
      std::this_thread::sleep_for(between_tries);
    if (hosts_.empty()) why_ = message_of(code);
    if (const auto why = refusal_of(meeting_, hosts_); !why.empty()) throw fault(why);
  }

  // False when rank 0 cannot listen at the port.
  bool listen(int port) {
    const error_code code = gate_.listen(hosts_, port);
    if (code) why_ = message_of(code);
    has_address_ = code != boost::system::errc::address_not_available;
    return !code;
  }

  // The next rank of this run that connects; nothing when none did before the deadline, or rank 0
  // sent something.
  std::optional<TcpGate::Guest> guest(Clock::time_point deadline) {
    words_.wait(deadline, [&] { return gate_.has_news() || words_.disturbed(); });
    if (auto next = gate_.next()) return next;
    if (gate_.fault()) {
      give_up(fmt::format("rank {} cannot take connections: {}", meeting_.rank,
                          message_of(gate_.fault())));
    }
    return std::nullopt;
  }

  bool hangs_up(tcp::socket& socket) {
    error_code code;
    std::byte byte{};
    socket.non_blocking(true);
    socket.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, code);
    return code != asio::error::would_block;
  }

  std::string refused(const TcpHello& hello) {
    if (hello.world != meeting_.world) {
      return fmt::format("rank {} was started with WORLD_SIZE {}, rank {} with {}", hello.rank,
                         hello.world, meeting_.rank, meeting_.world);
    }
    const bool known = hello.rank >= 0 && hello.rank < meeting_.world;
    if (!known || hello.rank == meeting_.rank ||
        (sockets_[static_cast<std::size_t>(hello.rank)].is_open() &&
         !hangs_up(sockets_[static_cast<std::size_t>(hello.rank)])))
      return fmt::format("two processes were started with RANK {}", hello.rank);
    return "";
  }

  // Rank 0 sends the cause to all connected ranks. Another rank sends it to rank 0 and ends with
  // the cause that rank 0 broadcasts, so that all report the same one.
  [[noreturn]] void give_up(const std::string& what) {
    if (rank_0_) heed_rank_0();
    for (auto* const sockets : {&sockets_, &refused_}) {
      for (tcp::socket& socket : *sockets) {
        const bool its = meeting_.rank == 0 || &socket == sockets_.data();
        if (its && socket.is_open()) words_.say(socket, TcpWord::fault, what);
      }
    }
    if (meeting_.rank == 0) let_them_read();
    if (rank_0_ && words_.wait(Clock::now() + 2 * a_word, [&] { return rank_0_->end.has_value(); }))
      if (const auto cause = reported_fault(); cause && *cause != what) throw given_up(*cause);
    throw fault(what);
  }

  // Lets the others read first: closing a connection with unread data discards what was sent last.
  void let_them_read() {
    const Clock::time_point deadline = Clock::now() + a_word;
    error_code ignored;
    std::byte byte{};
    for (auto* const sockets : {&sockets_, &refused_}) {
      for (tcp::socket& socket : *sockets) {
        socket.cancel(ignored);  // a pending read would take the end of the connection for itself
        socket.shutdown(tcp::socket::shutdown_send, ignored);
      }
    }
    for (auto* const sockets : {&sockets_, &refused_}) {
      for (tcp::socket& socket : *sockets)
        while (!words_.read(socket, asio::buffer(&byte, 1), deadline)) continue;
    }
  }

  std::vector<int> missing_ranks() const {
    std::vector<int> ranks;
    for (int rank = meeting_.rank + 1; rank < meeting_.world; ++rank)
      if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    return ranks;
  }

  std::string missing(const std::string& at) const {
    const auto ranks = missing_ranks();
    std::string text = fmt::format("rank{} {} of {} did not come to {} within {:g} s",
                                   ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "),
                                   meeting_.world, at, patience_.value);
    std::vector<int> others;
    std::ranges::set_intersection(ranks, gate_.with_another_token(), std::back_inserter(others));
    if (others.empty()) return text;
    return text + fmt::format("; who came as rank {} has another token than rank {}: {}",
                              fmt::join(others, ", "), meeting_.rank, one_token);
  }

  void receive_all() {
    find_addresses();
    if (hosts_.empty() ||
        std::ranges::none_of(meeting_.ports, [&](int port) { return listen(port); })) {
      throw fault(fmt::format("rank 0 cannot listen at {}: {}; {}", where(), why_,
                              hosts_.empty() || !has_address_
                                  ? "MASTER_ADDR has to be an address of its host"
                                  : "choose another MASTER_PORT"));
    }
    std::vector<Address> places(sockets_.size());
    std::string reason;  // why to give up; sent to every rank that connects
    while (missing_ranks().size() > refused_.size()) {
      auto next = guest(deadline_);
      if (!next) give_up(reason.empty() ? missing(where()) : reason);
      auto& [socket, hello] = *next;
      if (const auto why = refused(hello); !why.empty()) {
        if (reason.empty()) reason = why;
        refused_.push_back(std::move(socket));
        continue;
      }
      error_code gone;
      const auto address = socket.remote_endpoint(gone).address();
      if (gone) continue;
      const auto rank = static_cast<std::size_t>(hello.rank);
      places[rank] = {address.to_string(), hello.port};
      sockets_[rank] = std::move(socket);
    }
    if (!reason.empty()) give_up(reason);
    std::string table;
    for (const Address& place : places) table += fmt::format("{} {}\n", place.host, place.port);
    for (tcp::socket& socket : sockets_)
      if (socket.is_open()) words_.say(socket, TcpWord::table, table);
    begin_together();
  }

  // Until all ranks are connected, an error of one ends the run for all.
  void begin_together() {
    std::vector<std::shared_ptr<TcpWords::Coming>> said(1);
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      said.push_back(words_.next(sockets_[rank]));
    const auto is_ready = [&](std::size_t rank) { return said[rank]->is(TcpWord::ready); };
    const auto first = [&](auto holds) {
      for (std::size_t rank = 1; rank < said.size(); ++rank)
        if (said[rank]->end && holds(rank)) return rank;
      return std::size_t{0};
    };
    const auto failed = [&] { return first([&](std::size_t rank) { return !is_ready(rank); }); };
    const auto gone = [&] {
      return first([&](std::size_t rank) { return bool(*said[rank]->end); });
    };
    const auto waiting_for = [&] {
      std::vector<std::size_t> ranks;
      for (std::size_t rank = 1; rank < said.size(); ++rank)
        if (!is_ready(rank)) ranks.push_back(rank);
      return ranks;
    };
    words_.wait(after(patience_.value) + 2 * a_word,
                [&] { return failed() > 0 || waiting_for().empty(); });
    if (failed() > 0) {
      // A refused connection to a rank's port may be reported before that rank is known to be gone.
      words_.wait(Clock::now() + settling, [&] { return gone() > 0; });
      const std::size_t rank = gone() > 0 ? gone() : failed();
      give_up(fault_of(rank, *said[rank]));
    }
    if (const auto ranks = waiting_for(); !ranks.empty()) {
      give_up(fmt::format("rank 0 waited {:g} s for rank{} {} to reach all others; {}",
                          patience_.value, ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "),
                          open_ports));
    }
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank)
      words_.say(sockets_[rank], TcpWord::begin, "");
  }

  std::string fault_of(std::size_t rank, const TcpWords::Coming& said) {
    std::optional<std::string> text;
    if (said.is(TcpWord::fault)) text = words_.text_behind(said, sockets_[rank]);
    return text.value_or(
        fmt::format("rank {} is gone: its connection to rank 0 ended while the ranks connected to "
                    "one another",
                    rank));
  }

  // Whether who listens at the other end takes this process for a rank of the run, and is one.
  bool introduced(tcp::socket& socket) {
    const auto heard = [&](asio::mutable_buffer into) {
      return !words_.read(socket, into, std::min(deadline_, Clock::now() + a_word));
    };
    why_ = "who answers there is none of this run";
    TcpNonce challenge{};
    if (!heard(asio::buffer(challenge))) return false;
    const TcpClaim claim = handshake_.claim(challenge, gate_.place().port());
    TcpVerdict verdict;
    if (words_.write(socket, asio::buffer(&claim, sizeof claim)) ||
        !heard(asio::buffer(&verdict, sizeof verdict)))
      return false;
    another_token_ = another_token_ || verdict.word == TcpVerdict::Word::another_token;
    return handshake_.welcomed(challenge, claim, verdict);
  }

  // Listens where this rank reaches rank 0 from.
  void listen_beside(const tcp::socket& socket) {
    error_code code;
    const auto here = socket.local_endpoint(code).address();
    if (!code && here != gate_.place().address()) code = gate_.listen({here}, 0);
    if (!code) return;
    throw fault(
        fmt::format("rank {} has no port to listen on: {}", meeting_.rank, message_of(code)));
  }

  // Whether rank 0 of this run is at the port and has accepted this rank.
  bool welcomed(int port) {
    tcp::socket socket(io_);
    if (const error_code code = words_.connect(socket, hosts_, port, deadline_)) {
      why_ = message_of(code);
      return false;
    }
    listen_beside(socket);
    if (!introduced(socket)) return false;
    sockets_[0] = std::move(socket);
    return true;
  }

  static RunFault given_up(const std::string& why) { return {0, "the run was given up: " + why}; }

  void find_rank_0() {
    find_addresses();
    while (Clock::now() < deadline_) {
      if (std::ranges::any_of(meeting_.ports, [&](int port) { return welcomed(port); })) return;
      std::this_thread::sleep_for(between_tries);
    }
    if (another_token_) {
      why_ = fmt::format("who answers there has another token than rank {}: {}", meeting_.rank,
                         one_token);
    }
    throw fault(fmt::format("rank {} found no rank 0 at {} within {:g} s: {}", meeting_.rank,
                            where(), patience_.value, why_));
  }

  // Restarts the deadline: rank 0 may have started to wait for the others only now.
  std::vector<Address> table() {
    deadline_ = after(patience_.value) + a_word;
    TcpWord word{};
    const auto text = words_.hear(sockets_[0], word, deadline_);
    if (text && word == TcpWord::fault) throw given_up(*text);
    if (!text && Clock::now() < deadline_) {
      throw RunFault(0, fmt::format("rank 0 at {} is gone: its connection to rank {} ended before "
                                    "it said where the others are",
                                    where(), meeting_.rank));
    }
    if (!text) {
      throw RunFault(0,
                     fmt::format("rank {} waited {:g} s for rank 0 at {} to say where the others "
                                 "are",
                                 meeting_.rank, patience_.value, where()));
    }
    std::vector<Address> places;
    std::istringstream lines(*text);
    for (Address place; lines >> place.host >> place.port;) places.push_back(place);
    return places;
  }

  void join() {
    find_rank_0();
    const auto places = table();
    rank_0_ = words_.next(sockets_[0]);
    words_.watch(rank_0_);
    deadline_ = after(patience_.value);
    for (int rank = 1; rank < meeting_.rank; ++rank) reach(rank, places);
    receive_higher(places);
    words_.watch(nullptr);
    words_.say(sockets_[0], TcpWord::ready, "");
    await_begin();
  }

  void reach(int rank, const std::vector<Address>& places) {
    const Address& place = places.at(static_cast<std::size_t>(rank));
    while (!reached(rank, place) && Clock::now() < deadline_ && !words_.disturbed())
      words_.wait(Clock::now() + between_tries, [&] { return words_.disturbed(); });
    if (!sockets_[static_cast<std::size_t>(rank)].is_open()) give_up(unreached(rank, place));
  }

  // False when the connection was lost before the other end had welcomed this rank.
  bool reached(int rank, const Address& place) {
    tcp::socket socket(io_);
    error_code code;
    const auto host = asio::ip::make_address(place.host, code);
    if (!code) code = words_.connect(socket, {host}, place.port, deadline_);
    if (code) {
      why_ = message_of(code);
      give_up(unreached(rank, place));
    }
    if (!introduced(socket)) return false;
    sockets_[static_cast<std::size_t>(rank)] = std::move(socket);
    return true;
  }

  std::string unreached(int rank, const Address& place) const {
    return fmt::format("rank {} cannot reach rank {} at {}, port {}: {}; {}", meeting_.rank, rank,
                       place.host, place.port, why_, open_ports);
  }

  // Waits longer than those who connect, which know better what hinders them.
  void receive_higher(const std::vector<Address>& places) {
    const std::string& host = places.at(static_cast<std::size_t>(meeting_.rank)).host;
    while (!missing_ranks().empty()) {
      auto next = guest(deadline_ + a_word);
      if (!next) {
        give_up(fmt::format("rank {}: {}; {}", meeting_.rank,
                            missing(fmt::format("{}, port {}", host, gate_.place().port())),
                            open_ports));
      }
      if (const auto why = refused(next->hello); !why.empty()) give_up(why);
      sockets_[static_cast<std::size_t>(next->hello.rank)] = std::move(next->socket);
    }
  }

  void await_begin() {
    const auto deadline = after(patience_.value) + 3 * a_word;
    if (!words_.wait(deadline, [&] { return rank_0_->end.has_value(); })) {
      throw RunFault(0, fmt::format("rank {} waited {:g} s for rank 0 at {} to begin",
                                    meeting_.rank, patience_.value, where()));
    }
    heed_rank_0();
  }

  std::optional<std::string> reported_fault() {
    if (!rank_0_->is(TcpWord::fault)) return std::nullopt;
    return words_.text_behind(*rank_0_, sockets_[0]);
  }

  // Rank 0 sends nothing before all ranks are ready, unless the run is given up.
  void heed_rank_0() {
    words_.watch(nullptr);
    if (!rank_0_->end || rank_0_->is(TcpWord::begin)) return;
    if (const auto cause = reported_fault()) throw given_up(*cause);
    throw RunFault(0, fmt::format("rank 0 is gone: its connection to rank {} ended while the ranks "
                                  "connected to one another",
                                  meeting_.rank));
  }

  asio::io_context& io_;
  TcpWords words_;
  const Meeting& meeting_;
  const costmodel::Seconds patience_;
  Clock::time_point deadline_;
  const TcpHandshake handshake_;
  TcpGate gate_;
  std::vector<tcp::socket> sockets_;  // by rank
  std::vector<tcp::socket> refused_;
  std::vector<asio::ip::address> hosts_;            // rank 0's
  std::shared_ptr<const TcpWords::Coming> rank_0_;  // its message to begin, or an error
  std::string why_;                                 // what last kept this rank from another
  bool has_address_ = true;                         // rank 0: MASTER_ADDR is one of its host
  bool another_token_ = false;                      // who was taken for rank 0 has one
};

}  // namespace

std::vector<tcp::socket> meet(asio::io_context& io, const Meeting& meeting,
                              costmodel::Seconds patience) {
  return Rendezvous(io, meeting, patience).meet();
}

}  // namespace runtime
