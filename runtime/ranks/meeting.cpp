#include "runtime/ranks/meeting.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>

#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

namespace {

constexpr int ports_behind_a_store = 8;
constexpr int last_port = 65535;
constexpr std::size_t shortest_token = 16;

std::string in_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// 0 when it is not a number from 1 to `most`.
int number_in_environment(const char* name, int most) {
  const std::string text = in_environment(name);
  int number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = wrong == std::errc() && end == text.data() + text.size();
  return whole && number >= 1 && number <= most ? number : 0;
}

std::string token_of(int rank) {
  std::string token = in_environment("SHARDPLAN_TOKEN");
  if (token.empty() || token.size() >= shortest_token) return token;
  throw RunFault(rank, fmt::format("SHARDPLAN_TOKEN has {} characters, which is easily guessed: "
                                   "give all ranks one of {} at least, such as openssl rand -hex "
                                   "16 prints",
                                   token.size(), shortest_token));
}

}  // namespace

Meeting meeting() {
  const auto who = launched_by_torchrun();
  if (!who) {
    throw RunFault(0,
                   "ranks of --backend tcp find one another by RANK, WORLD_SIZE, MASTER_ADDR and "
                   "MASTER_PORT: start them by torchrun --no-python, which sets these");
  }
  Meeting meeting{.rank = who->rank, .world = who->world, .host = in_environment("MASTER_ADDR")};
  const int port = number_in_environment("MASTER_PORT", last_port);
  if (port == 0) {
    throw RunFault(who->rank,
                   fmt::format("MASTER_PORT '{}' is no port", in_environment("MASTER_PORT")));
  }
  meeting.token = token_of(who->rank);
  meeting.ranks_here = number_in_environment("LOCAL_WORLD_SIZE", who->world);
  const bool store = in_environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!store) meeting.ports.push_back(port);
  const int step = port + ports_behind_a_store > last_port ? -1 : 1;
  for (int k = 1; store && k <= ports_behind_a_store; ++k) meeting.ports.push_back(port + step * k);
  meeting.run = fmt::format("{} {} {}", port, in_environment("TORCHELASTIC_RUN_ID"),
                            in_environment("TORCHELASTIC_RESTART_COUNT"));
  return meeting;
}

}  // namespace runtime
