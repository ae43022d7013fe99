#include "cases.hpp"

/// Prints "name<tab>ok" or "name<tab>what went wrong" for each case, on one line.
int main() {
  for (const auto &one : cases::all()) {
    std::string result = "ok";
    try {
      one.second();
    } catch (const std::exception &error) {
      result = error.what();
    }
    for (char &c : result)
      c = c == '\n' ? ' ' : c;
    std::cout << one.first << '\t' << result << std::endl;
  }
}
