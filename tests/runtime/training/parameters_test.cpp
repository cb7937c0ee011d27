// Which part of each tensor a rank holds: all ranks together hold the whole, and begin with what
// one device begins with.
#include "runtime/training/parameters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/cpu/random.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace parameters_test {

using costmodel::LayerKind;
using costmodel::ModelSpec;
using runtime::LayerParameters;
using runtime::Parameter;

namespace {

LayerParameters parameters(const ModelSpec& model, LayerKind kind, int tp, int rank) {
  const auto list = build_layer(kind, model, fixtures::layer_context(tp, false, 1, 16));
  const auto whole = build_layer(kind, model, fixtures::layer_context(1, false, 1, 16));
  return runtime::layer_parameters(list, whole, model, {kind, 1, rank, false}, false);
}

// Each element of the whole tensor, by name and place, as the ranks hold it.
using Elements = std::map<std::pair<std::string, std::int64_t>, float>;

void note(const LayerParameters& layer, Elements& found, int& twice) {
  std::vector<float> values(layer.size);
  initialise(layer, 3, values);
  for (const Parameter& p : layer.tensors) {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      for (const auto& part : p.columns) {
        for (std::int64_t c = 0; c < part.count; ++c) {
          const std::int64_t at = (p.first_row + row) * p.global_cols + part.global + c;
          const float value =
              values[p.offset + static_cast<std::size_t>(row * p.cols + part.local + c)];
          const auto [place, fresh] = found.insert({{p.name, at}, value});
          if (!fresh) {
            ++twice;
            CHECK(place->second == value);
          }
        }
      }
    }
  }
}

ModelSpec llama() {
  ModelSpec model = fixtures::gpt(2, 32, 8, 512, 16);
  model.kv_heads = 4;
  model.gated_mlp = true;
  model.ffn_hidden = 48;
  model.linear_bias = model.qkv_bias = model.tie_embeddings = false;
  model.positions = costmodel::Positions::rotary;
  model.normalization = costmodel::Normalization::rmsnorm;
  return model;
}

}  // namespace

TEST_CASE("the ranks' shares are the whole, and begin as it does") {
  for (const ModelSpec& model : {fixtures::gpt(2, 32, 4, 512, 16), llama()}) {
    for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
      Elements whole;
      int twice = 0;
      note(parameters(model, kind, 1, 0), whole, twice);
      CHECK(twice == 0);
      for (const int tp : {2, 4}) {
        Elements cut;
        for (int rank = 0; rank < tp; ++rank) note(parameters(model, kind, tp, rank), cut, twice);
        CHECK(cut == whole);
      }
    }
  }
}

TEST_CASE("initial values are the same to the bit on any number of threads") {
  const ModelSpec model = fixtures::gpt(2, 256, 4, 1024, 16);  // tensors of several pieces of work
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block}) {
    for (const int tp : {1, 4}) {
      const LayerParameters layer = parameters(model, kind, tp, tp - 1);
      std::vector<float> alone(layer.size);
      initialise(layer, 3, alone);
      CHECK(std::ranges::count(alone, 0.0F) < static_cast<std::ptrdiff_t>(layer.size / 10));
      for (const int threads : {2, 3, 7}) {
        std::vector<float> values(layer.size, -1);
        initialise(layer, 3, values, threads);
        CAPTURE(threads);
        CHECK(std::memcmp(values.data(), alone.data(), layer.size * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("initial weights are the stream's numbers at their place in the whole tensor") {
  const LayerParameters layer = parameters(llama(), LayerKind::block, 2, 1);
  std::vector<float> values(layer.size);
  initialise(layer, 3, values);
  const Parameter& p = layer.tensors[1];
  REQUIRE(p.name == "layer 1 QKV weight");
  std::uint64_t stream = 14695981039346656037U;  // FNV-1a of the name
  for (const char c : p.name) stream = (stream ^ static_cast<unsigned char>(c)) * 1099511628211U;
  for (const auto& part : p.columns) {
    const std::int64_t at = 5 * p.global_cols + part.global;
    const double drawn = runtime::cpu::normal(3, stream, static_cast<std::uint64_t>(at));
    CHECK(values[p.offset + static_cast<std::size_t>(5 * p.cols + part.local)] ==
          static_cast<float>(0.02 * drawn));
  }
}

TEST_CASE("a layer has as many parameters as the cost model counts") {
  for (const ModelSpec& model : {fixtures::gpt(2, 32, 4, 512, 16), llama()}) {
    for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
      for (const int tp : {1, 2, 4}) {
        const auto list = build_layer(kind, model, fixtures::layer_context(tp, false, 1, 16));
        CHECK(static_cast<double>(parameters(model, kind, tp, 0).size) == weights_of(list));
      }
    }
  }
}

TEST_CASE("tied embeddings begin alike on both ends, others do not") {
  for (const bool tied : {true, false}) {
    ModelSpec model = fixtures::gpt(2, 32, 4, 512, 16);
    model.tie_embeddings = tied;
    const auto first = parameters(model, LayerKind::embedding, 1, 0);
    const auto last = parameters(model, LayerKind::head, 1, 0);
    std::vector<float> a(first.size), b(last.size);
    initialise(first, 5, a);
    initialise(last, 5, b);
    const Parameter& table = first.tensors.front();
    const Parameter& projection = last.tensors.back();
    REQUIRE(table.size() == projection.size());
    int same = 0;
    for (std::size_t i = 0; i < table.size(); ++i)
      same += a[table.offset + i] == b[projection.offset + i] ? 1 : 0;
    CHECK((same == static_cast<int>(table.size())) == tied);
  }
}

}  // namespace parameters_test
