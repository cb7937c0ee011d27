#include "planner/frameworks/overrides_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "planner/exchange/shell_script.hpp"
#include "planner/frameworks/framework_words.hpp"
#include "planner/frameworks/launcher_words.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(blanks);
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(blanks) - from + 1);
}

bool is_field_letter(char c) {
  const auto letter = static_cast<unsigned char>(c);
  return std::isalnum(letter) != 0 || c == '_' || c == '.';
}

// "model.num_layers", and the names of whole sections that are set to a word.
bool is_field(std::string_view text) {
  if (!std::ranges::all_of(text, is_field_letter)) return false;
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos)
    return text == "mixed_precision" || text == "ulysses_sequence_parallel_size" || text == "peft";
  static const auto known = fmt::format(" {} ", framework_words("bridge").read_as("sections"));
  return dot + 1 < text.size() &&
         known.find(fmt::format(" {} ", text.substr(0, dot))) != std::string::npos;
}

bool is_quoted(std::string_view text) {
  return text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
         text.back() == text.front();
}

// Hydra and Python write the same constants with other capitals.
std::string item_of(std::string_view text) {
  text = trimmed(text);
  if (is_quoted(text)) return std::string(text.substr(1, text.size() - 2));
  std::string item(text);
  if (item == "None" || item == "Null") return "null";
  if (item == "True" || item == "False")
    item.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(item.front())));
  return item;
}

std::vector<std::string> values_of(std::string_view text) {
  text = trimmed(text);
  const bool square = text.starts_with('[') && text.ends_with(']'),
             round = text.starts_with('(') && text.ends_with(')');
  if (is_quoted(text) || (!square && !round)) return {item_of(text)};
  std::vector<std::string> items;
  std::istringstream list(std::string(text.substr(1, text.size() - 2)));
  for (std::string item; std::getline(list, item, ',');)
    if (!trimmed(item).empty()) items.push_back(item_of(item));
  return items;
}

// "model.num_layers=8" of a command line, "+model.x=1" for a field that is added.
bool read_word(const ShellWord& word, OverridesText& out) {
  std::string_view text = word.text;
  while (text.starts_with('+')) text.remove_prefix(1);
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || !is_field(text.substr(0, equals))) return false;
  out.fields.push_back({std::string(text.substr(0, equals)), values_of(text.substr(equals + 1)),
                        word.mark, word.unknown});
  return true;
}

// A comment of Python ends a line, but in quotes.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && line[i] == '#') return line.substr(0, i);
    if (line[i] == '"' || line[i] == '\'') {
      if (quote == 0) {
        quote = line[i];
      } else if (quote == line[i]) {
        quote = 0;
      }
    }
  }
  return line;
}

// "recipe = llm.llama3_8b.pretrain_recipe(" and "cfg = recipes.llama3_8b_pretrain_config()".
std::string recipe_of(std::string_view value) {
  const std::size_t call = value.find('(');
  std::string_view name = value.substr(0, call);
  if (name.ends_with(".pretrain_recipe")) name = name.substr(0, name.rfind('.'));
  name = name.substr(name.rfind('.') + 1);
  return call == std::string_view::npos ? "" : std::string(name);
}

// What NeMo says by the arguments of objects: "run.Config(MegatronCommOverlapCallback,
// tp_comm_overlap=True)", and the vocabulary of its null tokenizer, which counts an end-of-document
// token on top.
bool read_call(std::string_view line, const Mark& mark, OverridesText& out) {
  static constexpr std::string_view callback = "MegatronCommOverlapCallback";
  static constexpr std::string_view tokenizer = "get_nmt_tokenizer";
  const bool overlap = line.find(callback) != std::string_view::npos;
  const bool vocabulary = line.find(tokenizer) != std::string_view::npos &&
                          line.find("\"null\"") != std::string_view::npos;
  if (!overlap && !vocabulary) return false;
  std::istringstream arguments{std::string(line.substr(0, line.find_last_of(')')))};
  for (std::string argument; std::getline(arguments, argument, ',');) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) continue;
    const std::string name(trimmed(std::string_view(argument).substr(0, equals)));
    std::string value = item_of(std::string_view(argument).substr(equals + 1));
    while (value.ends_with(')')) value.pop_back();
    if (overlap && std::ranges::all_of(name, is_field_letter)) {
      out.fields.push_back({fmt::format("{}.{}", callback, name), {value}, mark, ""});
    } else if (vocabulary && name == "vocab_size") {
      const std::int64_t size = std::strtoll(value.c_str(), nullptr, 10);
      if (size > 0)
        out.fields.push_back({"model.config.vocab_size", {fmt::format("{}", size + 1)}, mark, ""});
    }
  }
  return true;
}

// Of a keyword argument, up to a million; 0 where it is none, or no number.
std::int64_t number_after(std::string_view text, std::string_view keyword) {
  const std::size_t at = text.find(keyword);
  if (at == std::string_view::npos) return 0;
  const std::int64_t number =
      std::strtoll(std::string(text.substr(at + keyword.size(), 8)).c_str(), nullptr, 10);
  return number > 0 && number <= 1'000'000 ? number : 0;
}

// A name that Python looks up, other than its constants; names with dots are those of enumerations.
bool is_variable(std::string_view value) {
  if (value.empty() || std::isdigit(static_cast<unsigned char>(value.front())) != 0) return false;
  return value != "True" && value != "False" && value != "None" &&
         std::ranges::all_of(value, [](char c) { return is_field_letter(c) && c != '.'; });
}

// "tp_comm_overlap=True, x=[a, b]" at its commas outside brackets.
std::vector<std::string_view> arguments_of(std::string_view text) {
  std::vector<std::string_view> arguments;
  int open = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[' || c == '(') ++open;
    if (c == ']' || c == ')') --open;
    if (c != ',' || (open > 0 && i < text.size())) continue;
    arguments.push_back(text.substr(from, i - from));
    from = i + 1;
  }
  return arguments;
}

// What a function of Megatron-Bridge's own sets, whose name is a word of configs/frameworks.
void add_settings_of(std::string_view function, const Mark& mark, OverridesText& out) {
  std::string_view rest = framework_words("bridge").read_as(function);
  if (rest == function) return;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
    const std::size_t equals = rest.find('=');
    if (equals < end) {
      out.fields.push_back({std::string(rest.substr(0, equals)),
                            values_of(rest.substr(equals + 1, end - equals - 1)), mark, ""});
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// "_llama_benchmark_common(cfg)", which a family's folder adds to: what all benchmarks set.
bool read_benchmark(std::string_view line, const Mark& mark, OverridesText& out) {
  constexpr std::string_view all = "_benchmark_common", kernel = "cross_entropy_impl=";
  const std::size_t call = line.find('(');
  if (call == std::string_view::npos || !line.substr(0, call).ends_with(all)) return false;
  if (!std::ranges::all_of(line.substr(0, call), is_field_letter)) return false;
  add_settings_of(all, mark, out);
  for (const auto argument : arguments_of(line.substr(call + 1, line.rfind(')') - call - 1))) {
    const std::string_view set = trimmed(argument);
    if (!set.starts_with(kernel)) continue;
    out.fields.push_back(
        {"model.cross_entropy_fusion_impl", {item_of(set.substr(kernel.size()))}, mark, ""});
  }
  return true;
}

// "bf16_with_mxfp8_mixed()", or what a function of the benchmarks returns:
// _perf_precision("nvfp4").
void read_called_precision(std::string_view value, const Mark& mark, OverridesText& out) {
  const std::size_t call = value.find('(');
  const std::string function(value.substr(0, call));
  const std::string argument = item_of(value.substr(call + 1, value.rfind(')') - call - 1));
  const std::string named = argument.empty() ? function : function + "." + argument;
  if (function.starts_with("bf16") || function.starts_with("fp16")) {
    out.fields.push_back({"mixed_precision", {function}, mark, ""});
  } else if (framework_words("bridge").read_as(named) != named) {
    add_settings_of(named, mark, out);
  } else if (function != "MixedPrecisionConfig") {  // whose fields are set one by one
    out.computed.push_back(shortened(fmt::format("mixed_precision = {}", value), 100));
  }
}

// Before all that is set, so that it counts less: what every recipe of this kind sets.
void add_usual(std::string_view function, const Mark& mark, OverridesText& out) {
  OverridesText usual;
  add_settings_of(function, mark, usual);
  out.fields.insert(out.fields.begin(), usual.fields.begin(), usual.fields.end());
}

// The recipe that a file begins with, which may be one of its own, whose fields stand before this.
// The bare recipe of pretraining sets nothing of the usual.
void read_recipe(std::string_view value, const Mark& mark, OverridesText& out) {
  constexpr std::string_view with_batch = "_with_global_batch_size(";
  if (value.starts_with(with_batch) && value.ends_with(')')) {
    value = value.substr(with_batch.size(), value.size() - with_batch.size() - 1);
    const auto arguments = arguments_of(value);
    out.fields.push_back({"train.global_batch_size", {item_of(arguments.back())}, mark, ""});
    value = trimmed(arguments.front());
  }
  out.recipe = recipe_of(value);
  if (out.recipe.find("_pretrain_") != std::string::npos && !out.recipe.starts_with("vanilla_gpt"))
    add_usual("_pretrain_common", mark, out);
  if (out.recipe.find("_peft_") != std::string::npos) add_usual("_peft_common", mark, out);
  const std::int64_t nodes = number_after(value, "num_nodes="),
                     each = number_after(value, "num_gpus_per_node=");
  if (nodes > 0 && each > 0) {
    out.world_size = nodes * each;
    out.per_node = each;
  }
}

// "apply_flex_dispatcher_backend(cfg.model, NAME)", of a name or of the field that has it.
bool read_dispatcher(std::string_view line, const Mark& mark, OverridesText& out) {
  constexpr std::string_view function = "apply_flex_dispatcher_backend(",
                             field = "model.moe_flex_dispatcher_backend";
  if (!line.starts_with(function) || !line.ends_with(')')) return false;
  std::string_view last = line.substr(0, line.size() - 1);
  last = trimmed(last.substr(last.find_last_of(",=(") + 1));
  std::string name = item_of(last);
  if (last.ends_with(field)) {
    for (const SetField& set : out.fields)
      if (set.field == field && !set.values.empty()) name = set.values.front();
  }
  if (name == "deepep" || name == "hybridep") {  // none of others is used
    out.fields.push_back({std::string(field), {name}, mark, ""});
    out.fields.push_back({"model.moe_token_dispatcher_type", {"flex"}, mark, ""});
    out.fields.push_back({"model.moe_shared_expert_overlap", {"false"}, mark, ""});
  } else if (name != "null") {
    out.computed.push_back(shortened(std::string(line), 100));
  }
  return true;
}

// "    cfg.model.num_layers = 8", whatever the object is called.
void read_line(std::string_view line, const Mark& mark, OverridesText& out) {
  line = trimmed(without_comment(line));
  if (read_benchmark(line, mark, out) || read_dispatcher(line, mark, out)) return;
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos || line.substr(equals).starts_with("==")) return;
  const std::string_view name = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1));
  if (read_call(line, mark, out) || !std::ranges::all_of(name, is_field_letter)) return;
  const bool recipe = value.find("pretrain_") != std::string_view::npos ||
                      value.find("peft_") != std::string_view::npos;
  if ((name == "cfg" || name == "config" || name == "recipe") && recipe) {
    return read_recipe(value, mark, out);
  }
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || equals + 1 == line.size() || line[equals - 1] != ' ') return;
  const std::string_view field = name.substr(dot + 1);
  if (!is_field(field)) return;
  const bool list = value.starts_with('(') || value.starts_with('[') || is_quoted(value);
  const std::size_t call = list ? std::string_view::npos : value.find('(');
  if (field == "mixed_precision" && call != std::string_view::npos)
    return read_called_precision(value, mark, out);
  const bool sum = !list && value.find_first_of(" +*/") != std::string_view::npos;
  if (call != std::string_view::npos || sum || (!list && is_variable(value))) {
    out.computed.push_back(shortened(fmt::format("{} = {}", field, value), 100));
  } else {
    out.fields.push_back({std::string(field), values_of(value), mark, ""});
  }
}

// What makes adapters: "LoRA", "CanonicalLoRA", "DoRA", or a function of Bridge's.
bool makes_adapters(std::string_view type) {
  return type.ends_with("LoRA") || type.ends_with("DoRA") || type == "default_peft_config";
}

// "cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap=True)" is a field an argument, as are
// truths of MixedPrecisionConfig and all of "cfg.peft = LoRA(dim=8)", which a function of Bridge's
// makes of its name: ("lora", dim=8).
bool read_configuration(std::string_view line, const Mark& mark, OverridesText& out) {
  line = trimmed(line);
  const std::size_t equals = line.find('='), call = line.find('(');
  if (call == std::string_view::npos || call < equals || !line.ends_with(')')) return false;
  const std::string_view name = trimmed(line.substr(0, equals)),
                         type = trimmed(line.substr(equals + 1, call - equals - 1));
  const bool overlap = name.ends_with(".comm_overlap") && type == "CommOverlapConfig",
             precision = name.ends_with(".mixed_precision") && type == "MixedPrecisionConfig",
             scheme = type == "default_peft_config" && line[call + 1] != ')',
             adapters = name.ends_with(".peft") && makes_adapters(type);
  if (!overlap && !precision && !adapters) return false;
  const std::string section(name.substr(name.rfind('.') + 1));
  const auto arguments = arguments_of(line.substr(call + 1, line.size() - call - 2));
  const std::string_view kind = scheme ? trimmed(arguments.front()) : type;
  if (scheme && is_variable(kind)) return false;
  if (adapters) out.fields.push_back({"peft.class", {item_of(kind)}, mark, ""});
  for (const auto argument : arguments) {
    const std::size_t set = std::min(argument.find('='), argument.size());
    const std::string field(trimmed(argument.substr(0, set)));
    if (set == argument.size() || field.empty() || !std::ranges::all_of(field, is_field_letter))
      continue;
    auto values = values_of(argument.substr(set + 1));
    const bool constant = values.size() == 1 && (values[0] == "true" || values[0] == "false");
    if (constant || adapters || (precision && field.starts_with("fp")))
      out.fields.push_back({fmt::format("{}.{}", section, field), std::move(values), mark, ""});
  }
  return true;
}

// How many brackets a line leaves open, but in quotes.
int open_brackets(std::string_view line) {
  int open = 0;
  char quote = 0;
  for (const char c : line) {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == c) {
      quote = 0;
    } else if (quote == 0) {
      open += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    }
  }
  return open;
}

// "peft_cfg = LoRA(dim=8)" gives the adapters a name, which stands for `cfg.peft` from there on.
std::string with_adapters(const std::string& statement, std::string& name) {
  const std::string_view line = trimmed(statement);
  const auto letter = [](char c) { return is_field_letter(c) && c != '.'; };
  const auto end = static_cast<std::size_t>(std::ranges::find_if_not(line, letter) - line.begin());
  const std::string_view first = line.substr(0, end), rest = line.substr(end);
  if (rest.starts_with(" = ") && makes_adapters(rest.substr(3, rest.find('(') - 3))) name = first;
  if (name.empty()) return statement;
  if (line.ends_with(".peft = " + name)) return "";
  return first == name ? fmt::format("cfg.peft{}", rest) : statement;
}

// A statement of a Python file may take several lines, as long as brackets are open.
void read_python(const std::string& text, const std::string& file, OverridesText& out) {
  constexpr int most_lines = 200;
  std::istringstream lines(text);
  std::string statement, adapters;
  int number = 0, first = 1, open = 0;
  const auto end = [&] {
    const Mark mark{file, first, 1};
    statement = with_adapters(statement, adapters);
    if (!read_configuration(statement, mark, out)) read_line(statement, mark, out);
    statement.clear();
    open = 0;
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (statement.empty()) first = number;
    const std::string_view code = without_comment(line);
    statement +=
        (statement.empty() ? "" : " ") + std::string(statement.empty() ? code : trimmed(code));
    if (file.ends_with(".py")) open += open_brackets(code);
    if (open <= 0 || number - first >= most_lines) end();
  }
  if (!statement.empty()) end();
}

// The words of the last command that sets fields; those before the first are its launcher.
void read_commands(const ShellScript& script, OverridesText& out) {
  ShellWords launcher;
  for (const auto& words : script.commands) {
    OverridesText found;
    ShellWords before;
    for (auto word = words.begin(); word != words.end(); ++word) {
      if (word->text == "--recipe" && std::next(word) != words.end())
        found.recipe = std::next(word)->text;
      if (word->text == "--mode" && std::next(word) != words.end() &&
          std::next(word)->text.ends_with("ora"))
        found.fields.push_back({"peft", {std::next(word)->text}, word->mark, ""});
      if (!read_word(*word, found) && found.fields.empty()) before.push_back(*word);
    }
    const bool program = std::ranges::any_of(before, [](const ShellWord& word) {
      return word.text.ends_with(".py") || word.text == "torchrun";
    });
    if (found.fields.empty() && !program) continue;
    launcher = before;
    if (!found.recipe.empty()) out.recipe = found.recipe;
    if (found.recipe.find("_peft_") != std::string::npos)
      add_usual("_peft_common", words.front().mark, out);
    out.fields.insert(out.fields.end(), found.fields.begin(), found.fields.end());
  }
  const Launched launched = launched_by(script, launcher);
  out.world_size = launched.world_size;
  out.per_node = launched.per_node;
  out.by_variable = launched.by_variable;
  out.branches = script.branches;
}

}  // namespace

OverridesText read_overrides(const std::string& text, const std::string& file) {
  OverridesText out;
  read_python(text, file, out);
  if (!file.ends_with(".py")) read_commands(read_shell(text, file), out);
  return out;
}

}  // namespace planner
