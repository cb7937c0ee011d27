// Arguments read from launch scripts and from lists.
#include "planner/frameworks/megatron_script.hpp"

#include <doctest/doctest.h>

#include "tests/planner/support/megatron_runs.hpp"

namespace megatron_script_test {

using planner::read_megatron_script;
using Strings = std::vector<std::string>;

TEST_CASE("the words behind the program, and the world from what launches it") {
  const auto run = read_megatron_script(megatron_runs::script, "x.sh");
  CHECK(run.world_size == 128);
  CHECK(run.per_node == 8);
  REQUIRE(run.find("--num-layers") != nullptr);
  CHECK(run.find("--num-layers")->values == Strings{"96"});
  CHECK(run.find("--num-layers")->mark.line == 6);
  CHECK(run.find("--data-path")->unknown == "$DATA");
  CHECK(run.find("--nnodes") == nullptr);
}

TEST_CASE("a list of arguments; the last of a repeated flag counts") {
  const auto run = read_megatron_script("--num-layers 2\n--num-layers=4 --bf16\n", "args");
  CHECK(run.find("--num-layers")->values == Strings{"4"});
  CHECK(run.find("--bf16")->values.empty());
  CHECK(run.world_size == 0);
  CHECK(read_megatron_script(
            "srun -N 4 --ntasks-per-node=8 bash -c 'python pretrain_gpt.py --bf16'", "x")
            .world_size == 32);
  CHECK(read_megatron_script("#SBATCH --nodes=2 --gpus-per-node=4\npython pretrain_gpt.py --bf16",
                             "x")
            .world_size == 8);
  CHECK(
      read_megatron_script("torchrun --nproc-per-node 4 pretrain_gpt.py --bf16", "x").world_size ==
      4);
}

TEST_CASE("arguments that are not known are no value of the flag before them") {
  const auto run = read_megatron_script(
      "python pretrain_gpt.py $HEAD --num-layers 2 $EXTRA --lr 1 ${MORE[@]} \\\n"
      "  --graph-sizes 1 2 $SIZES --data-path 1 $A\n",
      "x");
  CHECK(run.find("--graph-sizes")->unknown == "$SIZES");
  CHECK(run.find("--num-layers")->values == Strings{"2"});
  CHECK(run.find("--num-layers")->unknown.empty());
  CHECK(run.find("--data-path")->unknown == "$A");
  for (const char* name : {"$HEAD", "$EXTRA", "$MORE"})
    CHECK_MESSAGE(run.find(name) != nullptr, name);
}

TEST_CASE("short options and GPUs of #SBATCH lines size the job") {
  const auto world = [](const std::string& lines) {
    return read_megatron_script(lines + "\nsrun python pretrain_gpt.py --bf16", "x").world_size;
  };
  CHECK(world("#SBATCH -N4\n#SBATCH --gres=gpu:8") == 32);
  CHECK(world("#SBATCH -N 4 --gres gpu:8") == 32);
  CHECK(world("#SBATCH -N2 --ntasks-per-node=1 --gres=nvme:1,gpu:h100:4") == 8);
  CHECK(world("#SBATCH -N2 --ntasks-per-node=2 --gres=gpu:8") == 4);
  CHECK(world("#SBATCH -N2 --gres=nvme:8") == 0);
  CHECK(world("#SBATCH -Nodes --gres=gpu:8") == 0);
  CHECK(read_megatron_script("#SBATCH -N2 --gres=gpu:8\n"
                             "srun -N2 --ntasks-per-node=1 python pretrain_gpt.py --bf16",
                             "x")
            .world_size == 2);
}

TEST_CASE("a converter after the training is not the training") {
  const auto out = read_megatron_script(
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --bf16\n"
      "python tools/checkpoint/convert.py --loader mcore --saver mcore\n",
      "x");
  CHECK(out.find("--num-layers") != nullptr);
  CHECK(out.find("--loader") == nullptr);
  CHECK(out.world_size == 8);
}

TEST_CASE("a command that is handed on as text, and the tokenizer that a variable names") {
  const auto out = read_megatron_script(
      "ARGS=(\n  --num-layers 61\n  --hidden-size 7168\n)\n"
      "TOKENIZER_MODEL=deepseek-ai/DeepSeek-V3\n"
      "RUN=\"cd x; python ${X}/pretrain_gpt.py ${ARGS[@]}\"\n"
      "srun --mpi=pmix --label bash -c \"$OTHER\"\n",
      "x");
  REQUIRE(out.find("--num-layers") != nullptr);
  CHECK(out.find("--num-layers")->values.front() == "61");
  CHECK(out.find("--hidden-size")->values.front() == "7168");
  CHECK(out.tokenizer == "deepseek-ai/DeepSeek-V3");
}

TEST_CASE("MODEL_ARGS of what serves or generates are refused") {
  CHECK_THROWS_WITH_AS(
      planner::read_megatron_script("MODE: inference\nMODEL_ARGS:\n  --num-layers: 2\n", "x.yaml"),
      doctest::Contains("x.yaml:1:7: 'MODE: inference' serves or generates"),
      costmodel::ConfigError);
}

TEST_CASE("MODEL_ARGS: a list may be text, and the last of a repeated flag counts") {
  const auto run = planner::read_megatron_script(
      "MODEL_ARGS:\n  --cuda-graph-modules: \"[attn mamba]\"\n  --hidden-size: 64\n"
      "  --moe-layer-freq: ([0]*1+[1]*3)\n  --hidden-size: 128\n",
      "x.yaml");
  CHECK(run.find("--cuda-graph-modules")->values == std::vector<std::string>{"attn", "mamba"});
  CHECK(run.find("--hidden-size")->values == std::vector<std::string>{"128"});
  CHECK(run.find("--moe-layer-freq")->values == std::vector<std::string>{"([0]*1+[1]*3)"});
}

TEST_CASE("the stack that an export notes, where it is one of ours") {
  const std::string script = "torchrun pretrain_gpt.py --num-layers 2\n";
  const auto read = [&](const std::string& note) {
    return read_megatron_script(note + script, "x.sh").stack;
  };
  CHECK(read("") == megatron_stack);
  CHECK(read("# Note: priced upon the stack megatron-2021 (training.stack)\n") == "megatron-2021");
  CHECK(read("# Note: priced upon the stack ../../x\n") == megatron_stack);
}

TEST_CASE("a script that serves or generates is refused, unless it trains too") {
  const std::string sizes = " --num-layers 4 --hidden-size 64\n";
  const std::string server = "torchrun tools/run_text_generation_server.py" + sizes;
  CHECK_THROWS_WITH(planner::read_megatron_script(server, "x.sh"),
                    doctest::Contains("serves or generates, it does not train"));
  CHECK(planner::read_megatron_script("torchrun pretrain_gpt.py" + sizes + server, "x.sh")
            .find("--num-layers") != nullptr);
}

}  // namespace megatron_script_test
