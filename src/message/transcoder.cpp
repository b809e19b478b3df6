// See transcoder.hpp. To JSON it is one walk over the heads of the envelope; to MessagePack the members are found
// first, since their number comes before them.
#include "message/transcoder.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "base/decimal.hpp"
#include "codec/msgpack_format.hpp"
#include "message/call_text.hpp"
#include "message/cancel_request.hpp"
#include "message/error_text.hpp"
#include "message/own_error.hpp"
#include "message/reply_text.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::message {
namespace {

using codec::Transcoded;
using codec::TranscodeStatus;
using msgpack::Head;
using msgpack::Type;

// Of memory that is kept from message to message.
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;

/// Of what `is_envelope_name`: whether it is none of those whose values are the users'.
bool is_term(std::string_view name) noexcept {
  return is_envelope_name(name) && name != "params" && name != "result" && name != "error";
}

std::string_view string_at(const char* p, const Head& head) noexcept {
  return {p + head.bytes, static_cast<std::size_t>(head.value)};
}

bool is_opaque(const Head& head) noexcept { return head.type == Type::binary || head.type == Type::extension; }

/// The reason is one of the constants of codec/transcode.hpp: plain ASCII without quotes or backslashes.
Error cannot(ErrorCode code, std::string_view why) {
  return {code, std::string{message_of(code)}, std::string{R"({"reason":")"}.append(why).append("\"}")};
}

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

}  // namespace

Error unrepresentable_params(std::string_view why) { return cannot(ErrorCode::invalid_params, why); }
Error unrepresentable_result(std::string_view why) { return cannot(ErrorCode::internal_error, why); }

namespace {

// The error in MessagePack, of which only the data have no form in JSON, with the data of `other`; else `other`.
Error with_other_data(std::string_view msgpack, Error other) {
  const std::unique_ptr<Reader> reader = msgpack_codec().reader();
  reader->reset(msgpack);
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

}  // namespace
Error too_large_as_json() { return too_large("as JSON the message is larger than allowed", "no"); }

void Transcoder::shrink() noexcept {
  if (scratch_.capacity() > kKeptBytesMax) scratch_.release();
  scratch_.clear();
}

// ---- to JSON ----

Transcoder::Status Transcoder::check(std::string_view message, const Limits& limits, MsgpackMembers& members) noexcept {
  switch (walk_message(message, limits.depth, members)) {
    case ScanStatus::complete:
      return Status::done;
    case ScanStatus::too_deep:
      return Status::too_deep;
    default:
      return Status::malformed;
  }
}

Transcoder::Status Transcoder::check(std::string_view message, const Limits& limits) noexcept {
  MsgpackMembers members;
  return check(message, limits, members);
}

Transcoder::Status Transcoder::to_json(std::string_view message, const Limits& limits, Buffer& out) {
  const Status status = check(message, limits);
  return status == Status::done ? checked_to_json(message, limits, out) : status;
}

Transcoder::Status Transcoder::checked_to_json(std::string_view message, const Limits& limits, Buffer& out) {
  message_ = nullptr;
  unrepresentable_.clear();
  cancels_.clear();
  return convert(message, limits, out);
}

Transcoder::Status Transcoder::read(std::string_view message, const Limits& limits, Buffer& text, Received& received,
                                    std::span<Received> elements, const MsgpackMembers& members) {
  message_ = message.data();
  unrepresentable_.clear();
  cancels_.clear();
  if (members.are_all()) {
    start_ = text.size();
    bytes_max_ = limits.max_message_size * kGrowth;
    if (!envelope(members, text)) return Status::too_large;
  } else if (const Status status = convert(message, limits, text); status != Status::done) {
    return status;
  }
  // The depth has been checked, of the message; only data of an error may be deeper here than there.
  Limits relaxed = limits;
  relaxed.depth = kDepthMax;
  const Scan scan = read_message(text.padded(), relaxed, true, received, elements);
  return scan.status == ScanStatus::complete ? Status::done : Status::too_deep;
}

std::string_view Transcoder::unpack(Received& restored, const Limits& limits, Buffer& json) {
  restored.msgpack = false;
  for (const Member member : {Member::params, Member::result}) {
    if (!restored.has(member)) continue;
    const std::size_t begin = json.size();
    const codec::Names names = member == Member::params ? codec::Names::members : codec::Names::data;
    Transcoded result = to_json_(restored[member], json, limits.max_message_size * kGrowth, names);
    if (result.status == TranscodeStatus::too_large) result.why = "as JSON it is larger than a message may be";
    if (!result.done()) {
      json.truncate(begin);
      json.append("null");
    }
    const std::string_view all = json.padded();
    restored.spans[static_cast<std::size_t>(member)] = {all.data() + begin, all.size() - begin};
    return result.done() ? std::string_view{} : result.why;
  }
  return {};
}

Transcoder::Status Transcoder::convert(std::string_view message, const Limits& limits, Buffer& out) {
  start_ = out.size();
  bytes_max_ = limits.max_message_size * kGrowth;
  const char* p = message.data();
  const Head head = msgpack::read_head(p);
  if (head.type == Type::map) return envelope(p, out) != nullptr ? Status::done : Status::too_large;
  if (head.type != Type::array) return element(message, out) ? Status::done : Status::too_large;
  out.push_back('[');
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    if (i != 0) out.push_back(',');
    if (msgpack::read_head(p).type == Type::map) {
      p = envelope(p, out);
      if (p == nullptr) return Status::too_large;
      continue;
    }
    const char* const end = end_of(p);
    if (!element({p, end}, out)) return Status::too_large;
    p = end;
  }
  out.push_back(']');
  return fits(out) ? Status::done : Status::too_large;
}

bool Transcoder::is_long_batch(std::string_view message, const Limits& limits) noexcept {
  const Head head = msgpack::read_head(message.data());
  return head.type == Type::array && head.value > limits.batch;
}

namespace {

/// What an element of a batch over the limit is, as far as its refusal depends on it.
struct Refusable {
  const char* end;
  std::string_view id = {};  ///< its only one
  bool response = false;
};

Refusable refusable_at(const char* p) noexcept {
  const Head head = msgpack::read_head(p);
  if (head.type != Type::map) return {end_of(p)};
  Refusable out{};
  bool has_method = false;
  bool has_result = false;
  std::size_t ids = 0;
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const Head name_head = msgpack::read_head(p);
    const std::string_view name = name_head.type == Type::string ? string_at(p, name_head) : std::string_view{};
    const char* const value = end_of(p);
    p = end_of(value);
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

}  // namespace

Transcoder::Status Transcoder::read_long_batch(std::string_view batch, const Limits& limits, bool responses,
                                               Buffer& text, Received& received) {
  message_ = nullptr;
  unrepresentable_.clear();
  cancels_.clear();
  start_ = text.size();
  bytes_max_ = limits.max_message_size * kGrowth;
  // Each request in the text is smaller than its refusal: so more than that may have is enough.
  const std::size_t requests_bytes_max = std::min(limits.soft_output, limits.max_message_size);
  std::size_t requests_bytes = 0;
  bool others = false;  // elements that nobody waits for by an id, but no responses
  const Head head = msgpack::read_head(batch.data());
  const char* p = batch.data() + head.bytes;
  text.push_back('[');
  for (std::uint64_t left = head.value; left != 0 && requests_bytes <= requests_bytes_max;) {
    if (const std::size_t count = msgpack::one_byte_values(p, left); count != 0) {
      others = true;
      left -= count;
      p += count;
      continue;
    }
    const char* const element = p;
    const Refusable what = refusable_at(element);
    p = what.end;
    --left;
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
  received.kind = MessageKind::invalid;
  received.fault = Fault::batch_limit;
  received.batch_size = head.value;
  received.text = text.padded().substr(start_);
  return Status::done;
}

/// An element for one that is refused by its id; 0 bytes for one that nobody can be answered by.
std::size_t Transcoder::write_refusable(std::string_view id, Buffer& out) {
  if (id.empty() || id.size() > kIdBytesMax + msgpack::kHeadBytesMax) return 0;
  const Head head = msgpack::read_head(id.data());
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

std::size_t Transcoder::bytes_left(const Buffer& out) const noexcept {
  return bytes_max_ - std::min(bytes_max_, out.size() - start_);
}

namespace {

bool has_member(std::string_view envelope, std::string_view wanted) noexcept {
  const char* p = envelope.data();
  const Head head = msgpack::read_head(p);
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const Head name = msgpack::read_head(p);
    if (name.type == Type::string && string_at(p, name) == wanted) return true;
    p = end_of(end_of(p));
  }
  return false;
}

}  // namespace

std::string_view Transcoder::method_of(std::string_view envelope, const MsgpackMembers& members) noexcept {
  if (!members.are_all()) return method_of(envelope);
  const MsgpackMember* const method = members.find("method");
  if (method == nullptr) return {};
  const Head head = msgpack::read_head(method->value.data());
  return head.type == Type::string ? string_at(method->value.data(), head) : std::string_view{};
}

std::string_view Transcoder::method_of(std::string_view envelope) noexcept {
  const char* p = envelope.data();
  const Head head = msgpack::read_head(p);
  if (head.type != Type::map) return {};
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const Head name = msgpack::read_head(p);
    const bool is_method = name.type == Type::string && string_at(p, name) == "method";
    p = end_of(p);
    if (is_method) {
      const Head value = msgpack::read_head(p);
      return value.type == Type::string ? string_at(p, value) : std::string_view{};
    }
    p = end_of(p);
  }
  return {};
}

bool Transcoder::is_single(std::string_view message) noexcept {
  return msgpack::read_head(message.data()).type == Type::map;
}

std::size_t Transcoder::elements_offset(std::string_view batch) noexcept {
  return msgpack::read_head(batch.data()).bytes;
}

std::string_view Transcoder::element_at(std::string_view batch, std::size_t offset) noexcept {
  const char* const begin = batch.data() + offset;
  return {begin, static_cast<std::size_t>(end_of(begin) - begin)};
}

bool Transcoder::has_response(std::string_view message, const MsgpackMembers& members) noexcept {
  return members.are_all() ? members.find("method") == nullptr : has_response(message);
}

bool Transcoder::has_response(std::string_view message) noexcept {
  const char* p = message.data();
  const Head head = msgpack::read_head(p);
  if (head.type == Type::map) return !has_member(message, "method");
  if (head.type != Type::array) return false;
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const char* const end = end_of(p);
    if (msgpack::read_head(p).type == Type::map && !has_member({p, end}, "method")) return true;
    p = end;
  }
  return false;
}

/// A value that stays as it is. Params have to be an array here, since they are one to whoever reads the text.
bool Transcoder::keep(std::string_view name, std::string_view value, Buffer& out) {
  begin_member(name, out);
  out.push_back('[');
  append_number(out, static_cast<std::uint64_t>(value.data() - message_));
  out.push_back(',');
  append_number(out, value.size());
  out.push_back(']');
  return fits(out);
}

void Transcoder::restore(std::string_view message, Received& received) noexcept {
  received.msgpack = true;
  received.integer_count = 0;
  for (const Member member : {Member::params, Member::result}) {
    if (!received.has(member)) continue;
    const std::string_view span = received[member];
    if (span.front() != '[') {  // null, or what is refused
      received.present &= ~(std::uint32_t{1} << static_cast<unsigned>(member));
      continue;
    }
    std::size_t offset = 0;
    std::size_t size = 0;
    const char* const end = span.data() + span.size();
    const char* const comma = std::from_chars(span.data() + 1, end, offset).ptr;
    std::from_chars(comma + 1, end, size);
    received.spans[static_cast<std::size_t>(member)] = {message.data() + offset, size};
  }
}

/// A value where a message should be, which is refused whatever it is.
bool Transcoder::element(std::string_view value, Buffer& out) {
  const std::size_t begin = out.size();
  const Transcoded result = to_json_(value, out, bytes_left(out));
  if (result.status == TranscodeStatus::no_form) {
    out.truncate(begin);
    out.append("false");
  }
  return result.status != TranscodeStatus::too_large;
}

void Transcoder::begin_envelope(Buffer& out) {
  begin_ = out.size();
  method_ = {};
  out.push_back('{');
}

/// Its end; null when it becomes too large.
const char* Transcoder::envelope(const char* p, Buffer& out) {
  begin_envelope(out);
  const std::size_t unrepresentable_before = unrepresentable_.size();
  std::string_view params;
  const Head head = msgpack::read_head(p);
  p += head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const Head name = msgpack::read_head(p);
    const char* const key = p;
    p = end_of(p);
    const char* const end = end_of(p);
    // A key that is no string is no member that anybody asks for.
    if (name.type == Type::string) {
      if (!member(string_at(key, name), {p, end}, out)) return nullptr;
      if (unrepresentable_.size() != unrepresentable_before && params.empty()) params = {p, end};
    }
    p = end;
  }
  return end_envelope(params, out) ? p : nullptr;
}

/// The same of one whose members are known.
bool Transcoder::envelope(const MsgpackMembers& members, Buffer& out) {
  begin_envelope(out);
  for (const MsgpackMember& one : members.view()) {
    if (!member(one.name, one.value, out)) return false;
  }
  return end_envelope({}, out);  // params that stay are none without a form
}

/// `params` are those that have no form.
bool Transcoder::end_envelope(std::string_view params, Buffer& out) {
  out.push_back('}');
  if (!params.empty() && method_ == "rpc.item") break_stream(params, out);
  return fits(out);
}

/// In place of an item that has no form: the response that ends its stream.
void Transcoder::break_stream(std::string_view params, Buffer& out) {
  const Head head = msgpack::read_head(params.data());
  if (head.type != Type::map) return;
  const char* p = params.data() + head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const Head name = msgpack::read_head(p);
    const bool is_id = name.type == Type::string && string_at(p, name) == "id";
    p = end_of(p);
    const char* const end = end_of(p);
    Buffer id;
    if (is_id && to_json_({p, end}, id).done()) {
      const Error error = cannot(ErrorCode::internal_error, unrepresentable_.back().why);
      out.truncate(begin_);
      write_error(out, error, id.view());
      cancels_.push_back(cancel_request(id.view()));
      return unrepresentable_.pop_back();
    }
    p = end;
  }
}

void Transcoder::begin_member(std::string_view name, Buffer& out) {
  if (out.size() != begin_ + 1) out.push_back(',');
  writer_.reset(out);
  writer_.string(name);
  out.push_back(':');
}

bool Transcoder::member(std::string_view name, std::string_view value, Buffer& out) {
  if (message_ != nullptr && !is_envelope_name(name)) return true;
  const std::size_t before = out.size();
  begin_member(name, out);
  const std::size_t begin = out.size();
  const bool is_params = name == "params";
  // In JSON they would be objects, and so params by name, or a string, and so an id.
  const Type type = msgpack::read_head(value.data()).type;
  const bool is_nested = type == Type::array || type == Type::map;
  const bool stays = message_ != nullptr;
  bool is_wrong = (is_params || is_term(name)) && is_opaque(msgpack::read_head(value.data()));
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
    const Head head = msgpack::read_head(value.data());
    if (head.type == Type::string) method_ = string_at(value.data(), head);
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
    Error error = cannot(ErrorCode::internal_error, result.why);
    if (name == "error") error = with_other_data(value, std::move(error));
    begin_member("error", out);
    out.append(error_text(error));
  }
  return fits(out);
}

// ---- to MessagePack ----

bool Transcoder::to_msgpack(std::string_view json, const Limits& limits, Buffer& out, std::vector<Broken>* broken) {
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

bool Transcoder::append_value(std::string_view json, Buffer& out) {
  const std::size_t before = out.size();
  if (to_msgpack_(json, out).done()) return true;
  out.truncate(before);
  return false;
}

void Transcoder::read_members(std::string_view json) {
  members_.clear();
  reader_.reset(json);
  if (!reader_.begin_object()) return;  // nothing that we send
  std::string_view name;
  while (reader_.next_member(name)) {
    const std::string_view value = reader_.skip();
    members_.push_back({name, value});
  }
}

std::string_view Transcoder::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(members_, name, &Named::name);
  return found == members_.end() ? std::string_view{} : found->value;
}

Broken* Transcoder::find_broken(std::string_view id) const noexcept {
  if (broken_ == nullptr || id.empty()) return nullptr;
  const auto found = std::ranges::find(*broken_, id, &Broken::id);
  return found == broken_->end() ? nullptr : &*found;
}

/// An item that has no form has been dropped, and those behind it will be.
void Transcoder::break_own_stream(std::string_view id, std::string_view why) {
  if (broken_ == nullptr || id.empty() || find_broken(id) != nullptr) return;
  broken_->push_back({std::string{id}, why});
  refusals_.push_back(cancel_request(id));
}

bool Transcoder::envelope(std::string_view json, Buffer& out) {
  read_members(json);
  const std::size_t begin = out.size();
  const bool is_response = find("method").empty();
  if (broken_ != nullptr && !broken_->empty()) {
    if (is_item() && find_broken(member_of(reader_, find("params"), "id")) != nullptr) return false;
    if (Broken* const call = is_response ? find_broken(find("id")) : nullptr) {
      write_error_response(cannot(ErrorCode::internal_error, call->why), call->id, out);
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
    const Transcoded result = to_msgpack_(value, out, is_params ? codec::Names::members : codec::Names::data);
    if (result.done()) {
      ++count;
      continue;
    }
    if (is_params && is_item()) break_own_stream(member_of(reader_, value, "id"), result.why);
    if (is_params) return refuse(cannot(ErrorCode::invalid_params, result.why), begin, out);
    out.truncate(before);
    if (is_response && (name == "result" || name == "error")) {
      write_error_member(cannot(ErrorCode::internal_error, result.why), out);
      ++count;
    } else if (is_term(name)) {
      return refuse(cannot(ErrorCode::internal_error, result.why), begin, out);
    }
  }
  write_head(out, begin, msgpack::kMapForms, count);
  // An error that stands for what was too large is small.
  if (out.size() - begin + written_ <= message_bytes_max_) return true;
  if (!is_response) return refuse(too_large("the request is larger than a message may be", "no"), begin, out);
  const std::string_view id = find("id");
  out.truncate(begin);
  write_error_response(too_large("the reply is larger than a message may be", "maybe"), id.empty() ? "null" : id, out);
  return true;
}

/// A message of ours that cannot be sent: who has made the request learns why.
bool Transcoder::refuse(const Error& error, std::size_t begin, Buffer& out) {
  out.truncate(begin);
  const std::string_view id = find("id");
  if (id.empty() || find("method").empty()) return false;
  Buffer response;
  write_error(response, error, id);
  refusals_.emplace_back(response.view());
  return false;
}

void Transcoder::write_error_member(const Error& error, Buffer& out) {
  Buffer text;
  write_error(text, error, "null");
  // Of the whole reply, only the error itself.
  constexpr std::string_view kHead = kErrorReplyHead;
  constexpr std::string_view kTail = R"(,"id":null})";
  const std::string_view whole = text.padded();
  codec::append_string(out, "error");
  to_msgpack_(whole.substr(kHead.size(), whole.size() - kHead.size() - kTail.size()), out);
}

void Transcoder::write_error_response(const Error& error, std::string_view id, Buffer& out) {
  char head[msgpack::kHeadBytesMax];
  out.append({head, static_cast<std::size_t>(msgpack::write_size(head, msgpack::kMapForms, 3) - head)});
  codec::append_string(out, "jsonrpc");
  codec::append_string(out, "2.0");
  write_error_member(error, out);
  codec::append_string(out, "id");
  if (!to_msgpack_(id, out).done()) out.push_back('\xC0');
}

}  // namespace wirecall::message
