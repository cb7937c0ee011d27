#include "planner/batch/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t most_shards = 100'000;

// 0 for what is no number of them.
std::size_t number_of(std::string_view text) {
  const bool digits =
      !text.empty() && text.size() <= 6 &&
      std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
  return digits ? std::stoul(std::string(text)) : 0;
}

}  // namespace

Shard read_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view all(text);
  const Shard shard{number_of(all.substr(0, slash)),
                    slash < all.size() ? number_of(all.substr(slash + 1)) : 0};
  if (shard.index == 0 || shard.index > shard.count || shard.count > most_shards) {
    throw ConfigError(mark_of_argument("--shard", text), "is not one of so many parts",
                      fmt::format("write 1/4, 2/4, 3/4 and 4/4, of up to {} parts", most_shards));
  }
  return shard;
}

std::string journal_name(const Shard& shard) {
  if (shard.is_all()) return "journal.jsonl";
  return fmt::format("journal-{}-of-{}.jsonl", shard.index, shard.count);
}

bool is_part_of_journal(const std::string& name) {
  return name.starts_with("journal-") && name.ends_with(".jsonl") &&
         name.find("-of-") != std::string::npos;
}

}  // namespace planner
