#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

// Reports are as wide as COLUMNS says, and goldens have lines of any width.
int main(int count, char** arguments) {
  unsetenv("COLUMNS");
  return doctest::Context(count, arguments).run();
}
