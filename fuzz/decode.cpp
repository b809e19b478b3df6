// Value over any bytes: what is JSON is decoded and nothing else is; encoding it gives a text that decodes to an equal
// Value and is encoded alike; and nlohmann-json sees the same in that text as in the first.
#include <cmath>
#include <nlohmann/json.hpp>

#include "codec/json_scan.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/texts.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::require;
  using wirecall::Value;
  const std::string_view input = fuzz::text_of(data, size);
  const fuzz::PaddedText padded{input};
  const bool valid =
      fuzz::is_whole(padded.view(), wirecall::json::scan_scalar(padded.view(), wirecall::Limits{}.depth));
  const auto value = wirecall::from_json<Value>(input);
  require(value.has_value() == valid, "decoded what is no JSON, or refused what is", input);
  if (!valid) {
    require(value.error().code() == -32700, "bad JSON is another error than -32700", input);
    return 0;
  }
  const std::string text = wirecall::to_json(*value);
  const auto again = wirecall::from_json<Value>(text);
  require(again.has_value(), "what was encoded is no JSON", input);
  require(*again == *value, "what was encoded is another value", input);
  require(wirecall::to_json(*again) == text, "encoding again gives another text", input);
  // nlohmann-json refuses numbers beyond a double's range: they become 0 on both sides. Integers beyond 64 bits are
  // doubles to it, so a double that we write without an exponent (44008774700095550000) means the same to it.
  const nlohmann::json first = nlohmann::json::parse(fuzz::with_numbers_in_range(input, fuzz::is_in_doubles_range));
  const nlohmann::json second = nlohmann::json::parse(fuzz::with_numbers_in_range(text, fuzz::is_in_doubles_range));
  require(first == second, "nlohmann-json sees another value in what was encoded", input);
  return 0;
}
