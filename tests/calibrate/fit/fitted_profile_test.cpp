// `shardplan calibrate` as users run it: the profile it writes is one that evaluate reads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/cluster_reader.hpp"
#include "costmodel/machine/cluster_spec.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "tests/run_program.hpp"

namespace fitted_profile_test {

using program::run;
using program::Scratch;

namespace {

std::string shipped(const std::string& name) {
  return std::string(SHARDPLAN_SOURCE_DIR) + "/configs/microbench/" + name;
}

const std::string scenario =
    "model: gpt3-1.3b\ncluster: {base: CLUSTER, devices: 16}\n"
    "training: {global_batch: 64, sequence: 2048}\nplan: {tp: 2}\n";

}  // namespace

TEST_CASE("a device's profile reads back and evaluates") {
  const Scratch scratch;
  const auto done =
      run({"calibrate", "--from", shipped("gemm.yaml"), shipped("attention.yaml"), "--device",
           "A100-PCIe-80GB", "--base", "a100-pcie-80gb", "--out", "mine.yaml"},
          scratch);
  CHECK(done.err == "");
  REQUIRE(done.status == 0);
  CHECK(done.out.find("gemm.efficiency") != std::string::npos);
  const auto value = costmodel::parse_yaml(scratch.read("mine.yaml"), "mine.yaml");
  const auto device = costmodel::read_device(value, "mine");
  CHECK(device.gemm_efficiency == doctest::Approx(0.78).epsilon(0.02));
  CHECK(device.multiprocessors == 108);
  const auto* fit = value.find("fit");
  REQUIRE(fit != nullptr);
  const auto& record = fit->items.at(0);
  CHECK(record.find("constant")->text == "gemm.efficiency");
  CHECK(record.find("points")->text == "136");
  CHECK(record.find("measured")->text == "not stated");
  CHECK(record.find("sources")->items.at(0).text.find("SimuMax") == 0);
  CHECK(value.find("gemm")->find("source")->text.find("fitted by shardplan calibrate") == 0);
  scratch.write("s.yaml", program::replaced(scenario, "CLUSTER", "dgx-a100, device: mine.yaml"));
  CHECK(run({"evaluate", "s.yaml"}, scratch).status == 0);
  const auto again = run({"calibrate", "--from", shipped("gemm.yaml"), shipped("attention.yaml"),
                          "--device", "A100-PCIe-80GB", "--base", "mine.yaml", "--quiet"},
                         scratch);
  CHECK(again.status == 0);
  CHECK(costmodel::read_device(costmodel::parse_yaml(again.out, "again"), "mine").gemm_efficiency ==
        doctest::Approx(device.gemm_efficiency).epsilon(0.001));
}

TEST_CASE("a log of nccl-tests becomes a cluster") {
  const Scratch scratch;
  const std::string log = SHARDPLAN_SOURCE_DIR "/tests/planner/support/nccl/two-nodes.txt";
  REQUIRE(run({"import", "nccl-tests", log, "--out", "log.yaml"}, scratch).status == 0);
  const auto done = run(
      {"calibrate", "--from", "log.yaml", "--base", "dgx-h100", "--out", "network.yaml"}, scratch);
  CHECK(done.err == "");
  REQUIRE(done.status == 0);
  const auto value = costmodel::parse_yaml(scratch.read("network.yaml"), "network.yaml");
  const auto cluster = costmodel::read_cluster(value, "network", {});
  const auto base = costmodel::load_yaml(SHARDPLAN_SOURCE_DIR "/configs/clusters/dgx-h100.yaml");
  const auto before = costmodel::read_cluster(base, "base", {});
  CHECK(cluster.tiers.at(0).efficiency == before.tiers.at(0).efficiency);  // nothing inside a node
  CHECK(cluster.tiers.at(1).fixed.value != 40e-6);
  scratch.write("s.yaml", program::replaced(scenario, "CLUSTER", "network.yaml"));
  CHECK(run({"evaluate", "s.yaml"}, scratch).status == 0);
}

TEST_CASE("without a base, every shipped device is held against the measurements of it") {
  const Scratch scratch;
  const auto lines = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"calibrate", "--from", shipped("gemm.yaml"), shipped("grouped_gemm.yaml")});
    const auto done = run(words, scratch);
    CHECK(done.err == "");
    CHECK(done.status == 0);
    return done.out;
  };
  const auto all = lines({});
  const auto line = [&](const std::string& text, const std::string& start) {
    const auto at = text.find(start);
    REQUIRE_MESSAGE(at != std::string::npos, start);
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(line(all, "a100-pcie-80gb       bf16 products  ").find(" 137 ") != std::string::npos);
  const std::string groups = "b200-sxm-180gb       bf16 products in groups";
  CHECK(line(all, groups) != line(lines({"--stack", "megatron-core-2026"}), groups));
  CHECK(line(all, groups) == line(lines({"--base", "b200-sxm-180gb", "--out", "x"}), groups));
}

namespace {

// One line of the comparison as a row of a Markdown table: the errors before the fit.
std::string table_row(const std::string& line) {
  const auto column = [&](std::size_t from, std::size_t size) {
    const auto text = line.substr(from, size);
    const auto first = text.find_first_not_of(' ');
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
  };
  const auto before = [&](std::size_t from) {
    const auto text = column(from, 15);
    return text.substr(0, text.find(" ->"));
  };
  return "| " + column(0, 20) + " | " + column(21, 48) + " | " + column(70, 7) + " | " +
         before(78) + " | " + before(94) + " | " + column(110, 8) + " |\n";
}

}  // namespace

TEST_CASE("docs/microbenchmarks.md tells the errors of the shipped devices") {
  const Scratch scratch;
  std::vector<std::string> words{"calibrate", "--stack", "megatron-core-2026", "--from"};
  for (const auto& file :
       std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/microbench"))
    words.push_back(file.path().string());
  std::sort(words.begin() + 4, words.end());
  const auto done = run(words, scratch);
  REQUIRE(done.status == 0);
  std::istringstream lines(done.out);
  std::string table, line;
  std::getline(lines, line);
  while (std::getline(lines, line)) table += table_row(line);
  const std::string path = SHARDPLAN_SOURCE_DIR "/docs/microbenchmarks.md";
  std::ifstream file(path);
  std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string rule = "| --- | --- | ---: | ---: | ---: | ---: |\n";
  const auto from = page.find(rule) + rule.size();
  const auto end = page.find("\n\n", from) + 1;
  if (std::getenv("SHARDPLAN_UPDATE_GOLDEN") != nullptr)
    std::ofstream(path) << page.replace(from, end - from, table);
  else
    CHECK_MESSAGE(page.substr(from, end - from) == table,
                  "SHARDPLAN_UPDATE_GOLDEN=1 writes the table");
}

TEST_CASE("bad requests") {
  const Scratch scratch;
  const auto fault = [&](const std::vector<std::string>& words) {
    auto all = words;
    all.insert(all.begin(), "calibrate");
    const auto done = run(all, scratch);
    CHECK(done.status == 2);
    CHECK(done.out == "");
    return done.err;
  };
  const std::string gemm = shipped("gemm.yaml");
  CHECK(fault({}).find("no measurements are given") != std::string::npos);
  CHECK(fault({"--from", gemm, "--device", "H800"}).find("no base is given") != std::string::npos);
  CHECK(fault({"--from", gemm, "--out", "x.yaml"}).find("no base is given") != std::string::npos);
  CHECK(fault({"--frm", gemm}).find("did you mean '--from'") != std::string::npos);
  CHECK(fault({"--from", "none.yaml", "--base", "t4"}) ==
        "none.yaml: no such file; check the path\n");
  CHECK(fault({"--from", gemm, "--base", "t4"}).find("choose with --device") != std::string::npos);
  CHECK(fault({"--from", gemm, "--base", "t4", "--device", "H80"}).find("did you mean 'H800'") !=
        std::string::npos);
  CHECK(fault({"--from", gemm, "--base", "t44", "--device", "H800"}).find("did you mean 't4'") !=
        std::string::npos);
  CHECK(fault({"--from", gemm, "--base", "h100-sxm5-80gb", "--device", "H800", "--out", "no/x"})
            .find("no/x: cannot be written") == 0);
  CHECK(fault({"--from", gemm, "--base", "t4", "--source", "DeepGem"})
            .find("no source's title holds 'DeepGem'; the files' sources: ") == 0);
  const auto nothing =
      run({"calibrate", "--from", gemm, "--base", "dgx-h100", "--device", "H800"}, scratch);
  CHECK(nothing.status == 4);
  CHECK(nothing.err.find("no constant could be fitted") != std::string::npos);
}

TEST_CASE("without its program, calibrate is one sentence") {
  const Scratch scratch;
  namespace fs = std::filesystem;
  fs::copy_file(SHARDPLAN_EXECUTABLE, scratch.path() / "shardplan");
  const std::string command =
      "cd " + scratch.path().string() + " && ./shardplan calibrate 2>err; echo $? >status";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(scratch.read("status") == "2\n");
  CHECK(scratch.read("err").find("needs the program shardplan-calibrate, which is not in ") !=
        std::string::npos);
}

}  // namespace fitted_profile_test
