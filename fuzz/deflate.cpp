// Compressed WebSocket messages over any bytes: what comes of them depends on them alone, not on what was unpacked
// before; it is never larger than it may be; and any bytes are what they were when they have been packed and unpacked.
// The first byte of an input chooses how large a text may become, the second the window.
#include <string>

#include "fuzz/texts.hpp"
#include "http/zlib_deflate.hpp"

#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using Outcome = wirecall::framing::MessageDeflate::Outcome;
using wirecall::Buffer;
using wirecall::net::ZlibDeflate;

struct Unpacked {
  Outcome outcome;
  std::string text;
};

Unpacked unpack(ZlibDeflate& deflate, std::string_view packed, std::size_t bytes_max) {
  Buffer out;
  const Outcome outcome = deflate.inflate(packed, bytes_max, out);
  return {outcome, std::string{out.view()}};
}

void check_any_payload(ZlibDeflate& used, std::string_view packed, std::size_t bytes_max) {
  const Unpacked got = unpack(used, packed, bytes_max);
  ZlibDeflate fresh;
  const Unpacked again = unpack(fresh, packed, bytes_max);
  require(got.outcome == again.outcome && got.text == again.text, "what was unpacked before makes a difference",
          packed);
  // What is refused has one byte more at most, which shows that it is too large.
  require(got.text.size() <= bytes_max + (got.outcome == Outcome::done ? 0 : 1), "it is larger than it may be", packed);
  if (got.outcome != Outcome::done) return;
  require(unpack(used, packed, got.text.size()).outcome == Outcome::done, "what just fits does not", packed);
  if (!got.text.empty())
    require(unpack(used, packed, got.text.size() - 1).outcome == Outcome::too_large, "it fits where it cannot", packed);
}

void check_any_text(ZlibDeflate& used, std::string_view text, int window_bits) {
  Buffer packed;
  used.deflate(text, window_bits, packed);
  const Unpacked got = unpack(used, packed.view(), text.size());
  require(got.outcome == Outcome::done && got.text == text, "it is another text when it comes back", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static ZlibDeflate used;
  const std::string_view all = fuzz::text_of(data, size);
  if (all.size() < 2) return 0;
  const std::size_t bytes_max = std::size_t{1} << (static_cast<unsigned char>(all[0]) % 20);
  check_any_payload(used, all.substr(2), bytes_max);
  check_any_text(used, all.substr(2), 9 + static_cast<unsigned char>(all[1]) % 7);
  return 0;
}
