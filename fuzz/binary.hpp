// What fuzz/msgpack.cpp and fuzz/cbor.cpp do with any bytes: what the scan takes is read as a Value and as types that
// are told apart by trying, and written again; what is transcoded to JSON is JSON, comes back, and becomes the same
// text; and so for any JSON. A message is read alike as it is and by way of JSON.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "codec/json_scan.hpp"
#include "codec/transcode.hpp"
#include "fuzz/packed_params.hpp"
#include "fuzz/simdjson_opinion.hpp"
#include "fuzz/texts.hpp"
#include "message/binary_transcoder.hpp"
#include "message/message_codec.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace fuzz {

using wirecall::Buffer;
using wirecall::Scan;
using wirecall::ScanStatus;
using wirecall::Value;

struct Leaf {
  int number = 0;
  std::optional<std::string> text;
};
struct Node {
  std::vector<std::variant<Leaf, std::map<std::string, double>, std::vector<int>>> parts;
  std::vector<std::byte> data;
};
using Anything = std::variant<bool, std::int64_t, float, std::string, std::vector<std::byte>, wirecall::Extension, Leaf,
                              Node, std::map<int, int>, std::vector<std::variant<int, std::string, std::vector<int>>>>;

template <class Of>
const wirecall::Codec& codec_of() {
  return wirecall::message::codec_of(Of::kEncoding).values();
}

/// Bytes in a heap block of exactly their size.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : bytes_(new char[bytes.size()]), size_(bytes.size()) {
    if (size_ != 0) std::memcpy(bytes_.get(), bytes.data(), size_);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return std::as_bytes(std::span{view()}); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

/// JSON that was made of the encoding comes back, and is the same text the next time.
template <class Of>
void comes_back(Buffer& json, std::string_view input) {
  wirecall::codec::FromJson<typename Of::Values> from_json;
  wirecall::codec::ToJson<typename Of::Values> to_json;
  Buffer encoded;
  require(from_json(json.padded(), encoded).done(), "JSON that was of the encoding has no form there", input);
  const Exact exact{encoded.view()};
  const Scan scan = codec_of<Of>().scan(exact.view(), wirecall::kDepthMax);
  require(scan.status == ScanStatus::complete && scan.offset == exact.view().size(), "nothing valid written", input);
  Buffer again;
  require(to_json(exact.view(), again).done(), "what came back has no form in JSON", input);
  require(again.view() == json.view(), "another text the second time", input);
}

template <class Of>
void check_values(std::string_view value, std::string_view input) {
  const Exact exact{value};
  const auto read = [&]<class T>(std::span<const std::byte> bytes, std::type_identity<T>) {
    return wirecall::detail::from_binary<T>(codec_of<Of>(), bytes, wirecall::kDepthMax);
  };
  const auto write = [&]<class T>(const T& of) {
    return wirecall::detail::encode_binary(codec_of<Of>(), &wirecall::detail::encode_erased<T>, &of);
  };
  const auto first = read(exact.span(), std::type_identity<Value>{});
  // CBOR has values that none of ours stands for; and a time comes back as the text that it is then.
  require(first.has_value() || !std::is_same_v<Of, wirecall::message::MsgpackMessages>, "a value is no Value", input);
  if (first.has_value()) {
    const auto written = write(*read(write(*first), std::type_identity<Value>{}));
    const auto again = read(written, std::type_identity<Value>{});
    require(again.has_value() && write(*again) == written, "a Value does not come back", input);
  }
  const auto typed = read(exact.span(), std::type_identity<Anything>{});
  if (typed.has_value()) {
    const auto bytes = write(*typed);
    require(read(bytes, std::type_identity<Anything>{}).has_value(), "a typed value does not come back", input);
  }
}

template <class Of>
void check_json(std::string_view value, std::string_view input) {
  const Exact exact{value};
  wirecall::codec::ToJson<typename Of::Values> to_json;
  Buffer json;
  const auto result = to_json(exact.view(), json);
  require(result.done() == result.why.empty(), "no reason, or one too many", input);
  if (!result.done()) return;
  const std::string_view text = json.padded();
  require(is_whole(text, wirecall::json::scan(text, wirecall::kDepthMax)), "no JSON written", input);
  comes_back<Of>(json, input);
}

/// What an envelope is read as that is read as it is, and by way of JSON, is the same.
template <class Of>
void check_envelope(std::string_view message, const wirecall::message::EnvelopeMembers& members,
                    std::string_view input) {
  using wirecall::Member;
  wirecall::message::BinaryTranscoder<Of> transcoder;
  wirecall::Received directly;
  wirecall::Received by_json;
  Buffer text;
  Buffer json;
  const auto status = transcoder.read(message, {}, text, directly, {}, members);
  require(status == transcoder.read(message, {}, json, by_json), "an envelope is read by one way only", input);
  if (status != wirecall::message::Transcoder::Status::done) return;
  require(directly.kind == by_json.kind && directly.fault == by_json.fault, "another kind of message", input);
  wirecall::message::NativeTranscoder::restore(Of::kEncoding, message, directly);
  wirecall::message::NativeTranscoder::restore(Of::kEncoding, message, by_json);
  require(directly.present == by_json.present, "other members", input);
  for (const Member member : {Member::id, Member::params, Member::result, Member::timeout_ms}) {
    if (directly.has(member)) require(directly[member] == by_json[member], "another value of a member", input);
  }
}

/// What is read in the pass that checks it is a message, and read as it is in steps.
template <class Of>
void check_usual(std::string_view message, bool whole, const wirecall::message::EnvelopeMembers& members,
                 std::string_view input) {
  using wirecall::Member;
  wirecall::message::BinaryTranscoder<Of> transcoder;
  wirecall::Received usual;
  wirecall::message::IdText id;
  if (!transcoder.read_request(message, {}, id, usual)) return;
  require(whole, "a request is read of what is no message", input);
  wirecall::Received in_steps;
  Buffer text;
  const auto status = transcoder.read(message, {}, text, in_steps, {}, members);
  require(status == wirecall::message::Transcoder::Status::done, "a request is read in one pass only", input);
  const bool directly = in_steps.text.data() == message.data();  // else by way of JSON, for the sake of its id
  wirecall::message::NativeTranscoder::restore(Of::kEncoding, message, in_steps);
  require(usual.kind == in_steps.kind && usual.present == in_steps.present, "another kind of message", input);
  require(usual.method() == in_steps.method(), "another method", input);
  for (const Member member : {Member::id, Member::params}) {
    if (usual.has(member)) require(usual[member] == in_steps[member], "another value of a member", input);
  }
  const auto integers = [](const wirecall::Received& of) {
    return std::vector<std::uint32_t>{of.integers.data(), of.integers.data() + of.integer_count};
  };
  require(!directly || integers(usual) == integers(in_steps), "other integers", input);
  check_packed(usual, codec_of<Of>(), input);
}

template <class Of>
void check_binary(std::string_view input) {
  const Exact exact{input};
  const std::uint32_t depth = wirecall::Limits{}.depth;
  const wirecall::Codec& codec = codec_of<Of>();
  const Scan scan = codec.scan(exact.view(), depth);
  require(scan.offset <= input.size(), "the end is behind the end", input);
  wirecall::message::EnvelopeMembers members;
  const ScanStatus walked = Of::walk(exact.view(), depth, members);
  const bool whole = scan.status == ScanStatus::complete && scan.offset == input.size();
  const ScanStatus wanted = scan.status == ScanStatus::too_deep ? scan.status : ScanStatus::malformed;
  require(walked == (whole ? ScanStatus::complete : wanted), "the walk takes something else than the scan", input);
  check_usual<Of>(exact.view(), whole, members, input);
  if (scan.status == ScanStatus::complete) {
    const std::string_view value = input.substr(0, scan.offset);
    const Exact alone{value};
    require(Of::end_of(alone.view().data()) == alone.view().data() + value.size(), "the walk ends elsewhere", input);
    require(codec.scan(Exact{value.substr(0, value.size() - 1)}.view(), depth).status == ScanStatus::incomplete,
            "a part of a value is taken for one", input);
    check_values<Of>(value, input);
    check_json<Of>(value, input);
    if (whole && members.is_single()) check_envelope<Of>(exact.view(), members, input);
  }
  const PaddedText text{input};
  const Scan json_scan = wirecall::json::scan(text.view(), depth);
  if (!is_whole(text.view(), json_scan)) return;
  wirecall::codec::FromJson<typename Of::Values> from_json;
  Buffer encoded;
  if (from_json(text.view().substr(0, json_scan.offset), encoded).done()) check_json<Of>(encoded.view(), input);
}

}  // namespace fuzz
