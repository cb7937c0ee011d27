#include "planner/frameworks/framework_words.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "costmodel/config/map_reader.hpp"
#include "costmodel/config/search_path.hpp"

namespace planner {

using namespace costmodel;

namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::unique_ptr<FrameworkWords> read_words(const std::string& program) {
  const ConfigPath path = config_path({});
  auto out = std::make_unique<FrameworkWords>();
  out->source = loaded(path, find_config(path, "frameworks", program, {}));
  MapReader reader(out->source, "framework " + program);
  if (const Value* harmless = reader.optional("harmless")) out->harmless = split(harmless->text);
  if (const Value* words = reader.optional("words")) {
    for (const auto& entry : words->entries) out->words.emplace_back(entry.key, entry.value.text);
  }
  if (const Value* rows = reader.optional("rows")) {
    for (const Value& row : rows->items) out->rows.push_back(split(row.text));
  }
  reader.finish();
  return out;
}

}  // namespace

std::string_view FrameworkWords::read_as(std::string_view name) const {
  const auto found = std::ranges::find(words, name, [](const auto& pair) { return pair.first; });
  return found == words.end() ? name : found->second;
}

const FrameworkWords& framework_words(const std::string& program) {
  static std::mutex one_reader;
  static std::map<std::string, std::unique_ptr<FrameworkWords>> read;
  const std::scoped_lock lock(one_reader);
  auto& words = read[program];
  if (words == nullptr) words = read_words(program);
  return *words;
}

}  // namespace planner
