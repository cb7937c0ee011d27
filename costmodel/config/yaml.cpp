#include "costmodel/config/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

constexpr std::size_t deepest = 64;
constexpr std::size_t most_values = std::size_t{1} << 19;
constexpr std::size_t most_separators = std::size_t{1} << 20;
constexpr std::size_t longest_scalar = std::size_t{64} << 10;

// Builds the tree from the parser's events, so that the limits hold while the parser still reads.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, RepeatedKeys repeated)
      : file_(std::move(file)), repeated_(repeated) {}

  // Throws the first fault of a key.
  Value take() {
    if (fault_) throw ConfigError(*fault_);
    return std::move(root_);
  }

  Mark mark_of(const YAML::Mark& m) const {
    if (m.is_null()) return {file_, 0, 0};
    return {file_, m.line + 1, m.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    throw ConfigError(mark_of(mark), "the file holds more than one YAML document",
                      "keep one: it ends at '---', or after the bracket that closes it");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(begun(Value::Kind::null, mark), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (text.size() > longest_scalar) {
      throw ConfigError(mark_of(mark), fmt::format("a value has {} bytes", text.size()),
                        fmt::format("allowed: {} at most", longest_scalar));
    }
    Value value = begun(Value::Kind::scalar, mark);
    value.text = text;
    value.quoted = tag == "!";
    add(std::move(value), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end())
      throw ConfigError(mark_of(mark), "an alias stands inside of what it names", "write it out");
    count_all(found->second, open_.size(), mark_of(mark));
    add(found->second, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Value::Kind::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Value::Kind::map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or a map whose end has not been read.
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    std::set<std::string> keys;
    bool has_key = false;  // the last entry waits for its value
  };

  bool is_key() const {
    return !open_.empty() && open_.back().value.is_map() && !open_.back().has_key;
  }

  void count(std::size_t depth, const Mark& mark) {
    if (depth > deepest)
      throw ConfigError(mark, "values nest deeper than 64 levels", "flatten the file");
    if (++values_ > most_values)
      throw ConfigError(mark, "the file holds more than half a million values", "split it");
  }

  void count_all(const Value& value, std::size_t depth, const Mark& mark) {
    count(depth, mark);
    for (const Value& item : value.items) count_all(item, depth + 1, mark);
    for (const auto& entry : value.entries) count_all(entry.value, depth + 1, mark);
  }

  Value begun(Value::Kind kind, const YAML::Mark& mark) {
    Value value;
    value.kind = kind;
    value.mark = mark_of(mark);
    if (!is_key()) count(open_.size(), value.mark);
    return value;
  }

  // Told later, because an unclosed bracket looks like a key at first.
  void note_fault(const Mark& mark, const std::string& wrong, const std::string& remedy) {
    if (!fault_) fault_.emplace(mark, wrong, remedy);
  }

  void open(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    open_.push_back({begun(kind, mark), anchor, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  // Adds what is complete to what it is in. A copy for aliases counts as well.
  void add(Value value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count_all(value, 0, value.mark);
      anchored_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().value.is_map()) {
      add_to_map(open_.back(), std::move(value));
    } else {
      open_.back().value.items.push_back(std::move(value));
    }
  }

  void add_to_map(Open& map, Value value) {
    auto& entries = map.value.entries;
    if (map.has_key) {
      entries.back().value = std::move(value);
    } else {
      if (!value.is_scalar()) {
        note_fault(value.mark, "a key must be a plain word", "write key: value");
      } else if (!map.keys.insert(value.text).second && repeated_ == RepeatedKeys::refused) {
        note_fault(value.mark, "key " + quote(value.text) + " is written twice in one map",
                   "keep one of them");
      }
      entries.push_back({std::move(value.text), std::move(value.mark), {}});
    }
    map.has_key = !map.has_key;
  }

  std::string file_;
  RepeatedKeys repeated_;
  int documents_ = 0;
  std::size_t values_ = 0;
  std::vector<Open> open_;  // from the root inwards
  std::map<YAML::anchor_t, Value> anchored_;
  Value root_;
  std::optional<ConfigError> fault_;
};

// The parser reads brackets ahead, to their ends, before it reports a value, so the tree cannot
// limit what it holds by then. Text and comments count too.
void limit_separators(const std::string& text, const std::string& file) {
  const auto separates = [](char c) { return c == ',' || c == ':' || c == '[' || c == '{'; };
  const auto count = std::ranges::count_if(text, separates);
  if (static_cast<std::size_t>(count) <= most_separators) return;
  throw ConfigError({file, 0, 0}, "holds more than a million commas, colons and brackets",
                    "split it");
}

// Converts Windows line ends (\r\n). The number of lines stays the same, so marks are correct.
std::string with_plain_line_ends(const std::string& text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool before_end = i + 1 == text.size() || text[i + 1] == '\n';
    if (text[i] != '\r' || !before_end) plain += text[i];
  }
  return plain;
}

// Throws where a line is indented by a tab, which YAML has no meaning for.
void refuse_tabs(const std::string& text, const std::string& file) {
  int line = 1;
  for (std::size_t from = 0; from < text.size(); ++line) {
    const std::size_t at = text.find_first_not_of(' ', from);
    if (at != std::string::npos && text[at] == '\t') {
      throw ConfigError({file, line, static_cast<int>(at - from) + 1}, "a tab",
                        "indent with blanks");
    }
    const std::size_t end = text.find('\n', from);
    from = end == std::string::npos ? text.size() : end + 1;
  }
}

bool needs_quotes(const std::string& text) {
  if (text.empty() || text == "null" || text == "~" || printable(text) != text) return true;
  const bool odd = text.find_first_of(":#{}[],&*!|>'\"%@`\n\t") != std::string::npos;
  return odd || text.front() == ' ' || text.back() == ' ' || text.front() == '-' ||
         text.front() == '?';
}

void emit(YAML::Emitter& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::null: out << YAML::Null; break;
    case Value::Kind::scalar:
      if (value.quoted || needs_quotes(value.text)) {
        out << YAML::DoubleQuoted << value.text;
      } else {
        out << value.text;
      }
      break;
    case Value::Kind::sequence: {
      const auto plain = [](const Value& item) { return item.is_scalar(); };
      if (std::ranges::all_of(value.items, plain)) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const auto& item : value.items) emit(out, item);
      out << YAML::EndSeq;
      break;
    }
    case Value::Kind::map:
      if (value.entries.empty()) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const auto& entry : value.entries) {
        out << YAML::Key;
        if (printable(entry.key) != entry.key) out << YAML::DoubleQuoted;
        out << entry.key << YAML::Value;
        emit(out, entry.value);
      }
      out << YAML::EndMap;
      break;
  }
}

}  // namespace

Value parse_yaml(const std::string& text, const std::string& file, RepeatedKeys repeated) {
  limit_separators(text, file);
  // Without the last newline: after one, yaml-cpp accepts an unterminated double quote.
  std::string plain = with_plain_line_ends(text);
  plain.erase(plain.find_last_not_of('\n') + 1);
  std::istringstream in(std::move(plain));
  TreeBuilder tree(file, repeated);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(tree))
      throw ConfigError({file, 0, 0}, "is empty", "write YAML: key: value");
    // What the first document leaves over is another one to the parser, a comma or bracket too. It
    // would report that one again and again, so the tree refuses it.
    parser.HandleNextDocument(tree);
    return tree.take();
  } catch (const YAML::Exception& fault) {
    refuse_tabs(text, file);
    throw ConfigError(tree.mark_of(fault.mark),
                      "not readable as YAML: " + shortened(printable(fault.msg), 120),
                      "check brackets, quotes and indentation here");
  }
}

namespace {

// Trees of small files by name and text: a batch, Python and the tests name the same machines,
// stacks and tables in every scenario, and parsing takes a hundred times as long as a copy.
class ParsedFiles {
 public:
  Value tree(std::string text, const std::string& file) {
    if (text.size() > largest_file) return parse_yaml(text, file);
    const std::lock_guard lock(mutex_);
    const auto found = trees_.find({file, text});
    if (found != trees_.end()) return found->second;
    Value value = parse_yaml(text, file);
    if (bytes_ + text.size() > most_bytes) {
      trees_.clear();
      bytes_ = 0;
    }
    bytes_ += text.size();
    trees_.emplace(std::pair(file, std::move(text)), value);
    return value;
  }

 private:
  static constexpr std::size_t largest_file = std::size_t{64} << 10;
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::map<std::pair<std::string, std::string>, Value> trees_;
};

}  // namespace

Value load_yaml(const std::string& path, const ReadLimits& limits) {
  static ParsedFiles files;
  return files.tree(read_file(path, limits), path);
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  emit(out, value);
  return without_hidden(out.c_str()) + "\n";
}

}  // namespace costmodel
