// See transcoder.hpp.
#include "message/transcoder.hpp"

#include <charconv>
#include <functional>

#include "message/own_error.hpp"

namespace wirecall::message {

// Of memory that is kept from message to message.
constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;

/// The reason is one of the constants of codec/transcode.hpp: plain ASCII without quotes or backslashes.
static Error cannot(ErrorCode code, std::string_view why) {
  return Error::with_data(code, std::string{R"({"reason":")"}.append(why).append("\"}"));
}

Error unrepresentable_params(std::string_view why) { return cannot(ErrorCode::invalid_params, why); }
Error unrepresentable_result(std::string_view why) { return cannot(ErrorCode::internal_error, why); }
Error too_large_as_json() { return too_large("as JSON the message is larger than allowed", "no"); }
Error too_large_request() { return too_large("the request is larger than a message may be", "no"); }
Error too_large_reply() { return too_large("the reply is larger than a message may be", "maybe"); }

// ---- all ----

Transcoder::~Transcoder() = default;

bool Transcoder::read_request(std::string_view, const Limits&, IdText&, Received&) noexcept { return false; }

bool Transcoder::read_response(std::string_view, const Limits&, IdText&, Received&) noexcept { return false; }

Transcoder::Status Transcoder::to_json(std::string_view message, const Limits& limits, Buffer& out) {
  EnvelopeMembers members;
  const Status status = check(message, limits, members);
  return status == Status::done ? checked_to_json(message, limits, out) : status;
}

bool Transcoder::from_json_behind(std::size_t at, const Limits& limits, Buffer& text, std::vector<Broken>* broken) {
  scratch_.clear();
  const bool any = from_json(text.padded().substr(at), limits, scratch_, broken);
  text.truncate(at);
  if (any) text.append(scratch_.view());
  if (scratch_.capacity() > kKeptBytesMax) scratch_.release();
  return any;
}

// ---- whole messages ----

std::string_view WholeTranscoder::cause_of(Status status) const noexcept {
  return status == Status::too_deep ? "a message that nests deeper than allowed" : "no message of its encoding";
}

// Whoever makes it JSON sees what it is.
Transcoder::Status WholeTranscoder::check(std::string_view, const Limits&, EnvelopeMembers&) { return Status::done; }

Transcoder::Status WholeTranscoder::checked_to_json(std::string_view message, const Limits& limits, Buffer& out) {
  const std::size_t begin = out.size();
  const std::size_t bytes_max = limits.max_message_size * kGrowth;
  unrepresentable_.clear();
  cancels_.clear();
  const Status status = decode(message, limits, bytes_max, out);
  return status == Status::done && out.size() - begin > bytes_max ? Status::too_large : status;
}

// What has become too large is answered, as whole messages of ours are that no encoding has made larger.
bool WholeTranscoder::from_json(std::string_view json, const Limits& limits, Buffer& out, std::vector<Broken>*) {
  refusals_.clear();
  const std::size_t begin = out.size();
  encode(json, out);
  if (out.size() - begin <= limits.max_message_size) [[likely]]
    return true;
  out.truncate(begin);
  Limits relaxed = limits;
  relaxed.depth = kDepthMax;
  Received message;
  static_cast<void>(read_message(json, relaxed, true, message));
  Buffer answers{"["};
  const auto replace = [&](const Received& one) {
    Buffer refusal;
    if (one.kind == MessageKind::request) {
      write_error(refusal, too_large_request(), one.id());
      refusals_.emplace_back(refusal.view());
    } else if (one.kind == MessageKind::response) {
      if (answers.size() != 1) answers.push_back(',');
      write_error(answers, too_large_reply(), one.id());
    }
  };
  const bool batch = message.kind == MessageKind::batch;
  if (!batch) replace(message);
  BatchElements elements{batch ? message.text : "[]"};
  for (Received element; elements.next(element);) replace(element);
  if (answers.size() == 1) return false;
  if (batch) answers.push_back(']');
  encode(answers.padded().substr(batch ? 0 : 1), out);
  return true;
}

// ---- envelopes alone ----

Transcoder::Status NativeTranscoder::read(std::string_view message, const Limits& limits, Buffer& text,
                                          Received& received, std::span<Received> elements,
                                          const EnvelopeMembers& members) {
  unrepresentable_.clear();
  cancels_.clear();
  const std::size_t begin = text.size();
  if (members.are_usual() && read_directly(message, text, received, members)) return Status::done;
  text.truncate(begin);
  if (const Status status = read_envelope(message, limits, text, members); status != Status::done) return status;
  // The depth has been checked, of the message; only data of an error may be deeper here than there.
  Limits relaxed = limits;
  relaxed.depth = kDepthMax;
  const Scan scan = read_message(text.padded(), relaxed, true, received, elements);
  received.encoding = encoding_;
  return scan.status == ScanStatus::complete ? Status::done : Status::too_deep;
}

void NativeTranscoder::restore(Encoding encoding, std::string_view message, Received& received) noexcept {
  received.encoding = encoding;
  for (const Member member : {Member::params, Member::result}) {
    if (!received.has(member)) continue;
    const std::string_view span = received[member];
    const std::less_equal<> before;
    if (before(message.data(), span.data()) && before(span.data() + span.size(), message.data() + message.size()))
      continue;  // which has been read directly
    received.integer_count = 0;
    received.params_packed = false;
    if (span.front() != '[') {  // null, or what is refused
      received.present &= ~bit_of(member);
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

std::string_view NativeTranscoder::unpack(Received& restored, const Limits& limits, Buffer& json) {
  restored.encoding = Encoding::json;
  for (const Member member : {Member::params, Member::result}) {
    if (!restored.has(member)) continue;
    const std::size_t begin = json.size();
    const codec::Names names = member == Member::params ? codec::Names::members : codec::Names::data;
    codec::Transcoded result = value_to_json(restored[member], json, limits.max_message_size * kGrowth, names);
    if (result.status == codec::TranscodeStatus::too_large) result.why = "as JSON it is larger than a message may be";
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

}  // namespace wirecall::message
