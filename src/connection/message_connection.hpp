// MessageConnection: a connection on which JSON-RPC messages go both ways, whichever end of it we are. It joins the
// columns: bytes of a Channel go through a Framing to the Dispatcher, and responses to the user's table of calls. It
// knows no method. Owned by a server or client; lives on its loop's thread. The host and all it refers to outlive it.
//
// Where the framing carries any bytes, messages may be in other encodings. Of those for methods of this process, and of
// answers that somebody waits for, params and result stay that where the encoding is native, and so do the results that
// are sent; all others become JSON here before anybody looks at them, and what is sent then is transcoded.
//
// Input, in order of its bytes: message_ (kept parts of an unfinished message), the channel's backlog.
#pragma once

#include "connection/connection.hpp"
#include "connection/framed_channel.hpp"
#include "framing/framing.hpp"
#include "message/explain.hpp"
#include "message/message_codec.hpp"
#include "message/transcoder.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/message.hpp"

namespace wirecall::net {

/// Who waits for responses on a connection.
class ResponseHandler {
 public:
  /// A notification, before any method is looked for: true when it was for the caller.
  [[nodiscard]] virtual bool notified(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// A request, before any method is looked for: true when it was for the caller, who has answered it.
  [[nodiscard]] virtual bool asked(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// More may be sent that nobody waits for.
  virtual void drained() {}
  /// A response, well formed or not. Its spans last until this returns. False: there is no making sense of it, and the
  /// connection is to end.
  [[nodiscard]] virtual bool response(const Received& message) = 0;
  /// Of one in another encoding than JSON: whether its result is wanted as it is. `message` has no result yet.
  [[nodiscard]] virtual bool takes_encoded(const Received& message) {
    static_cast<void>(message);
    return false;
  }
  /// Whether a response is being waited for: then text that cannot be understood ends the connection, since it may have
  /// been the response.
  [[nodiscard]] virtual bool waiting() const = 0;

 protected:
  ~ResponseHandler() = default;
};

class MessageConnection final : public FramedChannel {
 public:
  /// `caller` is null where no calls are made.
  MessageConnection(Host& host, std::unique_ptr<transport::ByteStream> stream,
                    std::unique_ptr<framing::Framing> framing, ResponseHandler* caller = nullptr);
  ~MessageConnection() override;

  /// What is held of memory for a message that has not ended.
  [[nodiscard]] std::size_t unfinished_bytes() const noexcept { return held_by(message_); }

  /// What the peer has shown before it spoke here; nothing where it is empty.
  void identify(rpc::Credential shown) {
    const rpc::Authority* const authority = host_->loop_context.services.authority.get();
    if (authority == nullptr || shown.empty()) return;
    // Whoever has a certificate of nobody's may still say who it is by rpc.hello.
    if (const Principal* const known = shown.find_in(*authority)) dispatcher_.identify(known, std::move(shown));
  }

  /// The peer is another broker (rpc::Dispatcher::trust).
  [[nodiscard]] rpc::BrokerPeer& trust() { return dispatcher_.trust(); }

  void drain() noexcept override {
    draining_ = true;
    dispatcher_.drain();
    Channel::drain();
  }
  void ask_to_leave() noexcept override { dispatcher_.ask_to_leave(); }
  void stop_calls() noexcept override { dispatcher_.stop_calls(); }
  [[nodiscard]] std::string failure() const override { return framing_->failure(); }

  void close() override;
  void lose_answer() noexcept override;
  void authority_changed(bool was_open) override {
    if (dispatcher_.is_trusted()) return static_cast<void>(dispatcher_.trust());
    if (dispatcher_.is_still_known(was_open)) return;
    dispatcher_.end_if_revoked();
    close();
  }
  void batched_response(const Received& response, EncodedText batch, std::string_view element) override;

 private:
  class HeadTimer;
  class Responses;

  std::size_t read(std::span<char> input) override;
  std::size_t read_messages(std::span<char> input);
  void resume_message() override;
  bool leave_rest() override { return dispatcher_.leave_batch(); }
  void leave_message(std::vector<Buffer>& kept) override;
  void input_complete() override;
  [[nodiscard]] std::size_t kept_bytes() const noexcept override {
    return held_by(message_) + dispatcher_.held_bytes();
  }
  [[nodiscard]] std::shared_ptr<rpc::Account> account() override {
    return caller_ == nullptr ? dispatcher_.account() : nullptr;
  }
  [[nodiscard]] bool unfinished() const noexcept override { return !message_.empty() || framing_->begun(); }
  [[nodiscard]] bool is_provider() const noexcept override { return dispatcher_.is_provider(); }
  [[nodiscard]] bool idle_exempt() const noexcept override { return dispatcher_.idle_exempt(); }
  [[nodiscard]] bool send_keepalive() override;
  bool send_farewell(CloseReason why) override;
  [[nodiscard]] bool working() const noexcept override { return dispatcher_.in_flight() != 0; }
  void abandon() noexcept override { dispatcher_.abandon(); }
  void output_drained() override {
    dispatcher_.on_writable();
    if (caller_ != nullptr) caller_->drained();
  }

  void on_turn_end() override;

  bool read_whole(std::span<char> frame, bool kept, bool text);
  bool read_packed(std::string_view part);
  bool read_unpacked(framing::Find found, Buffer whole);
  bool read_binary(std::span<char> frame, bool kept);
  bool read_checked(std::span<char> frame, bool kept, message::Transcoder::Status status,
                    const message::EnvelopeMembers& members);
  void resume_long();
  bool read_encoded(std::span<char> frame, bool kept, const message::EnvelopeMembers& members, bool too_large);
  bool read_long_batch(std::string_view batch, bool kept);
  bool read_transcoded(std::span<char> frame, bool kept, message::Transcoder::Status status);
  bool takes_encoded(const Received& message);
  [[nodiscard]] message::Transcoder& transcoder() { return host_->loop_context.codecs.transcoder(encoding()); }
  [[nodiscard]] message::NativeTranscoder& native() { return host_->loop_context.codecs.native(encoding()); }
  bool read_json(std::span<char> frame, bool kept, const std::vector<message::Unrepresentable>& unrepresentable);
  bool refuse_transcoded(message::Transcoder::Status status);
  void accept(const Received& message, std::span<const Received> elements,
              std::span<const message::Unrepresentable> unrepresentable, bool transcoded) {
    unreadable_ = 0;
    ++host_->loop_context.stats.messages_in;
    const bool lost =
        !unrepresentable.empty() && message.kind == MessageKind::notification;  // nobody can be told what it said
    if (message.kind != MessageKind::request) {
      if (lost || !accept_other(message)) return;
    } else if (caller_ != nullptr && caller_->asked(message)) [[unlikely]] {
      return;
    }
    if (transcoded) [[unlikely]]
      return dispatcher_.handle_transcoded(message, elements, unrepresentable);
    dispatcher_.handle(message, elements);
  }
  bool accept_other(const Received& message);
  bool keep(std::string_view part);
  bool may_hold_message();
  void hold_no_message();
  [[nodiscard]] bool is_too_large(std::size_t bytes) const noexcept {
    return bytes > host_->limits.max_message_size ||
           (bytes > rpc::kUnidentifiedBytesMax && caller_ == nullptr && dispatcher_.is_unidentified());
  }
  [[nodiscard]] std::size_t message_bytes_max() const noexcept {
    const std::size_t bytes_max = host_->limits.max_message_size;
    return is_too_large(bytes_max) ? std::min(bytes_max, rpc::kUnidentifiedBytesMax) : bytes_max;
  }
  bool refuse(ScanStatus status, std::string_view read, const message::Unreadable& where);
  void refuse_size();
  void peer_closed();
  void stop_reading(CloseReason why);

  std::uint8_t unreadable_ = 0;  // messages in a row that cannot be read
  bool draining_ : 1 = false;
  bool lost_answer_ : 1 = false;
  char behind_zero_ = '\0';  // what stood at ended_by_zero_
  ResponseHandler* caller_;
  rpc::Dispatcher dispatcher_;
  Buffer message_;
  char* ended_by_zero_ = nullptr;          // the byte behind the message being served, where it belongs to the next one
  std::unique_ptr<HeadTimer> head_timer_;  // made with the first header that comes in parts; else null
};

}  // namespace wirecall::net
