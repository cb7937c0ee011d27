// What a layer sends and what hides it.
#include "costmodel/cost/layer_cost.hpp"

#include <doctest/doctest.h>

#include "costmodel/operators/transformer.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace layer_cost_test {

using namespace costmodel;

namespace {

struct Setup {
  ClusterSpec cluster = fixtures::cluster(16);
  Pricing pricing(int t) const {
    Pricing p;
    p.cluster = &cluster;
    p.tp_group = layout_of(t, 1, cluster);
    p.precision = Precision::fp16;
    p.kernel_launch = Seconds(5e-6);
    return p;
  }
};

Traffic traffic(const LayerCost& cost) {
  Traffic sum = cost.forward.traffic;
  sum += cost.backward.traffic;
  return sum;
}

}  // namespace

TEST_CASE("tensor-parallel traffic of a block: four all-reduces, 8bsh(t-1)/t elements") {
  const Setup setup;
  struct {
    std::int64_t s, b, h, a;
  } const shapes[] = {{2048, 1, 12288, 96}, {1024, 4, 2048, 16}, {512, 3, 1024, 8}};
  for (const auto& shape : shapes) {
    for (const int t : {2, 4, 8}) {
      CAPTURE(shape.h);
      CAPTURE(t);
      const ModelSpec model = fixtures::gpt(1, shape.h, shape.a, 51200, shape.s);
      const double bsh = static_cast<double>(shape.b * shape.s * shape.h);
      const double share = (t - 1.0) / t;
      const auto price_of = [&](bool sp, Recomputed what) {
        return layer_cost(
            build_layer(LayerKind::block, model, fixtures::layer_context(t, sp, shape.b, shape.s)),
            what, setup.pricing(t));
      };
      const Traffic plain = traffic(price_of(false, Recomputed::nothing));
      CHECK(plain.all_reduce.value == 2 * 8 * bsh * share);  // two bytes an element
      CHECK(plain.total().value == plain.all_reduce.value);
      // Forward 2 gathers and 2 scatters, backward their conjugates and the two inputs gathered
      // again.
      const Traffic cut = traffic(price_of(true, Recomputed::nothing));
      CHECK(cut.all_gather.value == 2 * (2 + 2 + 2) * bsh * share);
      CHECK(cut.reduce_scatter.value == 2 * (2 + 2) * bsh * share);
      CHECK(cut.total().value == cut.all_gather.value + cut.reduce_scatter.value);
      // Full recomputation sends the forward's messages again, selective none.
      const LayerCost again = price_of(false, Recomputed::everything);
      CHECK(again.recompute.traffic.total().value == 2 * 4 * bsh * share);
      CHECK(price_of(true, Recomputed::everything).recompute.traffic.total().value ==
            2 * 4 * bsh * share);
      CHECK(price_of(false, Recomputed::attention_core).recompute.traffic.total().value == 0);
    }
  }
}

TEST_CASE("one tensor rank sends nothing and waits for nothing") {
  const Setup setup;
  const ModelSpec model = fixtures::gpt(1, 1024, 8, 51200, 512);
  for (const auto kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    const LayerCost cost =
        layer_cost(build_layer(kind, model, fixtures::layer_context(1, false, 2, 512)),
                   Recomputed::everything, setup.pricing(1));
    CHECK(traffic(cost).total().value == 0);
    CHECK(cost.forward.tp_comm.value + cost.backward.tp_comm.value == 0);
    CHECK(cost.forward.compute.value > 0);
    CHECK(cost.recompute.compute.value == cost.forward.compute.value);
  }
}

TEST_CASE("traffic of the embedding and of the head") {
  const Setup setup;
  const ModelSpec model = fixtures::gpt(1, 1024, 8, 51200, 512);
  const double message = 2.0 * 2 * 512 * 1024, share = 3.0 / 4;
  const auto of = [&](LayerKind kind, bool sp) {
    return layer_cost(build_layer(kind, model, fixtures::layer_context(4, sp, 2, 512)),
                      Recomputed::nothing, setup.pricing(4));
  };
  CHECK(of(LayerKind::embedding, false).forward.traffic.all_reduce.value == 2 * share * message);
  CHECK(of(LayerKind::embedding, false).backward.traffic.total().value == 0);
  CHECK(of(LayerKind::embedding, true).forward.traffic.reduce_scatter.value == share * message);
  CHECK(of(LayerKind::embedding, true).backward.traffic.all_gather.value == share * message);
  // The loss: three all-reduces of one fp32 figure a token. Behind it the input gradient's
  // all-reduce.
  const double figures = 3 * 2 * share * 4 * 2 * 512;
  CHECK(of(LayerKind::head, false).forward.traffic.all_reduce.value == figures);
  CHECK(of(LayerKind::head, false).backward.traffic.all_reduce.value == 2 * share * message);
}

TEST_CASE("exposed communication: what sticks out, and the slow-down of what runs beside") {
  const double slow = overlap_slowdown - 1;
  CHECK(slow > 0);
  CHECK(exposed_beside(Seconds(5), Seconds(3)).value == 2 + slow * 3);
  CHECK(exposed_beside(Seconds(3), Seconds(5)).value == slow * 3);
  CHECK(exposed_beside(Seconds(3), Seconds(0)).value == 3);
  // One piece of four is never hidden; the other three have the window beside them.
  CHECK(exposed_pipelined(Seconds(8), Seconds(100), 4).value == 2 + slow * 6);
  CHECK(exposed_pipelined(Seconds(8), Seconds(4), 4).value == 2 + (2 + slow * 4));
  CHECK(exposed_pipelined(Seconds(8), Seconds(0), 4).value == 8);
}

TEST_CASE("overlap only ever saves time, and never touches traffic") {
  const Setup setup;
  const ModelSpec model = fixtures::gpt(1, 4096, 32, 51200, 2048);
  for (const int t : {2, 4, 8}) {
    const OpList list =
        build_layer(LayerKind::block, model, fixtures::layer_context(t, true, 1, 2048));
    const LayerCost plain = layer_cost(list, Recomputed::nothing, setup.pricing(t));
    Pricing hidden = setup.pricing(t);
    hidden.overlap.tp_comm_overlap = true;
    hidden.backward_tp_overlap = true;
    const LayerCost better = layer_cost(list, Recomputed::nothing, hidden);
    CHECK(better.forward.tp_comm < plain.forward.tp_comm);
    CHECK(better.backward.tp_comm < plain.backward.tp_comm);
    CHECK(better.forward.compute.value == plain.forward.compute.value);
    CHECK(traffic(better).total().value == traffic(plain).total().value);
  }
}

TEST_CASE("a split backward: the same work and traffic, a third of the products' FLOPs apart") {
  const Setup setup;
  const ModelSpec model = fixtures::gpt(1, 4096, 32, 51200, 2048);
  for (const bool sequence_parallel : {false, true}) {
    const OpList list = build_layer(LayerKind::block, model,
                                    fixtures::layer_context(4, sequence_parallel, 1, 2048));
    Pricing pricing = setup.pricing(4);
    pricing.backward_tp_overlap = true;
    const LayerCost cost = layer_cost(list, Recomputed::nothing, pricing);
    const Cost sum = cost.input_gradient + cost.weight_gradient;
    CHECK(sum.executed.value == cost.backward.executed.value);
    CHECK(cost.input_gradient.kernels + cost.weight_gradient.kernels == cost.backward.kernels);
    CHECK(sum.host == cost.backward.host);
    CHECK(sum.traffic.total().value == cost.backward.traffic.total().value);
    CHECK(fixtures::relative_error(sum.compute.value, cost.backward.compute.value) <= 1e-12);
    // What hid behind the other part's product does not any more.
    CHECK(sum.tp_comm > cost.backward.tp_comm);
    // Table 1 of arXiv:2401.10241: W does 24sbh², no attention.
    CHECK(fixtures::relative_error(cost.weight_gradient.model.value,
                                   24.0 * 2048 * 4096 * 4096 / 4) <= 1e-12);
    CHECK(cost.weight_gradient.traffic.all_reduce.value == 0);
  }
}

TEST_CASE("small layers cost their launches") {
  const Setup setup;
  const OpList list = build_layer(LayerKind::block, fixtures::gpt(1, 64, 4, 512, 32),
                                  fixtures::layer_context(1, false, 1, 32));
  Pricing pricing = setup.pricing(1);
  const LayerCost eager = layer_cost(list, Recomputed::nothing, pricing);
  CHECK(eager.forward.compute.value == eager.forward.kernels * 5e-6);
  pricing.kernel_launch = Seconds(0);
  CHECK(layer_cost(list, Recomputed::nothing, pricing).forward.compute < eager.forward.compute);
}

TEST_CASE("the host launches ahead while collectives run, and not where each launch blocks") {
  const Setup setup;
  const OpList list = build_layer(LayerKind::block, fixtures::gpt(1, 64, 4, 512, 32),
                                  fixtures::layer_context(2, false, 1, 32));
  Pricing pricing = setup.pricing(2);
  const Cost fast = layer_cost(list, Recomputed::nothing, pricing).forward;
  CHECK(fast.tp_comm.value > 0);
  pricing.kernel_launch = Seconds(1e-3);  // longer than any collective
  const Cost slow = layer_cost(list, Recomputed::nothing, pricing).forward;
  CHECK(slow.tp_comm == fast.tp_comm);
  CHECK(slow.time().value == doctest::Approx(slow.kernels * 1e-3));
  pricing.blocked = Seconds(1e-4);
  const Cost blocked = layer_cost(list, Recomputed::nothing, pricing).forward;
  CHECK((blocked.time() - slow.time()).value == doctest::Approx(slow.kernels * 1e-4));
}

TEST_CASE("backward with a recomputed part takes as long as the slower of host and device") {
  const Setup setup;
  const OpList list = build_layer(LayerKind::block, fixtures::gpt(1, 4096, 32, 51200, 2048),
                                  fixtures::layer_context(4, true, 1, 2048));
  const auto price_of = [&](double call) {
    Pricing pricing = setup.pricing(4);
    pricing.host_call = Seconds(call);
    return layer_cost(list, Recomputed::attention_core, pricing);
  };
  const auto device = price_of(0);
  const Seconds least = device.backward.time() + device.recompute.time();
  CHECK(device.backward.tp_comm.value > 0);
  int waited = 0;
  for (double call = 1e-6; price_of(call).backward.waited.value == 0; call += 1e-6) {
    const LayerCost cost = price_of(call);
    const Seconds host = cost.backward.host + cost.recompute.host;
    waited += host > least ? 1 : 0;
    CHECK((cost.backward.time() + cost.recompute.time()).value ==
          doctest::Approx(max(least, host).value));
  }
  CHECK(waited > 0);  // the part's own launches, where backward leaves too little time for them
}

TEST_CASE("computation beside a collective is as much slower as the framework makes it") {
  CHECK(exposed_beside(Seconds(2), Seconds(5), 1.5).value == doctest::Approx(1));
  CHECK(exposed_beside(Seconds(6), Seconds(5), 1.5).value == doctest::Approx(2.5 + 1));
  CHECK(exposed_beside(Seconds(2), Seconds(5)).value ==
        doctest::Approx(2 * (overlap_slowdown - 1)));
}

TEST_CASE("a host that is slow at collectives sets the pace of narrow layers, and only of them") {
  const Setup setup;
  const auto price_of = [&](int t, std::int64_t hidden, Seconds host) {
    Pricing pricing = setup.pricing(t);
    pricing.tensor_host = host;
    return layer_cost(build_layer(LayerKind::block, fixtures::gpt(1, hidden, 16, 51200, 1024),
                                  fixtures::layer_context(t, false, 1, 1024)),
                      Recomputed::nothing, pricing);
  };
  const Seconds host(2e-3);
  const LayerCost narrow = price_of(4, 1024, host);
  CHECK(narrow.forward.time() >= 2 * host);  // two all-reduces in each direction
  CHECK(narrow.forward.time() < 2.5 * host);
  CHECK(narrow.backward.time() >= 2 * host);
  CHECK(price_of(4, 1024, {}).forward.time() < host);
  CHECK(price_of(4, 16384, host).backward.time() == price_of(4, 16384, {}).backward.time());
  CHECK(price_of(1, 1024, host).forward.time() == price_of(1, 1024, {}).forward.time());
}

TEST_CASE("sorting rows by expert is as slow as its own kernel, not as the others") {
  Pricing pricing;
  pricing.elementwise_factor = 3;
  pricing.attention_factor = 2;
  pricing.permute_factor = 1.5;
  CHECK(pricing.factor_of(Permute{8, 16, 2}) == 1.5);
  CHECK(pricing.factor_of(Norm{}) == 3);
  CHECK(pricing.factor_of(FlashAttention{}) == 2);
  CHECK(pricing.factor_of(Linear{}) == 1);
}

}  // namespace layer_cost_test
