#include "planner/exchange/shell_script.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>

#include "planner/exchange/lines.hpp"
#include "planner/exchange/shell_arithmetic.hpp"
#include "planner/exchange/shell_branches.hpp"
#include "planner/exchange/shell_fields.hpp"

namespace planner {

using namespace costmodel;

namespace {

constexpr std::size_t longest_word = std::size_t{1} << 20;
constexpr int deepest = 64;
constexpr int most_arguments = 64;  // of a call in a comment
constexpr int most_sources = 8;     // files within one another

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class ShellReader {
 public:
  ShellReader(const std::string& text, std::string file, const SourcedFile* sourced = nullptr)
      : text_(text), file_(std::move(file)), sourced_(sourced) {}

  ShellScript read() {
    read_commands();
    script_.branches = script_.branches || branches_.undecided();
    for (auto& [name, words] : script_.variables) remove_places(words);
    for (auto& words : script_.commands) remove_places(words);
    for (ShellVariables& own : script_.environments)
      for (auto& [name, words] : own) remove_places(words);
    return std::move(script_);
  }

 private:
  void read_commands() {
    while (at_ < text_.size()) {
      skip_blanks();
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (c == '#') {
        read_comment();
      } else if (testing_ && std::string_view("&|()<>").find(c) != std::string_view::npos) {
        read_operator();
      } else if (c == '(' && command_.empty() && read_sum()) {
        continue;
      } else if (c == '\n' || c == ';' || c == '|' || c == '&' || c == '(' || c == ')') {
        const bool twice = (c == '|' || c == '&') && peek(1) == c;
        end_command(c, twice ? c : c == '|' ? '-' : '\0');
        step();
        if (twice) step();
        if (c == ';' && peek() == ';') branches_.end_choice();
        if (c == '\n') skip_documents();
      } else if (c == '<' || c == '>') {
        read_redirection();
      } else {
        read_word();
      }
    }
    end_command('\n');
  }

  // Between "[[" and "]]", where && and its like are words.
  void read_operator() {
    ShellWord word{"", mark(), ""};
    word.text += step();
    if (peek() == word.text.front() && (peek() == '&' || peek() == '|')) word.text += step();
    command_.push_back(std::move(word));
  }

  // "(( N > 4 ))" at the beginning of a command, as the words "((" and its value; false: a bracket
  // of another kind.
  bool read_sum() {
    const auto before = std::tuple(at_, line_, line_start_);
    if (!take("((")) return false;
    const std::string inside = up_to('(', ')');
    budget_->spend(inside.size(), mark());  // once for each bracket around it
    if (peek() != ')') {
      std::tie(at_, line_, line_start_) = before;
      return false;
    }
    step();
    command_.push_back({"((", mark(), ""});
    ShellFields f(mark(), *budget_);
    add_arithmetic(f, inside, "((" + inside + "))");
    for (auto& word : f.take()) command_.push_back(std::move(word));
    return true;
  }

  Mark mark() const { return {file_, line_, static_cast<int>(at_ - line_start_) + 1}; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char step() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      line_start_ = at_;
    }
    return c;
  }
  bool take(std::string_view expected) {
    if (text_.compare(at_, expected.size(), expected) != 0) return false;
    for (std::size_t i = 0; i < expected.size(); ++i) step();
    return true;
  }
  bool continues_line() { return take("\\\n") || take("\\\r\n"); }
  void skip_blanks() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || continues_line())) {
      if (at_ < text_.size() && is_blank(text_[at_])) step();
    }
  }
  std::string rest_of_line() {
    std::string rest;
    while (at_ < text_.size() && text_[at_] != '\n') rest += step();
    return rest;
  }
  void read_comment() {
    step();
    script_.comments.push_back(rest_of_line());
    if (script_.commands.empty() && script_.variables.empty()) take_call(script_.comments.back());
  }

  // "sh run.sh dsw 7B 1", before all else: the arguments that the script is meant to have. Words
  // that stand for others ("<TP>", "[ENV]") are none.
  void take_call(const std::string& comment) {
    std::istringstream words(comment);
    std::string shell, name, value;
    words >> shell >> name;
    if ((shell != "sh" && shell != "bash") || !name.ends_with(".sh") || !script_.call.empty())
      return;
    for (int place = 1; place <= most_arguments && words >> value; ++place) {
      if (value.find_first_of("<[{$*`\\#") != std::string::npos) continue;
      arguments_[std::to_string(place)] = {{value, mark(), ""}};
    }
    if (!arguments_.empty()) script_.call = comment.substr(comment.find(shell));
  }

  // "<<WORD" begins a document that ends with a line WORD; other redirections name a file.
  void read_redirection() {
    if (take("<<<")) {
      skip_blanks();
      given_ = read_value();
      return;
    }
    if (take("<<")) {
      if (peek() == '-') step();
      skip_blanks();
      std::string end;
      while (at_ < text_.size() && !is_blank(peek()) && peek() != '\n' && peek() != ';') {
        const char c = step();
        if (c != '\'' && c != '"' && c != '\\') end += c;
      }
      documents_.push_back(end);
      return;
    }
    while (peek() == '<' || peek() == '>' || peek() == '&') step();
    skip_blanks();
    while (at_ < text_.size() && !is_blank(peek()) && peek() != '\n' && peek() != ';') step();
  }
  void skip_documents() {
    for (const auto& end : std::exchange(documents_, {})) {
      while (at_ < text_.size()) {
        std::string line = rest_of_line();
        if (at_ < text_.size()) step();
        line.erase(0, line.find_first_not_of('\t'));
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line == end) break;
      }
    }
  }

  // The text of a bracketed expansion up to its end, `depth` brackets deep.
  std::string up_to(char open, char end) {
    std::string inside;
    const Mark begin = mark();
    for (int depth = 1; at_ < text_.size();) {
      const char c = step();
      if (c == open) ++depth;
      if (c == end && --depth == 0) return inside;
      inside += c;
    }
    throw ConfigError(begin, open_bracket(end), "close it");
  }
  static std::string open_bracket(char end) {
    return std::string("a bracket is not closed with '") + end + "'";
  }

  const ShellWords* variable(const std::string& name) const {
    const auto found = known_->find(name);
    if (found != known_->end()) return &found->second;
    const auto argument = known_arguments_->find(name);
    return argument == known_arguments_->end() ? nullptr : &argument->second;
  }
  bool is_empty(const ShellWords& words) {
    budget_->spend(words.size(), mark());
    return std::ranges::all_of(
        words, [](const ShellWord& word) { return without_unknown(word.text).empty(); });
  }

  // The default of ${NAME:-default}, and the key of ${NAME[key]}, is itself a word of the script.
  ShellWords expanded(const Mark& begin, const std::string& word, bool quoted) {
    if (++depth_ > deepest) {
      throw ConfigError(begin, "expansions are nested deeper than 64", "shorten the script");
    }
    ShellReader inner(word, file_);
    inner.known_ = known_;
    inner.known_arguments_ = known_arguments_;
    inner.depth_ = depth_;
    inner.line_ = line_;
    inner.budget_ = budget_;
    ShellFields fields(begin, *budget_);
    while (inner.at_ < word.size()) inner.read_piece(fields, quoted);
    --depth_;
    return fields.take();
  }

  // The item of an array with this key: of an associative one, which stands as its items do
  // ("[key]=value"), or by its place.
  static std::optional<ShellWord> item_of(const ShellWords& array, const std::string& key) {
    const std::string begin = "[" + key + "]=";
    for (const ShellWord& item : array) {
      if (item.text.starts_with(begin))
        return ShellWord{item.text.substr(begin.size()), item.mark, item.unknown};
    }
    std::size_t place = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), place);
    const bool number = error == std::errc() && end == key.data() + key.size();
    if (!number || place >= array.size() || array[place].text.starts_with('[')) return {};
    return array[place];
  }

  // ${NAME[key]}; whether it is one.
  bool add_item(ShellFields& f, const std::string& name, std::string_view rest, bool quoted) {
    const std::size_t end = rest.find(']');
    if (!rest.starts_with('[') || end + 1 != rest.size()) return false;
    const ShellWords* array = variable(name);
    const ShellWords key = expanded(f.mark(), std::string(rest.substr(1, end - 1)), true);
    if (array == nullptr || key.size() != 1 || !key.front().unknown.empty()) return false;
    const auto item = item_of(*array, key.front().text);
    if (item) f.add_value({*item}, quoted, false);
    return item.has_value();
  }

  void add_parameter(ShellFields& f, const std::string& inside, bool quoted) {
    std::size_t end = 0;
    while (end < inside.size() && is_name_char(inside[end])) ++end;
    const std::string name = inside.substr(0, end);
    std::string_view rest = std::string_view(inside).substr(end);
    const bool items = rest.starts_with("[@]");
    if (items || rest.starts_with("[*]")) rest.remove_prefix(3);
    if (!items && add_item(f, name, rest, quoted)) return;
    const ShellWords* value = variable(name);
    const bool colon = rest.starts_with(':');
    const bool set = value != nullptr && !(colon && is_empty(*value));
    if (rest.empty() || (set && rest.find_first_of("-=?") <= 1)) {
      if (value == nullptr) return f.add_unknown("$" + name);
      return f.add_value(*value, quoted, items);
    }
    const std::string_view operation = rest.substr(colon ? 1 : 0);
    if (!operation.empty() && (operation.front() == '-' || operation.front() == '=')) {
      ShellWords otherwise = expanded(f.mark(), std::string(operation.substr(1)), quoted);
      f.add_value(otherwise, true, !quoted);
      // A default within another one assigns nothing: its reader knows the variables alone.
      const bool assigns = operation.front() == '=' && known_ == &script_.variables;
      if (assigns) assign(name, false, std::move(otherwise), false);
      return;
    }
    f.add_unknown(operation.starts_with('?') ? "$" + name : "${" + inside + "}");
  }

  // `unless`: what stands for an expression that is not known.
  void add_arithmetic(ShellFields& f, const std::string& expression, const std::string& unless) {
    const auto value = shell_arithmetic(expression, [this](const std::string& name) {
      const ShellWords* words = variable(name);
      return words != nullptr && words->size() == 1 && words->front().unknown.empty()
                 ? std::optional(words->front().text)
                 : std::nullopt;
    });
    if (value) return f.add(std::to_string(*value));
    f.add_unknown(unless);
  }

  // $(expr 16 / $N) is arithmetic, and $(cat <<END) prints what follows; what other commands print
  // is not known.
  void add_output(ShellFields& f, bool quoted) {
    const std::string inside = up_to('(', ')'), all = "$(" + inside + ")";
    if (const auto document = printed_by_cat(inside)) {
      std::string text = document->text;
      for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; ++at)
        if (at == 0 || text[at - 1] != '\\') text.insert(at++, "\\");
      const ShellWords plain{{document->text, f.mark(), ""}};
      return f.add_value(document->plain ? plain : expanded(f.mark(), text, true), quoted, false);
    }
    constexpr std::string_view expr = "expr ";
    if (!inside.starts_with(expr)) return f.add_unknown(all);
    add_arithmetic(f, inside.substr(expr.size()), all);
  }

  void add_expansion(ShellFields& f, bool quoted) {
    if (take("${")) return add_parameter(f, up_to('{', '}'), quoted);
    if (take("$((")) {
      const std::string inside = up_to('(', ')');
      if (peek() == ')') step();
      return add_arithmetic(f, inside, "$((" + inside + "))");
    }
    if (take("$(")) return add_output(f, quoted);
    step();  // '$'
    if (!quoted && peek() == '\'') return read_literal(f, true);
    if (!quoted && peek() == '"') return read_quoted(f);
    std::string name;
    while (is_name_char(peek())) name += step();
    if (name.empty() && (peek() == '@' || peek() == '*')) {
      step();  // the arguments of the script: there are none
      return;
    }
    if (name.empty()) return f.add("$");
    // Of an array bash would take the first item alone; who writes so means all of them.
    if (const ShellWords* value = variable(name)) return f.add_value(*value, quoted, false);
    f.add_unknown("$" + name);
  }

  void read_quoted(ShellFields& f) {
    const Mark begin = mark();
    if (take("\"$@\"")) return;  // no word at all without arguments of the script
    step();
    f.open();
    while (at_ < text_.size() && peek() != '"') {
      if (continues_line()) continue;
      if (peek() == '\\' && std::string_view("\"\\$`").find(peek(1)) != std::string_view::npos) {
        step();
        const char c = step();
        f.add(c);
      } else if (peek() == '$') {
        add_expansion(f, true);
      } else {
        const char c = step();
        f.add(c);
      }
    }
    if (at_ >= text_.size()) throw ConfigError(begin, "a quote is not closed", "close it");
    step();
  }

  // `escapes`: of $'...', in which a backslash means the next character.
  void read_literal(ShellFields& f, bool escapes = false) {
    const Mark begin = mark();
    step();
    f.open();
    while (at_ < text_.size() && peek() != '\'') {
      char c = step();
      if (escapes && c == '\\' && at_ < text_.size()) {
        c = step();
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
      f.add(c);
    }
    if (at_ >= text_.size()) throw ConfigError(begin, "a quote is not closed", "close it");
    step();
  }

  // One piece of a word: quoted text, an expansion, or a character.
  void read_piece(ShellFields& f, bool quoted) {
    if (continues_line()) return;
    const char c = peek();
    if (!quoted && c == '\'') return read_literal(f);
    if (c == '"') return read_quoted(f);
    if (c == '$') return add_expansion(f, quoted);
    if (c == '`') {
      step();
      return f.add_unknown("`" + up_to('\0', '`') + "`");
    }
    if (c == '\\' && at_ + 1 < text_.size()) step();
    const char plain = step();
    f.add(plain);
  }

  bool ends_word() const {
    const char c = peek();
    return is_blank(c) || std::string_view("\n;|&()<>").find(c) != std::string_view::npos;
  }

  ShellWords read_fields() {
    ShellFields f(mark(), *budget_);
    while (at_ < text_.size() && !ends_word() && !(peek() == '\\' && peek(1) == '\n'))
      read_piece(f, false);
    return f.take();
  }

  // NAME=, NAME+= at the beginning of a command; leaves the place behind it.
  bool take_assignment(std::string& name, bool& appends) {
    std::size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) return false;
    appends = end + 1 < text_.size() && text_[end] == '+' && text_[end + 1] == '=';
    if (!appends && (end >= text_.size() || text_[end] != '=')) return false;
    name = text_.substr(at_, end - at_);
    at_ = end + (appends ? 2 : 1);
    return true;
  }

  ShellWords read_array() {
    ShellWords items;
    const Mark begin = mark();
    step();  // '('
    while (at_ < text_.size() && peek() != ')') {
      skip_blanks();
      if (peek() == '\n') {
        step();
      } else if (peek() == '#') {
        rest_of_line();
      } else if (at_ < text_.size() && peek() != ')') {
        const std::size_t before = at_;
        for (auto& word : read_fields()) items.push_back(std::move(word));
        if (at_ == before) step();
      }
    }
    if (at_ >= text_.size()) throw ConfigError(begin, open_bracket(')'), "close it");
    step();
    return items;
  }

  void assign(const std::string& name, bool appends, ShellWords value, bool list) {
    if (!branches_.run()) {  // what only such a branch would set is empty
      script_.variables.try_emplace(name);
      return;
    }
    ShellWords& stored = script_.variables[name];
    // `--size) SIZE="$2"`: without arguments of the script its own value stands.
    const bool argument = value.size() == 1 && is_argument(value.front().unknown);
    if (argument && !appends && !stored.empty() && stored.front().unknown.empty()) return;
    if (!appends) {
      stored = std::move(value);
    } else if (list) {
      stored.insert(stored.end(), value.begin(), value.end());
    } else if (!value.empty()) {
      if (stored.empty()) stored.emplace_back();
      stored.front().text += value.front().text;
      if (!value.front().unknown.empty()) stored.front().unknown = value.front().unknown;
    }
    std::size_t size = 0;
    for (const auto& word : stored) size += word.text.size();
    if (size > longest_word)
      throw ConfigError(mark(), "a variable grows beyond 1 MiB", "shorten it");
  }

  void read_word() {
    std::string name;
    bool appends = false;
    if (command_.empty() && take_assignment(name, appends)) {
      const bool list = peek() == '(';
      ShellWords value = list ? read_array() : read_value();
      if (!declaring_) own_[name] = value;
      assigns_ = true;
      assign(name, appends, std::move(value), list);
      return;
    }
    for (auto& word : read_fields()) {
      const bool option = declaring_ && word.text.starts_with('-');  // declare -a NAME=(...)
      if (command_.empty() && (option || is_keyword(word.text))) continue;
      testing_ = word.text == "[[" || (testing_ && word.text != "]]");
      command_.push_back(std::move(word));
    }
  }

  // The value of an assignment is one word, whatever blanks its expansions have.
  ShellWords read_value() {
    ShellFields f(mark(), *budget_);
    f.open();
    while (at_ < text_.size() && !ends_word()) {
      if (peek() == '$') {
        add_expansion(f, true);
      } else {
        read_piece(f, false);
      }
    }
    f.open();
    return f.take();
  }

  bool is_keyword(const std::string& word) {
    static constexpr std::array<std::string_view, 9> deciding{"if",   "then", "else", "elif", "fi",
                                                              "case", "esac", "{",    "}"};
    static constexpr std::array<std::string_view, 6> looping{"for", "while", "until",
                                                             "do",  "done",  "function"};
    static constexpr std::array<std::string_view, 3> plain{"eval", "time", "exec"};
    static constexpr std::array<std::string_view, 5> declaring{"export", "declare", "local",
                                                               "readonly", "typeset"};
    declaring_ = std::ranges::find(declaring, word) != declaring.end();
    const bool decides = std::ranges::find(deciding, word) != deciding.end();
    const bool loops = std::ranges::find(looping, word) != looping.end();
    if (decides) branches_.keyword(word);
    looping_ = looping_ || word == "for";
    script_.branches = script_.branches || (loops && branches_.run());
    return decides || loops || declaring_ || std::ranges::find(plain, word) != plain.end();
  }

  static bool is_argument(const std::string& unknown) {
    return unknown.size() == 2 && unknown[0] == '$' && unknown[1] >= '1' && unknown[1] <= '9';
  }
  static void remove_places(ShellWords& words) {
    for (auto& word : words) word.text = without_unknown(word.text);
  }

  // `read -r A B <<< "4 8"`, of an array with -a; a name without a word is not known.
  void read_names(const ShellWords& command, const ShellVariables& own, const ShellWord& text) {
    const auto by = own.find("IFS");
    const std::string separators =
        by == own.end() || by->second.empty() ? " \t\n" : by->second.front().text;
    std::vector<std::string> names;
    bool array = false;
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::string& name = command[i].text;
      array = array || (name.starts_with('-') && name.ends_with('a'));
      if (std::ranges::all_of(name, is_name_char)) names.push_back(name);
    }
    ShellWords items;
    for (std::string& word :
         read_words(text.text, separators, array ? text.text.size() : names.size()))
      items.push_back({std::move(word), text.mark, ""});
    for (std::size_t i = 0; i < names.size(); ++i) {
      script_.variables.erase(names[i]);
      if (!text.unknown.empty() || i >= items.size()) continue;
      script_.variables[names[i]] = array ? items : ShellWords{items[i]};
    }
  }

  void end_command(char end, char joint = '\0') {
    ShellWords command = std::exchange(command_, {});
    ShellVariables own = std::exchange(own_, {});
    const ShellWords given = std::exchange(given_, {});
    testing_ = false;
    const bool assigns = std::exchange(assigns_, false), runs = branches_.run();
    if (std::exchange(looping_, false) && command.size() > 2 && command[1].text == "in" && runs)
      script_.variables[command[0].text] = {command.back()};  // of all its rounds the last
    if (branches_.take(command, end, joint, assigns) || !runs || command.empty()) return;
    if (command[0].text == "read" && !given.empty()) return read_names(command, own, given.front());
    const bool sources = command[0].text == "source" || command[0].text == ".";
    if (sources && command.size() > 1 && read_sourced(command[1])) return;
    script_.commands.push_back(command);
    script_.environments.push_back(std::move(own));
  }

  // The commands of another file stand in the place of `source`. What comes before the last part
  // that is not known ("$(dirname "$0")/") is a folder.
  bool read_sourced(const ShellWord& word) {
    if (sourced_ == nullptr || sources_ >= most_sources) return false;
    std::string name = word.text.substr(word.text.rfind(unknown_end) + 1);
    if (!word.unknown.empty()) name.erase(0, name.find_first_not_of('/'));
    const auto text = (*sourced_)(name);
    if (!text) return false;
    ShellReader inner(*text, name, sourced_);
    inner.script_ = std::move(script_);
    inner.budget_ = budget_;
    inner.sources_ = sources_ + 1;
    budget_->spend(text->size(), word.mark);
    inner.read_commands();
    script_ = std::move(inner.script_);
    script_.branches = script_.branches || inner.branches_.undecided();
    return true;
  }

  const std::string& text_;
  std::string file_;
  std::size_t at_ = 0, line_start_ = 0;
  ShellBudget own_budget_;
  ShellBudget* budget_ = &own_budget_;
  int line_ = 1, depth_ = 0, sources_ = 0;
  const SourcedFile* sourced_;
  ShellBranches branches_;
  ShellScript script_;
  const ShellVariables* known_ = &script_.variables;
  ShellVariables arguments_;  // "1" and so on, of a call in a comment
  const ShellVariables* known_arguments_ = &arguments_;
  ShellWords command_;
  ShellVariables own_;      // assigned in front of it
  ShellWords given_;        // after "<<<"
  bool assigns_ = false;    // it has assignments
  bool testing_ = false;    // "[[" is open
  bool looping_ = false;    // it is of a loop: "NAME in WORDS"
  bool declaring_ = false;  // the last word was `declare` or its like
  std::vector<std::string> documents_;
};

}  // namespace

ShellScript read_shell(const std::string& text, const std::string& file,
                       const SourcedFile& sourced) {
  return ShellReader(text, file, sourced ? &sourced : nullptr).read();
}

}  // namespace planner
