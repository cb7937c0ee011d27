// The keys of a model: what is written of every model is listed, and families choose the rest.
#include "costmodel/model/model_keys.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "costmodel/base/path.hpp"
#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "costmodel/model/hf_config.hpp"
#include "costmodel/model/model_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"
#include "tests/sanitized.hpp"

namespace model_keys_test {

using namespace costmodel;

namespace {

ModelSpec read(const char* text) { return read_model(parse_yaml(text, "m.yaml"), ""); }

}  // namespace

TEST_CASE("each key is listed once, and every key of every model is") {
  std::set<std::string> names;
  for (const KeyText& key : model_keys()) CHECK(names.insert(key.name).second);
  for (const auto& name : config_names(fixtures::configs(), "models")) {
    CAPTURE(name);
    const auto found = resolve_config(fixtures::configs(), "models", scalar_value(name));
    for (const Value& map : {found.value, to_value(read_model(found.value, name))}) {
      for (const auto& entry : map.entries) {
        CAPTURE(entry.key);
        CHECK(names.contains("model." + entry.key));
      }
    }
  }
}

TEST_CASE("a family's usual choices, and those told that change the result") {
  const ModelSpec gpt = read("{kind: gpt, layers: 2, hidden: 64, heads: 4}");
  CHECK(gpt.ffn_hidden == 256);
  CHECK(gpt.positions == Positions::learned);
  CHECK(gpt.linear_bias);
  const ModelSpec llama = read("{kind: llama, layers: 2, hidden: 4096, heads: 32, vocab: 128256}");
  CHECK(llama.kv_heads == 8);
  CHECK(llama.ffn_hidden == 11'008);
  CHECK(llama.activation == ActivationFunction::silu);
  CHECK(llama.positions == Positions::rotary);
  CHECK(llama.assumed == std::vector<std::string>{"kv_heads 8", "ffn_hidden 11008",
                                                  "gated_mlp true", "tie_embeddings false",
                                                  "linear_bias false", "dropout 0"});
  const ModelSpec mamba = read("{kind: mamba, layers: 2, hidden: 128}");
  CHECK(mamba.heads == 4);
  CHECK(mamba.state_size == 128);
}

TEST_CASE("a range may depend on what is already read") {
  const auto fault = [](const char* text) { return fixtures::config_error([&] { read(text); }); };
  CHECK(fixtures::contains(
      fault("{kind: moe, layers: 2, hidden: 64, heads: 4, experts: 4, top_k: 1, ffn_hidden: 64, "
            "first_dense_layers: 3}"),
      "first_dense_layers: 3 is out of range; allowed: whole numbers 0 to 2"));
  CHECK(fixtures::contains(fault("{kind: gpt, layers: 2, hidden: 64, heads: 4, experts: 4}"),
                           "has no key 'experts'"));
}

namespace {

// A model twice: as Hugging Face's file, and as a map of ours.
struct Base {
  Value theirs, ours;
};

// With sanitizers every fourth of them.
std::vector<Base> bases() {
  std::vector<Base> all;
  int number = 0;
  const std::string folder = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/costmodel/support/hf";
  for (const FolderEntry& file : entries_of(folder)) {
    if (sanitized && number++ % 4 != 0) continue;
    const Value theirs = load_yaml(joined_path(folder, file.name));
    all.push_back({theirs, to_value(read_model(from_hf_config(theirs), "base"))});
  }
  return all;
}

// Those that state a key, two at most, and every eighth of the others, others for each key, or
// every third where none states it; and those with an encoder, whose keys have usual values.
std::vector<Base> for_key(const std::vector<Base>& all, std::string_view key) {
  std::vector<Base> chosen;
  const auto has = [key](const Base& base) { return base.ours.find(key) != nullptr; };
  const std::size_t step = std::ranges::any_of(all, has) ? 8 : 3;
  int stated = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool encodes = all[i].ours.find("kind")->text == "t5";
    if (encodes || (has(all[i]) && stated++ < 2) || (i + key.size()) % step == 0)
      chosen.push_back(all[i]);
  }
  return chosen;
}

// Values to try for a key, by what it may be: words themselves, numbers of a range, else letters.
std::vector<std::string> samples(const std::string& allowed) {
  if (allowed.starts_with("text")) return {"F", "DF", "SF", "M*-", "words"};
  if (allowed.find(" to ") != std::string::npos) return {"0", "0.5", "1", "2", "8", "64", "4096"};
  std::vector<std::string> words;
  std::istringstream list(allowed.substr(0, allowed.find(';')));
  for (std::string word; list >> word;) words.push_back(word.substr(0, word.find(',')));
  return words;
}

// All that a model states; "refused" where the map is none. Which fault is found first depends on
// the order in which a file has its keys.
std::string effect(const Value& map) {
  try {
    const ModelSpec m = read_model(map, "base");
    return fmt::format("{}{} {} {}", to_yaml(to_value(m)), m.title,
                       m.published_parameters.value_or(0), fmt::join(m.assumed, ", "));
  } catch (const ConfigError&) {
    return "refused";
  }
}

Value assignment(std::string_view key, const std::string& value) {
  return parse_yaml(fmt::format("{{{}: {}}}", key, value), "s.yaml");
}

}  // namespace

TEST_CASE("each key does over a Hugging Face file what it does over a file of ours") {
  const auto models = bases();
  REQUIRE(models.size() > (sanitized ? 5 : 20));
  for (const KeyText& key : model_keys()) {
    const std::string name = key.name.substr(key.name.find('.') + 1);
    if (key.allowed.starts_with("a map") || !is_model_key(name)) continue;  // a tower's
    CAPTURE(name);
    int accepted = 0, changed = 0;
    for (const Base& base : for_key(models, name)) {
      const std::string as_it_is = effect(base.ours);
      for (const std::string& value : samples(key.allowed)) {
        CAPTURE(value);
        CAPTURE(base.theirs.find("model_type")->text);
        const Value over = assignment(name, value);
        const std::string ours = effect(merged(base.ours, over));
        CHECK(effect(from_hf_config(base.theirs, over, "base")) == ours);
        accepted += ours == "refused" ? 0 : 1;
        changed += ours == "refused" || ours == as_it_is ? 0 : 1;
      }
    }
    CHECK((sanitized || accepted > 0));
    CHECK((sanitized || changed > 0 || name == "published_note"));  // which is kept nowhere
  }
}

TEST_CASE("a misspelt key is refused over a file of either kind, and the nearest is named") {
  const auto models = bases();
  for (const std::string_view name : model_key_names()) {
    const std::string wrong = std::string(name) + name.back();
    CAPTURE(wrong);
    const Value over = assignment(wrong, "1");
    const std::string fault = fmt::format("s.yaml:1:2: model 'base' has no key '{}'; ", wrong);
    const std::string remedy = fmt::format("did you mean '{}'?", name);
    int named = 0;
    for (const Base& base : for_key(models, name)) {
      const auto refused = [&](const Value& map) {
        return fixtures::config_error([&] { read_model(map, "base"); });
      };
      const std::string theirs =
          fixtures::config_error([&] { from_hf_config(base.theirs, over, "base"); });
      CHECK(fixtures::contains(theirs, fault + remedy));
      const std::string ours = refused(merged(base.ours, over));
      CHECK(fixtures::contains(ours, fault));
      named += fixtures::contains(ours, remedy) ? 1 : 0;
    }
    CHECK((sanitized || named > 0));  // by the models that have the key
  }
}

}  // namespace model_keys_test
