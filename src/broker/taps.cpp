// See taps.hpp.
#include "broker/taps.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "base/utf8.hpp"
#include "message/call_text.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::broker {
namespace {

// The beginning of `text`, whole characters of at most so many bytes.
std::string_view beginning(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  const char* const end = text.data() + bytes_max;
  const char* at = text.data();
  while (at < end) {
    const std::size_t bytes = character_bytes(at, text.data() + text.size());
    if (bytes == 0 || bytes > static_cast<std::size_t>(end - at)) break;
    at += bytes;
  }
  return text.substr(0, static_cast<std::size_t>(at - text.data()));
}

// As much of it as is shown, and a byte more where that is not all.
std::string json_of_msgpack(std::string_view value) {
  const std::unique_ptr<Reader> reader = msgpack_codec().reader();
  reader->reset(value);
  return reader->json(Taps::kValueShownMax + 1);
}

std::string name_or_null(std::string_view name) { return name.empty() ? "null" : to_json(name); }

std::string milliseconds_text(std::chrono::nanoseconds time) {
  std::array<char, 32> text{};
  const double value = std::chrono::duration<double, std::milli>(time).count();
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 3).ptr};
}

}  // namespace

void Taps::set(Peer& peer, std::string_view pattern) {
  const auto known = std::ranges::find(taps_, &peer, &Tap::peer);
  if (known != taps_.end()) {
    known->pattern = pattern;
  } else {
    taps_.push_back({.peer = &peer, .pattern = std::string{pattern}});
  }
}

bool Taps::remove(const Peer& peer) noexcept {
  if (std::erase_if(taps_, [&](const Tap& tap) { return tap.peer == &peer; }) == 0) return false;
  if (taps_.empty()) calls_.clear();
  return true;
}

bool Taps::any(std::string_view name) const noexcept {
  return std::ranges::any_of(taps_, [&](const Tap& tap) { return matches(tap.pattern, name); });
}

TappedCall Taps::begin(std::optional<std::uint64_t> number, std::string_view method, std::string_view client) {
  TappedCall call{.id = last_id_ + 1, .method = std::string{method}, .client = std::string{client}};
  if (number) calls_.insert_or_assign(*number, call);
  ++last_id_;
  return call;
}

std::optional<TappedCall> Taps::end(std::uint64_t number) {
  auto found = calls_.extract(number);
  if (!found) return std::nullopt;
  return std::move(found.mapped());
}

std::string text_of(const TapRecord& record) {
  std::string text;
  message::begin_call(text, R"("rpc.tap")", R"({"kind":")");
  text.append(record.kind).append("\"");
  if (record.id) text.append(R"(,"id":)").append(std::to_string(*record.id));
  text.append(R"(,"method":)").append(to_json(record.method));
  text.append(R"(,"client":)").append(name_or_null(record.client));
  if (record.provider) text.append(R"(,"provider":)").append(name_or_null(*record.provider));
  if (record.delivered) text.append(R"(,"delivered":)").append(std::to_string(*record.delivered));
  if (record.time) text.append(R"(,"ms":)").append(milliseconds_text(*record.time));
  if (!record.value.text.empty()) {
    const std::string unpacked = record.value.msgpack ? json_of_msgpack(record.value.text) : std::string{};
    const std::string_view json = record.value.msgpack ? unpacked : record.value.text;
    const bool is_small = json.size() <= Taps::kValueShownMax;
    // What has no form in JSON, as NaN, is shown by its size alone.
    if (is_small && Value::parse(json, Taps::kValueShownMax)) {
      text.append(",\"").append(record.member).append("\":").append(json);
    } else {
      if (!is_small) {
        text.append(",\"").append(record.member).append(R"(_begin":)");
        text.append(to_json(beginning(json, Taps::kValueShownMax)));
      }
      text.append(R"(,"bytes":)").append(std::to_string(record.value.text.size()));
    }
  }
  return text += "}}";
}

}  // namespace wirecall::broker
