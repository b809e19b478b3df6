// Protocol Buffers over any bytes: what is taken for a message is JSON, and comes back as the same bytes from then on;
// so does any JSON.
#include <memory>
#include <string>

#include "codec/json_scan.hpp"
#include "fuzz/packed_params.hpp"
#include "fuzz/texts.hpp"
#include "message/protobuf_transcoder.hpp"
#include "wirecall/message.hpp"

#define FUZZ_FRESH value
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using wirecall::Buffer;
using wirecall::Limits;
using wirecall::ScanStatus;
using wirecall::message::ProtobufTranscoder;
using Status = wirecall::message::Transcoder::Status;

Limits as_deep_as_can_be() {
  Limits limits;
  limits.depth = wirecall::kDepthMax;
  return limits;
}

/// Only a message of many short values, or with bytes that are large in JSON, is too large.
Status to_json(std::string_view bytes, const Limits& limits, Buffer& out) {
  const std::unique_ptr<char[]> exact{new char[bytes.size()]};
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  ProtobufTranscoder transcoder;
  return transcoder.to_json({exact.get(), bytes.size()}, limits, out);
}

std::string from_json(std::string_view json) {
  const fuzz::PaddedText text{json};
  ProtobufTranscoder transcoder;
  Buffer out;
  require(transcoder.from_json(text.view(), as_deep_as_can_be(), out), "nothing is sent", json);
  return std::string{out.view()};
}

void check_comes_back(std::string_view json) {
  const std::string bytes = from_json(json);
  Buffer again;
  require(to_json(bytes, as_deep_as_can_be(), again) == Status::done, "what was written is no message", bytes);
  require(from_json(again.view()) == bytes, "what was written comes back as something else", bytes);
  require(from_json(' ' + std::string{json}) == bytes, "what is written depends on white space", bytes);
}

/// With a field behind it that is unknown no message is read in one pass.
void check_is_read_alike(std::string_view bytes, std::string_view json) {
  Buffer again;
  require(to_json(std::string{bytes} + std::string{"\xA0\x06\0", 3}, {}, again) == Status::done && again.view() == json,
          "an unknown field changes what is read", bytes);
}

/// A request that is read as it is, is one of the same method, id and params by way of JSON.
void check_request(std::string_view input) {
  const std::unique_ptr<char[]> exact{new char[input.size()]};
  if (!input.empty()) std::memcpy(exact.get(), input.data(), input.size());
  ProtobufTranscoder transcoder;
  wirecall::Received request;
  wirecall::message::IdText id;
  if (!transcoder.read_request({exact.get(), input.size()}, {}, id, request)) return;
  Buffer json;
  wirecall::Received same;
  require(to_json(input, {}, json) == Status::done, "what has been read is no message", input);
  require(wirecall::read_message(json.padded(), {}, true, same).status == ScanStatus::complete &&
              same.kind == wirecall::MessageKind::request && same.fault == wirecall::Fault::none,
          "what has been read is no request", input);
  require(same.method() == request.method() && same.id() == request.id(), "another method or id", input);
  const std::unique_ptr<wirecall::Reader> reader = wirecall::protobuf_codec().reader();
  std::string_view params;
  if (request.has(wirecall::Member::params)) {
    reader->reset(request.params());
    require(reader->read_json(params), "params cannot be read", input);
  }
  // As data, an object of one name that begins with `$` would be wrapped.
  const bool is_wrapped = params.starts_with(R"({"$":)") && !same.params().starts_with(R"({"$":)");
  require(is_wrapped || same.params() == params, "other params", input);
  fuzz::check_packed(request, wirecall::protobuf_codec(), input);

  // Handed on it is the same but for the id.
  wirecall::Buffer handed_on;
  wirecall::Received other;
  wirecall::message::IdText other_id;
  transcoder.append_request(handed_on, request.text, {.id = 7});
  require(transcoder.read_request(handed_on.view(), {}, other_id, other), "handed on it is not read", input);
  require(other.id() == "7" && other.method() == request.method() && other.present == request.present &&
              (!request.has(wirecall::Member::params) || other.params() == request.params()),
          "handed on it is another", input);
}

/// The same of a response.
void check_response(std::string_view input) {
  const std::unique_ptr<char[]> exact{new char[input.size()]};
  if (!input.empty()) std::memcpy(exact.get(), input.data(), input.size());
  ProtobufTranscoder transcoder;
  wirecall::Received response;
  wirecall::message::IdText id;
  if (!transcoder.read_response({exact.get(), input.size()}, {}, id, response)) return;
  Buffer json;
  wirecall::Received same;
  require(to_json(input, {}, json) == Status::done, "what has been read is no message", input);
  require(wirecall::read_message(json.padded(), {}, true, same).status == ScanStatus::complete &&
              same.kind == wirecall::MessageKind::response && same.fault == wirecall::Fault::none,
          "what has been read is no response", input);
  const std::unique_ptr<wirecall::Reader> reader = wirecall::protobuf_codec().reader();
  std::string_view result;
  reader->reset(response[wirecall::Member::result]);
  require(reader->read_json(result), "a result cannot be read", input);
  require(same.id() == response.id() && same[wirecall::Member::result] == result, "another result or id", input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::text_of(data, size);
  Buffer json;
  if (to_json(input, {}, json) == Status::done) {
    const wirecall::Scan scan = wirecall::json::scan(json.padded(), wirecall::kDepthMax);
    require(scan.status == ScanStatus::complete && scan.offset == json.size(), "no JSON written", input);
    check_comes_back(json.view());
    check_is_read_alike(input, json.view());
  }
  check_request(input);
  check_response(input);
  const fuzz::PaddedText text{input};
  const wirecall::Scan scan = wirecall::json::scan(text.view(), Limits{}.depth);
  const bool whole = scan.status == ScanStatus::complete && scan.offset == size;
  if (whole && (input.front() == '{' || input.front() == '[')) check_comes_back(input);
  return 0;
}
