// The walk over tensor lifetimes, by hand on three nodes, and the order of the passes.
#include "costmodel/operators/op_list.hpp"

#include <doctest/doctest.h>

#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace op_list_test {

using namespace costmodel;

namespace {

enum Tensors : TensorId { x, a, b, y, mask, figures };

// x(10) -drop-> a(20) -widen-> b(40) -narrow-> y(5); the first node keeps a mask(7) and figures(3),
// the second its input.
OpList three_nodes(Region middle = Region::rest) {
  OpList list;
  list.tensors = {{"x", 10, 1, 1},
                  {"a", 20, 1, 1},
                  {"b", 40, 1, 1},
                  {"y", 5, 1, 1},
                  {"mask", 7, 1, 1, TensorRole::mask},
                  {"figures", 3, 1, 1, TensorRole::statistics}};
  list.nodes = {{Site::other, Dropout{20, 1}, {x}, a, {mask, figures}, Region::rest},
                {Site::other, Rotary{40, 1}, {a}, b, {a}, middle},
                {Site::other, Rotary{5, 1}, {b}, y, {}, Region::rest}};
  list.input = x;
  list.output = y;
  return list;
}

}  // namespace

TEST_CASE("footprint of three nodes, nothing recomputed") {
  const OpList list = three_nodes();
  CHECK(kept_tensors(list, Recomputed::nothing) == std::vector<TensorId>{a, mask, figures});
  const Footprint f = footprint(list, Recomputed::nothing);
  CHECK(f.kept.value == 30);
  CHECK(f.kept_activations.value == 27);  // without statistics
  // Forward, live after each birth: x 10, a 30, mask 37, figures 40; x dies; b 70; y 75.
  CHECK(f.forward_transient.value == 75 - 30);
  // Backward, above the kept 30: dy 35, db 75 (dy dies), da 90: the peak. Then db and a die, dx
  // comes.
  CHECK(f.backward_transient.value == 90 - 30);
}

TEST_CASE("footprint of three nodes, everything recomputed") {
  const OpList list = three_nodes();
  CHECK(kept_tensors(list, Recomputed::everything) == std::vector<TensorId>{x});
  const Footprint f = footprint(list, Recomputed::everything);
  CHECK(f.kept.value == 10);
  CHECK(f.kept_activations.value == 10);
  // Forward: x 10, a 30, mask 37 (dies), figures 33 (dies); b 70; a dies; y 55.
  CHECK(f.forward_transient.value == 70 - 10);
  // Recomputed: x 10, a 30, mask 37, figures 40, b 80, y 85; b and y die: 40 held. Then dy 45, db
  // 85, da 100.
  CHECK(f.backward_transient.value == 100 - 10);
}

TEST_CASE("footprint of three nodes, the middle one recomputed") {
  const OpList list = three_nodes(Region::attention_core);
  CHECK(kept_tensors(list, Recomputed::attention_core) == std::vector<TensorId>{a, mask, figures});
  const Footprint f = footprint(list, Recomputed::attention_core);
  CHECK(f.kept.value == 30);
  CHECK(f.backward_transient.value == 90 - 30);  // recomputing reaches b at 70, backward 90
  REQUIRE(recompute_steps(list, Recomputed::attention_core).size() == 1);
  CHECK(recompute_steps(list, Recomputed::attention_core)[0].node == &list.nodes[1]);
  CHECK(recompute_steps(list, Recomputed::nothing).empty());
  CHECK(recompute_steps(list, Recomputed::everything).size() == 3);
  // Backward needs nothing that the last two make: torch.utils.checkpoint stops before them.
  const auto stopped = recompute_steps(list, Recomputed::everything, true);
  REQUIRE(stopped.size() == 1);
  CHECK(stopped.back().node == list.nodes.data());
}

TEST_CASE("an operator that is the identity forward makes no tensor") {
  OpList list;
  list.tensors = {{"x", 10, 1, 1}, {"y", 5, 1, 1}};
  list.nodes = {
      {Site::other,
       Collective{CollectiveKind::none, CollectiveKind::all_reduce, Axis::tensor, Bytes(10)},
       {0},
       0,
       {}},
      {Site::other, Linear{5, 1, 2, false, false}, {0}, 1, {0}}};
  list.input = 0;
  list.output = 1;
  const Footprint f = footprint(list, Recomputed::nothing);
  CHECK(f.kept.value == 10);
  CHECK(f.forward_transient.value == 5);        // y
  CHECK(f.backward_transient.value == 5 + 10);  // dy and dx
}

TEST_CASE("a product that gathers its input again holds the whole of it in backward") {
  OpList list;
  list.tensors = {{"shard", 10, 1, 1}, {"whole", 80, 1, 1}, {"y", 5, 1, 1}};
  list.nodes = {{Site::other,
                 Collective{CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                            Axis::tensor, Bytes(80)},
                 {0},
                 1,
                 {}},
                {Site::other, Linear{8, 1, 1, false, true}, {1}, 2, {0}}};
  list.input = 0;
  list.output = 2;
  const Footprint f = footprint(list, Recomputed::nothing);
  CHECK(f.kept.value == 10);                         // the shard
  CHECK(f.forward_transient.value == 95 - 10);       // shard, whole, y
  CHECK(f.backward_transient.value == 80 + 80 + 5);  // dy, dwhole, and whole once more
}

TEST_CASE(
    "backward is the reverse of forward, two passes where there are weights, collectives "
    "conjugate") {
  const ModelSpec model = fixtures::gpt(1, 64, 4, 512, 32);
  for (const bool sp : {false, true}) {
    const OpList block =
        build_layer(LayerKind::block, model, fixtures::layer_context(2, sp, 1, 32));
    const auto forward = forward_steps(block), backward = backward_steps(block);
    CHECK(forward.size() == block.nodes.size());
    CHECK(backward.size() == block.nodes.size() + 4);  // QKV, projection, up, down
    std::size_t at = 0;
    for (std::size_t i = block.nodes.size(); i-- > 0;) {
      const Node& node = block.nodes[i];
      REQUIRE(at < backward.size());
      CHECK(backward[at].node == &node);
      CHECK(backward[at++].pass == Pass::input_gradient);
      if (!std::holds_alternative<Linear>(node.op)) continue;
      REQUIRE(at < backward.size());
      CHECK(backward[at].node == &node);
      CHECK(backward[at].pass == Pass::weight_gradient);
      const bool again = sp && std::get<Linear>(node.op).regather;
      CHECK(backward[at++].collective ==
            (again ? CollectiveKind::all_gather : CollectiveKind::none));
    }
    std::vector<CollectiveKind> sent, returned;
    for (const Step& step : forward) {
      if (std::holds_alternative<Collective>(step.node->op)) sent.push_back(step.collective);
    }
    for (const Step& step : backward) {
      if (std::holds_alternative<Collective>(step.node->op)) returned.push_back(step.collective);
    }
    using enum CollectiveKind;
    if (sp) {
      CHECK(sent == std::vector{all_gather, reduce_scatter, all_gather, reduce_scatter});
      CHECK(returned == std::vector{all_gather, reduce_scatter, all_gather, reduce_scatter});
    } else {
      CHECK(sent == std::vector{none, all_reduce, none, all_reduce});
      CHECK(returned == std::vector{none, all_reduce, none, all_reduce});
    }
  }
}

TEST_CASE("between input and weight gradient a block keeps 32sbh: table 1 of arXiv:2401.10241") {
  const double s = 512, b = 2, h = 1024;
  const ModelSpec model = fixtures::gpt(1, 1024, 16, 51200, 512);
  for (const auto what : {Recomputed::nothing, Recomputed::everything}) {
    const OpList list =
        build_layer(LayerKind::block, model, fixtures::layer_context(1, false, 2, 512));
    CHECK(footprint(list, what).kept_for_weights.value == 32 * s * b * h);
  }
  const OpList list =
      build_layer(LayerKind::embedding, model, fixtures::layer_context(1, false, 2, 512));
  CHECK(footprint(list, Recomputed::nothing).kept_for_weights.value == 0);
}

TEST_CASE("backward does twice the forward's products") {
  const ModelSpec model = fixtures::gpt(1, 256, 8, 512, 128);
  for (const auto attention : {AttentionKernel::unfused, AttentionKernel::flash}) {
    for (const int t : {1, 2, 4}) {
      LayerContext context = fixtures::layer_context(t, false, 2, 128);
      context.attention = attention;
      for (const auto kind : {LayerKind::block, LayerKind::head}) {
        const OpList list = build_layer(kind, model, context);
        Flops forward, backward;
        for (const Step& step : forward_steps(list))
          forward += work_of(step.node->op, step.pass, 2).model;
        for (const Step& step : backward_steps(list))
          backward += work_of(step.node->op, step.pass, 2).model;
        CHECK(forward.value > 0);
        CHECK(backward.value == 2 * forward.value);
      }
    }
  }
}

}  // namespace op_list_test
