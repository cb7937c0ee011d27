#include "planner/batch/index_page.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "costmodel/base/escape.hpp"
#include "planner/report/html_table.hpp"

namespace planner {

namespace {

// A file's name as an address, whatever is in it.
std::string address(const std::string& name) {
  std::string text = "./";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-_.~").find(c) != std::string_view::npos;
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

}  // namespace

std::string index_page(const Table& index) {
  Table linked = index;
  for (auto& row : linked.rows) {
    const bool has_page = row[2] == "done" || row[2] == "no plan";
    const std::string link = address(row[0] + ".html");
    for (auto& cell : row) cell = costmodel::html_text(cell);
    if (has_page) row[0] = fmt::format("<a href=\"{}\">{}</a>", link, row[0]);
  }
  return html_page(fmt::format("{} scenarios", index.rows.size()), table_of_html(linked),
                   "<style>main{max-width:none}</style>\n");
}

}  // namespace planner
