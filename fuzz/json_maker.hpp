// JsonMaker: texts that reach deep into a JSON parser: values grown from a grammar that prefers the awkward (numbers at
// the ends of their ranges, every escape, UTF-8 and surrogates at their boundaries, strings around the size of a SIMD
// block, deep nests), JSON-RPC messages, and small damage to either. The same seed makes the same texts.
// A value with one owner, one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  /// SplitMix64.
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  /// From 0 to bound - 1.
  std::size_t below(std::size_t bound) noexcept { return static_cast<std::size_t>((next() >> 32) * bound >> 32); }
  bool one_in(std::size_t times) noexcept { return below(times) == 0; }
  template <std::size_t N>
  std::string_view of(const std::array<std::string_view, N>& words) noexcept {
    return words[below(N)];
  }

 private:
  std::uint64_t state_;
};

class JsonMaker {
 public:
  explicit JsonMaker(std::uint64_t seed) noexcept : random_(seed) {}

  /// A valid value.
  std::string value() {
    text_.clear();
    append_value(0);
    return text_;
  }
  /// A valid text that is a message, a batch, or nearly one.
  std::string message() {
    text_.clear();
    append_space();
    if (random_.one_in(5)) {
      append_list('[', ']', random_.below(5), [this] { random_.one_in(8) ? append_value(1) : append_message(); });
    } else {
      append_message();
    }
    append_space();
    return text_;
  }
  /// Changes a few bytes or runs of bytes; the text grows to at most `bytes_max`.
  void damage(std::string& text, std::size_t bytes_max) {
    do {
      damage_once(text);
    } while (random_.one_in(2));
    if (text.size() > bytes_max) text.resize(bytes_max);
  }
  Random& random() noexcept { return random_; }

 private:
  static constexpr std::size_t kDeepest = 12;

  static constexpr std::array<std::string_view, 40> kNumbers{"0",
                                                             "-0",
                                                             "1",
                                                             "-1",
                                                             "7",
                                                             "12",
                                                             "42",
                                                             "1e3",
                                                             "1.0",
                                                             "1.5",
                                                             "-2.5E-3",
                                                             "1e400",
                                                             "-1e400",
                                                             "1e-400",
                                                             "1E+2",
                                                             "0.1",
                                                             "0e0",
                                                             "0.0",
                                                             "-0.0",
                                                             "9223372036854775807",
                                                             "9223372036854775808",
                                                             "-9223372036854775808",
                                                             "-9223372036854775809",
                                                             "18446744073709551615",
                                                             "18446744073709551616",
                                                             "123456789012345678901234567890",
                                                             "1.7976931348623157e308",
                                                             "1.7976931348623159e308",
                                                             "1.797693134862315807e308",
                                                             "5e-324",
                                                             "2.4703282292062327e-324",
                                                             "2.2250738585072011e-308",
                                                             "4.9406564584124654e-324",
                                                             "9007199254740993",
                                                             "0.30000000000000004",
                                                             "1e22",
                                                             "1e23",
                                                             "100000000000000000000000",
                                                             "0.000001",
                                                             "1234567890123456"};
  static constexpr std::array<std::string_view, 34> kCharacters{"\\\"",
                                                                "\\\\",
                                                                "\\/",
                                                                "\\b",
                                                                "\\f",
                                                                "\\n",
                                                                "\\r",
                                                                "\\t",
                                                                "\\u0000",
                                                                "\\u001f",
                                                                "\\u0041",
                                                                "\\u00e9",
                                                                "\\uD7FF",
                                                                "\\ue000",
                                                                "\\uFFFF",
                                                                "\\ud800\\udc00",
                                                                "\\uDBFF\\uDFFF",
                                                                "\\uD83D\\uDE00",
                                                                "\x7F",
                                                                "\xC2\x80",
                                                                "\xDF\xBF",
                                                                "\xE0\xA0\x80",
                                                                "\xED\x9F\xBF",
                                                                "\xEE\x80\x80",
                                                                "\xEF\xBF\xBF",
                                                                "\xEF\xBB\xBF",
                                                                "\xF0\x90\x80\x80",
                                                                "\xF4\x8F\xBF\xBF",
                                                                "\xF0\x9F\x98\x80",
                                                                " ",
                                                                "/",
                                                                "'",
                                                                "{",
                                                                "]"};
  static constexpr std::array<std::string_view, 31> kNames{
      "jsonrpc", "method", "params", "id",     "result", "error",       "timeout_ms", "to",     "from",
      "stream",  "hops",   "a",      "b",      "c",      "traceparent", "tracestate", "$bytes", "x",
      "values",  "name",   "items",  "colour", "",       "nested",      "methods",    "Id",     "jsonrpc2",
      "key",     "kind",   "left",   "input"};
  static constexpr std::array<std::string_view, 14> kMethods{"subtract", "sum",  "echo", "raw",     "shapes",
                                                             "text",     "real", "many", "bytes",   "at",
                                                             "times",    "fail", "none", "subtracy"};
  static constexpr std::array<std::string_view, 34> kDamage{"\"",
                                                            "\\",
                                                            "{",
                                                            "}",
                                                            "[",
                                                            "]",
                                                            ",",
                                                            ":",
                                                            "true",
                                                            "false",
                                                            "null",
                                                            "-",
                                                            ".",
                                                            "e",
                                                            "E+",
                                                            "0",
                                                            "\\u",
                                                            "\\ud800",
                                                            "\\udc00",
                                                            "\\uD800\\u0041",
                                                            "\\x",
                                                            "\xC0\x80",
                                                            "\xED\xA0\x80",
                                                            "\xF4\x90\x80\x80",
                                                            "\xE0\x80",
                                                            "\xFF",
                                                            "\x1F",
                                                            "\x0C",
                                                            "\x0B",
                                                            "\xEF\xBB\xBF",
                                                            "\t",
                                                            "\r\n",
                                                            "/**/",
                                                            "1e999"};

  void append_space() {
    while (random_.one_in(8)) text_ += " \n\r\t"[random_.below(4)];
  }
  template <class F>
  void append_list(char open, char close, std::size_t count, F&& append_element) {
    text_ += open;
    append_space();
    for (std::size_t i = 0; i < count; ++i) {
      if (i != 0) {
        text_ += ',';
        append_space();
      }
      append_element();
      append_space();
    }
    text_ += close;
  }
  void append_plain(std::size_t count) {
    for (; count != 0; --count) text_ += static_cast<char>('a' + random_.below(26));
  }
  void append_string() {
    text_ += '"';
    if (random_.one_in(12)) append_plain(random_.below(150));
    for (std::size_t parts = random_.below(4); parts != 0; --parts) {
      if (random_.one_in(3)) {
        text_ += random_.of(kCharacters);
      } else {
        append_plain(random_.below(9));
      }
    }
    text_ += '"';
  }
  void append_name() {
    const std::string_view name = random_.of(kNames);
    text_ += '"';
    if (!name.empty() && random_.one_in(12)) {  // the same name with its first letter escaped
      text_ += "\\u00";
      text_ += "0123456789abcdef"[name[0] >> 4];
      text_ += "0123456789abcdef"[name[0] & 15];
      text_ += name.substr(1);
    } else {
      text_ += name;
    }
    text_ += '"';
  }
  void append_colon() {
    append_space();
    text_ += ':';
    append_space();
  }
  void append_number() {
    if (random_.one_in(2)) {
      text_ += random_.of(kNumbers);
      return;
    }
    if (random_.one_in(3)) text_ += '-';
    text_ += static_cast<char>('1' + random_.below(9));
    for (std::size_t digits = random_.below(random_.one_in(6) ? 24 : 6); digits != 0; --digits) append_digit();
    if (random_.one_in(4)) {
      text_ += '.';
      for (std::size_t digits = 1 + random_.below(random_.one_in(6) ? 24 : 4); digits != 0; --digits) append_digit();
    }
    if (random_.one_in(6)) {
      text_ += "eE"[random_.below(2)];
      if (random_.one_in(2)) text_ += "+-"[random_.below(2)];
      for (std::size_t digits = 1 + random_.below(3); digits != 0; --digits) append_digit();
    }
  }
  void append_digit() { text_ += static_cast<char>('0' + random_.below(10)); }
  void append_value(std::size_t depth) {
    constexpr std::array<std::string_view, 3> kWords{"true", "false", "null"};
    const std::size_t kind = random_.below(depth >= kDeepest ? 3 : 5);
    switch (kind) {
      case 0: return append_number();
      case 1: return append_string();
      case 2: text_ += random_.of(kWords); return;
      case 3:
        if (random_.one_in(60)) return append_nest(depth);
        return append_list('[', ']', random_.below(4), [&] { append_value(depth + 1); });
      default:
        return append_list('{', '}', random_.below(4), [&] {
          random_.one_in(3) ? append_string() : append_name();
          append_colon();
          append_value(depth + 1);
        });
    }
  }
  // Brackets around the usual limit and around one word of bits.
  void append_nest(std::size_t depth) {
    constexpr std::array<std::size_t, 8> kLevels{3, 4, 62, 63, 64, 65, 254, 256};
    const std::size_t levels = kLevels[random_.below(kLevels.size())];
    std::string closing;
    for (std::size_t i = 0; i < levels; ++i) {
      const bool object = random_.one_in(2);
      text_ += object ? "{\"\":" : "[";
      closing += object ? '}' : ']';
    }
    append_value(depth + kDeepest);
    text_.append(closing.rbegin(), closing.rend());
  }
  void append_message() {
    std::array<std::string_view, 4> usual{"jsonrpc", "method", "params", "id"};
    for (std::size_t i = 3; i > 0 && random_.one_in(4); --i) std::swap(usual[i], usual[random_.below(i + 1)]);
    std::size_t at = 0;
    const std::size_t count = random_.one_in(4) ? random_.below(7) : 4;
    append_list('{', '}', count, [&] {
      if (at < usual.size() && !random_.one_in(12)) {
        text_ += '"';
        text_ += usual[at];
        text_ += '"';
        append_colon();
        append_usual(usual[at]);
      } else {
        append_name();
        append_colon();
        append_value(2);
      }
      ++at;
    });
  }
  void append_usual(std::string_view name) {
    if (random_.one_in(20)) return append_value(2);
    if (name == "jsonrpc") {
      text_ += random_.one_in(20) ? "\"2\\u002e0\"" : "\"2.0\"";
    } else if (name == "method") {
      text_ += '"';
      text_ += random_.of(kMethods);
      text_ += '"';
    } else if (name == "id") {
      random_.one_in(3) ? append_string() : append_number();
    } else if (random_.one_in(3)) {
      append_list('{', '}', random_.below(4), [&] {
        append_name();
        append_colon();
        append_value(3);
      });
    } else {
      append_list('[', ']', random_.below(4), [&] { append_value(3); });
    }
  }

  void damage_once(std::string& text) {
    const std::size_t at = random_.below(text.size() + 1);
    const std::size_t span = std::min(text.size() - at, random_.below(random_.one_in(8) ? 64 : 4) + 1);
    switch (random_.below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random_.below(256));
        return;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random_.below(8)));
        return;
      case 2: text.erase(at, span); return;
      case 3: text.insert(at, std::string{text, at, span}); return;
      case 4: text.resize(at); return;
      case 5: {
        const std::string moved{text, at, span};
        text.insert(random_.below(text.size() + 1), moved);
        return;
      }
      default: text.insert(at, random_.of(kDamage)); return;
    }
  }

  Random random_;
  std::string text_;
};

}  // namespace fuzz
