#include "runtime/tcp_rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

#include "runtime/launch.hpp"
#include "runtime/transport.hpp"

namespace runtime {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr int ports_behind_a_store = 8;
constexpr int last_port = 65535;
constexpr auto a_word = std::chrono::seconds(2);  // how long one short message may take

// What a process says first. All ranks run the same program on the same kind of machine.
struct Hello {
  std::array<char, 8> magic{'s', 'h', 'a', 'r', 'd', 'p', 'l', '1'};
  std::uint64_t run = 0;  // a hash of Meeting::run
  std::int32_t rank = 0, world = 0, port = 0;
};

enum class Word : char { welcome = 'w', table = 't', fault = 'f' };

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

// Where a rank listens; "-": on rank 0's host.
struct Address {
  std::string host = "-";
  int port = 0;
};

class Rendezvous {
 public:
  Rendezvous(asio::io_context& io, const Meeting& meeting, costmodel::Seconds patience)
      : io_(io),
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

  // Begins something on `object` and waits for its end. False where it failed, or was not done
  // until `deadline`, when `object` is closed.
  template <class Object, class Begin>
  bool done(Object& object, Clock::time_point deadline, Begin begin) {
    std::optional<error_code> end;
    begin([&end](const error_code& code, auto&&...) { end = code; });
    io_.restart();
    while (!end && io_.run_one_until(deadline) > 0) {
    }
    if (!end) {
      error_code ignored;
      object.close(ignored);
      while (!end) io_.run_one();
    }
    return !*end;
  }

  bool read(tcp::socket& from, asio::mutable_buffer into, Clock::time_point deadline) {
    return done(from, deadline, [&](auto then) { asio::async_read(from, into, then); });
  }
  bool write(tcp::socket& to, asio::const_buffer bytes) {
    return done(to, Clock::now() + a_word, [&](auto then) { asio::async_write(to, bytes, then); });
  }

  bool say(tcp::socket& to, Word word, const std::string& text) {
    const std::uint64_t size = text.size();
    return write(to, asio::buffer(&word, 1)) && write(to, asio::buffer(&size, sizeof size)) &&
           write(to, asio::buffer(text));
  }

  std::optional<std::string> hear(tcp::socket& from, Word& word, Clock::time_point deadline) {
    std::uint64_t size = 0;
    if (!read(from, asio::buffer(&word, 1), deadline) ||
        !read(from, asio::buffer(&size, sizeof size), Clock::now() + a_word) || size > (1U << 24U))
      return std::nullopt;
    std::string text(size, ' ');
    if (!read(from, asio::buffer(text), Clock::now() + a_word)) return std::nullopt;
    return text;
  }

  // Ranks that are all on one host listen to nobody else.
  bool on_one_host() const {
    return meeting_.host == "localhost" || meeting_.host == "::1" ||
           meeting_.host.starts_with("127.");
  }

  // False where the port is taken.
  bool listen(int port) {
    const auto number = static_cast<unsigned short>(port);
    const bool alone = on_one_host(), six = !alone || meeting_.host == "::1";
    const auto at = [&](bool version_six) -> tcp::endpoint {
      using asio::ip::address_v4, asio::ip::address_v6;
      if (version_six) return {alone ? address_v6::loopback() : address_v6::any(), number};
      return {alone ? address_v4::loopback() : address_v4::any(), number};
    };
    return bind(at(six)) || (six && !alone && bind(at(false)));
  }

  // An endpoint of IPv6 hears IPv4 too.
  bool bind(const tcp::endpoint& at) {
    error_code code, ignored;
    listener_ = tcp::acceptor(io_);
    listener_.open(at.protocol(), code);
    if (!code) listener_.set_option(tcp::acceptor::reuse_address(true), ignored);
    if (!code && at.protocol() == tcp::v6())
      listener_.set_option(asio::ip::v6_only(false), ignored);
    if (!code) listener_.bind(at, code);
    if (!code) listener_.listen(asio::socket_base::max_listen_connections, code);
    return !code;
  }

  // The next who says to be a rank of this run; nobody where none came until the deadline.
  std::optional<std::pair<tcp::socket, Hello>> accepted() {
    while (Clock::now() < deadline_) {
      tcp::socket socket(io_);
      Hello hello;
      const bool came =
          done(listener_, deadline_, [&](auto then) { listener_.async_accept(socket, then); });
      if (!came || !read(socket, asio::buffer(&hello, sizeof hello), Clock::now() + a_word))
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

  // Says it to all who have come.
  [[noreturn]] void give_up(const std::string& what) {
    for (auto* const sockets : {&sockets_, &refused_}) {
      for (tcp::socket& socket : *sockets)
        if (socket.is_open()) say(socket, Word::fault, what);
    }
    throw fault(what);
  }

  std::string missing() const {
    std::vector<int> ranks;
    for (int rank = meeting_.rank + 1; rank < meeting_.world; ++rank)
      if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
    return fmt::format("rank{} {} of {} did not come to {} within {:g} s",
                       ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "), meeting_.world,
                       where(), patience_.value);
  }

  void receive_all() {
    if (std::ranges::none_of(meeting_.ports, [&](int port) { return listen(port); }))
      throw fault(fmt::format("rank 0 cannot listen at {}: the port is taken", where()));
    std::vector<Address> places(sockets_.size());
    std::string reason;  // to give up, which all who come shall hear
    for (int others = meeting_.world - 1; others > 0;) {
      auto next = accepted();
      if (!next) give_up(reason.empty() ? missing() : reason);
      auto& [socket, hello] = *next;
      error_code gone;
      const auto address = socket.remote_endpoint(gone).address();
      if (gone || !say(socket, Word::welcome, "")) continue;
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
      if (socket.is_open()) say(socket, Word::table, table);
  }

  static bool is_here(const asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped())
      return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
    return address.is_loopback();
  }

  bool connect(tcp::socket& socket, const std::string& host, int port) {
    tcp::resolver resolver(io_);
    error_code code;
    const auto found = resolver.resolve(host, std::to_string(port), code);
    if (code) return false;
    const auto deadline = std::min(deadline_, Clock::now() + a_word);
    return done(socket, deadline, [&](auto then) { asio::async_connect(socket, found, then); });
  }

  Hello own() const {
    Hello hello;
    hello.run = run_;
    hello.rank = meeting_.rank;
    hello.world = meeting_.world;
    hello.port = listener_.local_endpoint().port();
    return hello;
  }

  // Whether rank 0 of this run is at the port and has heard of this rank.
  bool welcomed(int port) {
    tcp::socket socket(io_);
    const Hello hello = own();
    if (!connect(socket, meeting_.host, port) || !write(socket, asio::buffer(&hello, sizeof hello)))
      return false;
    Word word{};
    const auto text = hear(socket, word, Clock::now() + a_word);
    if (text && word == Word::fault) throw given_up(*text);
    if (!text || word != Word::welcome) return false;
    sockets_[0] = std::move(socket);
    return true;
  }

  static RunFault given_up(const std::string& why) { return {0, "the run was given up: " + why}; }

  void find_rank_0() {
    while (Clock::now() < deadline_) {
      for (const int port : meeting_.ports)
        if (welcomed(port)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    throw fault(fmt::format("rank {} found no rank 0 at {} within {:g} s", meeting_.rank, where(),
                            patience_.value));
  }

  // Rank 0 may have begun to wait for the others only now.
  std::vector<Address> table() {
    deadline_ = after(patience_.value) + a_word;
    Word word{};
    const auto text = hear(sockets_[0], word, deadline_);
    if (text && word == Word::fault) throw given_up(*text);
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
    if (!listen(0)) throw fault(fmt::format("rank {} has no port to listen on", meeting_.rank));
    find_rank_0();
    const auto places = table();
    const std::string first = sockets_[0].remote_endpoint().address().to_string();
    const Hello hello = own();
    for (int rank = 1; rank < meeting_.rank; ++rank) {
      const Address& place = places.at(static_cast<std::size_t>(rank));
      tcp::socket socket(io_);
      if (!connect(socket, place.host == "-" ? first : place.host, place.port) ||
          !write(socket, asio::buffer(&hello, sizeof hello))) {
        throw RunFault(rank, fmt::format("rank {} cannot reach rank {} at {}, port {}",
                                         meeting_.rank, rank, place.host, place.port));
      }
      sockets_[static_cast<std::size_t>(rank)] = std::move(socket);
    }
    for (int others = meeting_.world - meeting_.rank - 1; others > 0; --others) {
      auto next = accepted();
      if (!next) throw fault(fmt::format("rank {}: {}", meeting_.rank, missing()));
      if (const auto why = refused(next->second); !why.empty()) throw fault(why);
      sockets_[static_cast<std::size_t>(next->second.rank)] = std::move(next->first);
    }
  }

  asio::io_context& io_;
  const Meeting& meeting_;
  const costmodel::Seconds patience_;
  Clock::time_point deadline_;
  tcp::acceptor listener_;
  const std::uint64_t run_;
  std::vector<tcp::socket> sockets_;  // by rank
  std::vector<tcp::socket> refused_;
};

std::string in_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Meeting meeting() {
  const auto who = launched_by_torchrun();
  if (!who) {
    throw RunFault(0,
                   "ranks of --backend tcp find one another by RANK, WORLD_SIZE, MASTER_ADDR and "
                   "MASTER_PORT: start them by torchrun --no-python, which sets these");
  }
  Meeting meeting{who->rank, who->world, in_environment("MASTER_ADDR"), {}, {}};
  const std::string text = in_environment("MASTER_PORT");
  int port = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (wrong != std::errc() || end != text.data() + text.size() || port < 1 || port > last_port)
    throw RunFault(who->rank, fmt::format("MASTER_PORT '{}' is no port", text));
  const bool store = in_environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!store) meeting.ports.push_back(port);
  const int step = port + ports_behind_a_store > last_port ? -1 : 1;
  for (int k = 1; store && k <= ports_behind_a_store; ++k) meeting.ports.push_back(port + step * k);
  meeting.run = fmt::format("{} {} {}", port, in_environment("TORCHELASTIC_RUN_ID"),
                            in_environment("TORCHELASTIC_RESTART_COUNT"));
  return meeting;
}

std::vector<tcp::socket> meet(asio::io_context& io, const Meeting& meeting,
                              costmodel::Seconds patience) {
  return Rendezvous(io, meeting, patience).meet();
}

}  // namespace runtime
