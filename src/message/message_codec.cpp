// See message_codec.hpp.
#include "message/message_codec.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "framing/token.hpp"
#include "message/binary_transcoder.hpp"
#include "message/protobuf_transcoder.hpp"

namespace wirecall::message {
namespace {

constexpr std::array<std::string_view, 1> kJsonTypes{"application/json"};
constexpr MessageCodec kJson{.name = "json",
                             .media_types = kJsonTypes,
                             .begins_with = nullptr,
                             .values = &json_codec,
                             .request_head = R"({"jsonrpc":"2.0","method":)",
                             .params_head = R"(,"params":)",
                             .make_transcoder = nullptr,
                             .is_native = true};

constexpr std::array<std::string_view, 3> kMsgpackTypes{"application/msgpack", "application/x-msgpack",
                                                        "application/vnd.msgpack"};
constexpr std::array<std::string_view, 1> kCborTypes{"application/cbor"};
constexpr std::array<std::string_view, 2> kProtobufTypes{"application/protobuf", "application/x-protobuf"};

// An array or a map.
constexpr bool begins_msgpack(unsigned char first) noexcept {
  return (first & 0xE0U) == 0x80 || (first >= 0xDC && first <= 0xDF);
}

// The tag of CBOR, or a map without: arrays without are MessagePack's.
constexpr bool begins_cbor(unsigned char first) noexcept {
  return first == static_cast<unsigned char>(cbor::kMessageTag.front()) || (first & 0xE0U) == 0xA0;
}

template <class Transcoder>
constexpr MessageCodec binary_codec(std::string_view name, std::span<const std::string_view> media_types,
                                    bool (*begins_with)(unsigned char), const Codec& (*values)() noexcept) {
  return {.name = name,
          .media_types = media_types,
          .begins_with = begins_with,
          .values = values,
          .request_head = Transcoder::kRequestHead,
          .params_head = Transcoder::kParamsHead,
          .make_transcoder = []() -> std::unique_ptr<message::Transcoder> { return std::make_unique<Transcoder>(); },
          .is_native = true};
}
constexpr MessageCodec kMsgpack =
    binary_codec<MsgpackTranscoder>("msgpack", kMsgpackTypes, &begins_msgpack, &msgpack_codec);
constexpr MessageCodec kCbor = binary_codec<CborTranscoder>("cbor", kCborTypes, &begins_cbor, &cbor_codec);
constexpr MessageCodec kProtobuf{
    .name = "protobuf",
    .media_types = kProtobufTypes,
    .begins_with = &begins_protobuf,
    .values = &protobuf_codec,
    .make_transcoder = []() -> std::unique_ptr<Transcoder> { return std::make_unique<ProtobufTranscoder>(); }};

constinit std::array<const MessageCodec*, kEncodingsMax> codecs{&kJson, &kMsgpack, &kCbor, &kProtobuf};
constinit std::array<std::string_view, kEncodingsMax> names{kJson.name, kMsgpack.name, kCbor.name, kProtobuf.name};
constinit std::size_t count = 4;

// White space, what begins a value, and a byte order mark.
constexpr std::string_view kJsonBegins = " \t\r\n{[\"-0123456789tfn\xEF";

constexpr void claim(std::array<Encoding, 256>& bytes, const MessageCodec& codec, Encoding encoding) {
  for (unsigned first = 0; first < bytes.size(); ++first) {
    if (!codec.begins_with(static_cast<unsigned char>(first))) continue;
    WIRECALL_ASSERT(bytes[first] == Encoding::json);  // no other's
    WIRECALL_ASSERT(!kJsonBegins.contains(static_cast<char>(first)));
    bytes[first] = encoding;
  }
}

}  // namespace

namespace detail {
constinit std::array<Encoding, 256> encoding_of_byte = [] {
  std::array<Encoding, 256> bytes{};
  claim(bytes, kMsgpack, Encoding::msgpack);
  claim(bytes, kCbor, Encoding::cbor);
  claim(bytes, kProtobuf, Encoding::protobuf);
  return bytes;
}();
}  // namespace detail

Encoding add_codec(const MessageCodec& codec) {
  const auto known = std::ranges::find(encoding_names(), codec.name);
  const auto number = static_cast<std::size_t>(known - encoding_names().begin());
  const auto encoding = static_cast<Encoding>(number);
  if (known != encoding_names().end()) return encoding;
  WIRECALL_ASSERT(number < kEncodingsMax);
  claim(detail::encoding_of_byte, codec, encoding);
  codecs[number] = &codec;
  names[number] = codec.name;
  count = number + 1;
  return encoding;
}

const MessageCodec& codec_of(Encoding encoding) noexcept {
  WIRECALL_DEBUG_ASSERT(static_cast<std::size_t>(encoding) < count);
  return *codecs[static_cast<std::size_t>(encoding)];
}

Encoding encoding_of(std::string_view message, Encoding said) noexcept {
  constexpr std::size_t kLookedThroughMax = 64 * 1024;  // so much text is refused as what it is
  if (message.empty()) return Encoding::json;
  const Encoding encoding = encoding_of(message.front());
  if (encoding == Encoding::protobuf && said != encoding && message.size() <= kLookedThroughMax &&
      !is_protobuf(message))
    return Encoding::json;
  const auto may_begin_alike = [](Encoding one) { return one == Encoding::msgpack || one == Encoding::cbor; };
  const bool is_tagged = message.front() == cbor::kMessageTag.front();
  return may_begin_alike(encoding) && may_begin_alike(said) && !is_tagged ? said : encoding;
}

std::span<const std::string_view> encoding_names() noexcept { return {names.data(), count}; }

std::optional<Encoding> encoding_of_type(std::string_view media_type) noexcept {
  if (media_type == kJsonTypes.front()) return Encoding::json;  // as most say it
  media_type = media_type.substr(0, media_type.find(';'));
  while (media_type.ends_with(' ') || media_type.ends_with('\t')) media_type.remove_suffix(1);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::string_view one : codecs[i]->media_types) {
      if (framing::same_word(media_type, one)) return static_cast<Encoding>(i);
    }
  }
  return std::nullopt;
}

}  // namespace wirecall::message
