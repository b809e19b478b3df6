// The half of BinaryTranscoder that makes JSON of messages, as one walk over the heads of the envelope. For
// binary_transcoder.cpp alone.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/decimal.hpp"
#include "message/binary_transcoder.hpp"
#include "message/binary_walk.hpp"
#include "message/call_text.hpp"
#include "message/cancel_request.hpp"
#include "message/error_text.hpp"
#include "message/message_codec.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::message {

using codec::Head;
using codec::Transcoded;
using codec::TranscodeStatus;
using codec::Type;

inline bool is_opaque(const Head& head) noexcept { return head.type == Type::binary || head.type == Type::extension; }

// The error as it came, of which only the data have no form in JSON, with the data of `other`; else `other`.
inline Error with_other_data(const Codec& codec, std::string_view encoded, Error other) {
  const std::unique_ptr<Reader> reader = codec.reader();
  reader->reset(encoded);
  if (reader->kind() != ValueKind::object) return other;
  static_cast<void>(reader->begin_object());
  std::optional<std::int64_t> code;
  std::optional<std::string> text;
  for (std::string_view name; reader->next_member(name);) {
    const bool is_code = name == "code" && reader->kind() == ValueKind::number;
    const bool is_text = name == "message" && reader->kind() == ValueKind::string;
    std::string_view read;
    if (is_code) {
      if (!reader->read_int(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), code.emplace()))
        return other;
    } else if (is_text) {
      if (!reader->read_string(read)) return other;
      text = read;
    } else {
      static_cast<void>(reader->skip());
    }
  }
  if (!code || !text) return other;
  return {static_cast<int>(*code), *std::move(text), std::string{other.data()}};
}

template <class Format>
Transcoder::Status BinaryTranscoder<Format>::check(std::string_view message, const Limits& limits,
                                                   EnvelopeMembers& members) {
  arena_.rewind();
  switch (Format::walk(message, limits.depth, members)) {
    case ScanStatus::complete: return Status::done;
    case ScanStatus::too_deep: return Status::too_deep;
    default: return Status::malformed;
  }
}

template <class Format>
Transcoder::Status BinaryTranscoder<Format>::checked_to_json(std::string_view message, const Limits& limits,
                                                             Buffer& out) {
  message_ = nullptr;
  unrepresentable_.clear();
  cancels_.clear();
  return convert(message, limits, out);
}

template <class Format>
Transcoder::Status BinaryTranscoder<Format>::read_envelope(std::string_view message, const Limits& limits, Buffer& text,
                                                           const EnvelopeMembers& members) {
  message_ = message.data();
  if (!members.are_all()) return convert(message, limits, text);
  start_ = text.size();
  bytes_max_ = limits.max_message_size * kGrowth;
  return envelope(members, text) ? Status::done : Status::too_large;
}

// Of an id that is a string and is read directly; and what is beside it, which has room for a number, too.
inline constexpr std::size_t kTermBytesMax = 128;
inline constexpr std::size_t kTermExtraBytes = 24;

/// The value of a member that is a term, as JSON with a comma behind it, if it is a number from 0 on or a string of
/// plain ASCII. Room has been made for it.
template <class Format>
inline bool BinaryTranscoder<Format>::append_term(std::string_view value, Buffer& text) {
  char* to = text.data() + text.size();
  if (std::uint64_t number = 0; Format::unsigned_at(value.data(), value.data() + value.size(), number) != 0) {
    to = write_decimal(to, number);
  } else if (const Head head = Format::read_head(value.data()); head.type == Type::positive) {
    to = write_decimal(to, head.value);
  } else {
    const bool is_short = head.type == Type::string && !head.irregular && head.value <= kTermBytesMax;
    const char* const string = value.data() + head.bytes;
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (!is_short || !std::all_of(string, string + head.value, is_plain)) return false;
    *to++ = '"';
    std::memcpy(to, string, head.value);
    to += head.value;
    *to++ = '"';
  }
  *to++ = ',';
  text.set_end(to);
  return true;
}

template <class Format>
bool BinaryTranscoder<Format>::read_directly(std::string_view message, Buffer& text, Received& received,
                                             const EnvelopeMembers& members) {
  constexpr std::uint32_t kVersion = bit_of(Member::jsonrpc);
  constexpr std::uint32_t kRequest = kVersion | bit_of(Member::method);
  constexpr std::uint32_t kOfRequest = kRequest | bit_of(Member::id) | bit_of(Member::params) |
                                       bit_of(Member::timeout_ms) | bit_of(Member::stream) | bit_of(Member::hops);
  constexpr std::uint32_t kResult = kVersion | bit_of(Member::id) | bit_of(Member::result);
  const std::uint32_t present = members.present();
  const bool is_request = (present & ~kOfRequest) == 0 && (present & kRequest) == kRequest;
  if (!is_request && present != kResult) return false;
  static_cast<void>(text.reserve(EnvelopeMembers::kMembersMax * kTermExtraBytes + kTermBytesMax));
  for (const auto& [member, name, value] : members.view()) {
    Received::Span& span = received.spans[static_cast<std::size_t>(member)];
    switch (member) {
      case Member::jsonrpc: span = {"\"2.0\"", 5}; continue;
      // Received::method() is what is between its quotes, of which nobody sees any where nothing is escaped.
      case Member::method: span = {value.data(), value.size() + 1}; continue;
      case Member::params:
        if (members.integer_count == 0 && !codec::is_container(Format::read_head(value.data()))) return false;
        span = {value.data(), value.size()};
        continue;
      case Member::result: span = {value.data(), value.size()}; continue;
      default: break;
    }
    const std::size_t begin = text.size();
    if (!append_term(value, text)) return false;
    if (member != Member::id && text.data()[begin] == '"') return false;
    span = {text.data() + begin, text.size() - begin - 1};
  }
  received.kind = !is_request                           ? MessageKind::response
                  : (present & bit_of(Member::id)) != 0 ? MessageKind::request
                                                        : MessageKind::notification;
  received.fault = Fault::none;
  received.method_escaped = false;
  received.encoding = encoding();
  received.integer_count = members.integer_count;
  received.params_packed = false;
  received.integers = members.integers;
  received.integers_named = false;
  received.present = present;
  received.batch_size = 0;
  received.text = message;
  *text.reserve(1) = '\0';
  return true;
}

template <class Format>
Transcoder::Status BinaryTranscoder<Format>::convert(std::string_view message, const Limits& limits, Buffer& out) {
  start_ = out.size();
  bytes_max_ = limits.max_message_size * kGrowth;
  const char* p = message.data();
  const Head head = Format::read_head(p);
  if (head.type == Type::map) return envelope(p, out) != nullptr ? Status::done : Status::too_large;
  if (head.type != Type::array) return element(message, out) ? Status::done : Status::too_large;
  out.push_back('[');
  p += head.bytes;
  bool first = true;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    if (!std::exchange(first, false)) out.push_back(',');
    if (Format::read_head(p).type == Type::map) {
      p = envelope(p, out);
      if (p == nullptr) return Status::too_large;
      continue;
    }
    const char* const end = Format::end_of(p);
    if (!element({p, end}, out)) return Status::too_large;
    p = end;
  }
  out.push_back(']');
  return fits(out) ? Status::done : Status::too_large;
}

/// What an element of a batch over the limit is, as far as its refusal depends on it.
template <class Format>
struct BinaryTranscoder<Format>::Refusable {
  const char* end;
  std::string_view id = {};  ///< its only one
  bool response = false;
};

template <class Format>
auto BinaryTranscoder<Format>::refusable_at(const char* p) const -> Refusable {
  const Head head = Format::read_head(p);
  if (head.type != Type::map) return {.end = Format::end_of(p)};
  Refusable out{};
  bool has_method = false;
  bool has_result = false;
  std::size_t ids = 0;
  p += head.bytes;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    const Head name_head = Format::read_head(p);
    const std::string_view name = string_at(p, name_head);
    const char* const value = Format::end_of(p);
    p = Format::end_of(value);
    if (name == "id") {
      ++ids;
      out.id = {value, p};
    }
    has_method = has_method || name == "method";
    has_result = has_result || name == "result" || name == "error";
  }
  if (ids != 1) out.id = {};
  out.response = has_result && !has_method;
  out.end = p;
  return out;
}

template <class Format>
Transcoder::Status BinaryTranscoder<Format>::read_long_batch(std::string_view batch, const Limits& limits,
                                                             bool responses, Buffer& text, Received& received) {
  message_ = nullptr;
  unrepresentable_.clear();
  cancels_.clear();
  start_ = text.size();
  bytes_max_ = limits.max_message_size * kGrowth;
  // Each request in the text is smaller than its refusal: so more than that may have is enough.
  const std::size_t requests_bytes_max = std::min(limits.soft_output, limits.max_message_size);
  std::size_t requests_bytes = 0;
  bool others = false;  // elements that nobody waits for by an id, but no responses
  const Head head = Format::read_head(batch.data());
  const char* p = batch.data() + head.bytes;
  text.push_back('[');
  for (std::uint64_t left = head.value; requests_bytes <= requests_bytes_max;) {
    if (const std::uint64_t count = Format::pass_small(p, left); count != 0) {
      others = true;
      left -= count;
    }
    if (Format::at_end(p, left)) break;
    const char* const element = p;
    const Refusable what = refusable_at(element);
    p = what.end;
    if (what.response) {
      if (!responses) continue;
      if (text.size() != start_ + 1) text.push_back(',');
      if (envelope(element, text) == nullptr) return Status::too_large;
    } else {
      const std::size_t bytes = write_refusable(what.id, text);
      requests_bytes += bytes;
      others = others || bytes == 0;
    }
  }
  if (others) text.append(text.size() == start_ + 1 ? "0" : ",0");
  text.push_back(']');
  received = {};
  received.present = 0;
  received.encoding = Encoding::json;
  received.kind = MessageKind::invalid;
  received.fault = Fault::batch_limit;
  received.batch_size = Format::count(batch.data() + head.bytes, head);
  received.text = text.padded().substr(start_);
  return Status::done;
}

/// An element for one that is refused by its id; 0 bytes for one that nobody can be answered by.
template <class Format>
std::size_t BinaryTranscoder<Format>::write_refusable(std::string_view id, Buffer& out) {
  if (id.empty() || id.size() > kIdBytesMax + Format::kHeadBytesMax) return 0;
  const Head head = Format::read_head(id.data());
  const bool may_be_id = head.type == Type::nil || head.type == Type::positive || head.type == Type::negative ||
                         head.type == Type::float32 || head.type == Type::float64 || head.type == Type::string;
  if (!may_be_id) return 0;
  const std::size_t before = out.size();
  if (before != start_ + 1) out.push_back(',');
  begin_call(out, R"("")");
  out.append(R"(,"id":)");
  const std::size_t begin = out.size();
  if (!to_json_(id, out).done() || out.size() - begin > kIdBytesMax) {
    out.truncate(before);
    return 0;
  }
  out.push_back('}');
  return out.size() - before;
}

template <class Format>
std::size_t BinaryTranscoder<Format>::bytes_left(const Buffer& out) const noexcept {
  return bytes_max_ - std::min(bytes_max_, out.size() - start_);
}

/// Where the value of the first member of that name begins; null where there is none, or no envelope.
template <class Format>
const char* BinaryTranscoder<Format>::find_value(std::string_view envelope, std::string_view wanted) const {
  const char* p = envelope.data();
  const Head head = Format::read_head(p);
  if (head.type != Type::map) return nullptr;
  p += head.bytes;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    const Head name = Format::read_head(p);
    const bool found = string_at(p, name) == wanted;
    p = Format::end_of(p);
    if (found) return p;
    p = Format::end_of(p);
  }
  return nullptr;
}

template <class Format>
std::string_view BinaryTranscoder<Format>::method_of(std::string_view envelope,
                                                     const EnvelopeMembers& members) const noexcept {
  const char* method = nullptr;
  if (!members.are_all()) {
    method = find_value(envelope, "method");
  } else if (const EnvelopeMember* const known = members.find(Member::method)) {
    method = known->value.data();
  }
  if (method == nullptr) return {};
  const Head head = Format::read_head(method);
  return string_at(method, head);
}

template <class Format>
std::size_t BinaryTranscoder<Format>::elements_offset(std::string_view batch) const noexcept {
  return Format::read_head(batch.data()).bytes;
}

template <class Format>
std::string_view BinaryTranscoder<Format>::element_at(std::string_view batch, std::size_t offset) const noexcept {
  const char* const begin = batch.data() + offset;
  return {begin, static_cast<std::size_t>(Format::end_of(begin) - begin)};
}

template <class Format>
bool BinaryTranscoder<Format>::has_response(std::string_view message, const EnvelopeMembers& members) const noexcept {
  if (members.are_all()) return members.find(Member::method) == nullptr;
  const char* p = message.data();
  const Head head = Format::read_head(p);
  if (head.type == Type::map) return find_value(message, "method") == nullptr;
  if (head.type != Type::array) return false;
  p += head.bytes;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    const char* const end = Format::end_of(p);
    if (Format::read_head(p).type == Type::map && find_value({p, end}, "method") == nullptr) return true;
    p = end;
  }
  return false;
}

/// A value that stays as it is. Params have to be an array here, since they are one to whoever reads the text.
template <class Format>
bool BinaryTranscoder<Format>::keep(std::string_view name, std::string_view value, Buffer& out) {
  begin_member(name, out);
  out.push_back('[');
  append_number(out, static_cast<std::uint64_t>(value.data() - message_));
  out.push_back(',');
  append_number(out, value.size());
  out.push_back(']');
  return fits(out);
}

/// A value where a message should be, which is refused whatever it is.
template <class Format>
bool BinaryTranscoder<Format>::element(std::string_view value, Buffer& out) {
  const std::size_t begin = out.size();
  const Transcoded result = to_json_(value, out, bytes_left(out));
  if (result.status == TranscodeStatus::no_form) {
    out.truncate(begin);
    out.append("false");
  }
  return result.status != TranscodeStatus::too_large;
}

template <class Format>
void BinaryTranscoder<Format>::begin_envelope(Buffer& out) {
  begin_ = out.size();
  method_ = {};
  out.push_back('{');
}

/// Its end; null when it becomes too large.
template <class Format>
const char* BinaryTranscoder<Format>::envelope(const char* p, Buffer& out) {
  begin_envelope(out);
  const std::size_t unrepresentable_before = unrepresentable_.size();
  std::string_view params;
  const Head head = Format::read_head(p);
  p += head.bytes;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    const Head name = Format::read_head(p);
    const char* const key = p;
    p = Format::end_of(p);
    const char* const end = Format::end_of(p);
    if (name.type != Type::string) {
      // No member that anybody asks for, or one that spoils the envelope, as what is no version does.
      if (Format::kNamesAreStrings) spoil(out);
    } else {
      if (!member(string_at(key, name), {p, end}, out)) return nullptr;
      if (unrepresentable_.size() != unrepresentable_before && params.empty()) params = {p, end};
    }
    p = end;
  }
  return end_envelope(params, out) ? p : nullptr;
}

/// The same of one whose members are known.
template <class Format>
bool BinaryTranscoder<Format>::envelope(const EnvelopeMembers& members, Buffer& out) {
  begin_envelope(out);
  for (const EnvelopeMember& one : members.view()) {
    if (!member(one.name, one.value, out)) return false;
  }
  return end_envelope({}, out);  // params that stay are none without a form
}

/// `params` are those that have no form.
template <class Format>
bool BinaryTranscoder<Format>::end_envelope(std::string_view params, Buffer& out) {
  out.push_back('}');
  if (!params.empty() && method_ == "rpc.item") break_stream(params, out);
  return fits(out);
}

/// In place of an item that has no form: the response that ends its stream.
template <class Format>
void BinaryTranscoder<Format>::break_stream(std::string_view params, Buffer& out) {
  const Head head = Format::read_head(params.data());
  if (head.type != Type::map) return;
  const char* p = params.data() + head.bytes;
  for (std::uint64_t left = head.value; !Format::at_end(p, left);) {
    const Head name = Format::read_head(p);
    const bool is_id = string_at(p, name) == "id";
    p = Format::end_of(p);
    const char* const end = Format::end_of(p);
    Buffer id;
    if (is_id && to_json_({p, end}, id).done()) {
      const Error error = unrepresentable_result(unrepresentable_.back().why);
      out.truncate(begin_);
      write_error(out, error, id.view());
      cancels_.push_back(cancel_request(id.view()));
      return unrepresentable_.pop_back();
    }
    p = end;
  }
}

template <class Format>
void BinaryTranscoder<Format>::begin_member(std::string_view name, Buffer& out) {
  if (out.size() != begin_ + 1) out.push_back(',');
  writer_.reset(out);
  writer_.string(name);
  out.push_back(':');
}

template <class Format>
void BinaryTranscoder<Format>::spoil(Buffer& out) {
  begin_member("jsonrpc", out);
  out.append("false");
}

template <class Format>
bool BinaryTranscoder<Format>::member(std::string_view name, std::string_view value, Buffer& out) {
  if (message_ != nullptr && !is_envelope_name(name)) return true;
  const std::size_t before = out.size();
  begin_member(name, out);
  const std::size_t begin = out.size();
  const bool is_params = name == "params";
  // In JSON they would be objects, and so params by name, or a string, and so an id.
  const Type type = Format::read_head(value.data()).type;
  const bool is_nested = type == Type::array || type == Type::map;
  const bool stays = message_ != nullptr;
  bool is_wrong = (is_params || is_term(name)) && is_opaque(Format::read_head(value.data()));
  // What is refused or not looked at need not be read either, however deep it is.
  if (stays && is_params) is_wrong = !is_nested && type != Type::nil;
  if (stays && is_term(name)) is_wrong = is_wrong || is_nested;
  if (is_wrong) {
    out.append("false");
    return fits(out);
  }
  if (stays && (name == "result" || (is_params && is_nested))) {
    out.truncate(before);
    return keep(name, value, out);
  }
  if (name == "method") {
    method_ = string_at(value.data(), Format::read_head(value.data()));
  }
  const Transcoded result =
      to_json_(value, out, bytes_left(out), is_params ? codec::Names::members : codec::Names::data);
  if (result.status == TranscodeStatus::too_large) return false;
  if (result.done()) return true;
  out.truncate(begin);
  if (is_params) {
    unrepresentable_.push_back({begin_ - start_, result.why});
    out.append("null");
  } else if (is_term(name)) {
    out.append("false");
  } else {
    out.truncate(before);
    if (name != "result" && name != "error") return true;
    Error error = unrepresentable_result(result.why);
    if (name == "error") error = with_other_data(codec_of(encoding()).values(), value, std::move(error));
    begin_member("error", out);
    out.append(error_text(error));
  }
  return fits(out);
}

}  // namespace wirecall::message
