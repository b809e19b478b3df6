// Encoded: what answers messages in another encoding than JSON, bytes in and bytes out, in the steps of a connection
// that has received one whole (connection/message_connection.cpp, connection/encoded_input.cpp).
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "answers.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/log.hpp"

namespace bench {

class Encoded {
 public:
  Encoded(const wirecall::Registry& registry, wirecall::Encoding encoding)
      : encoding_(encoding),
        loop_context_(wirecall::json_codec(), nullptr, &log_),
        dispatcher_(registry, sink_, limits_, loop_context_) {
    dispatcher_.answer_as(wirecall::MessageForm::native(encoding));
  }

  [[nodiscard]] std::string_view name() const { return wirecall::message::codec_of(encoding_).name; }

  /// The same texts in the encoding.
  [[nodiscard]] std::vector<Text> texts_of(const std::vector<Text>& json) {
    std::vector<Text> texts;
    for (const Text& text : json) texts.emplace_back(encoded(text.request()), encoded(text.reply));
    return texts;
  }

  bool answer(const Text& text, wirecall::Buffer& out) {
    out.clear();
    sink_.out = &out;
    wirecall::Received request;
    wirecall::message::IdText id;
    if (!loop_context_.codecs.transcoder(encoding_).read_request(text.request(), limits_, id, request))
      return wirecall::message::codec_of(encoding_).is_native && answer_in_steps(text, out);
    dispatcher_.handle(request, {});
    return true;
  }
  /// The same by the way of what is no usual request.
  bool answer_in_steps(const Text& text, wirecall::Buffer& out) {
    using Status = wirecall::message::Transcoder::Status;
    out.clear();
    sink_.out = &out;
    const wirecall::EncodedText message{text.request(), encoding_};
    wirecall::message::NativeTranscoder& transcoder = loop_context_.codecs.native(encoding_);
    wirecall::message::EnvelopeMembers members;
    if (transcoder.check(message.text, limits_, members) != Status::done) return false;
    if (members.is_single() && transcoder.has_response(message.text, members)) return false;
    if (dispatcher_.may_pass_through(message, members) != wirecall::rpc::Passthrough::yes) return false;
    envelope_.clear();
    wirecall::Received received;
    std::span<wirecall::Received> elements{*loop_context_.codecs.elements};
    if (transcoder.read(message.text, limits_, envelope_, received, elements, members) != Status::done) return false;
    if (!dispatcher_.takes_encoded(received)) return false;
    dispatcher_.handle_encoded(received, elements, message);
    return true;
  }

 private:
  struct Sink final : wirecall::rpc::MessageSink {
    wirecall::Buffer& open_message() override { return *out; }
    void close_message() override {}
    void discard_message() noexcept override { out->clear(); }
    void lose_answer() noexcept override { std::abort(); }
    wirecall::Buffer* out = nullptr;
  };

  std::string encoded(std::string_view json) {
    wirecall::Buffer text{json};
    wirecall::Buffer out;
    loop_context_.codecs.transcoder(encoding_).from_json(text.padded(), limits_, out);
    return std::string{out.view()};
  }

  wirecall::Encoding encoding_;
  wirecall::Limits limits_;
  wirecall::LogSink log_;
  Sink sink_;
  wirecall::rpc::LoopContext loop_context_;
  wirecall::rpc::Dispatcher dispatcher_;
  wirecall::Buffer envelope_;
};

}  // namespace bench
