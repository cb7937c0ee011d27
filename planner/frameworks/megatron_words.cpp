#include "planner/frameworks/megatron_words.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "costmodel/base/error.hpp"
#include "planner/frameworks/framework_version.hpp"
#include "planner/frameworks/framework_words.hpp"

namespace planner {

namespace {

WordOf word_of(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{
      "any_job", "latent_attention", "experts", "rotary", "mtp", "scan", "delta_net"};
  const auto* const at = std::ranges::find(names, name);
  SHARDPLAN_CHECK(at != names.end());
  return static_cast<WordOf>(at - names.begin());
}

std::vector<MegatronWord> read_megatron_rows() {
  static std::vector<std::string> flags;  // with their dashes
  const auto& rows = framework_words("megatron").rows;
  flags.reserve(rows.size());
  std::vector<MegatronWord> words;
  for (const auto& row : rows) {
    SHARDPLAN_CHECK(row.size() >= 2);
    flags.push_back("--" + std::string(row[0]));
    const bool on = row.back() == "switch";
    const std::string_view kind = row.size() > (on ? 3 : 2) ? row[2] : "any_job";
    words.push_back({flags.back(), row[1], word_of(kind), on});
  }
  return words;
}

const std::vector<MegatronWord>& all_words() {
  static const std::vector<MegatronWord> words = read_megatron_rows();
  return words;
}

}  // namespace

std::span<const MegatronWord> megatron_words() { return all_words(); }

bool has_megatron_flag(std::string_view key) {
  return std::ranges::count(all_words(), key, &MegatronWord::key) > 0;
}

std::string_view megatron_flag(std::string_view key) {
  const auto found = std::ranges::find(all_words(), key, &MegatronWord::key);
  SHARDPLAN_CHECK(found != all_words().end());
  return found->flag;
}

bool is_megatron_flag(std::string_view flag) {
  return framework_version("megatron").has_flag(flag);
}

bool is_harmless_to_megatron(std::string_view flag) {
  return framework_version("megatron").is_harmless(flag);
}

bool is_harmless_to_forks(std::string_view flag) {
  if (!flag.starts_with("--")) return false;
  const auto& words = framework_words("megatron").harmless;
  return std::ranges::find(words, flag.substr(2)) != words.end();
}

}  // namespace planner
