// The steps of a stem and a projector: their sizes, their parameters, and how they are written.
#include "costmodel/model/tower.hpp"

#include <doctest/doctest.h>

namespace tower_test {

using namespace costmodel;

namespace {

std::vector<TowerStep> steps(const std::vector<std::string>& texts) {
  std::vector<TowerStep> all;
  for (const std::string& text : texts) all.push_back(parse_step(text).value());
  return all;
}

}  // namespace

TEST_CASE("a step is a word and its numbers, and is written as it is read") {
  for (const char* const text :
       {"linear 8", "linear 8 bias", "conv 8 3 2", "gated 12", "tokens 1", "drop 1", "positions 9",
        "layernorm", "rmsnorm", "gelu", "silu", "merge 4", "pool 16"}) {
    CAPTURE(std::string(text));
    REQUIRE(parse_step(text));
    CHECK(to_string(*parse_step(text)) == text);
  }
  for (const char* const text :
       {"", "linear", "linear x", "linear 0", "linear 8 biased", "linear 8 bias 1", "conv 8 3",
        "merge 4 bias", "gelu 1", "liner 8", "linear 99999999999999999999"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(parse_step(text));
  }
}

TEST_CASE("steps change tokens and columns, and their parameters are counted") {
  const auto shapes = shapes_of(steps({"linear 8 bias", "tokens 1", "positions 17", "layernorm",
                                       "drop 1", "merge 4", "gated 6", "gelu", "linear 5"}),
                                16, 12);
  CHECK(shapes[0].parameters == 12 * 8 + 8);
  CHECK((shapes[1].out_rows == 17 && shapes[1].parameters == 8));
  CHECK(shapes[2].parameters == 17 * 8);
  CHECK(shapes[3].parameters == 16);
  CHECK((shapes[4].out_rows == 16 && shapes[4].parameters == 0));
  CHECK((shapes[5].out_rows == 4 && shapes[5].out_columns == 32));
  CHECK((shapes[6].out_columns == 32 && shapes[6].parameters == 3 * 32 * 6));
  CHECK((shapes.back().rows == 4 && shapes.back().out_columns == 5));
  CHECK(shapes.back().parameters == 160);
  // Of sound: two convolutions, the second of every other frame.
  const auto sound = shapes_of(steps({"conv 8 3 1", "gelu", "conv 8 3 2", "pool 2"}), 301, 4);
  CHECK((sound[0].out_rows == 301 && sound[0].parameters == 3 * 4 * 8 + 8));
  CHECK((sound[2].out_rows == 151 && sound[3].out_rows == 76));
}

TEST_CASE("merges beyond any width stay numbers") {
  const std::vector<TowerStep> many(64, parse_step("merge 4194304").value());
  for (const StepShape& shape : shapes_of(many, 16, 4)) CHECK(shape.out_columns > 0);
}

TEST_CASE("patches of an image, frames of a clip") {
  TowerSpec tower;
  tower.encoder.hidden = 8;
  tower.patch = 14;
  tower.frames = 2;
  CHECK(tower.input_tokens(336) == 576);
  CHECK(tower.input_tokens(5) == 1);
  CHECK(tower.input_width() == 3 * 14 * 14 * 2);
  tower.projector = steps({"merge 4", "linear 2"});
  CHECK(tokens_of(tower, 336).language == 144);
  tower.input = TowerInput::audio;
  CHECK((tower.input_tokens(30) == 3000 && tower.input_width() == 128));
}

}  // namespace tower_test
