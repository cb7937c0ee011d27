#include "costmodel/model/tower_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "costmodel/base/escape.hpp"
#include "costmodel/config/key.hpp"

namespace costmodel {

namespace {

using T = TowerSpec;

constexpr IntegerRange pixels{1, 16'384}, some_layers{0, 100'000};

std::string_view name_of(TowerInput input) { return tower_names[static_cast<std::size_t>(input)]; }

Key<T> number(std::string_view name, std::int64_t T::*field, IntegerRange range,
              std::string_view help) {
  return key::whole<T>(name, field, range, help);
}

Key<T> steps(std::string_view name, std::vector<TowerStep> T::*field, std::string_view help) {
  return key::special<T>(name, steps_help, help, [=](MapReader& reader, T& tower) {
    const Value* const list = reader.optional(name);
    if (list == nullptr) return;
    constexpr std::size_t most = 64;
    if (list->kind != Value::Kind::sequence || list->items.size() > most) {
      throw ConfigError(list->mark, fmt::format("{} is no list of at most {} steps", name, most),
                        "write " + steps_help());
    }
    for (const Value& item : list->items) {
      const auto step = parse_step(read_text(item, std::string(name)));
      if (!step) {
        throw ConfigError(item.mark, fmt::format("{}: {} is no step", name, quote(item.text)),
                          "write " + steps_help());
      }
      (tower.*field).push_back(*step);
    }
  });
}

// An image of more patches, or a clip of more frames, than any sequence has tokens is a slip.
constexpr IntegerRange seconds{1, 36'000};

Keys<T> vision_rows() {
  return key::rows<T>(
      number("patch", &T::patch, {1, 1024}, "side of a patch in pixels; absent: 14"),
      number("channels", &T::channels, {1, 64}, "colours of a pixel; absent: 3"),
      number("frames", &T::frames, {1, 64},
             "that a patch has (Qwen2-VL: 2, which repeat an image); absent: 1"),
      key::required(number("image_size", &T::usual_size, pixels,
                           "side of an image in pixels, where training has none")));
}

Keys<T> audio_rows() {
  return key::rows<T>(
      number("mel_bins", &T::mel_bins, {1, 4096}, "of the mel spectrum; absent: 128"),
      number("frames_per_second", &T::frames_per_second, {1, 48'000}, "of it; absent: 100"),
      key::required(
          number("seconds", &T::usual_size, seconds, "of a clip, where training has none")));
}

Keys<T> shared_rows() {
  return key::rows<T>(
      steps("stem", &T::stem, "what makes the layers' tokens of patches or frames"),
      number("window", &T::window, {0, 1'000'000},
             "tokens of a window that layers attend within (Qwen2.5-VL); 0: all"),
      number("full_layers", &T::full_layers, some_layers, "layers that attend to all of them"),
      number("layer_vectors", &T::layer_vectors, {0, 8},
             "vectors of hidden numbers that a layer has beyond its operators (InternVL's "
             "scales: 2)"),
      key::flag<T>("key_bias", &T::key_bias, "keys have a bias as queries do; false: Whisper"),
      key::required(steps("projector", &T::projector,
                          "what makes tokens of the language model of the layers' result")),
      number("branches", &T::branches, {0, 64},
             "further projectors, of layers in between (Qwen3-VL's DeepStack)"),
      steps("branch", &T::branch, "what each of these does"));
}

const Keys<T>& rows_of(TowerInput input) {
  static const std::array all{joined<T>(vision_rows(), shared_rows()),
                              joined<T>(audio_rows(), shared_rows())};
  return all[static_cast<std::size_t>(input)];
}

// What the layers are where no key is given: bidirectional, without a table of tokens.
Value usual_layers() {
  Value map;
  for (const auto& [key, value] : {std::pair{"kind", "gpt"},
                                   {"vocab", "1"},
                                   {"causal", "false"},
                                   {"positions", "none"},
                                   {"max_positions", "0"},
                                   {"tie_embeddings", "true"},
                                   {"linear_bias", "true"},
                                   {"gated_mlp", "false"},
                                   {"dropout", "0"}})
    map.set(key, scalar_value(value));
  return map;
}

void check(const MapReader& reader, const T& tower, std::int64_t hidden) {
  const auto refuse = [&](bool fault, const char* key, const std::string& reason,
                          const char* remedy) {
    if (fault) throw ConfigError(reader.mark_of(key), reason, remedy);
  };
  const ModelSpec& e = tower.encoder;
  const bool blocks = (e.kind == ModelKind::gpt || e.kind == ModelKind::llama) && !e.recurrent() &&
                      e.attention_pattern.empty() && e.sliding_window == 0 &&
                      !e.latent_attention() && !e.parallel_block && e.mtp_layers == 0 &&
                      e.towers == nullptr && !e.causal;
  refuse(!blocks, "kind", "a tower has bidirectional layers of attention and MLP alone",
         "leave other keys out");
  refuse(tower.full_layers > e.layers, "full_layers",
         fmt::format("full_layers {} exceeds the {} layers", tower.full_layers, e.layers),
         "count the layers without a window");
  refuse((tower.branches > 0) == tower.branch.empty(), "branches",
         "branches and branch go together", "give both, or leave both out");
  const auto ends_in = [&](const std::vector<TowerStep>& all, std::int64_t rows,
                           std::int64_t columns) {
    const auto shapes = shapes_of(all, rows, columns);
    return shapes.empty() ? columns : shapes.back().out_columns;
  };
  const std::int64_t rows = tower.input_tokens(tower.usual_size);
  const std::int64_t from = ends_in(tower.stem, rows, tower.input_width());
  refuse(from != e.hidden, "stem",
         fmt::format("the stem ends in {} columns, the layers have {}", from, e.hidden),
         "let its last product have as many");
  for (const auto& [name, list] :
       {std::pair{"projector", &tower.projector}, std::pair{"branch", &tower.branch}}) {
    const std::int64_t to = list->empty() ? hidden : ends_in(*list, rows, e.hidden);
    refuse(to != hidden, name,
           fmt::format("the {} ends in {} columns, the language model has {}", name, to, hidden),
           "let its last product have as many");
  }
}

T read_tower(const Value& map, TowerInput input, ReadModel read_layers,
             std::vector<std::string_view> known, std::int64_t hidden) {
  T tower;
  tower.input = input;
  const std::string name(name_of(input));
  for (const Key<T>& row : rows_of(input)) known.push_back(row.name);
  MapReader reader(map, name, std::move(known));
  read_keys(reader, rows_of(input), tower);
  Value layers = merged(usual_layers(), map);
  layers.mark = map.mark;
  for (const Key<T>& row : rows_of(input)) layers.erase(row.name);
  tower.encoder = read_layers(layers, name);
  tower.encoder.assumed.clear();
  check(reader, tower, hidden);
  return tower;
}

Value steps_value(const std::vector<TowerStep>& steps) {
  Value list;
  list.kind = Value::Kind::sequence;
  for (const TowerStep& step : steps) list.items.push_back(scalar_value(to_string(step)));
  return list;
}

Value tower_value(const T& tower, WriteModel write_layers) {
  Value map;
  const auto put = [&map](const char* key, std::int64_t value, std::int64_t usual) {
    if (value != usual) map.set(key, scalar_value(fmt::format("{}", value)));
  };
  const T plain;
  if (tower.input == TowerInput::vision) {
    put("patch", tower.patch, 0);
    put("channels", tower.channels, plain.channels);
    put("frames", tower.frames, plain.frames);
    put("image_size", tower.usual_size, 0);
  } else {
    put("mel_bins", tower.mel_bins, 0);
    put("frames_per_second", tower.frames_per_second, plain.frames_per_second);
    put("seconds", tower.usual_size, 0);
  }
  if (!tower.stem.empty()) map.set("stem", steps_value(tower.stem));
  const Value layers = write_layers(tower.encoder), usual = usual_layers();
  for (const auto& [key, mark, value] : layers.entries) {
    const Value* const own = usual.find(key);
    if (own == nullptr || own->text != value.text) map.set(key, value);
  }
  put("window", tower.window, 0);
  put("full_layers", tower.full_layers, 0);
  put("layer_vectors", tower.layer_vectors, 0);
  if (!tower.key_bias) map.set("key_bias", scalar_value("false"));
  map.set("projector", steps_value(tower.projector));
  put("branches", tower.branches, 0);
  if (!tower.branch.empty()) map.set("branch", steps_value(tower.branch));
  return map;
}

}  // namespace

void read_towers(MapReader& reader, ReadModel read_layers,
                 const std::vector<std::string_view>& layer_keys, ModelSpec& model) {
  Towers towers;
  for (std::size_t i = 0; i < tower_names.size(); ++i) {
    if (const Value* const map = reader.optional(tower_names[i])) {
      towers.all.push_back(
          read_tower(*map, static_cast<TowerInput>(i), read_layers, layer_keys, model.hidden));
    }
  }
  if (towers.all.empty()) return;
  if (model.encoder_decoder() || !model.causal) {
    throw ConfigError(reader.mark_of(name_of(towers.all.front().input)),
                      "a tower is of a decoder, whose tokens its own take the place of",
                      "leave it out, or choose another kind");
  }
  model.towers = std::make_shared<const Towers>(std::move(towers));
}

void put_towers(const ModelSpec& model, WriteModel write_layers, Value& map) {
  for (const TowerSpec& tower : towers_of(model))
    map.set(std::string(name_of(tower.input)), tower_value(tower, write_layers));
}

std::vector<KeyText> tower_keys(TowerInput input) { return described(rows_of(input), "."); }

}  // namespace costmodel
