// 64 requests as mixed traffic has them: random digits, kinds of id, orders of members, white space, and both kinds of
// params; with the reply to each. The same every time.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace bench {

inline std::vector<std::pair<std::string, std::string>> varied_requests() {
  std::mt19937 random{20};
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  std::vector<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < 64; ++i) {
    const int a = 10 + below(990);
    const int b = 10 + below(90);
    std::string id;
    switch (below(4)) {
      case 0: {
        int bound = 10;
        for (int digits = below(6); digits > 0; --digits) bound *= 10;
        id = std::to_string(1 + below(bound - 1));
        break;
      }
      case 1: id = "\"" + std::to_string(below(1 << 24)) + "\""; break;
      case 2: id = "null"; break;
      default: id = std::to_string(below(100)) + ".5";
    }
    std::string params = "[" + std::to_string(a) + "," + std::to_string(b) + "]";
    if (below(3) == 0) {
      const std::string minuend = "\"minuend\":" + std::to_string(a);
      const std::string subtrahend = "\"subtrahend\":" + std::to_string(b);
      params = below(2) == 0 ? "{" + minuend + "," + subtrahend + "}" : "{" + subtrahend + "," + minuend + "}";
    }
    std::vector<std::string> members{"\"jsonrpc\":\"2.0\"", "\"method\":\"subtract\"", "\"params\":" + params,
                                     "\"id\":" + id};
    if (below(100) < 15) std::shuffle(members.begin(), members.end(), random);
    std::string text = "{" + members[0] + "," + members[1] + "," + members[2] + "," + members[3] + "}";
    if (below(10) == 0) {
      std::string spaced;
      for (const char c : text) {
        spaced += c;
        if (c == ',' || c == ':') spaced += ' ';
      }
      text = spaced;
    }
    pairs.emplace_back(text, "{\"jsonrpc\":\"2.0\",\"result\":" + std::to_string(a - b) + ",\"id\":" + id + "}");
  }
  return pairs;
}

}  // namespace bench
