// The training of a scenario: what it takes from its stack, and what it says itself.
#include "costmodel/scenario/training_reader.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "costmodel/config/yaml.hpp"
#include "costmodel/machine/device_reader.hpp"
#include "costmodel/model/model_reader.hpp"
#include "costmodel/plan/stack_reader.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace training_reader_test {

using namespace costmodel;

namespace {

ClusterSpec h100() {
  ClusterSpec cluster;
  const auto found = resolve_config(fixtures::configs(), "devices", scalar_value("h100-sxm5-80gb"));
  cluster.device = read_device(found.value, found.name);
  return cluster;
}

TrainingSpec read(const std::string& keys, const ModelSpec& model = {}) {
  return read_training(parse_yaml("{global_batch: 8, sequence: 64" + keys + "}", "t.yaml"),
                       fixtures::configs(), model, h100());
}

std::string fault(const std::string& keys, const ModelSpec& model = {}) {
  return fixtures::config_error([&] { read(keys, model); });
}

}  // namespace

TEST_CASE("what is not written is the stack's or the usual, and told") {
  const TrainingSpec t = read("");
  CHECK(t.stack.name == "megatron-core-2026");
  CHECK(t.precision == Precision::bf16);
  CHECK(t.gradient_precision == t.stack.memory.gradient_precision);
  CHECK(t.overlap.overlap_grad_reduce == t.stack.overlap.overlap_grad_reduce);
  CHECK(t.expert_imbalance == 1);
  CHECK(t.assumed == std::vector<std::string>{"precision bf16 (none given)",
                                              "stack megatron-core-2026 (none given)"});
}

TEST_CASE("some keys of a stack that is not named change the usual one") {
  const TrainingSpec t = read(", stack: {loss: flash}"), usual = read("");
  CHECK(t.stack.name == usual.stack.name);
  CHECK(t.stack.offers.max_zero == usual.stack.offers.max_zero);
  CHECK(t.stack.kernels.loss == LossKernel::flash);
  CHECK(usual.stack.kernels.loss != LossKernel::flash);
  CHECK(std::ranges::count(t.assumed, "stack megatron-core-2026 (none given)") == 1);
}

TEST_CASE("what is written of experts is left out of a model without any, and listed") {
  ModelSpec experts;
  experts.experts = 8;
  const char* const keys = ", stack: megatron-bridge, precision: bf16, expert_buffer_factor: 2";
  CHECK(read(keys, experts).expert_buffer_factor == 2);
  const TrainingSpec t = read(keys);
  CHECK(t.expert_buffer_factor == 0);
  CHECK(t.assumed ==
        std::vector<std::string>{"expert_buffer_factor left out: the model has no experts"});
  const TrainingSpec uneven = read(", stack: megatron-bridge, expert_imbalance: 2");
  CHECK(uneven.expert_imbalance == 1);
  CHECK(std::ranges::count(uneven.assumed, "expert_imbalance left out: the model has no experts") ==
        1);
}

TEST_CASE("formats are those that tensors of a kind have") {
  const auto fault = [](const std::string& keys) {
    return fixtures::config_error([&] { read(", stack: megatron-bridge, " + keys); });
  };
  CHECK(read(", moment_precision: fp16").moment_precision == Precision::fp16);
  CHECK(read(", parameter_gather_precision: mxfp8").gather_precision == Precision::mxfp8);
  CHECK(read(", attention_precision: fp8").narrow_attention);
  CHECK_FALSE(read(", attention_precision: bf16").narrow_attention);
  for (const char* keys : {"moment_precision: fp8", "gradient_precision: mxfp8",
                           "attention_precision: fp32", "attention_precision: nvfp4",
                           "parameter_gather_precision: fp32", "parameter_gather_precision: nvfp4"})
    CHECK(fixtures::contains(fault(keys), "is not known; known: "));
}

TEST_CASE("graphs of parts that the model lacks are left out, and listed") {
  const TrainingSpec t = read(", overlap: {cuda_graph: [attn, mamba, moe_router]}");
  CHECK(t.overlap.graph_attention);
  CHECK_FALSE(t.overlap.graph_scan);
  CHECK_FALSE(t.overlap.graph_router);
  CHECK(std::ranges::count(t.assumed,
                           "overlap.cuda_graph: mamba left out: the model has no scans") == 1);
}

TEST_CASE("what is written stands above the stack") {
  ModelSpec experts;
  experts.experts = 8;
  const TrainingSpec t = read(
      ", stack: megatron-2021, precision: fp16, gradient_precision: fp32, optimizer: sgd, "
      "attention_precision: fp8, capacity_factor: 1.5, expert_imbalance: none, "
      "overlap: {pp_overlap: true}",
      experts);
  CHECK(t.stack.name == "megatron-2021");
  CHECK(t.gradient_precision == Precision::fp32);
  CHECK(t.optimizer == Optimizer::sgd);
  CHECK(t.narrow_attention);
  CHECK(t.capacity_factor == 1.5);
  CHECK(t.expert_imbalance == 1);
  CHECK(t.overlap.pp_overlap);
  CHECK(t.overlap.overlap_grad_reduce == t.stack.overlap.overlap_grad_reduce);
  CHECK(read(", precision: fp32, stack: megatron-2021").gradient_precision == Precision::fp32);
}

TEST_CASE("only two stacks of layers have two sequences") {
  ModelSpec t5;
  t5.encoder_layers = t5.decoder_layers = 1;
  CHECK(read(", decoder_sequence: 16", t5).decoder_sequence == 16);
  CHECK(read("", t5).decoder_sequence == 64);
  CHECK(fixtures::contains(fault(", decoder_sequence: 16"),
                           "decoder_sequence is of a model with an encoder and a decoder"));
}

TEST_CASE("what a sequence has for towers, and which parts are frozen") {
  const ModelSpec m = read_model(
      parse_yaml("{kind: llama, layers: 1, hidden: 32, heads: 1, vocab: 8, vision: {patch: 4, "
                 "image_size: 16, stem: [linear 8], layers: 1, hidden: 8, heads: 1, "
                 "projector: [merge 4]}}",
                 "m.yaml"),
      "m");
  const TrainingSpec t = read(", images: 3, image_size: 32, frozen: [vision]", m);
  CHECK((t.towers.number[0] == 3 && t.towers.size[0] == 32));
  CHECK_FALSE(t.fine_tuning.trains(ModelPiece::vision));
  CHECK(t.fine_tuning.trains(ModelPiece::projector));
  CHECK(std::ranges::count(read("", m).assumed, "images 1 (none given)") == 1);
  using fixtures::contains;
  CHECK(
      contains(fault(", images: 3"),
               "images is of a model with a tower for vision; leave it out, or give model.vision"));
  CHECK(contains(fault(", audio_seconds: 3", m), "audio_seconds is of a model with a tower"));
  CHECK(contains(fault(", images: 17", m),
                 "the towers make 68 tokens of a sequence of 64; lengthen training.sequence"));
  CHECK(contains(fault(", frozen: vision", m), "frozen is a list of parts"));
  CHECK(
      contains(fault(", frozen: [vison]", m), "frozen: 'vison' is no part; did you mean 'vision'"));
  CHECK(contains(fault(", frozen: [audio]", m), "frozen: the model has no audio"));
  CHECK(contains(fault(", frozen: [projector]"), "frozen: the model has no projector"));
}

TEST_CASE("what is wrong is told at its place") {
  CHECK(
      fixtures::contains(fault(", stak: x"), "training has no key 'stak'; did you mean 'stack'?"));
  CHECK(fixtures::contains(fault(", precision: nvfp4"), "has no nvfp4 rate"));
  CHECK(fixtures::contains(fault(", overlap: {tp: true}"), "overlap has no key 'tp'"));
}

TEST_CASE("samples of unequal length, padded or packed") {
  const auto tokens = [](const std::string& more) {
    return ", stack: peft, sample_tokens: " + more;
  };
  CHECK_FALSE(read("").packing.any());
  const Packing padded = read(tokens("32")).packing;
  CHECK_FALSE(padded.packed);
  CHECK(padded.filled == 0.5);  // of 64
  CHECK(read(tokens("{min: 4, max: 28}, packing: true")).packing.samples > 3);
  CHECK(fixtures::contains(fault(", stack: peft, packing: true"), "how long are the samples?"));
  CHECK(fixtures::contains(fault(tokens("65")), "65 tokens on average are cut at sequence: 64"));
  CHECK(fixtures::contains(fault(", stack: megatron-2021, sample_tokens: 8, packing: true"),
                           "stack megatron-2021 does not pack samples"));
  ModelSpec windowed;
  windowed.sliding_window = 16;
  CHECK(fixtures::contains(fault(tokens("8, packing: true"), windowed),
                           "packed samples with a sliding window are not modelled"));
}

TEST_CASE("moments have a precision where there are moments to choose it of") {
  CHECK(read(", moment_precision: bf16").moment_precision == Precision::bf16);
  CHECK(fixtures::contains(fault(", optimizer: adafactor, moment_precision: bf16"),
                           "adafactor has no moments of bf16"));
  CHECK(fixtures::contains(fault(", optimizer: adam-8bit, moment_precision: bf16"),
                           "adam-8bit has no moments of bf16"));
}

TEST_CASE(
    "adapters without a stack are peft's, or Megatron-Bridge's where their plan splits the model") {
  const auto assumed = [](const char* training, const char* plan) {
    const Value map = parse_yaml(training, "t.yaml"), sizes = parse_yaml(plan, "p.yaml");
    return stack_assumed(map, &sizes);
  };
  constexpr auto* adapters = "fine_tuning: {method: qlora}";
  CHECK(stack_assumed(parse_yaml(adapters, "t.yaml"), nullptr) == "peft");
  CHECK(assumed(adapters, "{dp: 8, tp: 1, zero: 3}") == "peft");
  CHECK(assumed("fine_tuning: {method: full}", "{dp: 8}") == "megatron-core-2026");
  for (const char* size : {"tp", "pp", "cp", "ep"}) {
    CAPTURE(size);
    CHECK(assumed(adapters, fmt::format("{{dp: 4, {}: 2}}", size).c_str()) == "megatron-bridge");
  }
}

TEST_CASE("the keys are listed, those of the overlap by its parts") {
  const auto keys = training_keys();
  const auto factor = std::ranges::find(keys, "training.capacity_factor", &KeyText::name);
  REQUIRE(factor != keys.end());
  CHECK(factor->allowed == "0.01 to 1000, none");
  CHECK(std::ranges::count(keys, "training.overlap.cuda_graph", &KeyText::name) == 1);
  CHECK(std::ranges::count(keys, "training.overlap", &KeyText::name) == 0);
}

TEST_CASE("workspaces of more than what they are part of are refused where stack and device meet") {
  CHECK(fault(", stack: {base: peft, memory: {workspaces: 64}}") ==
        "t.yaml:1:40: workspaces of stack peft take 2 GiB on device h100-sxm5-80gb "
        "(memory.workspace_bytes 32 MiB), more than its context_bytes, 1000 MiB, which they are "
        "part of; set the stack's memory.workspaces or expert_workspaces lower, or its "
        "memory.context_bytes higher");
  CHECK(fault(", stack: {base: peft, memory: {workspaces: 31}}").empty());
  ModelSpec experts = fixtures::gpt(2, 64, 4, 512, 64);
  experts.experts = 8;
  const char* grouped = ", stack: {base: peft, memory: {workspaces: 31, expert_workspaces: 1}}";
  CHECK(fault(grouped).empty());
  CHECK(fixtures::contains(fault(grouped, experts), "workspaces of stack peft"));
}

TEST_CASE("the workspaces of every shipped stack are a part of its context on every device") {
  ModelSpec experts = fixtures::gpt(2, 64, 4, 512, 64);
  experts.experts = 8;
  for (const std::string& name : config_names(fixtures::configs(), "stacks")) {
    const auto stack = resolve_config(fixtures::configs(), "stacks", scalar_value(name));
    for (const std::string& device : config_names(fixtures::configs(), "devices")) {
      const auto found = resolve_config(fixtures::configs(), "devices", scalar_value(device));
      const StackMemory memory = read_stack(stack.value, name).memory;
      CHECK_MESSAGE(workspaces(experts, read_device(found.value, device), memory) <= memory.context,
                    name << " on " << device);
    }
  }
}

TEST_CASE("adapters are trained by the stack that has them, where none is named") {
  const ModelSpec model = fixtures::gpt(2, 64, 4, 512, 64);
  CHECK(read(", fine_tuning: {method: lora}", model).stack.name == "peft");
  CHECK(read(", fine_tuning: {method: qlora}", model).stack.name == "peft");
  CHECK(read(", fine_tuning: {method: full}", model).stack.name == "megatron-core-2026");
}

TEST_CASE("a device whose cache is larger than its memory is refused") {
  Value device = parse_yaml("{base: h100-sxm5-80gb, cache: {bytes: 900 GB}}", "d.yaml");
  const auto found = resolve_config(fixtures::configs(), "devices", device);
  CHECK(fixtures::contains(fixtures::config_error([&] { read_device(found.value, "h"); }),
                           "cache of 838.2 GiB exceeds the device's memory, 79.1 GiB; write the "
                           "bytes of the second level"));
}

}  // namespace training_reader_test
