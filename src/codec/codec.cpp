// What all codecs share: how a Reader remembers its failure, and the JSON codec itself, which only puts the scanner,
// the reader and the writer together.
#include "wirecall/codec.hpp"

#include "codec/json_reader.hpp"
#include "codec/json_scan.hpp"
#include "codec/json_writer.hpp"

namespace wirecall {
namespace {

/// Bytes of the offending value that a failure shows, the dots that stand for the rest included.
constexpr std::size_t kGotBytesMax = 80;

std::string shorten(std::string text) {
  if (text.size() <= kGotBytesMax) return text;
  std::size_t size = kGotBytesMax - 3;
  while ((static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;  // not in the middle of a character
  text.resize(size);
  return text += "...";
}

class JsonCodec final : public Codec {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "json"; }
  [[nodiscard]] Scan scan(std::string_view text, std::uint32_t depth_max) const noexcept override {
    return json::scan(text, depth_max);
  }
  [[nodiscard]] std::unique_ptr<Reader> reader() const override { return std::make_unique<json::JsonReader>(); }
  [[nodiscard]] std::unique_ptr<Writer> writer() const override { return std::make_unique<json::JsonWriter>(); }
};

}  // namespace

bool Reader::fail(std::string_view expected) {
  std::string got = shorten(json(kGotBytesMax + 1));
  failure_ = std::make_unique<DecodeFailure>(DecodeFailure{std::string{expected}, std::move(got), {}});
  return false;
}

bool Reader::fail_missing(std::string_view expected) {
  failure_ = std::make_unique<DecodeFailure>(DecodeFailure{std::string{expected}, "nothing", {}});
  return false;
}

bool Reader::failed_at(std::string_view member) {
  failure_->path.emplace_back(std::in_place_type<std::string>, member);
  return false;
}

bool Reader::failed_at(std::size_t position) {
  failure_->path.emplace_back(position);
  return false;
}

const Codec& json_codec() noexcept {
  static const JsonCodec codec;
  return codec;
}

}  // namespace wirecall
