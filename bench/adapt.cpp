// Values of nlohmann, RapidJSON and Boost.JSON as parameter: what a call takes with a value of 10 KiB, against what the
// library takes to parse the same text. The call reads the message, checks it whole (syntax, UTF-8, depth) and makes
// the value; a call with the same value as Raw, which only checks it, is the share that wirecall has before that. Each
// figure is the median of paired rounds: call and parse in turns.
//
//   adapt            the table
//   adapt --check    exit status 1 when a bound is exceeded
#include <algorithm>
#include <boost/json/src.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <malloc.h>
#include <string>
#include <vector>

#include "wirecall/adapt/boost_json.hpp"
#include "wirecall/adapt/nlohmann.hpp"
#include "wirecall/adapt/rapidjson.hpp"
#include "wirecall/registry.hpp"

namespace {

constexpr int kRounds = 41;
constexpr int kCallsARound = 50;

/// An array of records, as reports are: names, texts with and without escapes, integers, doubles, lists.
std::string value_of(std::size_t bytes) {
  std::string text = "[";
  for (int i = 0; text.size() < bytes; ++i) {
    if (i != 0) text += ',';
    text += R"({"id":)" + std::to_string(1'000'000'007LL * (i + 1)) + R"(,"name":"item number )" + std::to_string(i) +
            R"(","active":)" + (i % 3 != 0 ? "true" : "false") + R"(,"price":)" + std::to_string(i * 7 + 3) + "." +
            std::to_string(25 + i) + R"(,"note":"quoted \"words\" and a line\n","tags":["red","green","b)" +
            std::to_string(i) + R"("],"place":{"latitude":52.)" + std::to_string(520'008 + i) + R"(,"longitude":-13.)" +
            std::to_string(404'954 + i) + "}}";
  }
  return text + "]";
}

template <class Run>
double nanoseconds(const Run& run) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < kCallsARound; ++i) run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count() / kCallsARound;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

bool within = true;

template <class Call, class Parse>
void compare(const char* what, double bound, const Call& call, const Parse& parse) {
  std::vector<double> calls;
  std::vector<double> parses;
  std::vector<double> ratios;
  for (int round = 0; round < kRounds; ++round) {
    calls.push_back(nanoseconds(call));
    parses.push_back(nanoseconds(parse));
    ratios.push_back(calls.back() / parses.back());
  }
  const double ratio = median(ratios);
  std::printf("%-24s call %8.0f ns   own parse %8.0f ns   ratio %5.2f", what, median(calls), median(parses), ratio);
  if (bound > 0) std::printf("   bound %4.2f  %s", bound, ratio <= bound ? "ok" : "over");
  std::printf("\n");
  if (bound > 0 && ratio > bound) within = false;
}

}  // namespace

int main(int argc, char** argv) {
  // Else each value's end may give the heap's top back to the system, which costs whoever is last in memory several
  // times what is measured.
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
  const std::string value = value_of(10 * 1024);
  wirecall::Registry registry;
  std::size_t seen = 0;
  registry.method("raw", [&](wirecall::Raw raw) { seen += raw.text.size(); }, {"value"});
  registry.method("value", [&](const wirecall::Value& taken) { seen += taken.size(); }, {"value"});
  registry.method("nlohmann", [&](const nlohmann::json& taken) { seen += taken.size(); }, {"value"});
  registry.method("rapidjson", [&](const rapidjson::Document& taken) { seen += taken.Size(); }, {"value"});
  registry.method("boost", [&](const boost::json::value& taken) { seen += taken.as_array().size(); }, {"value"});
  const auto caller = [&](const char* method) {
    std::string text =
        std::string{R"({"jsonrpc":"2.0","method":")"} + method + R"(","params":[)" + value + R"(],"id":1})";
    const std::size_t bytes = text.size();
    text.append(wirecall::kPaddingBytes, '\0');
    return [&registry, text = std::move(text), bytes, out = wirecall::Buffer{}]() mutable {
      registry.handle_padded({text.data(), bytes}, out);
      if (!out.view().contains("\"result\":null")) std::exit(2);
    };
  };
  auto raw = caller("raw");
  auto own_value = caller("value");
  auto nlohmann_call = caller("nlohmann");
  auto rapidjson_call = caller("rapidjson");
  auto boost_call = caller("boost");
  const auto parse_nlohmann = [&] { seen += nlohmann::json::parse(value).size(); };
  const auto parse_rapidjson = [&] {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseFullPrecisionFlag | rapidjson::kParseValidateEncodingFlag>(value.data(),
                                                                                               value.size());
    seen += document.Size();
  };
  const auto parse_boost = [&] { seen += boost::json::parse({value.data(), value.size()}).as_array().size(); };
  std::printf("%zu bytes of JSON\n", value.size());
  compare("nlohmann::json", 1.0, [&] { nlohmann_call(); }, parse_nlohmann);
  compare("rapidjson::Document", 1.25, [&] { rapidjson_call(); }, parse_rapidjson);
  compare("boost::json::value", 1.0, [&] { boost_call(); }, parse_boost);
  compare("Raw, beside Boost's", 0, [&] { raw(); }, parse_boost);
  compare("Value, beside Boost's", 0, [&] { own_value(); }, parse_boost);
  if (seen == 0) return 2;
  return argc > 1 && std::strcmp(argv[1], "--check") == 0 && !within ? 1 : 0;
}
