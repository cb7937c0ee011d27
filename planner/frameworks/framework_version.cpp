#include "planner/frameworks/framework_version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>

#include "costmodel/base/error.hpp"
#include "costmodel/base/escape.hpp"
#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/search_path.hpp"

namespace planner {

using namespace costmodel;

namespace {

using Words = std::vector<std::string>;

const ConfigPath& files() {
  static const ConfigPath path = config_path({});
  return path;
}

Words split_words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Words sorted_words(MapReader& reader, std::string_view key) {
  Words words = split_words(reader.text(key).value_or(""));
  std::ranges::sort(words);
  return words;
}

// The items of a list of maps, each read by `read`.
template <class Item, class Read>
std::vector<Item> rows_of(MapReader& reader, std::string_view key, const std::string& what,
                          Read read) {
  std::vector<Item> rows;
  const Value* list = reader.optional(key);
  if (list == nullptr) return rows;
  for (const Value& item : list->items) {
    MapReader row(item, what);
    rows.push_back(read(row));
    row.finish();
  }
  return rows;
}

// What the file of a release has; its flags are those of the release before it, with changes.
FrameworkVersion read_version(const std::string& file, const FrameworkVersion* before) {
  const Value& written = loaded(files(), file);
  MapReader reader(written, fmt::format("framework {}", quote(file)));
  FrameworkVersion v;
  reader.optional("base");
  reader.optional("commit");
  v.title = read_text(reader.required("title"), "title");
  const auto word = [](MapReader& row, const char* key) { return row.text(key).value_or(""); };
  v.flags = before == nullptr ? sorted_words(reader, "flags") : before->flags;
  const Words added = sorted_words(reader, "added"), removed = sorted_words(reader, "removed");
  v.flags.insert(v.flags.end(), added.begin(), added.end());
  std::ranges::sort(v.flags);
  std::erase_if(v.flags, [&](const auto& f) { return std::ranges::binary_search(removed, f); });
  if (const Value* patterns = reader.optional("harmless")) {
    for (const Value& group : patterns->items)
      std::ranges::move(split_words(group.text), std::back_inserter(v.harmless));
  } else if (before != nullptr) {
    v.harmless = before->harmless;
  }
  v.instead = rows_of<OtherWord>(reader, "instead", "word", [&](MapReader& row) {
    return OtherWord{word(row, "flag"), word(row, "use"), word(row, "with")};
  });
  v.conditions = rows_of<FlagCondition>(reader, "conditions", "condition", [&](MapReader& row) {
    return FlagCondition{word(row, "given"), word(row, "needs"), word(row, "excludes"),
                         word(row, "source")};
  });
  v.unset = rows_of<UnsetVariable>(reader, "unset", "variable", [&](MapReader& row) {
    return UnsetVariable{word(row, "given"), word(row, "name"), word(row, "source")};
  });
  v.null_tokenizer_adds = reader.integer("null_tokenizer_adds", {0, 1000}).value_or(0);
  reader.finish();
  return v;
}

constexpr int longest_chain = 64;  // of releases, each with the one before it as its base

FrameworkVersion chained(const std::string& name, int depth) {
  const std::string file = find_config(files(), "frameworks", name, {});
  const Value* base = loaded(files(), file).find("base");
  if (depth > longest_chain)
    throw ConfigError({file, 0, 0}, "its bases lead nowhere", "name the release before it");
  if (base == nullptr) return read_version(file, nullptr);
  const FrameworkVersion before = chained(base->text, depth + 1);
  return read_version(file, &before);
}

// "--flag value" has the flag, or begins with it and its value.
bool is_word(const std::string& argument, const std::string& word) {
  const std::string dashed = "--" + word;
  return argument == dashed || argument.starts_with(dashed + " ");
}

bool holds(const Words& arguments, const std::string& word) {
  return std::ranges::any_of(arguments, [&](const auto& a) { return is_word(a, word); });
}

void refuse_clashes(const FrameworkVersion& version, const Words& arguments) {
  for (const FlagCondition& rule : version.conditions) {
    const bool lacks = !rule.needs.empty() && !holds(arguments, rule.needs);
    const bool clashes = !rule.excludes.empty() && holds(arguments, rule.excludes);
    if (!holds(arguments, rule.given) || !(lacks || clashes)) continue;
    throw ConfigError(
        {},
        fmt::format("{} refuses --{} with{} --{} ({})", version.title, rule.given,
                    lacks ? "out" : "", lacks ? rule.needs : rule.excludes, rule.source),
        "plan without one of them");
  }
}

std::string flag_of(const std::string& argument) { return argument.substr(0, argument.find(' ')); }

}  // namespace

bool FrameworkVersion::has_flag(std::string_view flag) const {
  return flag.starts_with("--") && std::ranges::binary_search(flags, flag.substr(2), std::less<>());
}

bool FrameworkVersion::is_harmless(std::string_view flag) const {
  flag.remove_prefix(std::min<std::size_t>(2, flag.size()));
  return std::ranges::any_of(harmless, [&](std::string_view pattern) {
    return pattern.ends_with('*') ? flag.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : flag == pattern;
  });
}

std::vector<std::string> framework_versions(const std::string& target) {
  std::vector<std::string> names;
  for (const std::string& name : config_names(files(), "frameworks"))
    if (name.starts_with(target + "-")) names.push_back(name.substr(target.size() + 1));
  return names;
}

const FrameworkVersion& framework_version(const std::string& target, const std::string& name) {
  static std::mutex one_reader;
  static std::map<std::string, FrameworkVersion> read;
  const std::scoped_lock lock(one_reader);
  const std::string key = target + "-" + name;
  if (const auto found = read.find(key); found != read.end()) return found->second;
  const auto all = framework_versions(target);
  if (all.empty() || (!name.empty() && std::ranges::find(all, name) == all.end())) {
    throw ConfigError({}, fmt::format("there is no version {} of {}", quote(name), target),
                      fmt::format("known: {}", fmt::join(all, ", ")));
  }
  const std::string& chosen = name.empty() ? all.back() : name;
  FrameworkVersion version = chained(target + "-" + chosen, 0);
  version.name = chosen;
  return read.emplace(key, std::move(version)).first->second;
}

std::vector<std::string> write_for(const FrameworkVersion& version, FrameworkCall& call) {
  Words notes;
  const Words before = call.arguments;
  for (std::string& argument : call.arguments) {
    const auto other = std::ranges::find_if(version.instead, [&](const OtherWord& word) {
      return is_word(argument, word.flag) && (word.with.empty() || holds(before, word.with));
    });
    const std::string flag = flag_of(argument);
    if (other != version.instead.end() && other->use.empty()) {
      argument.clear();  // of itself
    } else if (other != version.instead.end()) {
      argument = "--" + other->use + argument.substr(other->flag.size() + 2);
      notes.push_back(fmt::format("{} has --{} for --{}", version.title, other->use, other->flag));
    } else if (!version.has_flag(flag)) {
      throw ConfigError({}, fmt::format("{} has no {}", version.title, flag),
                        "export for a later version, or plan without what it stands for");
    }
  }
  std::erase(call.arguments, "");
  refuse_clashes(version, call.arguments);
  for (const UnsetVariable& rule : version.unset) {
    const auto is_it = [&](const std::string& one) { return one.starts_with(rule.name + "="); };
    if (holds(call.arguments, rule.given) && std::erase_if(call.environment, is_it) > 0) {
      notes.push_back(fmt::format("{} refuses {} with --{} ({})", version.title, rule.name,
                                  rule.given, rule.source));
    }
  }
  return notes;
}

}  // namespace planner
