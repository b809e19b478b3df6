// See jetstream_answers.hpp.
#include "jetstream_store/jetstream_answers.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <openssl/evp.h>

#include "base/dotted_name.hpp"
#include "codec/base64.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::jetstream_store {

using std::chrono::milliseconds;

std::string nanoseconds_of(std::uint64_t ms) { return std::to_string(ms) + (ms == 0 ? "" : "000000"); }

const Value* find(const Value& value, std::string_view name) noexcept {
  return value.is_object() ? value.find(name) : nullptr;
}
const Value* find(const Value& value, std::string_view name, std::string_view member) noexcept {
  const Value* const inner = find(value, name);
  return inner != nullptr ? find(*inner, member) : nullptr;
}
std::uint64_t number(const Value* value) { return value != nullptr && value->is_number() ? value->as_uint() : 0; }
std::string text(const Value* value) {
  return value != nullptr && value->is_string() ? value->as_string() : std::string{};
}

std::string token_of(std::string_view text) {
  constexpr std::size_t kBytes = 16;
  unsigned char digest[EVP_MAX_MD_SIZE]{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string token;
  for (std::size_t i = 0; i != kBytes; ++i) {
    token += kDigits[digest[i] >> 4];
    token += kDigits[digest[i] & 15];
  }
  return token;
}

std::uint64_t size_class(std::size_t bytes) noexcept {
  const std::uint64_t size = std::max<std::uint64_t>(bytes, 64);
  const std::uint64_t step = std::bit_floor(size) / 4;
  return (size + step - 1) / step * step;
}

std::uint64_t to_number(std::string_view digits) noexcept {
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

bool is_json(std::string_view text) {
  if (text.empty()) return true;
  Buffer padded{text};
  const Scan scan = json_codec().scan(padded.padded(), kDepthMax);
  return scan.status == ScanStatus::complete && scan.offset == text.size();
}

bool are_params(std::string_view text) {
  return text.empty() || ((text.front() == '[' || text.front() == '{') && is_json(text));
}

namespace {

std::string decoded(const std::string& base64) {
  std::string bytes(base64.size() / 4 * 3, '\0');
  const std::size_t size = codec::base64_decode(base64, reinterpret_cast<std::byte*>(bytes.data()));
  bytes.resize(size == codec::kNotBase64 ? 0 : size);
  return bytes;
}

// Of "2026-11-30T05:48:07.562095629Z", as milliseconds since 1970.
std::int64_t ms_of(std::string_view time) noexcept {
  const auto digits = [time](std::size_t at, std::size_t count) {
    int value = 0;
    if (time.size() >= at + count) std::from_chars(time.data() + at, time.data() + at + count, value);
    return value;
  };
  using namespace std::chrono;
  const sys_days day{year{digits(0, 4)} / month{static_cast<unsigned>(digits(5, 2))} /
                     std::chrono::day{static_cast<unsigned>(digits(8, 2))}};
  const auto whole = day + hours{digits(11, 2)} + minutes{digits(14, 2)} + seconds{digits(17, 2)};
  return duration_cast<milliseconds>(whole.time_since_epoch()).count() +
         (time.size() > 23 && time[19] == '.' ? digits(20, 3) : 0);
}

}  // namespace

StoredMessage stored_message(const Value& answer) {
  const Value* const message = find(answer, "message");
  if (message == nullptr) return {};
  return {.subject = text(find(*message, "subject")),
          .data = decoded(text(find(*message, "data"))),
          .seq = number(find(*message, "seq")),
          .at_ms = ms_of(text(find(*message, "time")))};
}

Delivery delivery_of(std::string_view reply) noexcept {
  std::uint64_t numbers[5]{};
  for (int i = 0; i != 4; ++i) static_cast<void>(take_word(reply));
  for (std::uint64_t& one : numbers) {
    const std::string_view word = take_word(reply);
    std::from_chars(word.data(), word.data() + word.size(), one);
  }
  return {.seq = numbers[1],
          .deliveries = static_cast<std::uint32_t>(numbers[0]),
          .at_ms = static_cast<std::int64_t>(numbers[3] / 1'000'000)};
}

}  // namespace wirecall::jetstream_store
