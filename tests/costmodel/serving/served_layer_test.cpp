#include "costmodel/serving/served_layer.hpp"

#include <doctest/doctest.h>

#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/serving/support/served.hpp"

using namespace costmodel;

namespace {
double weights(const ServedLayer& layer) {
  double sum = layer.other_weights;
  for (const ServedProduct& p : layer.products) sum += p.weights();
  return sum;
}
ModelSpec model_of(const char* name) {
  return served::scenario("input_tokens: 8, output_tokens: 8, requests: 1", name).model;
}
}  // namespace

TEST_CASE("Distinct experts: one token has its k, many have all") {
  CHECK(distinct_experts(256, 8, 1) == doctest::Approx(8));
  CHECK(distinct_experts(256, 8, 2) == doctest::Approx(15.75));
  CHECK(distinct_experts(8, 2, 64) == doctest::Approx(8));
}

TEST_CASE("The layers' weights are the model's parameters, whatever tp cuts them into") {
  for (const char* name : {"llama-2-7b", "mixtral-8x7b", "deepseek-v3"}) {
    const ModelSpec model = model_of(name);
    const ServedStack stack = stack_of(model);
    for (const int tp : {1, 2}) {
      const ServingSizes sizes{tp, 1, 1, 1};
      const auto layer = [&](LayerKind kind) {
        return weights(served_layer(kind, model, sizes, 1));
      };
      double all = layer(LayerKind::embedding) + layer(LayerKind::head);
      if (stack.dense > 0) all += stack.dense * layer(LayerKind::block);
      if (stack.sparse > 0) all += stack.sparse * layer(LayerKind::moe);
      CAPTURE(name);
      CAPTURE(tp);
      // Latent projections, routers and norms are on every rank.
      const double whole = parameter_count(model) / tp;
      CHECK(all >= whole * 0.999);
      CHECK(all <= whole * (tp == 1 ? 1.001 : 1.04));
    }
  }
}

TEST_CASE("ep shares whole experts out where tp cuts each") {
  const ModelSpec model = model_of("mixtral-8x7b");
  const auto experts = [&](int tp, int ep, int dp) {
    const auto layer = served_layer(LayerKind::moe, model, {tp, 1, ep, dp}, 16);
    ServedProduct found;
    for (const ServedProduct& p : layer.products) {
      if (p.expert && p.rows > 0) found = p;
    }
    return found;
  };
  const ServedProduct cut = experts(4, 1, 1), whole = experts(4, 4, 1), both = experts(4, 2, 1);
  CHECK(cut.held == 8);
  CHECK(whole.held == 2);
  CHECK(cut.weights() == whole.weights());
  CHECK(both.weights() == whole.weights());
  CHECK(cut.rows == 32);
  CHECK(whole.rows == 8);
  // Over two replicas a device has half of that, and the tokens of both.
  const ServedProduct spread = experts(4, 8, 2);
  CHECK(spread.held == 1);
  CHECK(spread.rows == 8);
  // Of eight experts on six devices each has two, some of them copies.
  CHECK(experts(1, 6, 6).held == 2);
}
