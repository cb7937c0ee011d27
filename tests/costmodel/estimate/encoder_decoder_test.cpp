// Encoder-decoder models: published parameter counts, operators against closed forms, and what
// passes between the stages of a pipeline.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "costmodel/config/yaml.hpp"
#include "costmodel/cost/collective.hpp"
#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/estimate/layer_mix.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "costmodel/plan/mesh.hpp"
#include "tests/costmodel/support/scenarios.hpp"

namespace encoder_decoder_test {

using namespace costmodel;
using fixtures::config_error;
using fixtures::contains;

namespace {

ModelSpec parsed(const std::string& yaml) { return read_model(parse_yaml(yaml, "model.yaml"), ""); }

// Six layers of 512 before four: 64 tokens in, 32 out.
const char* const small =
    "kind: t5, encoder_layers: 6, decoder_layers: 4, hidden: 512, heads: 8, ffn_hidden: 2048, "
    "vocab: 32128, dropout: 0.1";

Scenario scenario(const std::string& plan, const std::string& model = small,
                  const std::string& stack = "megatron-core-2025") {
  return scenarios::read(
      "model: {" + model +
      "}\ncluster: {base: dgx-a100, devices: 8}\n"
      "training: {global_batch: 32, sequence: 64, decoder_sequence: 32, stack: " +
      stack + "}\nplan: {" + plan + "}\n");
}

Work whole_work(const OpList& list) {
  Work work;
  for (const auto& steps : {forward_steps(list), backward_steps(list)})
    for (const Step& step : steps) work += work_of(step.node->op, step.pass, 2);
  return work;
}

LayerContext context_of(int tp, bool sequence_parallel, AttentionKernel attention) {
  LayerContext context = fixtures::layer_context(tp, sequence_parallel, 2, 64);
  context.decoder_sequence = 32;
  context.attention = attention;
  return context;
}

}  // namespace

TEST_CASE("parameters of the published T5 models, exactly") {
  const auto count = [](int layers, int hidden, int ffn, int heads, int head_dim) {
    return parameter_count(parsed(
        "{kind: t5, encoder_layers: " + std::to_string(layers) +
        ", hidden: " + std::to_string(hidden) + ", ffn_hidden: " + std::to_string(ffn) +
        ", heads: " + std::to_string(heads) + ", head_dim: " + std::to_string(head_dim) + "}"));
  };
  // transformers: google-t5/t5-small, t5-base, t5-large, t5-3b, t5-11b.
  CHECK(count(6, 512, 2048, 8, 64) == 60'506'624);
  CHECK(count(12, 768, 3072, 12, 64) == 222'903'552);
  CHECK(count(24, 1024, 4096, 16, 64) == 737'668'096);
  CHECK(count(24, 1024, 16384, 32, 128) == 2'851'598'336);
  CHECK(count(24, 1024, 65536, 128, 128) == 11'307'321'344);
}

TEST_CASE("the depths of both stacks: what is missing, what adds up") {
  const std::string rest = ", hidden: 64, heads: 4}";
  const auto depths = [&](const std::string& keys) {
    const ModelSpec model = parsed("{kind: t5, " + keys + rest);
    return std::tuple(model.encoder_layers, model.decoder_layers, model.layers);
  };
  CHECK(depths("encoder_layers: 3, decoder_layers: 5") == std::tuple(3, 5, 8));
  CHECK(depths("encoder_layers: 3") == std::tuple(3, 3, 6));
  CHECK(depths("decoder_layers: 5") == std::tuple(5, 5, 10));
  CHECK(depths("layers: 8, decoder_layers: 5") == std::tuple(3, 5, 8));
  CHECK(depths("layers: 8") == std::tuple(4, 4, 8));
  CHECK(parsed("{kind: t5, encoder_layers: 3" + rest).assumed.front() == "decoder_layers 3");
  const auto fault = [&](const std::string& keys) {
    return config_error([&] { parsed("{kind: t5" + keys + rest); });
  };
  CHECK(contains(fault(""), "lacks the key 'encoder_layers'"));
  CHECK(contains(fault(", layers: 9, encoder_layers: 3, decoder_layers: 5"),
                 "layers 9 is not encoder_layers 3 + decoder_layers 5; leave layers out"));
  CHECK(contains(fault(", layers: 4, encoder_layers: 4"),
                 "layers 4 is not encoder_layers 4 + decoder_layers 0"));
  CHECK(contains(fault(", encoder_layers: 3, qk_norm: true"), "has no key 'qk_norm'"));
  CHECK(contains(config_error([] {
                   parsed("{kind: llama, layers: 2, hidden: 64, heads: 4, positions: relative}");
                 }),
                 "relative positions are modelled of kind t5 only"));
}

TEST_CASE(
    "a decoder of sizes of its own: its layers are those of a model that has them throughout") {
  const std::string other =
      "kind: t5, encoder_layers: 6, decoder_layers: 4, hidden: 512, heads: 4, head_dim: 64, "
      "ffn_hidden: 1024, vocab: 32128, dropout: 0.1";
  const std::string own = small + std::string(", head_dim: 64");
  const ModelSpec mixed = parsed("{" + own + ", decoder_heads: 4, decoder_ffn_hidden: 1024}");
  const ModelSpec wide = parsed("{" + own + "}"), narrow = parsed("{" + other + "}");
  const LayerContext context = context_of(2, true, AttentionKernel::flash);
  const auto work = [&](LayerKind kind, const ModelSpec& m) {
    const OpList list = build_layer(kind, m, context);
    return std::tuple(whole_work(list).executed.value, list.nodes.size(),
                      footprint(list, Recomputed::nothing).kept_activations.value);
  };
  CHECK(work(LayerKind::encoder, mixed) == work(LayerKind::encoder, wide));
  CHECK(work(LayerKind::decoder, mixed) == work(LayerKind::decoder, narrow));
  CHECK(work(LayerKind::decoder, mixed) != work(LayerKind::decoder, wide));
  // Weights are linear in the layers of each kind, and a table of 32 buckets a head in each stack.
  CHECK(parameter_count(mixed) - parameter_count(wide) ==
        4 * (parameters_per_decoder_layer(narrow) - parameters_per_decoder_layer(wide)) - 32.0 * 4);
  // What the ranks hold are those parameters.
  Scenario s = scenario("pp: 2, tp: 1, split_rank: 1, micro_batch: 2",
                        own + ", decoder_heads: 4, decoder_ffn_hidden: 1024, tie_embeddings: true");
  Evaluator evaluator(s.model, s.cluster, s.training);
  double held = 0;
  for (const auto& rank : evaluator.cost(resolve_plan(s)).ranks) held += rank.weights.all;
  CHECK(held - 32128.0 * 512 == parameter_count(s.model));  // the token table is on both
  // Written and read again.
  CHECK(contains(to_yaml(to_value(mixed)), "decoder_heads: 4"));
  CHECK(contains(to_yaml(to_value(mixed)), "decoder_ffn_hidden: 1024"));
  const auto fault = [&](const std::string& plan, const std::string& keys) {
    return config_error([&] { resolve_plan(scenario(plan, own + keys)); });
  };
  CHECK(contains(fault("tp: 4", ", decoder_heads: 2"),
                 "tp 4 does not divide the model's decoder_heads 2; choose tp among 1, 2"));
  CHECK(contains(fault("tp: 4", ", decoder_ffn_hidden: 1026"), "decoder_ffn_hidden 1026"));
  CHECK(contains(fault("tp: 1", ", kv_heads: 4, decoder_heads: 6"),
                 "kv_heads 4 does not divide decoder_heads 6"));
  CHECK(contains(fault("tp: 1", ", decoder_heads: 0"), "decoder_heads: 0 is out of range"));
  CHECK(contains(config_error([] {
                   parsed(
                       "{kind: gpt, layers: 2, hidden: 64, heads: 4, "
                       "decoder_heads: 2}");
                 }),
                 "has no key 'decoder_heads'"));
}

TEST_CASE("T5's usual choices, and other ones") {
  const ModelSpec t5 = parsed("{kind: t5, encoder_layers: 2, hidden: 64, heads: 4}");
  CHECK(t5.vocab == 32128);
  CHECK(t5.ffn_hidden == 256);
  CHECK_FALSE((t5.linear_bias || t5.qkv_bias || t5.gated_mlp));
  CHECK((t5.tie_embeddings && t5.dropout == 0.1));
  CHECK(t5.normalization == Normalization::rmsnorm);
  CHECK(t5.positions == Positions::relative);
  CHECK(t5.activation == ActivationFunction::relu);
  const auto positions = [](const char* key) {
    return parsed(std::string("{kind: t5, encoder_layers: 2, hidden: 64, heads: 4, ") + key + "}")
        .positions;
  };
  CHECK(positions("max_positions: 512") == Positions::learned);
  CHECK(positions("positions: rotary") == Positions::rotary);
}

TEST_CASE("FLOPs of both stacks by a closed form") {
  const ModelSpec m = parsed("{" + std::string(small) + ", head_dim: 96, kv_heads: 4}");
  const double b = 2, se = 64, sd = 32, h = 512, q = 8 * 96, kv = 4 * 96, ffn = 2048;
  const double mlp = 4 * h * ffn;
  // Forward once, backward twice.
  const double encoder = 3 * b * se * (2 * h * (2 * q + 2 * kv) + 4 * se * q + mlp);
  const double cross = 3 * b * (2 * sd * h * 2 * q + 2 * se * h * 2 * kv + 4 * sd * se * q);
  const double decoder = 3 * b * sd * (2 * h * (2 * q + 2 * kv) + 4 * sd * q + mlp) + cross;
  for (const auto kernel : {AttentionKernel::unfused, AttentionKernel::flash}) {
    for (const int tp : {1, 2, 4}) {
      const LayerContext context = context_of(tp, tp == 4, kernel);
      const auto flops = [&](LayerKind kind) {
        return whole_work(build_layer(kind, m, context)).model.value * tp;
      };
      CHECK(flops(LayerKind::encoder) == encoder);
      CHECK(flops(LayerKind::decoder) == decoder);
      CHECK(flops(LayerKind::head) ==
            3 * b * sd * 2 * h * static_cast<double>(padded_vocab(32128, tp)));
    }
  }
  const Scenario s = scenario("tp: 1");
  const Evaluator evaluator(s.model, s.cluster, s.training);
  const double d = 512;  // of this model q = kv = h
  const double all =
      6 * 3 * se * (8 * h * h + 4 * se * d + mlp) +
      4 * 3 * (sd * (8 * h * h + 4 * sd * d + mlp) + 4 * (sd + se) * h * h + 4 * sd * se * d) +
      3 * sd * 2 * h * 32128;
  CHECK(evaluator.model_flops().value == 32 * all);
}

TEST_CASE("only the decoder's own attention has a causal mask") {
  const ModelSpec m = parsed("{" + std::string(small) + "}");
  LayerContext context = context_of(1, false, AttentionKernel::flash);
  const auto attention = [&](LayerKind kind) {
    std::vector<FlashAttention> found;
    for (const Node& node : build_layer(kind, m, context).nodes)
      if (const auto* op = std::get_if<FlashAttention>(&node.op)) found.push_back(*op);
    return found;
  };
  const auto encoder = attention(LayerKind::encoder), decoder = attention(LayerKind::decoder);
  REQUIRE((encoder.size() == 1 && decoder.size() == 2));
  CHECK((!encoder[0].causal_skip && encoder[0].s == 64 && encoder[0].key_count() == 64));
  CHECK((decoder[0].causal_skip && decoder[0].s == 32 && decoder[0].key_count() == 32));
  CHECK((!decoder[1].causal_skip && decoder[1].s == 32 && decoder[1].key_count() == 64));
  CHECK((decoder[1].cross && !decoder[0].cross));
  context.attention = AttentionKernel::unfused;
  context.triangular_softmax = true;
  std::vector<std::tuple<std::int64_t, std::int64_t, bool>> softmax;
  for (const auto kind : {LayerKind::encoder, LayerKind::decoder})
    for (const Node& node : build_layer(kind, m, context).nodes)
      if (const auto* op = std::get_if<Softmax>(&node.op))
        softmax.emplace_back(op->rows / (2 * 8), op->cols, op->triangular);
  CHECK(softmax == decltype(softmax){{64, 64, false}, {32, 32, true}, {32, 64, false}});
}

TEST_CASE("activations that a layer keeps, by a closed form") {
  // Two bytes a number, one a mask's. An encoder layer: three inputs of products of h columns and
  // two norms' (10h; the projection's is the attention's result), Q, K, V (6h), the MLP's 8h + 8h,
  // two masks; the decoder's cross-attention: norm, Q's and the projection's input, Q, a mask; K
  // and V of the encoder's tokens. The encoder's output is the stage's.
  const ModelSpec m = parsed("{" + std::string(small) + "}");
  const double b = 2, se = 64, sd = 32, h = 512, a = 8;
  for (const int tp : {1, 2, 4}) {
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && tp == 1) continue;
      const double whole = sequence_parallel ? tp : 1, t = tp;
      const auto kept = [&](LayerKind kind, AttentionKernel kernel, Recomputed what) {
        return footprint(build_layer(kind, m, context_of(tp, sequence_parallel, kernel)), what)
            .kept_activations.value;
      };
      const auto block = [&](double s) { return b * s * h * (10 / whole + 24 / t); };
      const auto cross = b * sd * h * (5 / whole + 4 / t) + b * se * h * 4 / t;
      const auto flash = AttentionKernel::flash;
      CHECK(kept(LayerKind::encoder, flash, Recomputed::nothing) == block(se));
      CHECK(kept(LayerKind::decoder, flash, Recomputed::nothing) == block(sd) + cross);
      CHECK(kept(LayerKind::encoder, flash, Recomputed::everything) == 2 * b * se * h / whole);
      CHECK(kept(LayerKind::decoder, flash, Recomputed::everything) == 2 * b * sd * h / whole);
      // Scores after the softmax, their dropout mask and the result of dropout.
      const auto unfused = AttentionKernel::unfused;
      CHECK(kept(LayerKind::encoder, unfused, Recomputed::nothing) ==
            block(se) + 5 * a * b * se * se / t);
      CHECK(kept(LayerKind::decoder, unfused, Recomputed::nothing) ==
            block(sd) + cross + 5 * a * b * (sd * sd + sd * se) / t);
      CHECK(kept(LayerKind::decoder, unfused, Recomputed::attention_core) == block(sd) + cross);
    }
  }
}

TEST_CASE("tensor parallelism gathers the encoder's output in each decoder layer") {
  const ModelSpec m = parsed("{" + std::string(small) + "}");
  const double b = 2, se = 64, sd = 32, h = 512;
  for (const bool sequence_parallel : {false, true}) {
    const OpList list = build_layer(LayerKind::decoder, m,
                                    context_of(4, sequence_parallel, AttentionKernel::flash));
    double of_decoder = 0, of_encoder = 0, again = 0;
    for (const Node& node : list.nodes) {
      if (const auto* op = std::get_if<Collective>(&node.op)) {
        const bool of_own = op->bytes.value == 2 * b * sd * h;
        CHECK((of_own || op->bytes.value == 2 * b * se * h));
        (of_own ? of_decoder : of_encoder) += 1;
      }
      if (const auto* op = std::get_if<Linear>(&node.op)) again += op->regather ? 1 : 0;
    }
    CHECK(of_decoder == 6);  // in and out of attention, cross-attention and MLP
    CHECK(of_encoder == 1);
    CHECK(again == (sequence_parallel ? 4 : 0));  // QKV, Q, K and V, MLP up
  }
}

TEST_CASE("layers of a stage by kind, and where the decoder starts") {
  const ModelSpec m = parsed("{" + std::string(small) + "}");
  const auto mix = [&](std::int64_t first, int layers, int again) {
    return layer_mix(m, first, layers, {Recomputation::full, again});
  };
  const auto expected = [](int encoder, int decoder, int encoder_again, int decoder_again,
                           bool starts) {
    return LayerMix{.number = {encoder, decoder},
                    .again = {encoder_again, decoder_again},
                    .decoder_starts = starts};
  };
  CHECK(mix(0, 6, 2) == expected(6, 0, 2, 0, false));
  CHECK(mix(4, 4, 3) == expected(2, 2, 2, 1, true));
  CHECK(mix(6, 4, 0) == expected(0, 4, 0, 4, true));
  CHECK(mix(7, 3, 1) == expected(0, 3, 0, 1, false));
  CHECK(mix(10, 0, 0) == expected(0, 0, 0, 0, false));
  CHECK(mix(0, 0, 0) == expected(0, 0, 0, 0, false));
}

TEST_CASE("what passes between stages: the encoder's tokens, both, and at last the decoder's") {
  const double h = 512, element = 2, b = 2;
  for (const auto& [layers, tokens] :
       {std::tuple{std::vector{2, 3, 4, 1}, std::vector<double>{64, 64, 96}},
        std::tuple{std::vector{6, 2, 2, 0}, std::vector<double>{64, 96, 32}},
        std::tuple{std::vector{0, 7, 2, 1}, std::vector<double>{64, 96, 96}}}) {
    for (const int tp : {1, 2}) {
      Scenario s = scenario("micro_batch: 2, pp: 4, tp: " + std::to_string(tp));
      s.plan.stage_layers = layers;
      Evaluator evaluator(s.model, s.cluster, s.training);
      const ParallelPlan plan = resolve_plan(s);
      const Estimate e = evaluator.estimate(plan);
      const PlanCost& cost = evaluator.cost(plan);
      REQUIRE(cost.boundaries.size() == 3);
      const double cut = plan.sequence_parallel ? tp : 1;
      for (std::size_t k = 0; k < 3; ++k) {
        CHECK(cost.boundaries[k].forward.sent.value == b * tokens[k] * h * element / cut);
        CHECK(cost.boundaries[k].backward.sent.value == b * tokens[k] * h * element / cut);
        CHECK(cost.times.forward_transfer[k] == cost.boundaries[k].forward.time);
      }
      const auto m = static_cast<double>(e.micro_batches);
      CHECK(e.rank_traffic[1].send.value == m * b * (tokens[0] + tokens[1]) * h * element / cut);
      CHECK(cost.bound.iteration <= e.iteration);
      CHECK(e.tokens_per_s == doctest::Approx(32 * 96 / e.iteration.value));
    }
  }
}

TEST_CASE("copies of the token table: weights, and the sum of their gradients") {
  const double table = 32128.0 * 512;
  const auto weights_of = [&](const std::vector<int>& layers, bool tied) {
    Scenario s =
        scenario("pp: 4, tp: 1", small + std::string(tied ? "" : ", tie_embeddings: false"));
    s.plan.stage_layers = layers;
    s.plan.pp = static_cast<int>(layers.size());
    Evaluator evaluator(s.model, s.cluster, s.training);
    const PlanCost cost = evaluator.cost(resolve_plan(s));
    double held = 0;
    for (const auto& rank : cost.ranks) held += rank.weights.all;
    const double copies = (held - parameter_count(s.model)) / table;
    const auto group = layout_of(
        static_cast<int>(cost.tables.ranks.size()),
        2 * static_cast<std::int64_t>(cost.tables.ranks.size() < 2 ? 0 : cost.tables.ranks[1]),
        s.cluster);
    if (cost.tables.ranks.size() == 2) {
      CHECK(cost.tables.time ==
            collective_time(CollectiveKind::all_reduce,
                            Bytes(table * gradient_bytes_per_parameter(s.training)), group,
                            s.cluster));
    }
    CHECK((cost.tables.time.value > 0) == (cost.tables.ranks.size() > 1));
    return std::pair(copies, cost.tables.ranks);
  };
  using Ranks = std::vector<std::size_t>;
  // First stage, where the decoder starts, last: copies beyond the one that is counted.
  CHECK(weights_of({10}, true) == std::pair(0.0, Ranks{}));
  CHECK(weights_of({10}, false) == std::pair(0.0, Ranks{}));
  CHECK(weights_of({3, 3, 2, 2}, true) == std::pair(2.0, Ranks{0, 2, 3}));
  CHECK(weights_of({7, 1, 1, 1}, true) == std::pair(1.0, Ranks{0, 3}));
  CHECK(weights_of({2, 2, 2, 4}, true) == std::pair(1.0, Ranks{0, 3}));
  CHECK(weights_of({3, 3, 2, 2}, false) == std::pair(1.0, Ranks{0, 2}));
  CHECK(weights_of({7, 1, 1, 1}, false) == std::pair(0.0, Ranks{}));
  CHECK(weights_of({2, 2, 2, 4}, false) == std::pair(1.0, Ranks{0, 3}));
}

TEST_CASE("learned positions are held by both embeddings, once where they share a stage") {
  Scenario s = scenario("pp: 4, tp: 1", small + std::string(", max_positions: 128"));
  const double table = 32128.0 * 512, positions = 128.0 * 512;
  for (const auto& [layers, more] : {std::tuple{std::vector{3, 3, 2, 2}, 2 * table + positions},
                                     std::tuple{std::vector{7, 1, 1, 1}, table}}) {
    s.plan.stage_layers = layers;
    Evaluator evaluator(s.model, s.cluster, s.training);
    double held = -more;
    for (const auto& rank : evaluator.cost(resolve_plan(s)).ranks) held += rank.weights.all;
    CHECK(held == parameter_count(s.model));
  }
}

TEST_CASE("a stage with decoder layers holds the encoder's output for each in flight") {
  // Stages of two decoder layers: the same but for how many micro-batches they hold.
  Scenario s = scenario("pp: 4, tp: 2, micro_batch: 2, sequence_parallel: true",
                        "kind: t5, encoder_layers: 2, decoder_layers: 6, hidden: 512, heads: 8, "
                        "ffn_hidden: 2048, vocab: 32128");
  s.plan.stage_layers = {2, 2, 2, 2};
  Evaluator evaluator(s.model, s.cluster, s.training);
  const ParallelPlan plan = resolve_plan(s);
  const PlanCost cost = evaluator.cost(plan);
  const auto kept = [&](LayerKind kind) {
    return evaluator.layer(kind, plan, Recomputed::nothing).footprint.kept.value;
  };
  const double output = 2.0 * 64 * 512 * 2 / 2;
  const double margin = 1 + s.training.stack.memory.fragmentation;
  CHECK(cost.ranks[2].memory.each.value ==
        doctest::Approx((2 * kept(LayerKind::decoder) + output) * margin).epsilon(1e-12));
  CHECK(cost.ranks[1].memory.each.value ==
        doctest::Approx(
            (2 * kept(LayerKind::decoder) + output + kept(LayerKind::decoder_embedding)) * margin)
            .epsilon(1e-12));
  CHECK(cost.ranks[0].memory.each.value ==
        doctest::Approx((2 * kept(LayerKind::encoder) + kept(LayerKind::embedding)) * margin)
            .epsilon(1e-12));
}

TEST_CASE("a decoder of few tokens is quicker than an encoder of many, and the other way round") {
  for (const auto& [in, out, decoder_slower] :
       {std::tuple{2048, 256, false}, std::tuple{2048, 2048, true}, std::tuple{256, 2048, true}}) {
    Scenario s = scenario("tp: 1, pp: 1", "base: t5-3b");
    s.training.sequence = in;
    s.training.decoder_sequence = out;
    Evaluator evaluator(s.model, s.cluster, s.training);
    const ParallelPlan plan = resolve_plan(s);
    const auto time = [&](LayerKind kind) {
      const LayerCost& layer = evaluator.layer(kind, plan, Recomputed::nothing);
      return layer.forward.time() + layer.backward.time();
    };
    CHECK((time(LayerKind::decoder) > time(LayerKind::encoder)) == decoder_slower);
  }
}

TEST_CASE("the decoder's tokens: given, as many as the encoder's, or out of place") {
  const auto with = [](const std::string& training, const std::string& model) {
    return scenarios::read("model: {" + model + "}\ncluster: {base: dgx-a100, devices: 8}\n" +
                           "training: {global_batch: 32, sequence: 64" + training + "}\n");
  };
  CHECK(with(", decoder_sequence: 16", small).training.decoder_sequence == 16);
  const Scenario usual = with("", small);
  CHECK(usual.training.decoder_sequence == 64);
  CHECK(usual.training.tokens() == 128);
  CHECK(contains(usual.training.assumed.front() + usual.training.assumed.back(),
                 "decoder_sequence 64 (as sequence; none given)"));
  CHECK(with("", "base: gpt-tiny").training.tokens() == 64);
  CHECK(config_error([&] { with(", decoder_sequence: 16", "base: gpt-tiny"); }) ==
        "test.yaml:3:62: decoder_sequence is of a model with an encoder and a decoder; leave it "
        "out, or choose a model of kind t5");
  CHECK(contains(config_error([&] {
                   with(", decoder_sequence: 256", small + std::string(", max_positions: 128"));
                 }),
                 "decoder_sequence 256 exceeds the model's 128 learned positions; shorten "
                 "training.decoder_sequence"));
}

TEST_CASE("plans of encoder-decoder models that are refused, and how") {
  const auto fault = [](const std::string& plan) {
    return config_error([&] { resolve_plan(scenario(plan)); });
  };
  CHECK(fault("pp: 2, tp: 1") == "");
  CHECK(
      contains(fault("pp: 2, vpp: 5, tp: 1, micro_batch: 1"),
               ": an encoder-decoder model is not interleaved: Megatron-LM's interleaved schedule "
               "refuses it; set schedule: 1f1b and vpp: 1"));
  CHECK(contains(fault("cp: 2, tp: 1"),
                 ": context parallelism of an encoder-decoder model is not modelled; set cp: 1"));
  CHECK(contains(fault("pp: 4, tp: 1, stage_layers: [4, 0, 4, 2]"),
                 ": stage 1 of an encoder-decoder model is without layers; give each stage but the "
                 "first and the last a layer at least"));
  CHECK(contains(config_error([] {
                   resolve_plan(scenario("pp: 2, tp: 1, schedule: zero-bubble-h1", small,
                                         "zero-bubble-fork"));
                 }),
                 ": schedule zero-bubble-h1 of an encoder-decoder model is not modelled; set "
                 "schedule: 1f1b or gpipe"));
  Scenario odd = scenario("tp: 4, sequence_parallel: true");
  odd.training.decoder_sequence = 30;
  CHECK(contains(config_error([&] { resolve_plan(odd); }),
                 ": tp 4 does not divide the decoder_sequence 30; set sequence_parallel: false, or "
                 "another tp"));
}

TEST_CASE("stages that differ cost, where they do not, what stages alike cost") {
  Scenario s = scenario("pp: 4, tp: 1, micro_batch: 2, stage_layers: [3, 2, 3, 2]");
  Evaluator evaluator(s.model, s.cluster, s.training);
  const ParallelPlan alike = resolve_plan(s);
  const PlanCost one = evaluator.cost(alike);
  ParallelPlan apart = alike;
  apart.stages.assign(4, StagePlan{1, 2, {}, alike.zero, ""});
  REQUIRE(is_valid(apart, s.model, s.cluster, s.training));
  const PlanCost& other = evaluator.cost(apart);
  CHECK(other.tables.ranks == one.tables.ranks);
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(other.times.forward[k] == one.times.forward[k]);
    CHECK(other.ranks[k].memory.total() == one.ranks[k].memory.total());
    CHECK(other.ranks[k].weights.all == one.ranks[k].weights.all);
    if (k < 3) CHECK(other.boundaries[k].forward.sent == one.boundaries[k].forward.sent);
  }
}

}  // namespace encoder_decoder_test
