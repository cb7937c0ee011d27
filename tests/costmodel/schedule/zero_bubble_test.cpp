// Zero-bubble schedules against the figures of their papers, and against their own rules.
#include "costmodel/schedule/zero_bubble.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "costmodel/schedule/closed_form.hpp"
#include "costmodel/schedule/simulator.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace zero_bubble_test {

namespace split_schedule_test {

using namespace costmodel;
using fixtures::relative_error;

namespace {

constexpr ScheduleKind kinds[] = {ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_h2,
                                  ScheduleKind::zero_bubble_v, ScheduleKind::v_half,
                                  ScheduleKind::v_min};

int chunks_of(ScheduleKind kind) { return row_of(kind).fewest_chunks; }

struct Case {
  ScheduleKind kind;
  int p, m;
  PipelineTimes times;
  HeldShares shares;
  Schedule schedule() const { return generate(kind, p, chunks_of(kind), m, times, shares); }
  SimulationResult run() const {
    std::vector<double> scratch;
    return simulate(compile(schedule()), times, scratch);
  }
  // The longest rank's time from its first start to its last end.
  double span() const {
    const SimulationResult result = run();
    double longest = 0;
    for (std::size_t r = 0; r < result.finish.size(); ++r)
      longest = std::max(longest, (result.finish[r] - result.begin[r]).value);
    return longest;
  }
  double bubble() const {
    const double work =
        (times.forward[0] + times.backward[0] + times.weight_gradient[0]).value * chunks_of(kind);
    return span() - m * work;
  }
};

Case even(ScheduleKind kind, int p, int m, double forward, double backward, double weight,
          double share = 1, double transfer = 0) {
  const auto n = static_cast<std::size_t>(p) * static_cast<std::size_t>(chunks_of(kind));
  const double chunk = 1.0 / chunks_of(kind);
  Case c{kind, p, m, {}, {std::vector<double>(n, chunk), std::vector<double>(n, share * chunk)}};
  c.times.forward.assign(n, Seconds(forward));
  c.times.backward.assign(n, Seconds(backward));
  c.times.weight_gradient.assign(n, Seconds(weight));
  c.times.transfer = Seconds(transfer);
  return c;
}

// Uneven stages, some far slower than the rest, with and without (blocking) transfers.
Case draw(fixtures::Random& random, ScheduleKind kind) {
  Case c = even(kind, random.integer(1, 7), random.integer(1, 20), 1, 1, 1);
  const double spread = random.integer(0, 2) * 1.2;
  for (std::size_t k = 0; k < c.times.forward.size(); ++k) {
    c.times.forward[k] = Seconds(std::exp(random.real(-spread, spread)));
    c.times.backward[k] = Seconds(std::exp(random.real(-spread, spread)));
    c.times.weight_gradient[k] = Seconds(std::exp(random.real(-spread, spread)));
    c.shares.pending[k] = random.real(0, random.integer(0, 3) == 0 ? 12 : 1);
  }
  c.times.transfer = Seconds(random.integer(0, 2) == 0 ? 0 : std::exp(random.real(-4, 1)));
  c.times.blocking = random.integer(0, 1) == 1;
  return c;
}

// The most a rank holds: forwards whose backward has not run, and waiting weight gradients.
double most_held(const Schedule& schedule, const HeldShares& shares, int rank) {
  double held = 0, most = 0;
  for (const Action& a : schedule.actions[static_cast<std::size_t>(rank)]) {
    const double forward = shares.forward[static_cast<std::size_t>(a.stage)];
    const double pending = shares.pending[static_cast<std::size_t>(a.stage)];
    if (a.kind == ActionKind::forward) held += forward;
    if (a.kind == ActionKind::backward) held += pending - forward;
    if (a.kind == ActionKind::weight_gradient) held -= pending;
    most = std::max(most, held);
  }
  return most;
}

// Profiled times in ms and the bubble rates found with them: tables 5 and 6 of arXiv:2401.10241.
struct Published {
  int p, m;
  double forward, backward, weight, transfer, one_f_one_b, zb_1p, zb_2p;
  int heads, hidden;
};
constexpr Published published[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.0433, 24, 2304},
    {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0039, 24, 2304},
    {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0026, 24, 2304},
    {8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0029, 32, 4096},
    {8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0022, 32, 4096},
    {8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0010, 32, 4096},
    {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0066, 40, 5120},
    {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0054, 40, 5120},
    {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0028, 40, 5120},
    {32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0038, 48, 6144},
    {32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0029, 48, 6144},
    {32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0018, 48, 6144}};

}  // namespace

TEST_CASE("the published bubble rates of ZB-1p and ZB-2p, from the published times") {
  for (const Published& row : published) {
    CAPTURE(row.p);
    CAPTURE(row.m);
    CAPTURE(row.hidden);
    // Table 1 there, s = 1024: M_W = 32sbh, M_B = sb(34h + 5as).
    const double share = 32 / (34 + 5.0 * row.heads * 1024 / row.hidden);
    const auto rate = [&](ScheduleKind kind) {
      const Case c =
          even(kind, row.p, row.m, row.forward, row.backward, row.weight, share, row.transfer);
      return c.bubble() / c.span();
    };
    CHECK(std::abs(rate(ScheduleKind::zero_bubble_h1) - row.zb_1p) <= 0.00006);
    CHECK(std::abs(rate(ScheduleKind::zero_bubble_h2) - row.zb_2p) <= 0.0006);
  }
}

// From one micro-batch in flight a rank, as ZB-H1 has, to ZB-H2's two.
TEST_CASE(
    "ZB-H2 within a limit: H1's bubble at p in flight, its own at 2p - 1, between them else") {
  for (const int p : {2, 4, 8}) {
    const int m = 3 * p;
    const Case h2 = even(ScheduleKind::zero_bubble_h2, p, m, 1, 1, 1);
    const double work = 3.0 * m;
    double before = work + p;  // more than the longest
    for (int limit = p; limit <= 2 * p - 1; ++limit) {
      CAPTURE(p);
      CAPTURE(limit);
      const OrderChoices choices{0, limit};
      const Schedule schedule = generate(h2.kind, p, 1, m, h2.times, h2.shares, choices);
      std::vector<double> scratch;
      const SimulationResult result = simulate(compile(schedule), h2.times, scratch);
      double longest = 0, held = 0;
      for (int r = 0; r < p; ++r) {
        const auto i = static_cast<std::size_t>(r);
        longest = std::max(longest, (result.finish[i] - result.begin[i]).value);
        held = std::max(held, most_held(schedule, h2.shares, r));
      }
      CHECK(held <= limit + 1e-9);
      CHECK(longest <= before + 1e-9);
      before = longest;
      if (limit == p) CHECK(longest == doctest::Approx(work + p - 1).epsilon(1e-9));
      if (limit == 2 * p - 1) CHECK(longest == doctest::Approx(work).epsilon(1e-9));
    }
  }
}

TEST_CASE("bubbles of the paper's table 2") {
  for (const auto& [f, b, w] : {std::array{1.0, 1.0, 1.0}, {1.0, 1.2, 0.8}, {1.0, 1.1, 0.5}}) {
    for (const int p : {2, 3, 4, 8}) {
      for (const int m : {2 * p, 3 * p, 5 * p + 1}) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(w);
        const auto formula = [&, f = f, b = b, w = w](ScheduleKind kind) {
          return pipeline_time(kind, p, 1, m, Seconds(f), Seconds(b), Seconds(0), Seconds(w)).value;
        };
        const Case h1 = even(ScheduleKind::zero_bubble_h1, p, m, f, b, w);
        CHECK(relative_error(h1.span(), formula(ScheduleKind::zero_bubble_h1)) <= 1e-12);
        // The heuristic is no worse than the order made by hand, and has 2p instead of 2p - 1.
        const Case h2 = even(ScheduleKind::zero_bubble_h2, p, m, f, b, w);
        CHECK(h2.span() <= formula(ScheduleKind::zero_bubble_h2) * (1 + 1e-12));
        const double bubble_1f1b = (p - 1) * (f + b + w);
        CHECK(pipeline_time(ScheduleKind::one_f_one_b, p, 1, m, Seconds(f), Seconds(b + w)).value -
                  m * (f + b + w) ==
              doctest::Approx(bubble_1f1b).epsilon(1e-12));
        CHECK(h1.bubble() < bubble_1f1b);
      }
    }
  }
}

TEST_CASE("equal times: zero-bubble-h2 and -v have no bubble, -v within 1F1B's memory") {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 5 * p; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(even(ScheduleKind::zero_bubble_h2, p, m, 1, 1, 1).bubble() ==
            doctest::Approx(0).epsilon(1e-9));
      const Case v = even(ScheduleKind::zero_bubble_v, p, m, 1, 1, 1);
      CHECK(v.bubble() == doctest::Approx(0).epsilon(1e-9));
      for (int rank = 0; rank < p; ++rank)
        CHECK(most_held(v.schedule(), v.shares, rank) <= p + 1e-9);
    }
  }
}

TEST_CASE("fewer micro-batches than stages: the paper's appendix H") {
  for (const int p : {4, 8}) {
    for (int m = 1; m <= p; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      const Case c = even(ScheduleKind::zero_bubble_h2, p, m, 1, 1.1, 0.7);
      const double rough = (m + p - 1) * 2.1 + 0.7;
      CHECK(c.run().makespan.value >= rough * (1 - 1e-12));
      CHECK(c.run().makespan.value <= rough * 1.007);
    }
  }
}

TEST_CASE("generated schedules are valid, for any times, and read back") {
  for (const auto kind : kinds) {
    fixtures::Random random(11 + static_cast<std::uint32_t>(kind));
    for (int round = 0; round < 600; ++round) {
      const Case c = draw(random, kind);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(c.p);
      CAPTURE(c.m);
      const Schedule schedule = c.schedule();
      const auto fault = validate(schedule);
      CHECK_MESSAGE(!fault.has_value(), (fault ? fault->reason + "\n" + fault->grid : ""));
      const std::string text = to_text(schedule);
      CHECK(text == to_text(c.schedule()));
      CHECK(fixtures::actions_of(text) == schedule.actions);
    }
  }
}

TEST_CASE("no rank holds more than its limit, but for one backward's own weight gradients") {
  for (const auto kind : kinds) {
    fixtures::Random random(23 + static_cast<std::uint32_t>(kind));
    for (int round = 0; round < 600; ++round) {
      const Case c = draw(random, kind);
      const Schedule schedule = c.schedule();
      for (int rank = 0; rank < c.p; ++rank) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(c.p);
        CAPTURE(c.m);
        CAPTURE(rank);
        double own = 0;
        for (int v = 0; v < chunks_of(kind); ++v) {
          const auto k = static_cast<std::size_t>(stage_of(kind, c.p, v, rank));
          own = std::max(own, c.shares.pending[k] - c.shares.forward[k]);
        }
        CHECK(most_held(schedule, c.shares, rank) <= row_of(kind).held_limit(c.p) + own + 1e-9);
      }
    }
  }
  // Every rank of zero-bubble-h1 holds p in its steady state, as the first of 1F1B.
  const Case c = even(ScheduleKind::zero_bubble_h1, 6, 24, 1, 1, 1);
  for (int rank = 0; rank < 6; ++rank) CHECK(most_held(c.schedule(), c.shares, rank) == 6);
}

TEST_CASE("no split pipeline is shorter than its bounds: 2,000 uneven ones of each kind") {
  for (const auto kind : kinds) {
    fixtures::Random random(31 + static_cast<std::uint32_t>(kind));
    for (int round = 0; round < 2000; ++round) {
      const Case c = draw(random, kind);
      CAPTURE(static_cast<int>(kind));
      CAPTURE(round);
      CAPTURE(c.p);
      CAPTURE(c.m);
      const double span = split_span_bound(kind, c.p, c.m, c.times).value;
      const double all = pipeline_lower_bound(kind, c.p, chunks_of(kind), c.m, c.times).value;
      CHECK(span <= c.span() * (1 + 1e-12));
      CHECK(all <= c.run().makespan.value * (1 + 1e-12));
      CHECK(span > 0);
      CHECK(all >= span);
    }
  }
}

TEST_CASE("the V turns back on the last rank without a transfer") {
  const Case c = even(ScheduleKind::zero_bubble_v, 3, 2, 1, 1, 1, 1, 0.5);
  const std::string text = to_text(lower(c.schedule()));
  CHECK(text.find("2F0 3F0") != std::string::npos);  // no send between
  CHECK(text.find("2SEND_F0") == std::string::npos);
  CHECK(text.find("4F0 4SEND_F0") != std::string::npos);  // back up to rank 0
  CHECK(text.find("4RECV_F0 5F0 5B0 5SEND_B0") != std::string::npos);
  CHECK(rank_of(ScheduleKind::zero_bubble_v, 3, 5) == 0);
  CHECK(stage_of(ScheduleKind::zero_bubble_v, 3, 1, 0) == 5);
}

TEST_CASE("a wait that is a little shorter than a weight gradient takes it all the same") {
  // One micro-batch: the last stage's weight gradient, in the wait for the gradients of the others.
  const auto of = [](double transfer) {
    Case c = even(ScheduleKind::zero_bubble_v, 2, 1, 1, 1, 1, 1, transfer);
    c.times.forward[3] = c.times.backward[3] = c.times.weight_gradient[3] = Seconds(30);
    return c.span();
  };
  for (double transfer = 20; transfer > 2; transfer -= 0.5)
    CHECK(of(transfer - 0.5) <= of(transfer) * (1 + 1e-9));
}

TEST_CASE("faults of weight gradients are told at their cell") {
  const Case c = even(ScheduleKind::zero_bubble_h1, 2, 3, 1, 1, 1);
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = to_text(c.schedule());
    REQUIRE(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    return Schedule{c.kind, 2, 1, 3, fixtures::actions_of(text)};
  };
  REQUIRE(to_text(c.schedule()).find("1B0 1W0") == std::string::npos);
  const auto early = validate(edited("1F0 1B0", "1F0 1W0 1B0"));
  REQUIRE(early.has_value());
  CHECK(early->reason == "weight gradient stands before its backward");
  CHECK(early->rank == 1);
  CHECK(early->grid.find("[1W0]") != std::string::npos);
  const auto missing = validate(edited(" 0W2", ""));
  REQUIRE(missing.has_value());
  CHECK(missing->reason == "1 actions are missing, 0W2 the first of them");
  const auto whole =
      validate({ScheduleKind::one_f_one_b, 1, 1, 1, fixtures::actions_of("0F0 0B0 0W0\n")});
  REQUIRE(whole.has_value());
  CHECK(whole->reason == "a weight gradient stands in a schedule of whole backwards");
}

TEST_CASE("times scale: twice as slow is twice as long, to the bit") {
  for (const auto kind : kinds) {
    fixtures::Random random(43);
    for (int round = 0; round < 100; ++round) {
      Case c = draw(random, kind);
      const double before = c.run().makespan.value;
      for (auto* list : {&c.times.forward, &c.times.backward, &c.times.weight_gradient}) {
        for (Seconds& t : *list) t *= 2;
      }
      c.times.transfer *= 2;
      CHECK(c.run().makespan.value == 2 * before);
    }
  }
}

}  // namespace split_schedule_test

}  // namespace zero_bubble_test
