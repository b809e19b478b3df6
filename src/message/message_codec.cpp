// See message_codec.hpp.
#include "message/message_codec.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "framing/token.hpp"
#include "message/msgpack_transcoder.hpp"

namespace wirecall::message {
namespace {

constexpr std::array<std::string_view, 1> kJsonTypes{"application/json"};
constexpr MessageCodec kJson{.name = "json",
                             .media_types = kJsonTypes,
                             .begins_with = nullptr,
                             .values = &json_codec,
                             .request_head = R"({"jsonrpc":"2.0","method":)",
                             .params_head = R"(,"params":)",
                             .make_transcoder = nullptr};

constexpr std::array<std::string_view, 3> kMsgpackTypes{"application/msgpack", "application/x-msgpack",
                                                        "application/vnd.msgpack"};
constexpr MessageCodec kMsgpack{
    .name = "msgpack",
    .media_types = kMsgpackTypes,
    .begins_with = &MsgpackTranscoder::begins_with,
    .values = &msgpack_codec,
    .request_head = MsgpackTranscoder::kRequestHead,
    .params_head = MsgpackTranscoder::kParamsHead,
    .make_transcoder = []() -> std::unique_ptr<Transcoder> { return std::make_unique<MsgpackTranscoder>(); }};

constinit std::array<const MessageCodec*, kEncodingsMax> codecs{&kJson, &kMsgpack};
constinit std::array<std::string_view, kEncodingsMax> names{kJson.name, kMsgpack.name};
constinit std::size_t count = 2;

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
