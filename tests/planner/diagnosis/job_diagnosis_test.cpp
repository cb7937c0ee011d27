// Jobs with a planted fault: is it the cause named first?
#include "planner/diagnosis/job_diagnosis.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "tests/planner/support/planted_logs.hpp"
#include "tests/sanitized.hpp"

namespace job_diagnosis_test {

using namespace planner;
using planted::Case;

namespace {

// Prices the hypotheses of a case once for all test cases.
JobDiagnosis diagnosed(const Case& one, const TrainingLog& log) {
  static std::map<std::string, JobDiagnoser> known;
  const auto& s = planted::scenario_of(one);
  return known.try_emplace(one.name, s, resolve_plan(s)).first->second.diagnose(log);
}

TrainingLog parsed(const Case& one, const std::string& text) {
  return parse_training_log(text, one.name, iteration_size(planted::scenario_of(one)));
}

JobDiagnosis diagnosed(const Case& one, const std::string& text) {
  return diagnosed(one, parsed(one, text));
}

const Case& case_of(const std::string& name) {
  for (const Case& one : planted::cases())
    if (one.name == name) return one;
  throw std::logic_error(name);
}

double probability_of(const JobDiagnosis& d, const std::string& name) {
  for (const Culprit& c : d.culprits)
    if (c.name == name) return c.probability;
  return 0;
}

// SHARDPLAN_WRITE_LOGS=1 writes the ten anew.
void write_if_asked() {
  if (std::getenv("SHARDPLAN_WRITE_LOGS") == nullptr) return;
  for (const Case& one : planted::cases())
    std::ofstream(planted::file_of(one, ".log"), std::ios::binary) << planted::log_of(one, 1);
}

}  // namespace

TEST_CASE("ten logs with a planted fault each: it comes first in at least eight") {
  write_if_asked();
  int first = 0;
  std::set<std::string> frameworks;
  for (const Case& one : planted::cases()) {
    CAPTURE(one.name);
    const auto log =
        read_training_log(planted::file_of(one, ".log"), iteration_size(planted::scenario_of(one)));
    frameworks.insert(log.framework);
    const auto d = diagnosed(one, log);
    double sum = 0, priors = 0;
    for (const Culprit& c : d.culprits) {
      sum += c.probability;
      priors += c.prior;
    }
    CHECK(sum == doctest::Approx(1).epsilon(1e-9));
    CHECK(priors == doctest::Approx(1).epsilon(1e-9));
    if (d.culprits.front().name == one.cause) ++first;
    CHECK(probability_of(d, one.cause) > 0.02);  // even where the log does not settle it
  }
  CHECK(first >= 8);
  CHECK(frameworks.size() == 6);
}

TEST_CASE("with other errors drawn the fault comes first as often; without timers less so") {
  constexpr int draws = sanitized ? 4 : 10;
  int first = 0, bare = 0;
  std::string told;
  for (const Case& one : planted::cases()) {
    int hits = 0, bare_hits = 0;
    for (std::uint32_t seed = 2; seed < 2 + draws; ++seed) {
      const std::string log = planted::log_of(one, seed);
      if (diagnosed(one, log).culprits.front().name == one.cause) ++hits;
      if (diagnosed(one, planted::without_timers(log)).culprits.front().name == one.cause)
        ++bare_hits;
    }
    told += fmt::format("{}: {}, without timers {} of {}\n", one.name, hits, bare_hits, draws);
    first += hits;
    bare += bare_hits;
  }
  CAPTURE(told);
  CHECK(first >= 8 * draws);
  CHECK(bare < first);
  CHECK(bare >= 4 * draws);
}

TEST_CASE("a job without a fault: none is named with confidence") {
  int first = 0;
  for (const Case& one : planted::cases()) {
    Case well = one;
    well.fault = [](Job&) {};
    well.every = 0;
    CAPTURE(one.name);
    const auto d = diagnosed(one, planted::log_of(well, 3));
    if (d.culprits.front().name == "as-configured") ++first;
    CHECK((d.culprits.front().name == "as-configured" || d.culprits.front().probability < 0.6));
  }
  CHECK(first >= 8);
}

TEST_CASE("what the log says of its settings rules hypotheses out, or contradicts the scenario") {
  const Case& one = case_of("megatron_micro_batch");
  const std::string log = planted::log_of(one, 1);
  const auto same = diagnosed(one, log + "  micro_batch_size ............... 4\n");
  CHECK(probability_of(same, "micro-batch") == 0);
  REQUIRE(same.ruled_out.size() == 2);  // the log has the global batch too
  CHECK(same.ruled_out[0].key == "plan.micro_batch");
  CHECK(same.contradictions.empty());

  const auto other = diagnosed(one, log + "  micro_batch_size ............... 1\n");
  REQUIRE(other.contradictions.size() == 1);
  CHECK(other.contradictions[0].scenario == "4");
  CHECK(other.contradictions[0].log == "1");
  CHECK(other.culprits.front().name == "other-settings");
  CHECK(other.culprits.front().probability > 0.9);
}

TEST_CASE("another machine is a contradiction that is told and not priced") {
  const Case& one = case_of("megatron_micro_batch");
  const auto d = diagnosed(one, planted::log_of(one, 1) + "  world_size ........ 128\n");
  REQUIRE(d.contradictions.size() == 1);
  CHECK(d.contradictions[0].key == "cluster.devices");
  CHECK(probability_of(d, "other-settings") == 0);
}

TEST_CASE("a job beyond all that is known is none of these") {
  const Case& one = case_of("megatron_no_overlap");
  std::string log;
  for (int n = 11; n < 31; ++n) {
    log +=
        fmt::format(" iteration {}/ 100 | elapsed time per iteration (ms): {} |\n", n, 60'000 + n);
    log += "    forward-compute ......: (20000.0, 29000.0)\n";
    log += "    optimizer ............: (25000.0, 25000.0)\n";
  }
  const auto d = diagnosed(one, log);
  CHECK(d.culprits.front().name == "none-of-these");
  CHECK(d.culprits.front().gained.value == 0);
}

TEST_CASE("a rank that a timer does not count leaves probabilities finite") {
  const Case& one = case_of("megatron_slow_node");
  const auto d = diagnosed(one,
                           " iteration 50/ 100 | elapsed time per iteration (ms): 0.0001 |\n"
                           "    forward-compute ......: (0.00, 900.0)\n");
  double sum = 0;
  for (const Culprit& c : d.culprits) sum += c.probability;
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE("what repairing gains is what is measured less the same share as predicted") {
  const Case& one = case_of("deepspeed_slow_network");
  const auto s = planted::scenario_of(one);
  const auto log = read_training_log(planted::file_of(one, ".log"), iteration_size(s));
  const auto d = diagnosed(one, log);
  const Culprit& c = d.culprits.front();
  REQUIRE(c.name == "slow-network");
  const double left = d.expected.iteration / c.predicted.iteration;
  CHECK(c.gained.value == doctest::Approx(log.pace.median.value * (1 - left)));
  CHECK(c.gained.value > 0);
}

TEST_CASE("each log of a job is diagnosed as if it were the only one") {
  const Case& one = case_of("megatron_no_overlap");
  const auto& s = planted::scenario_of(one);
  const std::string log = planted::log_of(one, 1);
  for (const std::string& text :
       {planted::without_timers(log), log + "  micro_batch_size ............... 1\n"}) {
    const auto all = diagnosed(one, text);
    const auto alone = diagnose_job(s, resolve_plan(s), parsed(one, text));
    REQUIRE(all.culprits.size() == alone.culprits.size());
    for (std::size_t i = 0; i < all.culprits.size(); ++i) {
      CHECK(all.culprits[i].name == alone.culprits[i].name);
      CHECK(all.culprits[i].predicted.iteration == alone.culprits[i].predicted.iteration);
      CHECK(all.culprits[i].probability == alone.culprits[i].probability);
    }
    CHECK(all.contradictions.size() == alone.contradictions.size());
    CHECK(all.ruled_out.size() == alone.ruled_out.size());
  }
}

TEST_CASE("the size of an iteration") {
  const auto s = planted::scenario_of(case_of("megatron_slow_node"));
  CHECK(iteration_size(s).sequences == 256);
  CHECK(iteration_size(s).tokens_per_device == 256.0 * 8192 / 64);
}

}  // namespace job_diagnosis_test
