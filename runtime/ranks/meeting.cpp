#include "runtime/ranks/meeting.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "runtime/backend/transport.hpp"
#include "runtime/ranks/launch.hpp"

namespace runtime {

namespace {

constexpr int ports_behind_a_store = 8;
constexpr int last_port = 65535;

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

}  // namespace runtime
