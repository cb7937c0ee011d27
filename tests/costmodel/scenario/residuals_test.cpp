#include "costmodel/scenario/residuals.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "costmodel/config/search_path.hpp"
#include "costmodel/config/yaml.hpp"
#include "tests/run_program.hpp"

namespace residuals_test {

using namespace costmodel;

namespace {

// Dense models: one stack of three sources on one device; a device of one source. No experts.
ResidualTable table() {
  ResidualTable t;
  KindResiduals& dense = t.kinds[0];
  dense.count = {113, 4};
  dense.low = -0.1;
  dense.high = 0.2;
  dense.covered = 91;
  dense.most_devices = 1024;
  dense.most_parameters = 1e11;
  dense.traits[{TraitGroup::stack, "steady"}] = {112, 3};
  dense.traits[{TraitGroup::device, "fast"}] = {101, 3};
  dense.traits[{TraitGroup::device, "slow"}] = {12, 1};
  dense.traits[{TraitGroup::family, "gpt"}] = {113, 4};
  dense.traits[{TraitGroup::mechanism, "fp8"}] = {20, 2};
  dense.runs[{"steady", "fast"}] = 100;
  t.widening = {1.2, 1.44, 1.3, 1.1};
  t.pair_spread = 0.1;
  t.unseen.source = {7.5, 7.4, 8.6, 8.3};
  t.unseen.by_source["one"] = {5, 90};
  return t;
}

RunTraits run() { return {"steady", "fast", "gpt", false, {"fp8"}, 512, 1e10}; }

double high(const RunTraits& traits) { return std::log(band_of(table(), traits).high); }

struct Folder {
  program::Scratch scratch;
  explicit Folder(const std::string& text) {
    if (!text.empty()) scratch.write("residuals.yaml", text);
  }
  ErrorBand find() const { return find_band(ConfigPath{{scratch.path().string()}}, run()); }
};

}  // namespace

TEST_CASE("a run all of whose traits were measured has its kind's percentiles") {
  const ErrorBand band = band_of(table(), run());
  CHECK(band.low == doctest::Approx(std::exp(-0.1)));
  CHECK(band.high == doctest::Approx(std::exp(0.2)));
  CHECK(band.pair_spread == 0.1);
  CHECK(band.basis == "interval: 113 published runs of dense models, 100 by steady on fast");
}

TEST_CASE("a lineage of stacks that many sources ran has percentiles of its own") {
  ResidualTable own = table();
  own.kinds[0].lineages["sturdy"] = {{80, 9}, -0.05, 0.1, 92};
  RunTraits traits = run();
  CHECK(std::log(band_of(own, traits).high) == doctest::Approx(0.2));
  traits.lineage = "sturdy";
  CHECK(std::log(band_of(own, traits).low) == doctest::Approx(-0.05));
  CHECK(std::log(band_of(own, traits).high) == doctest::Approx(0.1));
  CHECK(band_of(own, traits).basis ==
        "interval: 80 published runs of dense models by sturdy stacks, 100 by steady on fast");
  traits.device = "new";
  CHECK(std::log(band_of(own, traits).high) == doctest::Approx(0.1 * 1.44));
  traits.lineage = "other";
  CHECK(std::log(band_of(own, traits).high) == doctest::Approx(0.2 * 1.44));
  const ResidualTable again = read_residuals(parse_yaml(to_yaml(own), "residuals.yaml"));
  CHECK(again.kinds[0].lineages.at("sturdy").count.sources == 9);
  CHECK(again.kinds[0].lineages.at("sturdy").high == doctest::Approx(0.1));
}

TEST_CASE("what was never measured widens, by the factor of its group, and is told") {
  RunTraits traits = run();
  traits.stack = "new";
  CHECK(high(traits) == doctest::Approx(0.2 * 1.2));
  CHECK(band_of(table(), traits).basis ==
        "interval: 113 published runs of dense models; none by new: wider");
  CHECK(band_of(table(), traits).unknown == std::vector<std::string>{"by new"});
  traits = run();
  CHECK(band_of(table(), traits).unknown.empty());
  traits.device = "new";
  CHECK(high(traits) == doctest::Approx(0.2 * 1.44));
  traits.device = "slow";  // one source: the square root
  CHECK(high(traits) == doctest::Approx(0.2 * 1.2));
  CHECK(band_of(table(), traits).basis.find("one source on slow: wider") != std::string::npos);
  CHECK(band_of(table(), traits).unknown.empty());  // of one source something is known
  traits = run();
  traits.mechanisms = {"DeepEP", "fp8", "HybridEP"};
  CHECK(high(traits) == doctest::Approx(0.2 * 1.3));
  traits.family = "mamba";  // mechanisms and family are both of the model
  CHECK(high(traits) == doctest::Approx(0.2 * 1.3));
  CHECK(band_of(table(), traits).basis ==
        "interval: 113 published runs of dense models, 100 by steady on fast; none of mamba "
        "models, none with DeepEP, none with HybridEP: wider");
}

TEST_CASE("features of plans that no run had are listed, and widen nothing") {
  CHECK(band_of(table(), run()).unmeasured == 0);  // the table counts none
  ResidualTable counted = table();
  counted.kinds[0].traits[{TraitGroup::plan, "ZeRO 3"}] = {4, 1};
  const ErrorBand band = band_of(counted, run());
  CHECK((band.unmeasured & bit_of(PlanFeature::zero_3)) == 0);
  CHECK((band.unmeasured & bit_of(PlanFeature::zero_2)) != 0);
  CHECK(names_of(band.unmeasured).size() == plan_feature_names.size() - 1);
  counted.kinds[0].traits = {
      {{TraitGroup::plan, "ZeRO 2"}, {4, 1}}};  // 3 includes that in a pipeline
  CHECK(names_of(band_of(counted, run()).unmeasured).size() == plan_feature_names.size() - 2);
  counted.kinds[0].traits = {{{TraitGroup::plan, "ZeRO 3"}, {4, 1}}};
  CHECK(band.high == band_of(table(), run()).high);
  const std::string text = to_yaml(counted);
  CHECK(to_yaml(read_residuals(parse_yaml(text, "residuals.yaml"))) == text);
  std::string without = text;  // as tables before this feature are
  const auto at = without.find("  plans:");
  without.erase(at, without.find("  runs_by_stack", at) - at);
  CHECK(read_residuals(parse_yaml(without, "residuals.yaml")).kinds[0].count.runs == 113);
}

TEST_CASE("more devices or a larger model than ever measured: wider for each doubling") {
  RunTraits traits = run();
  traits.devices = 4096;
  CHECK(high(traits) == doctest::Approx(0.2 * 1.1 * 1.1));
  traits.parameters = 8e11;
  CHECK(high(traits) == doctest::Approx(0.2 * 1.1 * 1.1 * 1.1));
  CHECK(band_of(table(), traits)
            .basis.find(
                "none on more than 1,024 devices, none of more than 100 B parameters: wider") !=
        std::string::npos);
}

TEST_CASE("a kind without published runs has the other's percentiles at their widest") {
  RunTraits traits = run();
  traits.experts = true;
  CHECK(high(traits) == doctest::Approx(0.2 * 1.2 * 1.44 * 1.3));
  CHECK(band_of(table(), traits).basis ==
        "interval: no published run of mixtures of experts: widest");
}

TEST_CASE("a table reads back as it was written") {
  ResidualTable named = table();
  named.kinds[1].traits[{TraitGroup::stack, "with \"quotes\": and more"}] = {1, 1};
  named.kinds[1].runs[{"with \"quotes\": and more", "fast"}] = 1;
  for (const auto& t : {table(), named, ResidualTable{.pair_spread = 0.1}}) {
    const std::string text = to_yaml(t);
    const ResidualTable back = read_residuals(parse_yaml(text, "residuals.yaml"));
    CHECK(to_yaml(back) == text);
  }
}

TEST_CASE("peaks: a stack's own distribution, for others that of all and wider") {
  ResidualTable t = table();
  PeakResiduals& peaks = t.peaks.emplace();
  peaks.all = {{30, 4}, 0.01, 0.05};
  peaks.stacks["steady"] = {{20, 2}, -0.02, 0.03};
  peaks.unmeasured = 1.5;
  const auto back = read_residuals(parse_yaml(to_yaml(t), "residuals.yaml"));
  REQUIRE(back.peaks);
  CHECK(to_yaml(back) == to_yaml(t));
  const PeakErrors own = peak_errors_of(*back.peaks, "steady");
  CHECK(own.middle == -0.02);
  CHECK(own.scale == 0.03);
  CHECK(own.measured);
  CHECK(own.basis == "chance that it fits: by 30 measured peaks, 20 by steady");
  const PeakErrors other = peak_errors_of(*back.peaks, "new");
  CHECK(other.middle == 0.01);
  CHECK(other.scale == doctest::Approx(0.05 * 1.5));
  CHECK_FALSE(other.measured);
  CHECK(other.basis == "chance that it fits: by 30 measured peaks, none by new: wider");

  const auto found = [](const std::string& text) {
    const Folder folder(text);
    return find_peak_errors(ConfigPath{{folder.scratch.path().string()}}, "steady");
  };
  CHECK(found(to_yaml(t)).scale == 0.03);
  for (const std::string& text : {std::string(), to_yaml(table()), std::string("[")}) {
    CHECK(found(text).scale == PeakErrors{}.scale);
    CHECK(found(text).basis.find("a guess") != std::string::npos);
  }
}

TEST_CASE("without a table, or with one that is no use, the interval is the widest and says why") {
  CHECK(Folder(to_yaml(table())).find().high == doctest::Approx(std::exp(0.2)));
  ResidualTable with_sites = table();
  with_sites.sites = {33, 0.045, 0.07, 0.6, 0.8, 1.7};
  const auto again = read_residuals(parse_yaml(to_yaml(with_sites), "residuals.yaml"));
  REQUIRE(again.sites);
  CHECK(again.sites->sources == 33);
  CHECK(again.sites->noise_spread == 0.6);
  CHECK(again.sites->high == 1.7);
  CHECK_FALSE(read_residuals(parse_yaml(to_yaml(table()), "residuals.yaml")).sites);
  const ErrorBand missing = Folder("").find();
  CHECK(missing.high == ErrorBand{}.high);
  CHECK(missing.basis.find("no residuals.yaml was found") != std::string::npos);
  const ErrorBand older = Folder("dense: {runs: 3}\n").find();
  CHECK(older.high == ErrorBand{}.high);
  CHECK(older.basis.find("residuals.yaml:1:") != std::string::npos);
  CHECK(Folder("[").find().low == ErrorBand{}.low);
}

TEST_CASE("the chance of an order: even for equal times, 95 % at the tabled Student quantile") {
  CHECK(probability_faster(2, 2, 0.1) == doctest::Approx(0.5));
  CHECK(probability_faster(1, std::exp(0.2353), 0.1) == doctest::Approx(0.95).epsilon(1e-3));
  CHECK(probability_faster(3, 2, 0.1) + probability_faster(2, 3, 0.1) == doctest::Approx(1));
  CHECK(probability_faster(1, 10, 0.1) > 0.999);
}

}  // namespace residuals_test
