// What a release of a framework accepts: configs/frameworks/TARGET-VERSION.yaml. A new
// release is a new file, with what it adds to the one that its `base` names. The files are those
// that came with the program ($SHARDPLAN_CONFIG_PATH goes before them).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planner {

// A word of an older release for what the newest calls otherwise; `with` another argument only.
struct OtherWord {
  std::string flag, use, with;
};

// What a validator asserts: who gives `given` gives `needs` too, or not `excludes`.
struct FlagCondition {
  std::string given, needs, excludes, source;
};

// An environment variable that it refuses with an argument.
struct UnsetVariable {
  std::string given, name, source;
};

struct FrameworkVersion {
  std::string name;                   // "core-0.19"
  std::string title;                  // "Megatron-LM core 0.19"
  std::vector<std::string> flags;     // that it accepts: sorted, without the dashes
  std::vector<std::string> harmless;  // patterns of those that change neither time nor memory
  std::vector<OtherWord> instead;     // without the dashes, perhaps with a value: "flag value"
  std::vector<FlagCondition> conditions;
  std::vector<UnsetVariable> unset;
  std::int64_t null_tokenizer_adds = 0;  // tokens to --vocab-size

  bool has_flag(std::string_view flag) const;  // "--num-layers"
  bool is_harmless(std::string_view flag) const;
};

// "core-0.14" and so on, the newest last.
std::vector<std::string> framework_versions(const std::string& target);

// Read once. An empty name is the newest. Throws ConfigError for a version that there is not, with
// those there are, and for a file that is none.
const FrameworkVersion& framework_version(const std::string& target, const std::string& name = "");

// What a script gives to a framework.
struct FrameworkCall {
  std::vector<std::string> arguments;    // "--flag value"
  std::vector<std::string> environment;  // "NAME=value"
};

// A call in the words of another release; a note for each change. Throws ConfigError for what it
// does not have, and for what its validators refuse.
std::vector<std::string> write_for(const FrameworkVersion& version, FrameworkCall& call);

}  // namespace planner
