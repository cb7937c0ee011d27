// Conditions that a script's own words decide, and those that they do not.
#include "planner/exchange/shell_branches.hpp"

#include <doctest/doctest.h>

#include <string>

namespace shell_branches_test {

namespace {

// What is in A at the end, and whether a condition was not decided: "?" after it.
std::string end_of(const std::string& text) {
  const auto script = planner::read_shell(text, "x.sh");
  const auto found = script.variables.find("A");
  const std::string value = found == script.variables.end() ? "none" : found->second.front().text;
  return value + (script.branches ? "?" : "");
}

std::string chosen_if(const std::string& condition) {
  return end_of("S=8B\nN=4\nEMPTY=\nA=0\nif " + condition + "; then A=1; else A=2; fi\n");
}

}  // namespace

TEST_CASE("comparisons of known words") {
  CHECK(chosen_if("[ $S == 8B ]") == "1");
  CHECK(chosen_if("[[ \"$S\" != 8B ]]") == "2");
  CHECK(chosen_if("[ $N -ge 4 ]") == "1");
  CHECK(chosen_if("[ $N -lt 4 ]") == "2");
  CHECK(chosen_if("[ -z \"$EMPTY\" ]") == "1");
  CHECK(chosen_if("[ -n \"${EMPTY:-}\" ]") == "2");
  CHECK(chosen_if("false") == "2");
}

TEST_CASE("conditions joined, negated and of numbers, as bash has them") {
  for (const char* holds :
       {"[ $S = 8B ] && [ $N = 4 ]", "[ $S = 1B ] || [ $N = 4 ]", "! [ $S = 1B ]", "(( N > 3 ))",
        "[[ $S == 8B && $N -gt 3 ]]", "[ $S = 1B -o $N = 4 ]", "[ ! -z $S ]", "test $N = 4",
        "[ -d x ] || [ $N = 4 ]", "(( N == 4 && (N < 2 || N >= 3) ))", "[ $S ]"})
    CHECK_MESSAGE(chosen_if(holds) == "1", holds);
  for (const char* fails :
       {"[ $S = 8B ] && [ $N = 5 ]", "[ $S = 1B ] || [ $N = 5 ]", "! [ $S = 8B ]", "(( N > 4 ))",
        "[[ $S == 1B || $N -gt 4 ]]", "[ -d x ] && [ $N = 5 ]", "test $N = 5", "(( N - 4 ))",
        "[ \"$EMPTY\" ]"})
    CHECK_MESSAGE(chosen_if(fails) == "2", fails);
}

TEST_CASE("a command after && and || runs as those before it decide") {
  const std::string begin = "S=8B\nA=0\n";
  CHECK(end_of(begin + "[ $S = 8B ] && A=1") == "1");
  CHECK(end_of(begin + "[ $S = 1B ] && A=1\nB=2") == "0");
  CHECK(end_of(begin + "[ $S = 1B ] && A=1 || A=2") == "2");
  CHECK(end_of(begin + "[ $S = 8B ] && A=1 || A=2") == "1");
  CHECK(end_of(begin + "[ $S = 8B ] && echo x || A=2") == "0");
  CHECK(end_of(begin + "(( 2 > 4 )) &&\n  A=1") == "0");
  CHECK(end_of(begin + "[ $S = 1B ] && { A=1; A=2; }\n[ $S = 8B ] || { A=3; }") == "0");
  CHECK(end_of(begin + "[ $S = 1B ] && { A=1; } || { A=2; }") == "2");
  CHECK(end_of(begin + "[ $S = 1B ] && if [ -d x ]; then A=1; fi\nA=3") == "3");
  CHECK(end_of(begin + "[ -d x ] && A=1") == "1?");
  CHECK(end_of(begin + "[ -d x ] && { A=1; }") == "1?");
  CHECK(end_of(begin + "grep x y | sort && A=1") == "1?");
  CHECK(end_of(begin + "cd x || exit 1\nmkdir y && cd y") == "0");
  // Nobody else sets it.
  CHECK(planner::read_shell("[ 1 = 2 ] && B=\"--b\"\nrun $B", "x").commands.back().size() == 1);
}

TEST_CASE("what the script does not decide: every branch counts, in its order") {
  for (const char* condition : {"[ -d $S ]", "[ -z \"$HOME_OF_ALL\" ]", "[ $1 = x ]", "grep x y",
                                "[ $S = 8* ]", "[ $S = 8B ] && [ -d x ]", "(( N > NODES ))",
                                "[[ $S =~ (8|9)B ]]", "[ $S = 8B ] && grep x y"})
    CHECK(chosen_if(condition) == "2?");
  // One that may run leaves none after it sure, and after one that runs none does.
  CHECK(end_of("S=b\nif [ -d x ]; then A=1; elif [ $S = b ]; then A=2; else A=3; fi") == "2?");
  CHECK(end_of("S=b\nif [ $S = a ]; then A=1; elif [ $S = b ]; then A=2; else A=3; fi") == "2");
}

TEST_CASE("conditions without end are not decided, and sums without end are refused") {
  std::string many, nested;
  for (int i = 0; i < 100'000; ++i) many += "! ", nested += "(";
  CHECK(end_of("A=0\nif [ " + many + "x ]; then A=1; fi") == "1?");
  CHECK(end_of("A=0\nif " + many + "true; then A=1; fi") == "1?");
  for (int i = 0; i < 100'000; ++i) nested += "x)b";
  CHECK_THROWS_WITH(end_of(nested), doctest::Contains("32 MiB"));
}

TEST_CASE("conditions within one another") {
  CHECK(end_of("A=0\nS=a\nif [ $S = b ]; then\n  if [ -d x ]; then A=1; fi\n  A=2\nfi") == "0");
  CHECK(end_of("A=0\nS=a\nif [ $S = a ]; then if [ $S = b ]; then A=1; else A=2; fi; fi") == "2");
}

TEST_CASE("case of a known word takes its pattern") {
  const std::string patterns = " in\n a|b)\n A=1\n ;;\n \"c\") A=2;;\n *) A=3 ;;\nesac\n";
  CHECK(end_of("S=b\ncase $S" + patterns) == "1");
  CHECK(end_of("S=c\ncase \"${S}\"" + patterns) == "2");
  CHECK(end_of("S=d\ncase $S" + patterns) == "3");
  CHECK(end_of("A=0\ncase x in y) A=1;; esac\n") == "0");
  CHECK(end_of("case $NOT_SET" + patterns) == "3?");
  CHECK(end_of("case ab in a*) A=1;; esac\n") == "1?");
}

TEST_CASE("an argument of the script replaces no value of its own") {
  CHECK(end_of("A=4\nwhile [ $# -gt 0 ]; do case $1 in --a) A=\"$2\"; shift;; esac; done") == "4?");
  CHECK(planner::read_shell("A=$1\n", "x").variables.at("A").front().unknown == "$1");
}

}  // namespace shell_branches_test
