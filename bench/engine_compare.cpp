// The same requests answered by three parsers: ours, simdjson On-Demand and simdjson's DOM, each in the straightforward
// way its documentation shows, all calling the same function and writing the same reply with the same functions
// (wirecall/message.hpp). simdjson's loops are spared what ours does besides: it has no registry, no batches, no
// middleware, and On-Demand does not validate what it passes over. On-Demand chooses its instructions when it is
// compiled, so this program alone is built for the machine it is built on. Every reply is compared with the expected
// bytes before it is timed.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <vector>

#include "answers.hpp"
#include "wirecall/message.hpp"

namespace {

using bench::measure;
using bench::subtract;
using bench::Text;

static_assert(wirecall::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

void write_result(wirecall::Buffer& out, int result, std::string_view id) {
  out.clear();
  wirecall::begin_result(out);
  constexpr std::size_t kDigitsMax = 12;
  char* const to = out.reserve(kDigitsMax);
  out.set_end(std::to_chars(to, to + kDigitsMax, result).ptr);
  wirecall::end_reply(out, id);
}

bool fits(std::int64_t value) { return value >= INT32_MIN && value <= INT32_MAX; }

// One pass over the members in whatever order they come; params are decoded when they are met, since On-Demand cannot
// go back without reading again.
class OnDemand {
 public:
  bool answer(const Text& text, wirecall::Buffer& out) {
    using simdjson::ondemand::json_type;
    simdjson::ondemand::document document;
    simdjson::ondemand::object request;
    const simdjson::padded_string_view view{text.padded.data(), text.bytes, text.padded.size()};
    if (parser_.iterate(view).get(document) || document.get_object().get(request)) return false;
    bool version = false;
    bool known = false;
    bool params = false;
    std::string_view id;
    std::int64_t arguments[2] = {};
    for (auto member : request) {
      std::string_view name;
      simdjson::ondemand::value value;
      if (member.unescaped_key().get(name) || member.value().get(value)) return false;
      std::string_view string;
      if (name == "jsonrpc") {
        if (value.get_string().get(string)) return false;
        version = string == "2.0";
      } else if (name == "method") {
        if (value.get_string().get(string)) return false;
        known = string == "subtract";
      } else if (name == "params") {
        json_type type;
        if (value.type().get(type)) return false;
        params = type == json_type::array ? positional(value, arguments) : by_name(value, arguments);
      } else if (name == "id") {
        json_type type;
        if (value.type().get(type)) return false;
        if (type != json_type::string && type != json_type::number && type != json_type::null) return false;
        id = value.raw_json_token();
        while (!id.empty() && id.back() == ' ') id.remove_suffix(1);
        if (type == json_type::string) {
          if (value.get_string().get(string)) return false;
        } else if (type == json_type::number) {
          double number;
          if (value.get_double().get(number)) return false;
        }
      }
    }
    const char* rest;  // 3.0 has no at_end(): an error here says that nothing follows
    if (!document.current_location().get(rest)) return false;
    if (!version || !known || !params || id.empty() || !fits(arguments[0]) || !fits(arguments[1])) return false;
    write_result(out, subtract(static_cast<int>(arguments[0]), static_cast<int>(arguments[1])), id);
    return true;
  }

 private:
  static bool positional(simdjson::ondemand::value value, std::int64_t (&arguments)[2]) {
    simdjson::ondemand::array array;
    if (value.get_array().get(array)) return false;
    std::size_t count = 0;
    for (auto element : array) {
      if (count == 2 || element.get_int64().get(arguments[count])) return false;
      ++count;
    }
    return count == 2;
  }
  static bool by_name(simdjson::ondemand::value value, std::int64_t (&arguments)[2]) {
    simdjson::ondemand::object object;
    if (value.get_object().get(object)) return false;
    unsigned given = 0;
    for (auto member : object) {
      std::string_view name;
      if (member.unescaped_key().get(name)) return false;
      const std::size_t at = name == "minuend" ? 0 : 1;
      if (at == 1 && name != "subtrahend") return false;
      if (member.value().get_int64().get(arguments[at])) return false;
      given |= 1U << at;
    }
    return given == 3;
  }

  simdjson::ondemand::parser parser_;
};

// The DOM knows numbers as values only, so a number's text is not to be had: it is written anew, which is right for the
// ids here and loses the digits of others.
class Dom {
 public:
  bool answer(const Text& text, wirecall::Buffer& out) {
    simdjson::dom::object request;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.padded.data());
    if (parser_.parse(bytes, text.bytes, false).get_object().get(request)) return false;
    std::string_view version;
    std::string_view method;
    simdjson::dom::element params;
    simdjson::dom::element id;
    if (request["jsonrpc"].get_string().get(version) || version != "2.0") return false;
    if (request["method"].get_string().get(method) || method != "subtract") return false;
    if (request["params"].get(params) || request["id"].get(id)) return false;
    std::int64_t arguments[2];
    if (simdjson::dom::array array; !params.get_array().get(array)) {
      if (array.size() != 2) return false;
      std::size_t at = 0;
      for (const simdjson::dom::element element : array) {
        if (element.get_int64().get(arguments[at++])) return false;
      }
    } else if (simdjson::dom::object object; !params.get_object().get(object)) {
      if (object.size() != 2 || object["minuend"].get_int64().get(arguments[0]) ||
          object["subtrahend"].get_int64().get(arguments[1])) {
        return false;
      }
    } else {
      return false;
    }
    if (!fits(arguments[0]) || !fits(arguments[1])) return false;
    char id_text[64];
    const std::string_view written = write_id(id, id_text);
    if (written.empty()) return false;
    write_result(out, subtract(static_cast<int>(arguments[0]), static_cast<int>(arguments[1])), written);
    return true;
  }

 private:
  static std::string_view write_id(simdjson::dom::element id, char (&to)[64]) {
    const auto text = [&](char* end) { return std::string_view{to, static_cast<std::size_t>(end - to)}; };
    switch (id.type()) {
      case simdjson::dom::element_type::INT64: return text(std::to_chars(to, to + sizeof to, std::int64_t{id}).ptr);
      case simdjson::dom::element_type::DOUBLE: return text(std::to_chars(to, to + sizeof to, double{id}).ptr);
      case simdjson::dom::element_type::NULL_VALUE: return "null";
      case simdjson::dom::element_type::STRING: {
        const std::string_view string = id;
        if (string.size() > sizeof to - 2) return {};
        to[0] = to[string.copy(to + 1, string.size()) + 1] = '"';  // the ids here need no escapes
        return {to, string.size() + 2};
      }
      default: return {};
    }
  }

  simdjson::dom::parser parser_;

 public:
  Dom() {
    if (parser_.allocate(4096) != simdjson::SUCCESS) std::abort();
  }
};

template <class Engine>
void row(const char* what, const std::vector<Text>& plain, const std::vector<Text>& varied) {
  Engine engine;
  std::printf("%-44s %12.1f %12.1f\n", what, measure(engine, plain), measure(engine, varied));
}

}  // namespace

int main() {
  const std::vector<Text> plain = bench::plain_texts();
  const std::vector<Text> varied = bench::varied_texts();
  std::printf("%-44s %12s %12s\n", "ns a text, mean", "62 bytes", "64 varied");
  row<bench::Ceiling>("ceiling: copy in, fixed reply out", plain, varied);
  row<bench::Wirecall>("wirecall, Registry::handle_padded", plain, varied);
  row<OnDemand>("simdjson On-Demand, envelope by hand", plain, varied);
  row<Dom>("simdjson DOM, envelope by hand", plain, varied);
  std::printf("simdjson %d.%d.%d: On-Demand built for %s, DOM running on %s\n", simdjson::SIMDJSON_VERSION_MAJOR,
              simdjson::SIMDJSON_VERSION_MINOR, simdjson::SIMDJSON_VERSION_REVISION,
              SIMDJSON_STRINGIFY(SIMDJSON_BUILTIN_IMPLEMENTATION),
              simdjson::get_active_implementation()->name().c_str());
}
