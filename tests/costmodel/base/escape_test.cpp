// What text of unknown origin becomes in each output.
#include "costmodel/base/escape.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "costmodel/base/error.hpp"
#include "tests/costmodel/support/fixtures.hpp"

namespace escape_test {

using namespace costmodel;
using fixtures::contains;

namespace {

std::string all_bytes() {
  std::string text;
  for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
  return text;
}

// Is it one line of printable ASCII?
bool is_plain(const std::string& text) {
  return text.find_first_not_of(
             " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
             "abcdefghijklmnopqrstuvwxyz{|}~") == std::string::npos;
}

}  // namespace

TEST_CASE("terminal: titles in any script stay as they are") {
  for (const char* title : {"GPT-3 175B", "modèle de référence", "大模型", "модель", "α·β − 1 ≤ 2",
                            "👩‍🔬", "می‌خواهم", "a\\b", ""})
    CHECK(printable(title) == title);
}

TEST_CASE("terminal: control characters are seen, and do nothing") {
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(printable("a\nb\rc\td") == "a\\nb\\rc\\td");
  CHECK(printable(std::string("a\0b\x7f", 4)) == "a\\x00b\\x7f");
  CHECK(printable("\u009b31m") == "<U+009B>31m");
  CHECK(printable("a\u202Eb\u2066\u200F\uFEFF") == "a<U+202E>b<U+2066><U+200F><U+FEFF>");
  CHECK(printable("a\u2028b\u200Bc\U000E0041") == "a<U+2028>b<U+200B>c<U+E0041>");
  CHECK(printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b");
}

TEST_CASE("terminal: what is not UTF-8 is told byte by byte") {
  CHECK(printable("n\xff.yaml") == "n\\xff.yaml");
  CHECK(printable("\xc3") == "\\xc3");                             // cut off
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // overlong '/'
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  CHECK(printable("\xc3(é") == "\\xc3(é");
  CHECK(is_plain(printable(all_bytes())));
}

TEST_CASE("what was escaped once does not change again") {
  const std::string once = printable(all_bytes() + "\u202E\u009b");
  CHECK(printable(once) == once);
}

TEST_CASE("shortened: both ends, whole characters") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcdefghij", 9) == "abc...hij");
  CHECK(shortened("abcdefghij", 8) == "abc...ij");
  CHECK(shortened("ééééé中中中中中", 7) == "éé...中中");
  CHECK(shortened("abcdef", 3) == "...");
  CHECK(quote(std::string(4'000'000, 'x')).size() == 62);
  CHECK(quote("a\nb") == "'a\\nb'");
}

TEST_CASE("a message is printable and never longer than 2,000 bytes") {
  CHECK(message_text("a.yaml:1:1: x\ty; write y") == "a.yaml:1:1: x\\ty; write y");
  CHECK(message_text(std::string(2000, 'a')).size() == 2000);
  for (const char* piece : {"a", "\x01", "\xff", "中", "\u202E", "👩"}) {
    std::string text;
    for (int i = 0; i < 3000; ++i) text += piece;
    CHECK(message_text(text).size() <= longest_message);
  }
}

TEST_CASE("an error tells its place, its beginning and its remedy however long its parts are") {
  const std::string text = ConfigError({std::string(9000, 'f'), 3, 7},
                                       "model has no key " + quote(std::string(9000, 'k')),
                                       "known: " + std::string(9000, 'n'))
                               .what();
  CHECK(text.size() <= longest_message);
  CHECK(text.starts_with("fff"));
  CHECK(text.ends_with("nnn"));
  const std::string place = ConfigError({std::string(9000, 'f'), 3, 7}, "x", "y").what();
  CHECK(place.ends_with("fff:3:7: x; y"));
}

TEST_CASE("a name of megabytes is compared with no known one letter by letter") {
  const std::string huge(8'000'000, 'a');
  CHECK(nearest_name(huge, {"layers", "hidden"}) == "");
  CHECK_FALSE(is_misspelling(huge, "layers"));
}

TEST_CASE("Markdown: a title makes no markup") {
  CHECK(markdown_text("a|b") == "a\\|b");
  CHECK(markdown_text("*a* _b_ `c` ~~d~~") == "\\*a\\* \\_b\\_ \\`c\\` \\~\\~d\\~~");
  CHECK(markdown_text("<script>alert(1)</script>") == "&lt;script&gt;alert(1)&lt;/script&gt;");
  CHECK(markdown_text("[x](javascript:1) ![y](z)") == "[x\\]\\(javascript:1) ![y\\]\\(z)");
  CHECK(markdown_text("[x]: http://e.com") == "[x\\]: http\\://e.com");
  CHECK(markdown_text("www.e.com &lt; R&D") == "www\\.e.com &amp;lt; R&amp;D");
  CHECK(markdown_text("a\\|b\\") == "a\\\\\\|b\\\\");
  CHECK(markdown_text("a\n# b\x1b") == "a\\n# b\\x1b");
}

TEST_CASE("Markdown: what means nothing to it stays") {
  for (const char* text :
       {"micro_batch", "0.9–1.2 *", "< 1 %", "3 -> 4", "a > b", "x <= 3", "[16,15]", "2 * 3", "é"})
    CHECK(markdown_text(text) == text);
  CHECK(markdown_sentence("`--set plan={}` frees <them>") == "`--set plan={}` frees &lt;them&gt;");
}

TEST_CASE("CSV: RFC 4180, and no formulas") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"hi\"") == "\"say \"\"hi\"\"\"");
  CHECK(csv_field("a\nb") == "a\\nb");
  CHECK(csv_field("=1+2") == "'=1+2");
  CHECK(csv_field("=HYPERLINK(\"http://e\",\"x\")") ==
        "\"'=HYPERLINK(\"\"http://e\"\",\"\"x\"\")\"");
  CHECK(csv_field("@SUM(A1)") == "'@SUM(A1)");
  CHECK(csv_field("+1+cmd|' /C calc'!A0") == "'+1+cmd|' /C calc'!A0");
  CHECK(csv_field("-2+3") == "'-2+3");
  CHECK(csv_field("＝1") == "'＝1");
  CHECK(csv_field("\t=1") == "\\t=1");  // the tab is text, so nothing begins with it
}

TEST_CASE("CSV: numbers stay numbers") {
  for (const char* number : {"-3.5", "+2", "-1e-9", "0", "-inf", "-", "−12"})
    CHECK(csv_field(number) == number);
}

TEST_CASE("HTML: no element, no attribute, no entity") {
  CHECK(html_text("<b title=\"x\" id='y'>&amp;</b>\x1b\n") ==
        "&lt;b title=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;&lt;/b&gt;\\x1b\\n");
}

TEST_CASE("JSON strings read back, and hide nothing") {
  const std::string text = "a\"b\\c\n\t\x1b\x7f/é中\u202E\u009b👩";
  const std::string json = json_string(text);
  CHECK(nlohmann::json::parse(json).get<std::string>() == text);
  CHECK(contains(json, "\\u202e"));
  CHECK(contains(json, "\\u009b"));
  CHECK(contains(json, "é中"));
  CHECK(json_string("n\xff") == "\"n\uFFFD\"");
  const std::string quoted = "{\"a\": \"x\u202Ey\x7f\"}";
  CHECK(without_hidden(quoted) == "{\"a\": \"x\\u202ey\\u007f\"}");
  CHECK(nlohmann::json::parse(without_hidden(quoted)) == nlohmann::json::parse(quoted));
}

TEST_CASE("shell: a word is one word of bash, byte by byte") {
  CHECK(shell_word("--tp-size=4") == "--tp-size=4");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("$(id);`id`") == "'$(id);`id`'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("a\nb") == "$'a\\x0ab'");
  CHECK(shell_word("n\xff'.yaml") == "$'n\\xff\\'.yaml'");
}

}  // namespace escape_test
