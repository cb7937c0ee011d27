#include "planner/exchange/hub_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/checkpoints.hpp"

namespace planner {

using namespace costmodel;

namespace {

char small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Of "..._256gpu_...".
std::string devices_in(const std::string& recipe) {
  const std::size_t end = recipe.find("gpu_");
  if (end == std::string::npos || end == 0) return "";
  const std::size_t before = recipe.find_last_not_of("0123456789", end - 1);
  const std::size_t from = before == std::string::npos ? 0 : before + 1;
  constexpr std::size_t digits = 6;
  return end - from <= digits ? recipe.substr(from, end - from) : "";
}

// Where the model's name, which stands in `name` from `at` on, ends there; npos: it does not stand
// there. Signs between letters are no matter: "llama31_405b" is llama-3.1-405b. No number goes on:
// neither qwen2_720b nor Qwen2.5 begin with Qwen2's.
std::size_t end_of_model(std::string_view name, std::size_t at, std::string_view model) {
  for (const char letter : model) {
    if (!is_word(letter)) continue;
    while (at < name.size() && !is_word(name[at])) ++at;
    if (at == name.size() || small(name[at]) != small(letter)) return std::string::npos;
    ++at;
  }
  const bool digit = at < name.size() && is_digit(name[at]);
  const bool version = at + 1 < name.size() && name[at] == '.' && is_digit(name[at + 1]);
  return digit || version ? std::string::npos : at;
}

// A name with the size of the model: "qwen3-8b", not "gpt2".
bool has_size(std::string_view model) {
  for (std::size_t at = 1; at < model.size(); ++at) {
    const bool unit = small(model[at]) == 'b' || small(model[at]) == 'm';
    const bool ends = at + 1 == model.size() || !is_word(model[at + 1]);
    if (unit && ends && is_digit(model[at - 1])) return true;
  }
  return false;
}

struct FoundModel {
  std::string model;
  bool begins = true;  // the name begins with it
};

// A debug model has its family's name and sizes of its own: "deepseek_v3-debugmodel".
bool names_debug_model(std::string_view name) {
  constexpr std::string_view word = "debug";
  const auto same = [](char a, char b) { return small(a) == small(b); };
  return std::search(name.begin(), name.end(), word.begin(), word.end(), same) != name.end();
}

// The model of ours that the name begins with, the longest: qwen2-72b, not qwen2-7b; else the
// longest that it has further on.
FoundModel model_in(std::string_view name, const std::vector<std::string>& models) {
  FoundModel best;
  std::size_t length = 0;
  if (names_debug_model(name)) return best;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (at > 0 && (is_word(name[at - 1]) || !is_word(name[at]))) continue;
    for (const std::string& model : models) {
      if (at > 0 && !has_size(model)) continue;
      const std::size_t end = end_of_model(name, at, model);
      if (end == std::string::npos || end - at <= length) continue;
      best = {model, at == 0};
      length = end - at;
    }
    if (at == 0 && length > 0) break;
  }
  return best;
}

}  // namespace

void name_model(ImportedJob& job, std::string name) {
  while (name.ends_with('/')) name.pop_back();
  name.erase(0, name.rfind('/') + 1);
  // Meta's own name of Llama 3 begins with it.
  if (name.starts_with("Meta-")) name.erase(0, std::string_view("Meta-").size());
  if (const Checkpoint* other = checkpoint_called(name); other != nullptr) {
    if (other->sizes_of.empty()) return;
    if (other->towers) {
      job.left_out.push_back(
          fmt::format("the towers of {}: it is priced as {}", other->name, other->sizes_of));
    } else {
      job.notes.push_back(fmt::format("{} has the sizes of {}", other->name, other->sizes_of));
    }
    name.replace(0, other->name.size(), other->sizes_of);
  }
  if (!name.empty()) job.recipes.push_back(std::move(name));
}

void set_model_of_recipe(ImportedJob& job, const std::vector<std::string>& models) {
  for (const std::string& recipe : job.recipes) {
    const auto devices = std::ranges::find(job.missing, "cluster.devices", &MissingKey::key);
    if (const std::string count = devices_in(recipe);
        devices != job.missing.end() && !count.empty()) {
      job.scenario.find("cluster")->set("devices", scalar_value(count));
      job.missing.erase(devices);
    }
    const auto base = std::ranges::find(job.missing, "model.base", &MissingKey::key);
    const FoundModel found = model_in(recipe, models);
    if (base == job.missing.end() || found.model.empty()) continue;
    job.scenario.set("model", scalar_value(found.model));
    job.missing.erase(base);
    job.notes.push_back(
        found.begins
            ? fmt::format("the model is {}, as the recipe {} is called", found.model,
                          shortened(recipe))
            : fmt::format("the model is taken as {}, which the name {} has in it: --set model=NAME "
                          "for another one",
                          found.model, shortened(recipe)));
  }
}

}  // namespace planner
