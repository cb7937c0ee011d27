// What devices send each other against the published volumes: data parallelism with ZeRO,
// pipelines.
#include <doctest/doctest.h>

#include "costmodel/estimate/evaluator.hpp"
#include "costmodel/model/parameter_count.hpp"
#include "tests/costmodel/support/estimated.hpp"

namespace traffic_test {

using namespace costmodel;
using fixtures::Case;
using fixtures::cases;
using fixtures::estimated;
using fixtures::relative_error;

TEST_CASE("data-parallel traffic: 2(d-1)/d of the gradients, or (d-1)/d each way under ZeRO-1") {
  const Case c = cases[0];
  for (const int d : {1, 2, 4, 8}) {
    ParallelPlan plan;
    plan.dp = d;
    const double psi = parameter_count(fixtures::gpt(c));
    const double share = (d - 1.0) / d;
    const double m = static_cast<double>(c.batch / d);
    CAPTURE(d);
    const Traffic none = estimated(c, plan).traffic;
    CHECK(relative_error(none.all_reduce.value, 2 * share * 2 * psi) <= 1e-12);
    CHECK(none.total().value == none.all_reduce.value);
    plan.zero = 1;
    const Traffic one = estimated(c, plan).traffic;
    CHECK(relative_error(one.reduce_scatter.value, share * 2 * psi) <= 1e-12);
    CHECK(relative_error(one.all_gather.value, share * 2 * psi) <= 1e-12);
    plan.zero = 2;  // gradients are scattered after every micro-batch
    CHECK(relative_error(estimated(c, plan).traffic.reduce_scatter.value, m * share * 2 * psi) <=
          1e-12);
    plan.zero = 3;  // 1.5 times ZeRO-1's for each micro-batch: parameters are gathered twice
    const Traffic three = estimated(c, plan).traffic;
    CHECK(relative_error(three.all_gather.value, 2 * m * share * 2 * psi) <= 1e-12);
    CHECK(relative_error(three.total().value, 3 * m * share * 2 * psi) <= 1e-12);
  }
}

TEST_CASE(
    "pipeline traffic: bsh elements a micro-batch and neighbour, bsh/t when the tensor ranks share "
    "it") {
  const Case c = cases[1];
  const ModelSpec model = [&] {
    ModelSpec m = fixtures::gpt(c);
    m.tie_embeddings = false;
    return m;
  }();
  const double bsh = 2.0 * static_cast<double>(c.sequence * c.hidden);
  for (const int p : {2, 4, 8}) {
    for (const int t : {1, 4}) {
      for (const bool sp : {false, true}) {
        for (const bool split : {false, true}) {
          if (sp && t == 1) continue;
          CAPTURE(p);
          CAPTURE(t);
          CAPTURE(sp);
          CAPTURE(split);
          TrainingSpec training = fixtures::training(c.batch, c.sequence);
          training.stack.collectives.scatter_gather = split;
          ParallelPlan plan;
          plan.pp = p, plan.tp = t, plan.sequence_parallel = sp, plan.micro_batch = 2;
          Evaluator evaluator(model, fixtures::cluster(plan.devices()), training);
          const Bytes one = evaluator.cost(plan).transfer_bytes;
          CHECK(one.value == 2 * bsh / (sp || split ? t : 1));
          const double m = static_cast<double>(c.batch) / 2;
          const Traffic sent = evaluator.estimate(plan).traffic;
          // The device that sends most: an inner rank, with two neighbours, unless the last one's
          // logits outweigh that.
          if (p == 2) CHECK(sent.send.value == one.value * m);
          if (p > 2 && t == 1) CHECK(sent.send.value == one.value * m * 2);
        }
      }
    }
  }
  ParallelPlan alone;
  Evaluator evaluator(model, fixtures::cluster(1), fixtures::training(c.batch, c.sequence));
  CHECK(evaluator.estimate(alone).traffic.total().value == 0);
}

TEST_CASE("the interleaved schedule sends v times as much") {
  const Case c = cases[1];
  ModelSpec model = fixtures::gpt(c);
  model.tie_embeddings = false;
  Evaluator evaluator(model, fixtures::cluster(4), fixtures::training(c.batch, c.sequence));
  ParallelPlan plan;
  plan.pp = 4;
  const double plain = evaluator.estimate(plan).traffic.send.value;
  plan.schedule = ScheduleKind::interleaved;
  for (const int v : {2, 4}) {
    plan.vpp = v;
    CHECK(evaluator.estimate(plan).traffic.send.value == v * plain);
  }
}

}  // namespace traffic_test
