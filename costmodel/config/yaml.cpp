#include "costmodel/config/yaml.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "costmodel/base/escape.hpp"

namespace costmodel {

namespace {

constexpr int deepest = 64;
constexpr long most_values = 1'000'000;
constexpr std::uintmax_t largest_file = 64u << 20;

struct Converter {
  std::string file;
  long values = 0;

  Mark mark_of(const YAML::Mark& m) const {
    if (m.is_null()) return {file, 0, 0};
    return {file, m.line + 1, m.column + 1};
  }

  Value convert(const YAML::Node& node, int depth) {
    const Mark mark = mark_of(node.Mark());
    if (depth > deepest)
      throw ConfigError(mark, "values nest deeper than 64 levels", "flatten the file");
    if (++values > most_values)
      throw ConfigError(mark, "the file holds more than a million values", "split it");
    Value value;
    value.mark = mark;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: break;
      case YAML::NodeType::Scalar:
        value.kind = Value::Kind::scalar;
        value.text = node.Scalar();
        value.quoted = node.Tag() == "!";
        break;
      case YAML::NodeType::Sequence:
        value.kind = Value::Kind::sequence;
        for (const auto& item : node) value.items.push_back(convert(item, depth + 1));
        break;
      case YAML::NodeType::Map: convert_map(node, depth, value); break;
    }
    return value;
  }

  void convert_map(const YAML::Node& node, int depth, Value& value) {
    value.kind = Value::Kind::map;
    std::set<std::string> seen;
    for (const auto& pair : node) {
      const Mark key_mark = mark_of(pair.first.Mark());
      if (!pair.first.IsScalar())
        throw ConfigError(key_mark, "a key must be a plain word", "write key: value");
      const std::string key = pair.first.Scalar();
      if (!seen.insert(key).second) {
        throw ConfigError(key_mark, "key " + quote(key) + " is written twice in one map",
                          "keep one of them");
      }
      value.entries.push_back({key, key_mark, convert(pair.second, depth + 1)});
    }
  }
};

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
      if (std::all_of(value.items.begin(), value.items.end(), plain)) out << YAML::Flow;
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

Value parse_yaml(const std::string& text, const std::string& file) {
  try {
    // Without the last newline: after one, yaml-cpp accepts an unterminated double quote.
    const std::string plain = with_plain_line_ends(text);
    const auto documents = YAML::LoadAll(plain.substr(0, plain.find_last_not_of('\n') + 1));
    if (documents.size() > 1) {
      throw ConfigError({file, 0, 0}, "the file holds more than one YAML document",
                        "keep one ('---' separates them)");
    }
    Converter converter{.file = file};
    if (documents.empty()) throw ConfigError({file, 0, 0}, "is empty", "write YAML: key: value");
    return converter.convert(documents.front(), 0);
  } catch (const YAML::Exception& fault) {
    Mark mark{file, 0, 0};
    if (!fault.mark.is_null()) mark = {file, fault.mark.line + 1, fault.mark.column + 1};
    throw ConfigError(mark, "not readable as YAML: " + shortened(printable(fault.msg), 120),
                      "check brackets, quotes and indentation here");
  }
}

Value load_yaml(const std::string& path) {
  std::error_code status;
  const auto kind = std::filesystem::status(path, status);
  const Mark whole{path, 0, 0};
  if (!std::filesystem::exists(kind)) throw ConfigError(whole, "no such file", "check the path");
  if (std::filesystem::is_directory(kind))
    throw ConfigError(whole, "is a directory", "name a YAML file in it");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw ConfigError(whole, std::string("cannot be opened: ") + std::strerror(errno),
                      "check its permissions");
  }
  if (std::filesystem::is_regular_file(kind) &&
      std::filesystem::file_size(path, status) > largest_file) {
    throw ConfigError(whole, "is larger than 64 MiB", "a scenario has a few lines");
  }
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw ConfigError(whole, "reading failed", "check the disk");
  return parse_yaml(text, path);
}

std::string to_yaml(const Value& value) {
  YAML::Emitter out;
  emit(out, value);
  return without_hidden(out.c_str()) + "\n";
}

}  // namespace costmodel
