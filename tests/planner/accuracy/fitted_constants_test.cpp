#include "planner/accuracy/fitted_constants.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "costmodel/base/error.hpp"
#include "tests/run_program.hpp"

namespace fitted_constants_test {

using namespace planner;

namespace {

constexpr const char* configs = SHARDPLAN_SOURCE_DIR "/configs";

}  // namespace

TEST_CASE("the file of constants is the one named, or the first on the path") {
  const program::Scratch scratch;
  const costmodel::ConfigPath both{{scratch.path().string(), configs}};
  CHECK(constants_file("mine.yaml", both) == "mine.yaml");
  CHECK(constants_file("", both) == std::string(configs) + "/fit.yaml");
  scratch.write("fit.yaml", "constants: []\n");
  CHECK(constants_file("", both) == (scratch.path() / "fit.yaml").string());
  CHECK_THROWS_AS(constants_file("", costmodel::ConfigPath{}), costmodel::ConfigError);
}

TEST_CASE("files with different values of a constant keep their ratio") {
  const program::Scratch scratch;
  std::filesystem::create_directory(scratch.path() / "devices");
  scratch.write("devices/a.yaml", "gemm: {start_s: 2}\n");
  scratch.write("devices/b.yaml", "gemm: {start_s: 3}\n");
  scratch.write("fit.yaml",
                "constants:\n- {name: start, in: [devices/a, devices/b], key: gemm.start_s}\n");
  const costmodel::ConfigPath path{{scratch.path().string()}};
  const auto constants = read_constants(constants_file("", path), path);
  REQUIRE(constants.size() == 1);
  CHECK(constants.front().value == 2);
  ConstantPlaces(constants, path).set(0, 4);
  const auto value = [&](const char* file) {
    return costmodel::loaded(path, (scratch.path() / file).string())
        .find("gemm")
        ->find("start_s")
        ->text;
  };
  CHECK(value("devices/a.yaml") == "4");
  CHECK(value("devices/b.yaml") == "6");
}

TEST_CASE("bad files of constants say where and what") {
  const program::Scratch scratch;
  const costmodel::ConfigPath path{{configs}};
  const auto fault = [&](const std::string& text) {
    scratch.write("bad.yaml", text);
    try {
      read_constants((scratch.path() / "bad.yaml").string(), path);
    } catch (const costmodel::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string start = "constants:\n- {name: x, in: [";
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: gemm.size}\n").find("has no key gemm.size") !=
        std::string::npos);
  CHECK(fault(start + "devices/a100], key: gemm.efficiency}\n").find("a100") != std::string::npos);
  CHECK(fault("constants: 5\n").find("is not a list of constants") != std::string::npos);
  CHECK(fault("constants: []\n").find("is not a list of constants") != std::string::npos);
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: gemm.efficiency, low: 0.9, high: 0.5}\n")
            .find("low 0.9 is above high 0.5; exchange them") != std::string::npos);
  CHECK(fault(start + "a100], key: gemm.efficiency}\n").find("names no configuration") !=
        std::string::npos);
  CHECK(fault(start + "devices/a100-sxm4-80gb], key: title}\n").find("is not a number") !=
        std::string::npos);
}

}  // namespace fitted_constants_test
