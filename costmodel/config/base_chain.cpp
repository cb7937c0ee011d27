#include "costmodel/config/base_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/search_path.hpp"

namespace costmodel {

namespace fs = std::filesystem;

namespace {

// The files that `base:` has led through: as they were named, and as they are. One file has many
// names: ./a.yaml, ././a.yaml, a link.
struct Chain {
  std::vector<std::string> names, files;
  std::string reach;  // of the first file that names another one
};

constexpr std::size_t longest_chain = 64;

// "a.yaml -> b.yaml -> a.yaml"; the middle of a long chain is left out.
std::string chain_text(const Chain& chain) {
  constexpr std::size_t shown = 4;  // at either end
  std::vector<std::string> names;
  for (std::size_t i = 0; i < chain.names.size(); ++i) {
    const bool at_end = i < shown || i + shown >= chain.names.size();
    if (at_end) names.push_back(shortened(printable(chain.names[i])));
    if (!at_end && i == shown) names.emplace_back("...");
  }
  return fmt::format("{}", fmt::join(names, " -> "));
}

// Adds a file to the chain; throws at `mark` when it closes a ring.
void add(const std::string& file, const Mark& mark, Chain& chain) {
  std::error_code status;
  const std::string real = fs::weakly_canonical(file, status).string();
  const bool ring = std::ranges::find(chain.files, real) != chain.files.end();
  chain.names.push_back(file);
  chain.files.push_back(real);
  if (ring)
    throw ConfigError(mark, "base: goes in a circle", "break the chain " + chain_text(chain));
  if (chain.files.size() > longest_chain) {
    throw ConfigError(mark, fmt::format("base: leads through more than {} files", longest_chain),
                      "shorten the chain " + chain_text(chain));
  }
}

BaseChain follow(const ConfigPath& path, const std::string& kind, const Value& value,
                 Chain& chain) {
  if (value.is_scalar()) {
    const std::string file = find_config(path, kind, value.text, value.mark);
    add(file, value.mark, chain);
    if (chain.reach.empty()) chain.reach = reach_of(value.mark);
    check_reach(path, chain.reach, file, value.mark);
    const Value& inside = loaded(path, file);
    if (inside.is_scalar()) {  // never taken as a name: it may be any file of this machine
      throw ConfigError(inside.mark, fmt::format("this file of a {} is not a map", singular(kind)),
                        "write key: value, one a line");
    }
    BaseChain found = follow(path, kind, inside, chain);
    found.name = fs::path(file).stem().string();
    return found;
  }
  if (!value.is_map()) {
    throw ConfigError(value.mark,
                      fmt::format("{} is neither a name, a file nor a map", singular(kind)),
                      "write a name, a path or {key: value, ...}");
  }
  const Value* base = value.find("base");
  if (base == nullptr) {
    for (const auto& entry : value.entries) {
      if (!is_misspelling(entry.key, "base")) continue;
      throw ConfigError(entry.key_mark,
                        fmt::format("{} has no key {}", singular(kind), quote(entry.key)),
                        "did you mean 'base'?");
    }
    return {"", value, {}};
  }
  if (!base->is_scalar())
    throw ConfigError(base->mark, "base is not a name", "name a configuration or a file");
  BaseChain below = follow(path, kind, *base, chain);
  below.over.push_back(value);
  below.over.back().erase("base");
  return below;
}

}  // namespace

Value resolved(BaseChain chain) {
  for (const Value& over : chain.over) chain.end = merged(chain.end, over);
  return std::move(chain.end);
}

std::string singular(const std::string& kind) { return kind.substr(0, kind.size() - 1); }

BaseChain follow_bases(const ConfigPath& path, const std::string& kind, const Value& value) {
  Chain chain;
  return follow(path, kind, value, chain);
}

}  // namespace costmodel
