#include "runtime/ranks/tcp_rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "runtime/backend/transport.hpp"
#include "runtime/ranks/tcp_messages.hpp"

namespace runtime {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto a_word = TcpWords::moment;
constexpr std::chrono::milliseconds settling{250};  // to collect causes that occur together

// A process's first message. All ranks run the same program on the same kind of machine.
struct Hello {
  std::array<char, 8> magic{'s', 'h', 'a', 'r', 'd', 'p', 'l', '1'};
  std::uint64_t run = 0;  // a hash of Meeting::run
  std::int32_t rank = 0, world = 0, port = 0;
};

constexpr const char* open_ports =
    "each two ranks connect, at any port that is free: open all ports between their hosts";

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// A rank's address; "-": on rank 0's host.
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
        listener_(io),
        run_(hash_of(meeting.run)) {
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

  // When all ranks are on one host, only that host is listened to.
  bool on_one_host() const {
    return meeting_.host == "localhost" || meeting_.host == "::1" ||
           meeting_.host.starts_with("127.");
  }

  // False on failure; last_ has the error.
  bool listen(int port) {
    using asio::ip::address_v4, asio::ip::address_v6;
    std::vector<asio::ip::address> at{address_v6::any(), address_v4::any()};
    if (on_one_host()) at = {address_v4::loopback()};
    if (meeting_.host == "::1") at = {address_v6::loopback()};
    last_ = TcpWords::listen(listener_, at, port);
    return !last_;
  }

  // The next connection that claims to be a rank of this run; nothing when none arrived before the
  // deadline, or rank 0 sent something.
  std::optional<std::pair<tcp::socket, Hello>> accepted() {
    while (Clock::now() < deadline_) {
      tcp::socket socket(io_);
      Hello hello;
      const error_code code = words_.accept(listener_, socket, deadline_);
      if (code == asio::error::timed_out) return std::nullopt;
      if (code && code != asio::error::connection_aborted) {
        give_up(
            fmt::format("rank {} cannot take connections: {}", meeting_.rank, message_of(code)));
      }
      if (code || words_.read(socket, asio::buffer(&hello, sizeof hello), Clock::now() + a_word))
        continue;
      if (hello.magic == Hello().magic && hello.run == run_)
        return std::pair(std::move(socket), hello);
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

  std::string refused(const Hello& hello) {
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
      if (const auto cause = told_fault(); cause && *cause != what) throw given_up(*cause);
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

  std::string missing(const std::string& at) const {
    std::vector<int> ranks;
    for (int rank = meeting_.rank + 1; rank < meeting_.world; ++rank)
      if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    return fmt::format("rank{} {} of {} did not come to {} within {:g} s",
                       ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), meeting_.world, at,
                       patience_.value);
  }

  void receive_all() {
    if (std::ranges::none_of(meeting_.ports, [&](int port) { return listen(port); })) {
      throw fault(fmt::format("rank 0 cannot listen at {}: {}; choose another MASTER_PORT", where(),
                              message_of(last_)));
    }
    std::vector<Address> places(sockets_.size());
    std::string reason;  // why to give up; sent to every rank that connects
    for (int others = meeting_.world - 1; others > 0;) {
      auto next = accepted();
      if (!next) give_up(reason.empty() ? missing(where()) : reason);
      auto& [socket, hello] = *next;
      error_code gone;
      const auto address = socket.remote_endpoint(gone).address();
      if (gone || !words_.say(socket, TcpWord::welcome, "")) continue;
      if (const auto why = refused(hello); !why.empty()) {
        if (reason.empty()) reason = why;
        refused_.push_back(std::move(socket));
        --others;
        continue;
      }
      const auto rank = static_cast<std::size_t>(hello.rank);
      if (!sockets_[rank].is_open()) --others;
      places[rank] = {is_here(address) ? "-" : address.to_string(), hello.port};
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
    words_.wait(after(patience_.value) + a_word,
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

  static bool is_here(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped())
      return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
    return address.is_loopback();
  }

  // Resolves rank 0's name until it succeeds once.
  bool knows_rank_0() {
    if (!hosts_.empty()) return true;
    for (const auto& entry : tcp::resolver(io_).resolve(meeting_.host, "", last_))
      hosts_.push_back(entry.endpoint().address());
    return !hosts_.empty();
  }

  Hello own() const {
    Hello hello;
    hello.run = run_;
    hello.rank = meeting_.rank;
    hello.world = meeting_.world;
    hello.port = port_;
    return hello;
  }

  // Whether rank 0 of this run is at the port and has accepted this rank.
  bool welcomed(int port) {
    tcp::socket socket(io_);
    const Hello hello = own();
    last_ = words_.connect(socket, hosts_, port, deadline_);
    if (last_ || words_.write(socket, asio::buffer(&hello, sizeof hello))) return false;
    TcpWord word{};
    const auto text = words_.hear(socket, word, Clock::now() + a_word);
    if (text && word == TcpWord::fault) throw given_up(*text);
    if (!text || word != TcpWord::welcome) return false;
    sockets_[0] = std::move(socket);
    return true;
  }

  static RunFault given_up(const std::string& why) { return {0, "the run was given up: " + why}; }

  void find_rank_0() {
    while (Clock::now() < deadline_) {
      if (knows_rank_0() &&
          std::ranges::any_of(meeting_.ports, [&](int port) { return welcomed(port); }))
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    throw fault(fmt::format("rank {} found no rank 0 at {} within {:g} s: {}", meeting_.rank,
                            where(), patience_.value,
                            last_ ? message_of(last_) : "who answers there is none of this run"));
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
    if (!listen(0)) {
      throw fault(
          fmt::format("rank {} has no port to listen on: {}", meeting_.rank, message_of(last_)));
    }
    port_ = listener_.local_endpoint().port();
    find_rank_0();
    auto places = table();
    error_code gone;  // which the pending message will report
    const std::string rank_0s_host = sockets_[0].remote_endpoint(gone).address().to_string();
    for (Address& place : places)
      if (place.host == "-") place.host = rank_0s_host;
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
    const Hello hello = own();
    tcp::socket socket(io_);
    error_code code;
    const auto host = asio::ip::make_address(place.host, code);
    if (!code) code = words_.connect(socket, {host}, place.port, deadline_);
    if (!code) code = words_.write(socket, asio::buffer(&hello, sizeof hello));
    if (code) {
      give_up(fmt::format("rank {} cannot reach rank {} at {}, port {}: {}; {}", meeting_.rank,
                          rank, place.host, place.port, message_of(code), open_ports));
    }
    sockets_[static_cast<std::size_t>(rank)] = std::move(socket);
  }

  void receive_higher(const std::vector<Address>& places) {
    const std::string& host = places.at(static_cast<std::size_t>(meeting_.rank)).host;
    for (int others = meeting_.world - meeting_.rank - 1; others > 0; --others) {
      auto next = accepted();
      if (!next) {
        give_up(fmt::format("rank {}: {}; {}", meeting_.rank,
                            missing(fmt::format("{}, port {}", host, port_)), open_ports));
      }
      if (const auto why = refused(next->second); !why.empty()) give_up(why);
      sockets_[static_cast<std::size_t>(next->second.rank)] = std::move(next->first);
    }
  }

  void await_begin() {
    const auto deadline = after(patience_.value) + 2 * a_word;
    if (!words_.wait(deadline, [&] { return rank_0_->end.has_value(); })) {
      throw RunFault(0, fmt::format("rank {} waited {:g} s for rank 0 at {} to begin",
                                    meeting_.rank, patience_.value, where()));
    }
    heed_rank_0();
  }

  std::optional<std::string> told_fault() {
    if (!rank_0_->is(TcpWord::fault)) return std::nullopt;
    return words_.text_behind(*rank_0_, sockets_[0]);
  }

  // Rank 0 sends nothing before all ranks are ready, unless the run is given up.
  void heed_rank_0() {
    words_.watch(nullptr);
    if (!rank_0_->end || rank_0_->is(TcpWord::begin)) return;
    if (const auto cause = told_fault()) throw given_up(*cause);
    throw RunFault(0, fmt::format("rank 0 is gone: its connection to rank {} ended while the ranks "
                                  "connected to one another",
                                  meeting_.rank));
  }

  asio::io_context& io_;
  TcpWords words_;
  const Meeting& meeting_;
  const costmodel::Seconds patience_;
  Clock::time_point deadline_;
  tcp::acceptor listener_;
  int port_ = 0;  // the port that a rank other than 0 listens on
  const std::uint64_t run_;
  std::vector<tcp::socket> sockets_;  // by rank
  std::vector<tcp::socket> refused_;
  std::vector<asio::ip::address> hosts_;            // rank 0's
  std::shared_ptr<const TcpWords::Coming> rank_0_;  // its message to begin, or an error
  error_code last_;                                 // the last error
};

}  // namespace

std::vector<tcp::socket> meet(asio::io_context& io, const Meeting& meeting,
                              costmodel::Seconds patience) {
  return Rendezvous(io, meeting, patience).meet();
}

}  // namespace runtime
