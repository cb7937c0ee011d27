// Launch scripts split into words as bash does.
#include "planner/exchange/shell_script.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace shell_script_test {

using planner::read_shell;

namespace {

// The words of the last command, between bars.
std::string last(const std::string& text) {
  const auto script = read_shell(text, "x.sh");
  std::string all;
  if (script.commands.empty()) return all;
  for (const auto& word : script.commands.back())
    all += word.text + (word.unknown.empty() ? "" : "?" + word.unknown) + "|";
  return all;
}

}  // namespace

TEST_CASE("words, quotes, variables and arrays as bash has them") {
  CHECK(last("A=1 B='x y'\nrun $A \"$B\" $B c\\ d # no") == "run|1|x y|x|y|c d|");
  CHECK(last("L=(a \"b c\" # not\n d)\nL+=(e)\nrun ${L[@]} \"${L[@]}\"") ==
        "run|a|b|c|d|e|a|b c|d|e|");
  CHECK(last("N=4\nrun ${N:-8} ${M:-8} ${M:-${N}} $((N * 2 + 1)) \\\n  end") == "run|4|8|4|9|end|");
  CHECK(last("S=\"--a 1 \\\n  --b 2\"\nS=\"$S --c\"\nexport T=3\nrun $S $T") ==
        "run|--a|1|--b|2|--c|3|");
  CHECK(last("cat <<'END' > f\nnot $this 'open\nEND\nrun a") == "run|a|");
  CHECK(last("run $'4' $'it\\'s' $'a\\tb' $\"c d\" \"$'e'\"") == "run|4|it's|a\tb|c d|$'e'|");
}

TEST_CASE("a default that is assigned, and items of arrays by key and by place") {
  CHECK(last(": \"${N:=128}\" ${M=2}\nrun $N $M") == "run|128|2|");
  CHECK(last("N=4\n: ${N:=128}\nrun $N") == "run|4|");
  CHECK(
      last("declare -A D=( [deepep]=\"--type flex --backend deepep\" [a2a]=\"--type alltoall\" )\n"
           "MODE=deepep\nrun ${D[$MODE]} \"${D[a2a]}\"") ==
      "run|--type|flex|--backend|deepep|--type alltoall|");
  CHECK(last("L=(a b c)\nI=1\nrun ${L[0]} ${L[$I]}") == "run|a|b|");
  CHECK(last("declare -A D=([a]=1)\nrun ${D[b]} ${L[0]}") == "run|?${D[b]}|?${L[0]}|");
}

TEST_CASE("names that read takes from a word, in the last round of a loop") {
  CHECK(last("for c in 8,1 4,2; do\n IFS=',' read -r T P <<< \"$c\"\n run $T $P\ndone") ==
        "run|4|2|");
  CHECK(last("read T P Q <<< \"4 2\"\nrun $T $P $Q") == "run|4|2|?$Q|");
  CHECK(last("IFS=, read -ra L <<< 4,2,1\nrun ${L[@]}") == "run|4|2|1|");
  CHECK(last("read T P <<< $X\nrun $T") == "run|?$T|");
}

TEST_CASE("what cat prints of a document in the script") {
  CHECK(last("N=4\nL=$(cat <<END\n--n $N\n--m\nEND\n)\nrun $L") == "run|--n|4|--m|");
  CHECK(last("L=$(cat <<'END'\n--n $N\nEND\n)\nrun $L") == "run|--n|$N|");
  CHECK(last("L=$(cat <<END\n--n \"a\\\"\nEND\n)\nrun $L") == "run|--n|\"a\"|");
  CHECK(last("L=$(cat file)\nrun $L") == "run|?$(cat file)|");
}

TEST_CASE("options of declare and its like are no command") {
  CHECK(last("declare -a L=(a b)\ndeclare -i N=4\nlocal -r M=2\nrun ${L[@]} $N $M") ==
        "run|a|b|4|2|");
}

TEST_CASE("what a script does not say is named") {
  CHECK(last("run $NODES ${R:?must be set} $(hostname) `x`") ==
        "run|?$NODES|?$R|?$(hostname)|?`x`|");
  CHECK(last("run --n=$((A * 2))") == "run|--n=?$((A * 2))|");
  CHECK(last("N=2\nrun $(expr 16 / $N) $(expr 16 / $M)") == "run|8|?$(expr 16 / $M)|");
  CHECK(read_shell("if x; then A=1; else A=2; fi", "x").branches);
  // In the middle of a variable it belongs to its own word alone.
  CHECK(last("L=\"--a auto \\\n --b $X --c 1\"\nrun $L") == "run|--a|auto|--b|?$X|--c|1|");
  CHECK(last("L=\"$X $Y\"\nrun $L \"$L\"") == "run|?$X|?$Y| ?$Y|");
}

TEST_CASE("the commands of a sourced file stand in its place") {
  const auto sourced = [](const std::string& name) {
    return name == "sizes.sh" ? std::optional<std::string>("ALL=\"--layers $LAYERS\"\n")
                              : std::nullopt;
  };
  for (const char* line :
       {"source sizes.sh", ". `pwd`/sizes.sh", "source $(dirname $0)/sizes.sh"}) {
    const auto script = read_shell(std::string("LAYERS=4\n") + line + "\nrun $ALL\n", "x", sourced);
    REQUIRE(script.commands.size() == 1);
    CHECK(script.commands[0].back().text == "4");
  }
  CHECK(read_shell("source other.sh\n", "x", sourced).commands.size() == 1);
  const auto ring = [](const std::string&) { return std::optional<std::string>("source x.sh\n"); };
  CHECK(read_shell("source x.sh\n", "x", ring).commands.size() == 1);
}

TEST_CASE("a call of the script in a comment before all else has its arguments") {
  const auto script = read_shell(
      "#!/bin/bash\n# sh run.sh dsw 7B <TP> 4\nSIZE=$2\nTP=$3\nif [ $1 = dsw ]; then\nGPUS=8\nfi\n"
      "run --size $SIZE --tp $TP --gpus $GPUS --last ${4}\n",
      "x.sh");
  CHECK(script.call == "sh run.sh dsw 7B <TP> 4");
  const auto& words = script.commands.back();
  REQUIRE(words.size() == 9);
  CHECK(words[2].text == "7B");
  CHECK(words[4].unknown == "$3");
  CHECK(words[6].text == "8");
  CHECK(words[8].text == "4");
  CHECK_FALSE(script.branches);
  CHECK(read_shell("A=1\n# sh run.sh 2\nrun $1\n", "x.sh").call.empty());
}

TEST_CASE("a script that does not end, or that grows without end, is refused") {
  CHECK_THROWS_WITH(read_shell("run 'a", "x.sh"),
                    doctest::Contains("x.sh:1:5: a quote is not closed"));
  CHECK_THROWS_WITH(read_shell("L=(a b", "x.sh"), doctest::Contains("is not closed"));
  std::string doubling = "A=0123456789\n";
  for (int i = 0; i < 40; ++i) doubling += "A=$A$A\n";
  CHECK_THROWS_WITH(read_shell(doubling, "x.sh"), doctest::Contains("grows beyond 1 MiB"));
  std::string deep = "run ";
  for (int i = 0; i < 100; ++i) deep += "${A:-";
  for (int i = 0; i < 100; ++i) deep += "}";
  CHECK_THROWS_WITH(read_shell(deep, "x.sh"), doctest::Contains("deeper than 64"));
}

}  // namespace shell_script_test
