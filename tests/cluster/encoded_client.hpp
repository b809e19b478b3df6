// A client of one of several brokers that speaks another encoding than JSON. What it is sent stays as it was written:
// what is JSON then, its connection would make its own.
#pragma once

#include "tests/cluster/cluster_world.hpp"

namespace wirecall::test {

/// What is sent to it stays as it was written.
class EncodedSink final : public rpc::MessageSink {
 public:
  explicit EncodedSink(Encoding encoding) : encoding_(encoding) {}
  Buffer& open_message() override { return text_; }
  void close_message() override { messages.emplace_back(std::exchange(text_, {}).view()); }
  void discard_message() noexcept override { text_.clear(); }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return rpc::PeerCapabilities::all(); }
  [[nodiscard]] Encoding encoding() const noexcept override { return encoding_; }

  std::vector<std::string> messages;

 private:
  const Encoding encoding_;
  Buffer text_;
};

/// A client of a broker that speaks the encoding.
class EncodedClient {
 public:
  EncodedClient(BrokerNode& node, Encoding encoding)
      : node_(&node),
        encoding_(encoding),
        sink(encoding),
        dispatcher(std::make_unique<rpc::Dispatcher>(node.registry, sink, node.limits, node.loop_context)) {}
  EncodedClient(EncodedClient&&) = delete;

  // As a connection of a broker reads it.
  void send(std::string_view message) {
    using Status = message::Transcoder::Status;
    const PaddedText frame{message};
    if (!message::codec_of(encoding_).is_native) return send_whole(message, frame.view());
    message::NativeTranscoder& native = node_->loop_context.codecs.native(encoding_);
    Buffer envelope;
    Received read;
    ASSERT_EQ(native.read(frame.view(), node_->limits, envelope, read), Status::done);
    dispatcher->answer_as(MessageForm::native(encoding_));
    if (!dispatcher->takes_encoded(read)) return send_json(json_of(message));
    if (read.kind != MessageKind::response) return dispatcher->handle_encoded(read, {}, {frame.view(), encoding_});
    message::NativeTranscoder::restore(encoding_, frame.view(), read);
    read.text = frame.view();
    EXPECT_TRUE(dispatcher->response(read));
  }
  // Written as JSON; what comes of it is so, too.
  void send_json(std::string_view text) {
    const PaddedText frame{text};
    Received message;
    ASSERT_EQ(read_message(frame.view(), node_->limits, true, message).status, ScanStatus::complete) << text;
    if (message.kind != MessageKind::response) return dispatcher->handle(message);
    EXPECT_TRUE(dispatcher->response(message));
  }
  [[nodiscard]] std::string json_of(std::string_view message) {
    const PaddedText frame{message};
    Buffer json;
    EXPECT_EQ(node_->loop_context.codecs.transcoder(encoding_).to_json(frame.view(), node_->limits, json),
              message::Transcoder::Status::done);
    static_cast<void>(node_->loop_context.codecs.transcoder(encoding_).take_unrepresentable());
    return std::string{json.view()};
  }
  [[nodiscard]] std::string received() {
    if (sink.messages.empty()) return {};
    const std::string first = sink.messages.front();
    sink.messages.erase(sink.messages.begin());
    return first;
  }

 private:
  // Of an encoding of which messages become JSON as a whole, but for those that are as nearly all are.
  void send_whole(std::string_view message, std::string_view frame) {
    message::Transcoder& transcoder = node_->loop_context.codecs.transcoder(encoding_);
    Received read;
    message::IdText id;
    if (transcoder.read_request(frame, node_->limits, id, read)) {
      dispatcher->answer_as(MessageForm::native(encoding_));
      return dispatcher->handle(read);
    }
    if (transcoder.read_response(frame, node_->limits, id, read) && dispatcher->takes_encoded(read)) {
      EXPECT_TRUE(dispatcher->response(read));
      return;
    }
    dispatcher->answer_as(MessageForm::text(encoding_));
    send_json(json_of(message));
  }

  BrokerNode* node_;
  const Encoding encoding_;

 public:
  EncodedSink sink;
  std::unique_ptr<rpc::Dispatcher> dispatcher;
};

}  // namespace wirecall::test
