// The half of BinaryTranscoder that writes messages. From JSON the members are found first, since their number comes
// before them. For binary_transcoder.cpp alone.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

#include "message/binary_transcoder.hpp"
#include "message/cancel_request.hpp"
#include "message/error_text.hpp"
#include "message/reply_text.hpp"

namespace wirecall::message {

/// The value of a member of a JSON object; empty where there is none.
inline std::string_view member_of(json::JsonReader& reader, std::string_view object, std::string_view wanted) {
  reader.reset(object);
  if (!reader.begin_object()) return {};
  for (std::string_view name; reader.next_member(name);) {
    const std::string_view value = reader.skip();
    if (name == wanted) return value;
  }
  return {};
}

/// Puts the head of an array or map, of whose elements it is known only now how many there are, in the place of the
/// byte at `at`. Everything behind it moves.
inline void put_head(Buffer& out, std::size_t at, std::string_view head) {
  static_cast<void>(out.reserve(head.size()));
  char* const to = out.data() + at;
  const std::size_t bytes = out.size() - at - 1;
  if (head.size() != 1) std::memmove(to + head.size(), to + 1, bytes);
  std::memcpy(to, head.data(), head.size());
  out.set_end(to + head.size() + bytes);
}

// {"jsonrpc":"2.0","method":…,"params":{"id":, and with "token":
template <class Format>
constexpr std::string_view kItemHead =
    EnvelopeText<Format, "3", "jsonrpc", "2.0", "method", "rpc.item", "params", "3", "id">::view;
template <class Format>
constexpr std::string_view kProgressHead =
    EnvelopeText<Format, "3", "jsonrpc", "2.0", "method", "$/progress", "params", "2", "token">::view;
template <class Format>
constexpr std::string_view kValue = EnvelopeText<Format, "value">::view;

// Most ids are numbers without sign, fraction and exponent: those end at what this returns, and null stands for others.
template <class Format>
inline char* write_number_id(char* to, std::string_view id_json) noexcept {
  constexpr std::size_t kDigitsMax = 19;  // which fit 64 bits, whatever they are
  std::uint64_t number = 0;
  if (id_json.empty() || id_json.size() > kDigitsMax) return nullptr;
  for (const char c : id_json) {
    const std::uint64_t digit = static_cast<unsigned char>(c) - std::uint64_t{'0'};
    if (digit > 9) return nullptr;
    number = number * 10 + digit;
  }
  return Format::write_unsigned(to, number);
}

template <class Format>
constexpr std::string_view kResultHeadOf = EnvelopeText<Format, "3", "jsonrpc", "2.0", "result">::view;
template <class Format>
constexpr std::string_view kIdHeadOf = EnvelopeText<Format, "id">::view;

template <class Format>
void BinaryTranscoder<Format>::begin_writing(const Limits& limits, std::vector<Broken>* broken) {
  refusals_.clear();
  broken_ = broken;
  message_bytes_max_ = limits.max_message_size;
  written_ = 0;
}

template <class Format>
bool BinaryTranscoder<Format>::element_from_json(std::string_view json, const Limits& limits, Buffer& out) {
  begin_writing(limits, nullptr);
  return envelope(json, out, Place::element);
}

template <class Format>
bool BinaryTranscoder<Format>::from_json(std::string_view json, const Limits& limits, Buffer& out,
                                         std::vector<Broken>* broken) {
  begin_writing(limits, broken);
  reader_.reset(json);
  if (reader_.kind() != ValueKind::array) return envelope(json, out, Place::message);
  elements_.clear();
  reader_.begin_array();
  while (reader_.next_element()) elements_.push_back(reader_.skip());
  const std::size_t begin = out.size();
  out.append(Format::kMessageTag);
  out.push_back('\0');  // in the place of the head
  std::size_t count = 0;
  for (const std::string_view one : elements_) {
    written_ = out.size() - begin + Format::kHeadBytesMax;  // at the end its head may be longer
    count += envelope(one, out, Place::element) ? 1 : 0;
  }
  if (count == 0) {
    out.truncate(begin);
    return false;
  }
  char head[Format::kHeadBytesMax];
  put_head(out, begin + Format::kMessageTag.size(),
           {head, static_cast<std::size_t>(Format::write_array_head(head, count) - head)});
  return true;
}

template <class Format>
void BinaryTranscoder<Format>::read_members(std::string_view json) {
  members_.clear();
  reader_.reset(json);
  if (!reader_.begin_object()) return;  // nothing that we send
  std::string_view name;
  while (reader_.next_member(name)) {
    const std::string_view value = reader_.skip();
    members_.push_back({name, value});
  }
}

template <class Format>
std::string_view BinaryTranscoder<Format>::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &Named::name);
  return found == members_.end() ? std::string_view{} : found->value;
}

template <class Format>
Broken* BinaryTranscoder<Format>::find_broken(std::string_view id) const noexcept {
  if (broken_ == nullptr || id.empty()) return nullptr;
  const auto found = std::ranges::find(*broken_, id, &Broken::id);
  return found == broken_->end() ? nullptr : &*found;
}

/// An item that has no form has been dropped, and those behind it will be.
template <class Format>
void BinaryTranscoder<Format>::break_own_stream(std::string_view id, std::string_view why) {
  if (broken_ == nullptr || id.empty() || find_broken(id) != nullptr) return;
  broken_->push_back({std::string{id}, why});
  refusals_.push_back(cancel_request(id));
}

template <class Format>
bool BinaryTranscoder<Format>::envelope(std::string_view json, Buffer& out, Place place) {
  read_members(json);
  const std::size_t begin = out.size();
  const bool is_response = find("method").empty();
  if (broken_ != nullptr && !broken_->empty()) {
    if (is_item() && find_broken(member_of(reader_, find("params"), "id")) != nullptr) return false;
    if (Broken* const call = is_response ? find_broken(find("id")) : nullptr) {
      append_error_response(unrepresentable_result(call->why), call->id, out, place);
      broken_->erase(broken_->begin() + (call - broken_->data()));
      return true;
    }
    read_members(json);  // which have been read over
  }
  append_tag(out, place);
  const std::size_t head_at = out.size();
  out.push_back('\0');  // in the place of the head
  std::size_t count = 0;
  for (const auto& [name, value] : members_) {
    const std::size_t before = out.size();
    codec::append_string<typename Format::Values>(out, name);
    const bool is_params = name == "params";
    const codec::Transcoded result = from_json_(value, out, is_params ? codec::Names::members : codec::Names::data);
    if (result.done()) {
      ++count;
      continue;
    }
    if (is_params && is_item()) break_own_stream(member_of(reader_, value, "id"), result.why);
    if (is_params) return refuse(unrepresentable_params(result.why), begin, out);
    out.truncate(before);
    if (is_response && (name == "result" || name == "error")) {
      write_error_member(unrepresentable_result(result.why), out);
      ++count;
    } else if (is_term(name) && !is_response) {  // a response without it is a response all the same
      return refuse(unrepresentable_result(result.why), begin, out);
    }
  }
  char head[Format::kHeadBytesMax];
  put_head(out, head_at, {head, static_cast<std::size_t>(Format::write_map_head(head, count) - head)});
  // An error that stands for what was too large is small.
  if (out.size() - begin + written_ <= message_bytes_max_) return true;
  if (!is_response) return refuse(too_large_request(), begin, out);
  const std::string_view id = find("id");
  out.truncate(begin);
  append_error_response(too_large_reply(), id.empty() ? "null" : id, out, place);
  return true;
}

/// A message of ours that cannot be sent: who has made the request learns why.
template <class Format>
bool BinaryTranscoder<Format>::refuse(const Error& error, std::size_t begin, Buffer& out) {
  out.truncate(begin);
  const std::string_view id = find("id");
  if (id.empty() || find("method").empty()) return false;
  Buffer response;
  write_error(response, error, id);
  refusals_.emplace_back(response.view());
  return false;
}

template <class Format>
void BinaryTranscoder<Format>::write_error_member(const Error& error, Buffer& out) {
  Buffer text;
  write_error(text, error, "null");
  // Of the whole reply, only the error itself.
  constexpr std::string_view kHead = kErrorReplyHead;
  constexpr std::string_view kTail = R"(,"id":null})";
  const std::string_view whole = text.padded();
  codec::append_string<typename Format::Values>(out, "error");
  from_json_(whole.substr(kHead.size(), whole.size() - kHead.size() - kTail.size()), out);
}

template <class Format>
void BinaryTranscoder<Format>::append_error_response(const Error& error, std::string_view id, Buffer& out,
                                                     Place place) {
  append_tag(out, place);
  out.append(EnvelopeText<Format, "3", "jsonrpc", "2.0">::view);
  write_error_member(error, out);
  codec::append_string<typename Format::Values>(out, "id");
  if (!from_json_(id, out).done()) out.push_back(Format::kNil);
}

// ---- parts of messages, and requests that are handed on ----

template <class Format>
void BinaryTranscoder<Format>::append_value(Buffer& out, std::string_view json) {
  const std::size_t before = out.size();
  if (from_json_(json, out).done()) return;
  out.truncate(before);
  out.push_back(Format::kNil);
}

// One that came in MessagePack has a form there.
template <class Format>
void BinaryTranscoder<Format>::append_id(Buffer& out, std::string_view id_json) {
  if (const char* const end = write_number_id<Format>(out.reserve(Format::kHeadBytesMax), id_json); end != nullptr)
    return out.set_end(end);
  append_value(out, Buffer{id_json}.padded());
}

template <class Format>
void BinaryTranscoder<Format>::begin_result(Buffer& out, Place place) {
  append_tag(out, place);
  out.append(kResultHeadOf<Format>);
}

template <class Format>
void BinaryTranscoder<Format>::end_reply(Buffer& out, std::string_view id_json) {
  out.append(kIdHeadOf<Format>);
  append_id(out, id_json);
}

template <class Format>
template <class Write>
void BinaryTranscoder<Format>::append_small_result(Buffer& out, std::string_view id_json, Place place,
                                                   const Write& write) {
  constexpr std::string_view kHead = kResultHeadOf<Format>;
  constexpr std::string_view kIdHead = kIdHeadOf<Format>;
  char* to = out.reserve(Format::kMessageTag.size() + kHead.size() + kIdHead.size() + 2 * Format::kHeadBytesMax +
                         kPackedResultMax);
  if constexpr (!Format::kMessageTag.empty()) {
    if (place == Place::message) to = put(to, Format::kMessageTag);
  }
  to = put(write(put(to, kHead)), kIdHead);
  if (const char* const end = write_number_id<Format>(to, id_json); end != nullptr) [[likely]]
    return out.set_end(end);
  out.set_end(to);
  append_id(out, id_json);
}

template <class Format>
void BinaryTranscoder<Format>::append_integer_result(Buffer& out, std::int64_t value, std::string_view id_json,
                                                     Place place) {
  append_small_result(out, id_json, place, [value](char* to) { return Format::write_integer(to, value); });
}

template <class Format>
void BinaryTranscoder<Format>::append_packed_result(Buffer& out, std::string_view packed, std::string_view id_json,
                                                    Place place) {
  append_small_result(out, id_json, place, [packed](char* to) {
    return put(Format::write_extension_head(to, kPackedExtension, packed.size()), packed);
  });
}

template <class Format>
void BinaryTranscoder<Format>::append_error(Buffer& out, const Error& error, std::string_view id_json, Place place) {
  append_error_response(error, Buffer{id_json}.padded(), out, place);
}

template <class Format>
void BinaryTranscoder<Format>::begin_batch(Buffer& out, std::size_t count) {
  append_tag(out, Place::message);
  out.set_end(Format::write_array_head(out.reserve(Format::kHeadBytesMax), count));
}

template <class Format>
void BinaryTranscoder<Format>::begin_item(Buffer& out, bool credited, std::string_view name_json) {
  append_tag(out, Place::message);
  out.append(credited ? kItemHead<Format> : kProgressHead<Format>);
  append_id(out, name_json);
  out.append(credited ? EnvelopeText<Format, "seq">::view : kValue<Format>);
}

template <class Format>
void BinaryTranscoder<Format>::append_item_number(Buffer& out, std::uint64_t number) {
  out.set_end(Format::write_unsigned(out.reserve(Format::kHeadBytesMax), number));
  out.append(kValue<Format>);
}

template <class Format>
void BinaryTranscoder<Format>::append_event(Buffer& out, std::string_view topic, std::string_view params) {
  begin_request(out, params.empty() ? 2 : 3, Place::message);
  out.append(kRequestHead);
  codec::append_string<typename Format::Values>(out, topic);
  if (params.empty()) return;
  out.append(kParamsHead);
  out.append(params);
}

template <class Format>
void BinaryTranscoder<Format>::begin_request(Buffer& out, std::size_t members, Place place) {
  append_tag(out, place);
  begin_map(out, members);
}

template <class Format>
void BinaryTranscoder<Format>::append_member(Buffer& out, std::string_view name, std::uint64_t number) {
  codec::append_string<typename Format::Values>(out, name);
  out.set_end(Format::write_unsigned(out.reserve(Format::kHeadBytesMax), number));
}

template <class Format>
void BinaryTranscoder<Format>::append_member(Buffer& out, std::string_view name, std::string_view json) {
  codec::append_string<typename Format::Values>(out, name);
  append_value(out, json);
}

/// `p` becomes its end.
template <class Format>
auto BinaryTranscoder<Format>::member_at(const char*& p) const -> MemberSpan {
  const char* const begin = p;
  p = Format::end_of(Format::end_of(begin));
  return {string_at(begin, Format::read_head(begin)), {begin, static_cast<std::size_t>(p - begin)}};
}

template <class Format>
void BinaryTranscoder<Format>::append_request(Buffer& out, std::string_view request, const RequestEdits& edits) {
  const codec::Head head = Format::read_head(request.data());
  const char* const members = request.data() + head.bytes;
  const auto goes = [&](std::string_view name) {
    return (name == "to" && !edits.keeps_to) || name == "from" ||
           (name == "stream" && edits.stream == std::uint64_t{0});
  };
  const auto put = [&](std::string_view name, std::string_view member) {
    if (goes(name)) return;
    if (name == "id" && edits.id_is_string) {
      codec::append_string<typename Format::Values>(out, name);
      return codec::append_string<typename Format::Values>(out, std::to_string(edits.id));
    }
    if (name == "id") return append_member(out, name, edits.id);
    if (name == "timeout_ms" && edits.timeout_ms) return append_member(out, name, *edits.timeout_ms);
    if (name == "stream" && edits.stream) return append_member(out, name, *edits.stream);
    out.append(member);
  };
  // Few have more members than are kept here: their number comes first, so others are gone through twice.
  constexpr std::size_t kKept = 16;
  std::array<MemberSpan, kKept> kept;
  std::size_t count = edits.from_json.empty() ? 0 : 1;
  std::size_t seen = 0;
  const char* p = members;
  for (std::uint64_t left = head.value; !Format::at_end(p, left); ++seen) {
    const MemberSpan member = member_at(p);
    if (seen < kKept) kept[seen] = member;
    count += goes(member.name) ? 0 : 1;
  }
  begin_request(out, count, Place::message);
  for (std::size_t i = 0; i < std::min(seen, kKept); ++i) put(kept[i].name, kept[i].member);
  if (seen > kKept) {
    p = kept.back().member.data() + kept.back().member.size();
    for (std::size_t i = kKept; i < seen; ++i) {
      const MemberSpan member = member_at(p);
      put(member.name, member.member);
    }
  }
  if (edits.from_json.empty()) return;
  codec::append_string<typename Format::Values>(out, "from");
  append_id(out, edits.from_json);
}

}  // namespace wirecall::message
