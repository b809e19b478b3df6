// See msgpack_transcoder.hpp: what is written. From JSON the members are found first, since their number comes before
// them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <system_error>

#include "codec/msgpack_format.hpp"
#include "message/cancel_request.hpp"
#include "message/error_text.hpp"
#include "message/msgpack_transcoder.hpp"
#include "message/msgpack_walk.hpp"
#include "message/reply_text.hpp"

namespace wirecall::message {
namespace {

using std::string_view_literals::operator""sv;

/// The value of a member of a JSON object; empty where there is none.
std::string_view member_of(json::JsonReader& reader, std::string_view object, std::string_view wanted) {
  reader.reset(object);
  if (!reader.begin_object()) return {};
  for (std::string_view name; reader.next_member(name);) {
    const std::string_view value = reader.skip();
    if (name == wanted) return value;
  }
  return {};
}

/// Room for the head of an array or map at `at`, of whose elements it is known only now how many there are. Everything
/// behind it moves.
void write_head(Buffer& out, std::size_t at, const msgpack::SizeForms& forms, std::size_t count) {
  char head[msgpack::kHeadBytesMax];
  const auto size =
      static_cast<std::size_t>(msgpack::write_size(head, forms, static_cast<std::uint32_t>(count)) - head);
  static_cast<void>(out.reserve(size));
  char* const to = out.data() + at;
  const std::size_t bytes = out.size() - at - 1;
  if (size != 1) std::memmove(to + size, to + 1, bytes);
  std::memcpy(to, head, size);
  out.set_end(to + size + bytes);
}

// A map of three, {"jsonrpc":"2.0","result":
constexpr std::string_view kMsgpackResultHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6result"sv;
constexpr std::string_view kId = "\xA2id"sv;
// {"jsonrpc":"2.0","method":…,"params":{"id":, and with "token":
constexpr std::string_view kItemHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6method\xA8rpc.item\xA6params\x83\xA2id"sv;
constexpr std::string_view kProgressHead =
    "\x83\xA7jsonrpc\xA3"
    "2.0\xA6method\xAA$/progress\xA6params\x82\xA5token"sv;
constexpr std::string_view kValue = "\xA5value"sv;

// Most ids are numbers.
bool append_number_id(Buffer& out, std::string_view id_json) {
  std::uint64_t number = 0;
  const char* const end = id_json.data() + id_json.size();
  const auto [stop, error] = std::from_chars(id_json.data(), end, number);
  if (error != std::errc{} || stop != end) return false;
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
  return true;
}

/// A member of an envelope: its name, empty where that is no string, and all of it.
struct MemberSpan {
  std::string_view name;
  std::string_view member;
};

/// `p` becomes its end.
MemberSpan member_at(const char*& p) noexcept {
  const char* const begin = p;
  const msgpack::Head name = msgpack::read_head(begin);
  p = end_of(end_of(begin));
  const bool named = name.type == msgpack::Type::string;
  return {named ? std::string_view{begin + name.bytes, static_cast<std::size_t>(name.value)} : std::string_view{},
          {begin, static_cast<std::size_t>(p - begin)}};
}

}  // namespace

bool MsgpackTranscoder::from_json(std::string_view json, const Limits& limits, Buffer& out,
                                  std::vector<Broken>* broken) {
  refusals_.clear();
  broken_ = broken;
  message_bytes_max_ = limits.max_message_size;
  written_ = 0;
  reader_.reset(json);
  if (reader_.kind() != ValueKind::array) return envelope(json, out);
  elements_.clear();
  reader_.begin_array();
  while (reader_.next_element()) elements_.push_back(reader_.skip());
  const std::size_t begin = out.size();
  out.push_back('\0');  // in the place of the head
  std::size_t count = 0;
  for (const std::string_view one : elements_) {
    written_ = out.size() - begin + msgpack::kHeadBytesMax;  // at the end its head may be longer
    count += envelope(one, out) ? 1 : 0;
  }
  if (count == 0) {
    out.truncate(begin);
    return false;
  }
  write_head(out, begin, msgpack::kArrayForms, count);
  return true;
}

void MsgpackTranscoder::read_members(std::string_view json) {
  members_.clear();
  reader_.reset(json);
  if (!reader_.begin_object()) return;  // nothing that we send
  std::string_view name;
  while (reader_.next_member(name)) {
    const std::string_view value = reader_.skip();
    members_.push_back({name, value});
  }
}

std::string_view MsgpackTranscoder::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &Named::name);
  return found == members_.end() ? std::string_view{} : found->value;
}

Broken* MsgpackTranscoder::find_broken(std::string_view id) const noexcept {
  if (broken_ == nullptr || id.empty()) return nullptr;
  const auto found = std::ranges::find(*broken_, id, &Broken::id);
  return found == broken_->end() ? nullptr : &*found;
}

/// An item that has no form has been dropped, and those behind it will be.
void MsgpackTranscoder::break_own_stream(std::string_view id, std::string_view why) {
  if (broken_ == nullptr || id.empty() || find_broken(id) != nullptr) return;
  broken_->push_back({std::string{id}, why});
  refusals_.push_back(cancel_request(id));
}

bool MsgpackTranscoder::envelope(std::string_view json, Buffer& out) {
  read_members(json);
  const std::size_t begin = out.size();
  const bool is_response = find("method").empty();
  if (broken_ != nullptr && !broken_->empty()) {
    if (is_item() && find_broken(member_of(reader_, find("params"), "id")) != nullptr) return false;
    if (Broken* const call = is_response ? find_broken(find("id")) : nullptr) {
      write_error_response(unrepresentable_result(call->why), call->id, out);
      broken_->erase(broken_->begin() + (call - broken_->data()));
      return true;
    }
    read_members(json);  // which have been read over
  }
  out.push_back('\0');  // in the place of the head
  std::size_t count = 0;
  for (const auto& [name, value] : members_) {
    const std::size_t before = out.size();
    codec::append_string(out, name);
    const bool is_params = name == "params";
    const codec::Transcoded result = to_msgpack_(value, out, is_params ? codec::Names::members : codec::Names::data);
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
  write_head(out, begin, msgpack::kMapForms, count);
  // An error that stands for what was too large is small.
  if (out.size() - begin + written_ <= message_bytes_max_) return true;
  if (!is_response) return refuse(too_large_request(), begin, out);
  const std::string_view id = find("id");
  out.truncate(begin);
  write_error_response(too_large_reply(), id.empty() ? "null" : id, out);
  return true;
}

/// A message of ours that cannot be sent: who has made the request learns why.
bool MsgpackTranscoder::refuse(const Error& error, std::size_t begin, Buffer& out) {
  out.truncate(begin);
  const std::string_view id = find("id");
  if (id.empty() || find("method").empty()) return false;
  Buffer response;
  write_error(response, error, id);
  refusals_.emplace_back(response.view());
  return false;
}

void MsgpackTranscoder::write_error_member(const Error& error, Buffer& out) {
  Buffer text;
  write_error(text, error, "null");
  // Of the whole reply, only the error itself.
  constexpr std::string_view kHead = kErrorReplyHead;
  constexpr std::string_view kTail = R"(,"id":null})";
  const std::string_view whole = text.padded();
  codec::append_string(out, "error");
  to_msgpack_(whole.substr(kHead.size(), whole.size() - kHead.size() - kTail.size()), out);
}

void MsgpackTranscoder::write_error_response(const Error& error, std::string_view id, Buffer& out) {
  char head[msgpack::kHeadBytesMax];
  out.append({head, static_cast<std::size_t>(msgpack::write_size(head, msgpack::kMapForms, 3) - head)});
  codec::append_string(out, "jsonrpc");
  codec::append_string(out, "2.0");
  write_error_member(error, out);
  codec::append_string(out, "id");
  if (!to_msgpack_(id, out).done()) out.push_back('\xC0');
}

// ---- parts of messages, and requests that are handed on ----

void MsgpackTranscoder::append_value(Buffer& out, std::string_view json) {
  const std::size_t before = out.size();
  if (to_msgpack_(json, out).done()) return;
  out.truncate(before);
  out.push_back('\xC0');
}

// One that came in MessagePack has a form there.
void MsgpackTranscoder::append_id(Buffer& out, std::string_view id_json) {
  if (append_number_id(out, id_json)) return;
  append_value(out, Buffer{id_json}.padded());
}

void MsgpackTranscoder::begin_result(Buffer& out) { out.append(kMsgpackResultHead); }

void MsgpackTranscoder::end_reply(Buffer& out, std::string_view id_json) {
  out.append(kId);
  append_id(out, id_json);
}

void MsgpackTranscoder::append_error(Buffer& out, const Error& error, std::string_view id_json) {
  write_error_response(error, Buffer{id_json}.padded(), out);
}

void MsgpackTranscoder::begin_batch(Buffer& out, std::size_t count) {
  char* const to = out.reserve(msgpack::kHeadBytesMax);
  out.set_end(msgpack::write_size(to, msgpack::kArrayForms, static_cast<std::uint32_t>(count)));
}

void MsgpackTranscoder::begin_item(Buffer& out, bool credited, std::string_view name_json) {
  out.append(credited ? kItemHead : kProgressHead);
  append_id(out, name_json);
  out.append(credited ? "\xA3seq"sv : kValue);
}

void MsgpackTranscoder::append_item_number(Buffer& out, std::uint64_t number) {
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
  out.append(kValue);
}

void MsgpackTranscoder::append_event(Buffer& out, std::string_view topic, std::string_view params) {
  begin_request(out, params.empty() ? 2 : 3);
  out.append(kRequestHead);
  codec::append_string(out, topic);
  if (params.empty()) return;
  out.append(kParamsHead);
  out.append(params);
}

void MsgpackTranscoder::begin_request(Buffer& out, std::size_t members) {
  char* const to = out.reserve(msgpack::kHeadBytesMax);
  out.set_end(msgpack::write_size(to, msgpack::kMapForms, static_cast<std::uint32_t>(members)));
}

void MsgpackTranscoder::append_member(Buffer& out, std::string_view name, std::uint64_t number) {
  codec::append_string(out, name);
  out.set_end(msgpack::write_unsigned(out.reserve(msgpack::kHeadBytesMax), number));
}

void MsgpackTranscoder::append_member(Buffer& out, std::string_view name, std::string_view json) {
  codec::append_string(out, name);
  append_value(out, json);
}

void MsgpackTranscoder::append_request(Buffer& out, std::string_view request, const RequestEdits& edits) {
  const msgpack::Head head = msgpack::read_head(request.data());
  const char* const members = request.data() + head.bytes;
  const auto goes = [&](std::string_view name) {
    return name == "to" || name == "from" || (name == "stream" && edits.stream == std::uint64_t{0});
  };
  const auto put = [&](std::string_view name, std::string_view member) {
    if (goes(name)) return;
    if (name == "id") return append_member(out, name, edits.id);
    if (name == "timeout_ms" && edits.timeout_ms) return append_member(out, name, *edits.timeout_ms);
    if (name == "stream" && edits.stream) return append_member(out, name, *edits.stream);
    out.append(member);
  };
  // Few have more members than are kept here: their number comes first, so others are gone through twice.
  constexpr std::size_t kKept = 16;
  std::array<MemberSpan, kKept> kept;
  std::size_t count = edits.from_json.empty() ? 0 : 1;
  const char* p = members;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const MemberSpan member = member_at(p);
    if (i < kKept) kept[i] = member;
    count += goes(member.name) ? 0 : 1;
  }
  begin_request(out, count);
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(head.value, kKept); ++i) put(kept[i].name, kept[i].member);
  if (head.value > kKept) {
    p = kept.back().member.data() + kept.back().member.size();
    for (std::uint64_t i = kKept; i < head.value; ++i) {
      const MemberSpan member = member_at(p);
      put(member.name, member.member);
    }
  }
  if (edits.from_json.empty()) return;
  codec::append_string(out, "from");
  append_id(out, edits.from_json);
}

}  // namespace wirecall::message
